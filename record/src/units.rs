//! Parsing and formatting of times, counts and delays.
//!
//! | what | accepted | written back |
//! |---|---|---|
//! | time | `500ns`, `5us` or `5µs`, `5ms`, `1.5s`, `2m`, `1h` | largest exact unit: `1500ms` |
//! | count | `400000`, `4_000_000`, `400k` or `400K`, `1.5M` | all digits |
//! | size | `0`, `64B`, `256KiB`, `4MiB`, `1.5GiB` | largest exact unit: `1536MiB` |
//!
//! Parsing is exact integer arithmetic: a value that exceeds 64 bits or is a fraction of a
//! nanosecond is an error and never rounded.

use core::fmt;
use core::str::FromStr;
use thiserror::Error;

/// Units of time with their length in nanoseconds, longest first.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// The error that a setting's text is not a valid time, count, size or delay. The message names a
/// valid form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// The time has no unit.
    #[error("{0:?} has no unit: write ns, us, ms, s, m or h behind it, for example {example}ms", example = example(.0))]
    NoUnit(String),
    /// The text is not a time with a unit.
    #[error("{0:?} is not a time: expected a number and ns, us, ms, s, m or h, for example 5ms or 1.5s")]
    Time(String),
    /// The time is negative.
    #[error("{0:?} is negative: a time is 0ns or more, for example 5ms")]
    Negative(String),
    /// The text is not a count.
    #[error("{0:?} is not a count: expected a whole number, for example 400000, 400k or 4M")]
    Count(String),
    /// The text is not a size.
    #[error("{0:?} is not a size: expected a number and B, KiB, MiB or GiB, for example 256KiB, or 0")]
    Size(String),
    /// The value exceeds 64 bits or is finer than its resolution.
    #[error(
        "{0:?} is too large or too fine: times are whole nanoseconds, sizes whole bytes, and 64 bits must hold the number"
    )]
    Range(String),
    /// The text is not a delay.
    #[error("{0:?} is not a delay: expected fixed:5ms or uniform:5ms..500ms")]
    Delay(String),
    /// The delay is a range whose distribution, such as `uniform`, is missing.
    #[error("a range of delays has no kind: write uniform:{0}")]
    NoKind(String),
    /// The range ends before it begins.
    #[error("{0:?} ends before it begins: put the shorter delay first")]
    Backwards(String),
}

/// A duration in nanoseconds that is parsed from text and printed with its unit, as `5ms` or
/// `500ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl FromStr for Nanos {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text);
        if number.starts_with('-') && decimal(&number[1..]).is_some() {
            return Err(UnitError::Negative(clip(text)));
        }
        let unit = if unit == "µs" || unit == "μs" { "us" } else { unit };
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(match unit {
                "" if decimal(number).is_some() => UnitError::NoUnit(number.into()),
                _ => UnitError::Time(clip(text)),
            });
        };
        let parts = decimal(number).ok_or_else(|| UnitError::Time(clip(text)))?;
        scaled(parts, *scale).map(Nanos).ok_or_else(|| UnitError::Range(clip(text)))
    }
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |(_, scale): &&(&str, u64)| self.0 != 0 && self.0.is_multiple_of(*scale);
        let (unit, scale) = UNITS.iter().find(exact).unwrap_or(&("ns", 1));
        f.pad(&format!("{}{unit}", self.0 / scale))
    }
}

/// Returns an example of a valid time for the error message, based on the given number.
fn example(number: &str) -> &str {
    if number.bytes().any(|byte| matches!(byte, b'1'..=b'9')) { number } else { "100" }
}

/// A count that is read with `_`, `k` (thousand) or `M` (million), and written in digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text);
        let invalid = || UnitError::Count(clip(text));
        let scale = match unit {
            "" if !number.contains('.') => 1,
            "k" | "K" => 1_000,
            "M" => 1_000_000,
            _ => return Err(invalid()),
        };
        scaled(decimal(number).ok_or_else(invalid)?, scale)
            .map(Count)
            .ok_or_else(|| UnitError::Range(clip(text)))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Units of sizes with their length in bytes, largest first.
const SIZE_UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// A size in bytes that is parsed from text and printed with its unit, as `256KiB`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let (number, unit) = split(text);
        let invalid = || UnitError::Size(clip(text));
        let parts = decimal(number).ok_or_else(invalid)?;
        if unit.is_empty() && parts == (0, "") {
            return Ok(Self(0));
        }
        let scale =
            SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).ok_or_else(invalid)?.1;
        scaled(parts, scale).map(Self).ok_or_else(|| UnitError::Range(clip(text)))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = |(_, scale): &&(&str, u64)| self.0.is_multiple_of(*scale);
        match SIZE_UNITS.iter().find(exact).filter(|_| self.0 > 0) {
            Some((unit, scale)) => f.pad(&format!("{}{unit}", self.0 / scale)),
            None => f.pad("0"),
        }
    }
}

/// Formats a number of bytes for people, in MiB or GiB: `0.3 MiB`, `745 MiB`, `23.5 GiB`.
pub fn human_bytes(bytes: u64) -> String {
    let mib = bytes as f64 / (1024.0 * 1024.0);
    match mib {
        ..9.95 => format!("{mib:.1} MiB"),
        ..9999.5 => format!("{mib:.0} MiB"),
        _ => format!("{:.1} GiB", mib / 1024.0),
    }
}

/// Splits a text into its leading number and its unit.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_' && c != '-').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

