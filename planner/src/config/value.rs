//! Parsing and formatting of setting values.
//!
//! Command line and config file share these parsers, so a value is valid or invalid in both, with
//! the same message.

use super::Arrivals;
use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use core::marker::PhantomData;
use protocol::plan::{
    ExchangePlacement, FaultKind, Idle, Isolation, IsolationError, IsolationLevels, Journaling, OnDeath,
    OrderSequence, Placement, Stamps, Technique, Threading,
};
use record::units::{Bytes, Count, Nanos};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// The value type of a setting, which can be parsed and formatted.
pub trait SettingValue: Clone + Send + Sync + Sized + 'static {
    /// `true` if the value is a list. Its flag may be repeated, and in the config file it may be a
    /// list.
    const IS_LIST: bool = false;

    /// Parses a value of this type from text.
    fn parse(text: &str) -> Result<Self, String>;

    /// Formats the value as text that can be parsed again.
    fn text(&self) -> String;

    /// Adds this value type's parser and value name to the clap definition of a setting's flag.
    fn flag(arg: clap::Arg) -> clap::Arg {
        let arg = if Self::IS_LIST { arg.action(clap::ArgAction::Append) } else { arg };
        arg.value_parser(parsed::<Self>())
    }

    /// Merges the values of a flag that is given twice; a list appends the later value.
    #[must_use]
    fn merge(self, later: Self) -> Self {
        later
    }

    /// Checks that the value is within its setting's range.
    fn check(&self, _range: Option<RangeInclusive<u64>>) -> Result<(), String> {
        Ok(())
    }

    /// Generates the text of any value that can be written, for property tests.
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String>;
}

/// Returns a clap parser for a setting's value.
pub(super) fn parsed<T: SettingValue>() -> impl TypedValueParser<Value = T> {
    StringValueParser::new().try_map(|text| T::parse(&text))
}

/// A value that users select from a fixed list of names.
pub trait Named: Sized + Clone + Send + Sync + 'static {
    /// Returns the names of all values, in the order of the documentation.
    fn names() -> Vec<&'static str>;
    /// Returns the value that has this name; `None` for an unknown name.
    fn by_name(name: &str) -> Option<Self>;
    /// Returns the name of the value.
    fn name_of(&self) -> &'static str;
}

/// Returns a clap parser that accepts the name of a [`Named`] value and returns that value. It
/// lists the names in the help and suggests the nearest.
pub fn named<T: Named>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::names())
        .try_map(|name| T::by_name(&name).ok_or_else(|| format!("{name:?} is unknown")))
}

/// Returns a clap parser that accepts the name of one of the values `all` and returns that value.
pub fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(move |value| name(*value))).try_map(move |text| {
        all.iter().copied().find(|value| name(*value) == text).ok_or_else(|| format!("{text:?} is unknown"))
    })
}

/// Clap parser for a value that is a list of names, which the help shows.
#[derive(Clone)]
pub(super) struct ListParser<T> {
    names: fn() -> Vec<&'static str>,
    value: PhantomData<fn() -> T>,
}

impl<T: SettingValue> ListParser<T> {
    pub(super) const fn new(names: fn() -> Vec<&'static str>) -> Self {
        Self { names, value: PhantomData }
    }
}

impl<T: SettingValue> TypedValueParser for ListParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<T, clap::Error> {
        parsed().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

impl SettingValue for IsolationLevels {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error| match error {
            IsolationError::Unknown(name) => unknown(&name, &Isolation::names()),
            error => error.to_string(),
        })
    }
    fn text(&self) -> String {
        self.to_string()
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        arg.value_parser(ListParser::<Self>::new(Isolation::names))
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        let name = proptest::sample::select(Isolation::names());
        let level = (name, 1u16..=256).prop_map(|(name, size)| match (name, size % 4) {
            ("thread" | "keys", _) | (_, 0) => name.to_owned(),
            _ if size == 1 => format!("{name}:closed"),
            _ => format!("{name}*{size}"),
        });
        proptest::collection::vec(level, 1..4).prop_map(|levels| levels.join("+")).boxed()
    }
}

