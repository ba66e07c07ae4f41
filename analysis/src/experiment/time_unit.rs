//! Selects one unit for all durations of a table.

use crate::stats::Estimate;
use record::numbers::{count, plain};

/// The unit of all durations in a table, chosen by the largest of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimeUnit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
}

impl TimeUnit {
    /// Returns the unit in which the longest of some durations (nanoseconds) has at most six
    /// digits.
    pub fn for_durations(ns: impl IntoIterator<Item = f64>) -> Self {
        match ns.into_iter().map(f64::abs).filter(|ns| ns.is_finite()).fold(0.0, f64::max) {
            largest if largest < 100_000.0 => Self::Nanoseconds,
            largest if largest < 1e9 => Self::Microseconds,
            _ => Self::Milliseconds,
        }
    }

    /// Returns the unit for the longest known one of some durations in nanoseconds.
    pub fn for_known(ns: impl IntoIterator<Item = Option<u64>>) -> Self {
        Self::for_durations(ns.into_iter().flatten().map(|ns| ns as f64))
    }

    /// Returns the time unit's name for the title of a table.
    pub const fn name(self) -> &'static str {
        ["nanoseconds", "microseconds", "milliseconds"][self as usize]
    }

    /// Returns the symbol of the time unit: `ns`, `µs` or `ms`.
    pub const fn symbol(self) -> &'static str {
        ["ns", "µs", "ms"][self as usize]
    }

    /// Formats a duration of `ns` nanoseconds in this unit, without the unit: whole nanoseconds,
    /// else three or more digits.
    pub fn format(self, ns: f64) -> String {
        let value = match self {
            Self::Nanoseconds if ns < 0.0 => return format!("−{}", count(-ns.round() as u64)),
            Self::Nanoseconds => return count(ns.round() as u64),
            Self::Microseconds => ns / 1e3,
            Self::Milliseconds => ns / 1e6,
        };
        if value.abs() < 0.9995 { format!("{value:.3}") } else { plain(value) }.replace('-', "−")
    }

    /// Formats a duration of `ns` nanoseconds in this unit, without the unit; a dash if it is
    /// unknown.
    pub fn format_or_dash(self, ns: Option<f64>) -> String {
        ns.map_or_else(|| "–".into(), |ns| self.format(ns))
    }

    /// Formats a duration, given as an integer number of nanoseconds, in this unit, without the
    /// unit; a dash if it is unknown.
    pub fn format_whole(self, ns: Option<u64>) -> String {
        self.format_or_dash(ns.map(|ns| ns as f64))
    }

    /// Formats a difference, given in nanoseconds, and its interval in this unit, without the unit:
    /// `+12` and `[+3, +20]`.
    pub fn difference(self, by: Estimate) -> [String; 2] {
        [self.signed(by.value), format!("[{}, {}]", self.signed(by.low), self.signed(by.high))]
    }

    /// Formats a difference of `ns` nanoseconds in this unit, with its sign and without the unit.
    pub fn signed(self, ns: f64) -> String {
        let sign = if ns.round() < 0.0 { "" } else { "+" };
        format!("{sign}{}", self.format(if ns.round() == 0.0 { 0.0 } else { ns }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_duration_chooses_the_unit() {
        for (ns, symbol, formatted) in [
            (&[250.0, 99_999.0][..], "ns", "250 99,999"),
            (&[250.0, 1_577_000.0], "µs", "0.250 1,577"),
            (&[12_345.0, 2.5e9], "ms", "0.012 2,500"),
            (&[-12.0], "ns", "−12"),
        ] {
            let unit = TimeUnit::for_durations(ns.iter().copied());
            let all: Vec<String> = ns.iter().map(|ns| unit.format(*ns)).collect();
            assert_eq!((unit.symbol(), all.join(" ").as_str()), (symbol, formatted));
        }
        let ns = TimeUnit::Nanoseconds;
        assert_eq!([12.0, -0.4, -3.0].map(|value| ns.signed(value)), ["+12", "+0", "−3"]);
        assert_eq!(ns.format_or_dash(None), "–");
    }
}