/// Parses digits before and after the point. Returns `None` if the text is not a decimal number.
fn decimal(text: &str) -> Option<(u128, &str)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let ends_well = !whole.starts_with('_') && !whole.ends_with('_') && !whole.is_empty();
    let digits = whole.replace('_', "");
    let plain = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !ends_well || !plain(&digits) || !plain(fraction) {
        return None;
    }
    // With too many digits for 128 bits, any number above 64 bits serves: the caller reports it.
    Some((digits.parse().unwrap_or(u128::MAX), fraction.trim_end_matches('0')))
}

/// Multiplies the number by its unit. Returns `None` if the result is not whole or exceeds 64 bits.
fn scaled((whole, fraction): (u128, &str), scale: u64) -> Option<u64> {
    let scale = u128::from(scale);
    let mut sum = whole.checked_mul(scale)?;
    if !fraction.is_empty() {
        let denominator = 10u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let numerator = fraction.parse::<u128>().ok()?.checked_mul(scale)?;
        if !numerator.is_multiple_of(denominator) {
            return None;
        }
        sum = sum.checked_add(numerator / denominator)?;
    }
    u64::try_from(sum).ok()
}

/// Trims a text and shortens it to its first 40 characters, for an error message.
pub fn clip(text: &str) -> String {
    text.trim().chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ns(text: &str) -> Result<u64, String> {
        text.parse::<Nanos>().map(|n| n.0).map_err(|e| e.to_string())
    }

    fn count(text: &str) -> Result<u64, String> {
        text.parse::<Count>().map(|n| n.0).map_err(|e| e.to_string())
    }

    #[test]
    fn times_parse_with_their_unit() {
        for (text, wanted) in [
            ("500ns", 500),
            ("5us", 5_000),
            ("5µs", 5_000),
            ("5 ms", 5_000_000),
            ("1.5s", 1_500_000_000),
            ("2m", 120_000_000_000),
            ("1h", 3_600_000_000_000),
            ("0ns", 0),
            ("0.25us", 250),
        ] {
            assert_eq!(ns(text), Ok(wanted), "{text}");
        }
    }

    #[test]
    fn invalid_time_error_names_valid_format() {
        assert_eq!(
            ns("5").unwrap_err(),
            "\"5\" has no unit: write ns, us, ms, s, m or h behind it, for example 5ms"
        );
        assert!(ns("0").unwrap_err().ends_with("for example 100ms"), "nobody waits for 0ms");
        for text in ["-5ms", "-1.5s", "-0"] {
            assert!(ns(text).unwrap_err().contains("is negative"), "{text}");
        }
        for text in ["", "ms", "--5ms", "5 parsecs", "5mss", "1..2s", ".5s", "5.s", "1e3ms", "_5ms"] {
            assert!(ns(text).unwrap_err().contains("is not a time"), "{text}");
        }
        for text in ["0.5ns", "99999999999999999999s", "18446744073709551616ns", "1.0000000001s"] {
            assert!(ns(text).unwrap_err().contains("too large or too fine"), "{text}");
        }
    }

    #[test]
    fn counts_parse_k_and_m() {
        for (text, wanted) in
            [("400000", 400_000), ("400k", 400_000), ("4M", 4_000_000), ("4_000_000", 4_000_000)]
        {
            assert_eq!(count(text), Ok(wanted), "{text}");
        }
        assert_eq!(count("1.5M"), Ok(1_500_000));
        for text in ["", "1.5", "-1", "4G", "k", "4 millions", "0x10"] {
            assert!(count(text).unwrap_err().contains("is not a count"), "{text}");
        }
        assert!(count("18446744073709551616").unwrap_err().contains("too large"));
        assert!(count("0.0001k").unwrap_err().contains("too fine"));
    }

    #[test]
    fn sizes_parse_with_their_unit() {
        let size = |text: &str| text.parse::<Bytes>().map(|size| size.0).map_err(|error| error.to_string());
        for (text, wanted) in
            [("0", 0), ("0B", 0), ("64B", 64), ("256KiB", 256 << 10), ("4 mib", 4 << 20), ("1.5GiB", 3 << 29)]
        {
            assert_eq!(size(text), Ok(wanted), "{text}");
        }
        for text in ["", "64", "4MB", "4M", "-4MiB", "MiB", "4MiBs"] {
            assert!(size(text).unwrap_err().contains("for example 256KiB"), "{text}");
        }
        assert!(size("0.5B").unwrap_err().contains("too fine"));
        assert_eq!(
            [0, 1, 1 << 10, 1536 << 20].map(|size| Bytes(size).to_string()),
            ["0", "1B", "1KiB", "1536MiB"]
        );
    }

    #[test]
    fn bytes_show_few_digits() {
        assert_eq!([1 << 20, 64 << 20, 24 << 30].map(human_bytes), ["1.0 MiB", "64 MiB", "24.0 GiB"]);
    }

    proptest! {
        #[test]
        fn times_and_counts_round_trip(n: u64) {
            prop_assert_eq!(Nanos(n).to_string().parse::<Nanos>(), Ok(Nanos(n)));
            prop_assert_eq!(Count(n).to_string().parse::<Count>(), Ok(Count(n)));
            prop_assert_eq!(Bytes(n).to_string().parse::<Bytes>(), Ok(Bytes(n)));
        }

        #[test]
        fn round_numbers_round_trip(n in 0u64..1_000_000, zeros in 0u32..12) {
            let n = n * 10u64.pow(zeros);
            prop_assert_eq!(Nanos(n).to_string().parse::<Nanos>(), Ok(Nanos(n)));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "\\PC*", number in "[-0-9._]{0,45}(ns|us|µs|ms|s|m|k|M)?") {
            for text in [&text, &number] {
                let _ = (text.parse::<Nanos>(), text.parse::<Count>(), text.parse::<Bytes>());
            }
        }
    }
}
