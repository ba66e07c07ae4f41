//! Sizes in bytes, as users write them: `512M`, `2G`; powers of 1024.

use std::fmt;
use std::str::FromStr;

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

const UNITS: [(&str, u32); 3] = [("K", 10), ("M", 20), ("G", 30)];

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no size: a whole number with its unit, for example 512M or 2G");
        let of = |(unit, shift): (&str, u32)| Some((text.strip_suffix(unit)?, shift));
        let (number, shift) = UNITS.into_iter().find_map(of).ok_or_else(wrong)?;
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = number.parse().ok().filter(|_| is_number).ok_or_else(wrong)?;
        number.checked_mul(1 << shift).map(Self).ok_or_else(|| format!("{text:?} is more than there is"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, shift): &&(&str, u32)| self.0 > 0 && self.0.is_multiple_of(1 << shift);
        match UNITS.iter().rev().find(fits) {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_their_unit() {
        let read = |text: &str| text.parse::<Size>();
        assert_eq!(
            [read("64M"), read("2G"), read("1K")],
            [Ok(Size(64 << 20)), Ok(Size(2 << 30)), Ok(Size(1024))]
        );
        assert_eq!(["64M", "2G", "3K"].map(|text| read(text).unwrap().to_string()), ["64M", "2G", "3K"]);
        for wrong in ["", "M", "64", "+1M", "-1G", "1.5G", "64MB", "64 M", "99999999999G"] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }
}
