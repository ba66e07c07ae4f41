//! The types of single settings: how each is read from a text and written back.
//!
//! Command line and config file share these parsers, so a value is right or wrong in both alike and its message
//! is the same.

use super::{Arrivals, DelayRange, Priority, SpillRoom, delay};
use analysis::experiment::{Speed, Wait};
use analysis::lists;
use analysis::units::{Count, Nanos};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use core::fmt;
use protocol::plan::{
    ExchangePlacement, FaultKind, Idle, Isolation, Journalling, OnDeath, Placement, Sequence, Stamps,
    Technique, Threading,
};
use std::path::PathBuf;

/// A setting's value as text.
pub trait Value: Sized {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with the text and what would be right, on one line.
    fn parse(text: &str) -> Result<Self, String>;
    /// Writes it as [`Value::parse`] reads it.
    fn text(&self) -> String;
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

/// Makes [`Named`] of enums that [`shm::named`](shm::names) made.
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
    Journalling,
    Sequence,
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

impl<T: Named> Value for T {
    fn parse(text: &str) -> Result<Self, String> {
        T::of(text.trim()).ok_or_else(|| {
            let names = T::names();
            let near = super::nearest(text, names.iter().copied());
            let hint = near.map_or("there".into(), |near| format!("did you mean {near}? There"));
            format!("{:?} is unknown: {hint} are {}", text.trim(), names.join(", "))
        })
    }
    fn text(&self) -> String {
        self.name_of().into()
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

system::names! {
    /// Something that is there or not.
    Switch {
        /// It is.
        On = "on",
        /// It is not.
        Off = "off",
    }
}

/// A set of settings with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// The numbers of the seed benchmark: 8 strategies, 4 venues, 4,000,000 orders over 10 s.
    Seed,
}

impl Preset {
    /// Every preset.
    pub const ALL: &'static [Self] = &[Self::Seed];

    /// The name that users type.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::Seed => "seed",
        }
    }

    /// The preset of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|preset| preset.name() == name)
    }
}

/// Which cores to use, as users write it: `0,2-5`. Ascending, without doubles, never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(pub Vec<u32>);

impl core::str::FromStr for CoreList {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match lists::parse(text) {
            Some(cores) if !cores.is_empty() => Ok(CoreList(cores)),
            _ => Err(format!("{:?} is not a list of cores: expected for example 0,2-5", text.trim())),
        }
    }
}

impl fmt::Display for CoreList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&lists::format(&self.0))
    }
}

/// A factor by which a recorded schedule is played faster (above 1) or slower (below 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(pub f64);

impl core::str::FromStr for Factor {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().trim_end_matches('x').parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(Factor(factor)),
            _ => Err(format!(
                "{:?} is not a factor: expected a number above 0, for example 10 or 0.5",
                text.trim()
            )),
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

macro_rules! from_str_values {
    ($($type:ty),+) => { $(
        impl Value for $type {
            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: <$type as core::str::FromStr>::Err| error.to_string())
            }
            fn text(&self) -> String {
                self.to_string()
            }
        }
    )+ };
}

from_str_values!(Nanos, Count, CoreList, Factor, Priority, SpillRoom);

impl Value for DelayRange {
    fn parse(text: &str) -> Result<Self, String> {
        delay::parse_delay(text).map_err(|error| error.to_string())
    }
    fn text(&self) -> String {
        delay::format_delay(self)
    }
}

impl Value for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("expected a path".into()) } else { Ok(PathBuf::from(text)) }
    }
    fn text(&self) -> String {
        self.to_string_lossy().into_owned()
    }
}