/// Implements [`Named`] for enums made by [`named_enum!`](system::named_enum).
#[macro_export]
macro_rules! named_values {
    ($($type:ty),+) => { $(
        impl $crate::config::value::Named for $type {
            fn names() -> Vec<&'static str> {
                Self::ALL.iter().map(|value| value.name()).collect()
            }
            fn by_name(name: &str) -> Option<Self> {
                Self::from_name(name)
            }
            fn name_of(&self) -> &'static str {
                self.name()
            }
        }
    )+ };
}

impl Named for Technique {
    fn names() -> Vec<&'static str> {
        Self::all().into_iter().map(Self::name).collect()
    }
    fn by_name(name: &str) -> Option<Self> {
        Self::from_name(name)
    }
    fn name_of(&self) -> &'static str {
        self.name()
    }
}

named_values!(
    protocol::plan::Binary,
    protocol::plan::ReaderWaiting,
    protocol::plan::Speculation,
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
    Preset
);

/// Returns the error message for an unknown name, with the valid names and the nearest.
pub(super) fn unknown(text: &str, names: &[&str]) -> String {
    let suggestion = super::nearest(text, names.iter().copied());
    let hint = suggestion.map_or("there".into(), |suggestion| format!("did you mean {suggestion}? There"));
    format!("{text:?} is unknown: {hint} are {}", names.join(", "))
}

impl<T: Named> SettingValue for T {
    fn parse(text: &str) -> Result<Self, String> {
        T::by_name(text.trim()).ok_or_else(|| unknown(text.trim(), &T::names()))
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

/// A value that users select by name, or `auto` for the planner's choice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice<T> {
    /// The planner decides the value (`auto`).
    #[default]
    Auto,
    /// The user decided the value.
    Fixed(T),
}

impl<T: Named> Named for Choice<T> {
    fn names() -> Vec<&'static str> {
        std::iter::once("auto").chain(T::names()).collect()
    }
    fn by_name(name: &str) -> Option<Self> {
        if name == "auto" { Some(Choice::Auto) } else { T::by_name(name).map(Choice::Fixed) }
    }
    fn name_of(&self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Fixed(value) => value.name_of(),
        }
    }
}

system::named_enum! {
    /// A switch.
    Switch {
        /// Enabled.
        On = "on",
        /// Disabled.
        Off = "off",
    }
}

/// A setting that is off unless its flag is given, with or without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptIn(pub bool);

impl SettingValue for OptIn {
    fn parse(text: &str) -> Result<Self, String> {
        Switch::parse(text).map(|switch| Self(switch == Switch::On))
    }
    fn text(&self) -> String {
        if self.0 { Switch::On } else { Switch::Off }.name().into()
    }
    fn flag(arg: clap::Arg) -> clap::Arg {
        let on_or_off = || ListParser::<Self>::new(Switch::names);
        arg.num_args(0..=1).require_equals(true).default_missing_value("on").value_parser(on_or_off())
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        Switch::any_text()
    }
}

system::named_enum! {
    /// A named set of settings.
    Preset {
        /// The numbers of the benchmark that this project started from: 8 strategies, 4 venues,
        /// 4,000,000 orders over 10 s.
        Seed = "seed",
        /// Engine and exchange with journals, in processes of their own that restart: one strategy
        /// whose orders all trade or end, so that it can last.
        Durable = "durable",
    }
}

/// Implements [`SettingValue`] through `FromStr` and `Display`; the strategy generates valid texts.
macro_rules! text_values {
    ($($type:ty: $any:expr $(, $item:item)*;)+) => { $(
        impl $crate::config::value::SettingValue for $type {
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
    Bytes: any::<u64>().prop_map(|bytes| Bytes(bytes).to_string()),
        fn check(&self, range: Option<RangeInclusive<u64>>) -> Result<(), String> {
            within(self.0, range, "size", |bytes| Bytes(bytes).to_string())
        };
    Count: any::<u64>().prop_map(|count| count.to_string()),
        fn check(&self, range: Option<RangeInclusive<u64>>) -> Result<(), String> {
            within(self.0, range, "number", |count| count.to_string())
        };
}

/// Checks a number against a setting's range.
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

impl SettingValue for PathBuf {
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
            // Plan, records and config are text, and paths are passed to processes in them.
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
