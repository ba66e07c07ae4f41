//! The equivalence margin: the largest difference that counts as none, declared before the first
//! run.

use core::fmt;
use core::str::FromStr;
use record::units::Nanos;
use serde::{Deserialize, Serialize};

/// An equivalence margin: the larger of a time in nanoseconds and a share of the reference's median
/// (usually setting A's).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Margin {
    /// Minimum margin, in nanoseconds.
    pub ns: f64,
    /// Margin as a share of the reference's median, 0.05 for 5 %.
    pub share: f64,
}

impl Default for Margin {
    fn default() -> Self {
        Self { ns: 10.0, ..Self::RELATIVE }
    }
}

impl Margin {
    /// The default margin for figures that are not times: 5 % of the reference's median (usually
    /// setting A's), however small that is.
    pub const RELATIVE: Self = Self { ns: 0.0, share: 0.05 };

    /// Returns the margin in nanoseconds for a reference, usually setting A, with the median
    /// `reference_ns`.
    pub fn to_ns(self, reference_ns: f64) -> f64 {
        self.ns.max(self.share * reference_ns)
    }
}

impl fmt::Display for Margin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ns, share } = self;
        match (*ns > 0.0, *share > 0.0) {
            (true, true) => write!(f, "{ns}ns,{}%", share * 100.0),
            (false, true) => write!(f, "{}%", share * 100.0),
            (_, false) => write!(f, "{ns}ns"),
        }
    }
}

impl FromStr for Margin {
    type Err = String;

    /// Parses a time, a percentage, or both, of which the larger one counts: `10ns,5%`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a margin: give a time, a percentage, or both: 20ns, 5% or 10ns,5%");
        let mut margin = Self { ns: 0.0, share: 0.0 };
        for word in text.split(',').map(str::trim) {
            let value = match word.strip_suffix('%') {
                Some(number) => {
                    margin.share = number.trim().parse::<f64>().map_err(|_| wrong())? / 100.0;
                    margin.share
                }
                None => {
                    margin.ns = word.parse::<Nanos>().map_err(|_| wrong())?.0 as f64;
                    margin.ns
                }
            };
            if !value.is_finite() || value <= 0.0 {
                return Err(wrong());
            }
        }
        Ok(margin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margin_is_the_larger_of_time_and_share() {
        let of = |text: &str, ns: f64| text.parse::<Margin>().unwrap().to_ns(ns);
        assert_eq!([of("20ns", 1_000.0), of("5%", 1_000.0), of("10ns,5%", 100.0)], [20.0, 50.0, 10.0]);
        assert_eq!([Margin::default().to_ns(100.0), Margin::default().to_ns(1_000.0)], [10.0, 50.0]);
        assert_eq!(Margin::default().to_string(), "10ns,5%");
        assert_eq!(Margin::default().to_string().parse(), Ok(Margin::default()));
        for wrong in ["", "20", "0ns", "-5%", "5%,", "nan%", "inf%", "10ns,x"] {
            assert!(wrong.parse::<Margin>().unwrap_err().contains("20ns, 5% or 10ns,5%"), "{wrong}");
        }
    }
}
