//! By how much one run may be slower than another, as users write it: `5%`.

use core::fmt;
use core::str::FromStr;

/// By how much B may be slower than A, as a share: 0.05 is 5 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slower(f64);

impl FromStr for Slower {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
        match number.filter(|number| (0.0..=1_000.0).contains(number)) {
            Some(percent) => Ok(Self(percent / 100.0)),
            None => Err(format!("{text:?} is no share: expected a number and %, for example 5%")),
        }
    }
}

impl fmt::Display for Slower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}

impl Slower {
    /// As a share: 0.05 is 5 %.
    pub const fn share(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_its_sign() {
        let slower: Slower = "2.5%".parse().unwrap();
        assert_eq!((slower.share(), slower.to_string().as_str()), (0.025, "2.5%"));
        for wrong in ["5", "-1%", "%", "1e9%", "NaN%"] {
            assert!(wrong.parse::<Slower>().unwrap_err().contains("for example 5%"), "{wrong}");
        }
    }
}
