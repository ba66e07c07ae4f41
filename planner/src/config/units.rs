//! Values of settings with units: durations, rates, sizes and lists of cores. `fixed:5ms`, `0,2-5`,
//! `fifo:50`, `1000/s,reject`, `5%`.

use super::DelayRange;
use super::value::{SettingValue, text_values};
use core::fmt;
use core::ops::RangeInclusive;
use core::str::FromStr;
use record::cpu_list;
use record::units::{Nanos, UnitError, clip};
use system::priority::FIFO;

/// Parses the delay of a venue: `5ms`, `fixed:5ms` or `uniform:5ms..500ms`.
pub fn parse_delay(text: &str) -> Result<DelayRange, UnitError> {
    let trimmed = text.trim();
    let is_time = trimmed.starts_with(|first: char| first.is_ascii_digit());
    if let Some((min, max)) = trimmed.split_once("..").filter(|_| is_time) {
        let (min, max): (Nanos, Nanos) = (min.parse()?, max.parse()?);
        return Err(UnitError::NoKind(format!("{}..{}", min.min(max), min.max(max))));
    }
    let range = if let Some(fixed) = trimmed.strip_prefix("fixed:").or(is_time.then_some(trimmed)) {
        let Nanos(ns) = fixed.parse()?;
        DelayRange { min_ns: ns, max_ns: ns }
    } else if let Some((min, max)) = trimmed.strip_prefix("uniform:").and_then(|r| r.split_once("..")) {
        DelayRange { min_ns: min.parse::<Nanos>()?.0, max_ns: max.parse::<Nanos>()?.0 }
    } else {
        return Err(UnitError::Delay(clip(text)));
    };
    if range.min_ns > range.max_ns { Err(UnitError::Backwards(clip(text))) } else { Ok(range) }
}

impl SettingValue for DelayRange {
    fn parse(text: &str) -> Result<Self, String> {
        parse_delay(text).map_err(|error| error.to_string())
    }
    fn text(&self) -> String {
        match (Nanos(self.min_ns), Nanos(self.max_ns)) {
            (min, max) if min == max => format!("fixed:{min}"),
            (min, max) => format!("uniform:{min}..{max}"),
        }
    }
    fn check(&self, range: Option<RangeInclusive<u64>>) -> Result<(), String> {
        match range.map(|range| *range.end()) {
            Some(max) if self.max_ns > max => {
                Err(format!("at most {}, the run lasts that much longer", Nanos(max)))
            }
            _ => Ok(()),
        }
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        let text = |(a, b): (u64, u64)| DelayRange { min_ns: a.min(b), max_ns: a.max(b) }.text();
        any::<(u64, u64)>().prop_map(text).boxed()
    }
}

/// A list of CPU cores, which users write as `0,2-5`. Ascending, without duplicates, never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreList(pub Vec<u32>);

impl FromStr for CoreList {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match cpu_list::parse(text) {
            Some(cores) if !cores.is_empty() => Ok(CoreList(cores)),
            _ => Err(format!("{:?} is not a list of cores: expected for example 0,2-5", text.trim())),
        }
    }
}

impl fmt::Display for CoreList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&cpu_list::format(&self.0))
    }
}

/// A factor of the speed at which a recorded schedule is played: above 1 faster, below 1 slower.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor(pub f64);

impl SettingValue for Factor {
    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        match text.trim_end_matches('x').parse::<f64>() {
            Ok(factor) if factor.is_finite() && factor > 0.0 => Ok(Factor(factor)),
            _ => Err(format!("{text:?} is not a factor: expected a number above 0, for example 10 or 0.5")),
        }
    }
    fn text(&self) -> String {
        self.0.to_string()
    }
    #[cfg(test)]
    fn any_text() -> proptest::prelude::BoxedStrategy<String> {
        use proptest::prelude::*;
        (1e-6f64..1e6).prop_map(|factor| factor.to_string()).boxed()
    }
}

/// The scheduling priority of a run's threads under `SCHED_FIFO`, 1 to 99: `fifo:50`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority(u8);

impl Priority {
    /// Creates a `SCHED_FIFO` priority from a number; `None` if it is not 1 to 99.
    pub fn new(fifo: u8) -> Option<Self> {
        FIFO.contains(&fifo).then_some(Self(fifo))
    }

    /// Returns the priority as the kernel's number for `SCHED_FIFO`, 1 to 99.
    pub const fn fifo(self) -> u8 {
        self.0
    }
}

impl FromStr for Priority {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.trim().strip_prefix("fifo:").and_then(|number| number.parse().ok());
        let wrong = || {
            let (low, high) = (FIFO.start(), FIFO.end());
            format!(
                "{text:?} is not a priority: expected fifo:N with N from {low} to {high}, for example fifo:50"
            )
        };
        number.and_then(Self::new).ok_or_else(wrong)
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fifo:{}", self.0)
    }
}

text_values! {
    CoreList: proptest::collection::btree_set(0u32..200, 1..20)
        .prop_map(|cores| CoreList(cores.into_iter().collect()).to_string());
    Priority: (1u8..=99).prop_map(|fifo| Priority(fifo).to_string());
}

/// The slowdown relative to a baseline that a performance gate accepts, as a share: `5%` is 0.05.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower(f64);

impl FromStr for Slower {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        match number.filter(|number| (0.0..=1_000.0).contains(number)) {
            Some(percent) => Ok(Self(percent / 100.0)),
            None => Err(format!("{text:?} is not a percentage: expected a number and %, for example 5%")),
        }
    }
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}

impl Slower {
    /// Returns the slowdown relative to a baseline that a performance gate accepts, as a share such
    /// as 0.05.
    pub const fn share(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_notation_is_read_and_written_back() {
        fn same<T: SettingValue>(text: &str, written: &str) {
            assert_eq!(T::parse(text).map(|value| value.text()), Ok(written.into()), "{text}");
        }
        same::<DelayRange>(" fixed:5000us", "fixed:5ms");
        same::<DelayRange>("5ms", "fixed:5ms");
        same::<DelayRange>("uniform:5us..1s", "uniform:5us..1s");
        same::<CoreList>("5,0,2-4", "0,2-5");
        same::<Factor>("2.50x", "2.5");
        same::<Priority>(" fifo:50", "fifo:50");
        let slower: Slower = "2.5%".parse().unwrap();
        assert_eq!((slower.share(), slower.to_string().as_str()), (0.025, "2.5%"));
    }

    #[test]
    fn wrong_notation_is_answered_with_an_example() {
        for (text, message) in [
            ("slow", "expected fixed:5ms or uniform:5ms..500ms"),
            ("5", "has no unit"),
            ("uniform:5ms", "expected fixed"),
            ("uniform:5..6", "has no unit"),
            ("5ms..1ms", "write uniform:1ms..5ms"),
            ("uniform:5ms..5us", "shorter delay first"),
        ] {
            assert!(DelayRange::parse(text).unwrap_err().contains(message), "{text}");
        }
        for text in ["50", "fifo:0", "fifo:100", "fifo:-1", "fifo:", "rr:5", "fifo:256", ""] {
            assert!(Priority::parse(text).unwrap_err().contains("fifo:50"), "{text}");
        }
        for text in ["5", "-1%", "%", "1e9%", "NaN%"] {
            assert!(text.parse::<Slower>().unwrap_err().contains("for example 5%"), "{text}");
        }
    }
}
