//! The messages that a venue takes, as users write it: `1000/s`, or `1000/s,reject`.

use super::value::Value;
use analysis::units::Count;

/// How many messages a second a venue takes, and what becomes of more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueLimit {
    /// Messages a second, from 1.
    pub per_second: u32,
    /// More are rejected. Else they wait.
    pub rejects: bool,
}

impl Value for VenueLimit {
    fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no message limit: write for example 1000/s, or 1000/s,reject");
        let (rate, rejects) = match text.trim().split_once(',') {
            Some((rate, "reject")) => (rate, true),
            Some(_) => return Err(wrong()),
            None => (text.trim(), false),
        };
        let count = rate.strip_suffix("/s").ok_or_else(wrong)?.parse::<Count>().map_err(|_| wrong())?;
        let per_second = u32::try_from(count.0).ok().filter(|count| *count > 0).ok_or_else(wrong)?;
        Ok(Self { per_second, rejects })
    }

    fn text(&self) -> String {
        format!("{}/s{}", self.per_second, if self.rejects { ",reject" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_rate() {
        assert_eq!(VenueLimit::parse("1k/s"), Ok(VenueLimit { per_second: 1000, rejects: false }));
        assert_eq!(VenueLimit::parse("5/s,reject"), Ok(VenueLimit { per_second: 5, rejects: true }));
        for text in ["", "5", "0/s", "5/s,queue", "x/s", "9999999999/s"] {
            assert!(VenueLimit::parse(text).unwrap_err().contains("1000/s,reject"), "{text}");
        }
    }
}
