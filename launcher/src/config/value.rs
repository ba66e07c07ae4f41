//! How a setting's value is read from a text and written back.
//!
//! Command line and config file share these parsers, so a value is right or wrong in both alike and
//! its message is the same.

use super::Arrivals;
use analysis::experiment::{Speed, Wait};
use analysis::units::{Count, Nanos};
use clap::builder::{PossibleValuesParser, StringValueParser, TypedValueParser};
use protocol::plan::{
    ExchangePlacement, FaultKind, Idle, Isolation, Journaling, OnDeath, OrderSequence, Placement, Stamps,
    Technique, Threading,
};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// A setting's value as text.
pub trait Value: Clone + Send + Sync + Sized + 'static {
    /// Whether it is a list: its flag may be given several times, and in the config file it may be
    /// a list of texts.
    const IS_LIST: bool = false;

    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with the text and what would be right, on one line.
    fn parse(text: &str) -> Result<Self, String>;

    /// Writes it as [`Value::parse`] reads it.
    fn text(&self) -> String;

    /// Completes the flag: how clap reads it.
    fn flag(arg: clap::Arg) -> clap::Arg {
        let arg = if Self::IS_LIST { arg.action(clap::ArgAction::Append) } else { arg };
        arg.value_parser(parsed::<Self>())
    }

    /// Appends what the same flag says when it is given again; a list does.
    #[must_use]
    fn and(self, later: Self) -> Self {
        later
    }

    /// Checks a value that can be read, in its setting's range.
    ///
    /// # Errors
    /// What would be right.
    fn check(&self, _range: Option<RangeInclusive<u64>>) -> Result<(), String> {
        Ok(())
    }

    /// Any value that can be written down, as text.
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String>;
}

/// Reads a value with its [`Value::parse`], for clap.
pub(super) fn parsed<T: Value>() -> impl TypedValueParser<Value = T> {
    StringValueParser::new().try_map(|text| T::parse(&text))
}

/// A value out of a fixed list of names.
pub trait Named: Sized + Clone + Send + Sync + 'static {
    /// All names, in the order of the documentation.
    fn names() -> Vec<&'static str>;
    /// The value of a name.
    fn of(name: &str) -> Option<Self>;
    /// The name of a value.
    fn name_of(&self) -> &'static str;
}

/// What clap reads a named value with: it lists the names in the help and suggests the nearest.
pub fn named<T: Named>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::names())
        .try_map(|name| T::of(&name).ok_or_else(|| format!("{name:?} is unknown")))
}

/// Makes [`Named`] of enums that [`named_enum!`](system::named_enum) made.
macro_rules! named_values {
    ($($type:ty),+) => { $(
        impl $crate::config::value::Named for $type {
            fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|value| value.name()).collect()
            }
            fn of(name: &str) -> Option<Self> {
                Self::from_name(name)
            }
            fn name_of(&self) -> &'static str {
                self.name()
            }
        }
    )+ };
}
pub(crate) use named_values;

impl Named for Technique {
    fn names() -> Vec<&'static str> {
        Self::all().into_iter().map(Self::name).collect()
    }
    fn of(name: &str) -> Option<Self> {
        Self::from_name(name)
    }
    fn name_of(&self) -> &'static str {
        self.name()
    }
}

named_values!(
    Isolation,
    Threading,
    Placement,
    ExchangePlacement,
    Journaling,
    OrderSequence,
    Stamps,
    Switch,
    Idle,
    Arrivals,
    OnDeath,
    FaultKind,
    Preset,
    Speed,
    Wait
);

/// Says which names there are, and which is like that one.
pub(super) fn unknown(text: &str, names: &[&str]) -> String {
    let near = super::nearest(text, names.iter().copied());
    let hint = near.map_or("there".into(), |near| format!("did you mean {near}? There"));
    format!("{text:?} is unknown: {hint} are {}", names.join(", "))
}

impl<T: Named> Value for T {
    fn parse(text: &str) -> Result<Self, String> {
        T::of(text.trim()).ok_or_else(|| unknown(text.trim(), &T::names()))
    }
    fn text(&self) -> String {
        self.name_of().into()
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.value_parser(named::<T>())
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        proptest::sample::select(T::names()).prop_map(str::to_owned).boxed()
    }
}

/// A named value, or the planner's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice<T> {
    /// The planner decides by what the machine can carry.
    #[default]
    Auto,
    /// The user decided.
    Fixed(T),
}

impl<T: Named> Named for Choice<T> {
    fn names() -> Vec<&'static str> {
        std::iter::once("auto").chain(T::names()).collect()
    }
    fn of(name: &str) -> Option<Self> {
        if name == "auto" { Some(Choice::Auto) } else { T::of(name).map(Choice::Fixed) }
    }
    fn name_of(&self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Fixed(value) => value.name_of(),
        }
    }
}

system::named_enum! {
    /// Something that is there or not.
    Switch {
        /// It is.
        On = "on",
        /// It is not.
        Off = "off",
    }
}

system::named_enum! {
    /// A set of settings with a name.
    Preset {
        /// The numbers of the seed benchmark: 8 strategies, 4 venues, 4,000,000 orders over 10 s.
        Seed = "seed",
    }
}

/// Makes [`Value`] of what has `FromStr` and `Display`: the strategy says which texts are values.
macro_rules! text_values {
    ($($type:ty: $any:expr $(, $item:item)*;)+) => { $(
        impl $crate::config::value::Value for $type {
            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: <$type as core::str::FromStr>::Err| error.to_string())
            }
            fn text(&self) -> String {
                self.to_string()
            }
            #[cfg(test)]
            fn any_text() -> proptest::prelude::BoxedStrategy<String> {
                use proptest::prelude::*;
                $any.boxed()
            }
            $($item)*
        }
    )+ };
}
pub(super) use text_values;

text_values! {
    Nanos: any::<u64>().prop_map(|ns| Nanos(ns).to_string()),
        fn check(&self, range: Option<RangeInclusive<u64>>) -> Result<(), String> {
            within(self.0, range, "time", |ns| Nanos(ns).to_string())
        };
    Count: any::<u64>().prop_map(|count| count.to_string()),
        fn check(&self, range: Option<RangeInclusive<u64>>) -> Result<(), String> {
            within(self.0, range, "number", |count| count.to_string())
        };
}

/// Says which numbers a setting takes.
fn within(
    value: u64,
    range: Option<RangeInclusive<u64>>,
    what: &str,
    shown: fn(u64) -> String,
) -> Result<(), String> {
    match range {
        Some(range) if !range.contains(&value) => {
            Err(format!("give a {what} from {} to {}", shown(*range.start()), shown(*range.end())))
        }
        _ => Ok(()),
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("expected a path".into()) } else { Ok(PathBuf::from(text)) }
    }
    fn text(&self) -> String {
        self.to_string_lossy().into_owned()
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.value_parser(clap::value_parser!(PathBuf))
    }
    fn check(&self, _range: Option<RangeInclusive<u64>>) -> Result<(), String> {
        match self.to_str() {
            Some(_) => Ok(()),
            // Plan, records and config are text, and every process is told its paths by them.
            None => Err("the name is not UTF-8, and the plan of a run is text: go into that folder and name it from there, or \
                         rename it"
                .into()),
        }
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        "[ -~µ]{1,20}".boxed()
    }
}
