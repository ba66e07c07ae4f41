//! Venue delays as users write and read them: `fixed:5ms`, `uniform:5ms..500ms`.

use super::DelayRange;
use analysis::units::{Nanos, UnitError, clip};

/// Reads `fixed:5ms` or `uniform:5ms..500ms`.
///
/// # Errors
/// What is not a delay, with an example of one.
pub fn parse_delay(text: &str) -> Result<DelayRange, UnitError> {
    let trimmed = text.trim();
    let range = if let Some(fixed) = trimmed.strip_prefix("fixed:") {
        let Nanos(ns) = fixed.parse()?;
        DelayRange { min_ns: ns, max_ns: ns }
    } else if let Some((min, max)) = trimmed.strip_prefix("uniform:").and_then(|r| r.split_once("..")) {
        DelayRange { min_ns: min.parse::<Nanos>()?.0, max_ns: max.parse::<Nanos>()?.0 }
    } else {
        return Err(UnitError::Delay(clip(text)));
    };
    if range.min_ns > range.max_ns { Err(UnitError::Backwards(clip(text))) } else { Ok(range) }
}

/// Writes a delay as [`parse_delay`] reads it.
pub fn format_delay(delay: &DelayRange) -> String {
    match (Nanos(delay.min_ns), Nanos(delay.max_ns)) {
        (min, max) if min == max => format!("fixed:{min}"),
        (min, max) => format!("uniform:{min}..{max}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn delays_are_fixed_or_uniform() {
        assert_eq!(parse_delay("fixed:5ms"), Ok(DelayRange { min_ns: 5_000_000, max_ns: 5_000_000 }));
        assert_eq!(parse_delay("uniform:5us..1s"), Ok(DelayRange { min_ns: 5_000, max_ns: 1_000_000_000 }));
        let message = |text| parse_delay(text).unwrap_err().to_string();
        assert!(message("5ms").contains("expected fixed:5ms or uniform:5ms..500ms"));
        assert!(message("uniform:5ms").contains("expected fixed"));
        assert!(message("uniform:5..6").contains("has no unit"));
        assert!(message("uniform:5ms..5us").contains("shorter delay first"));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(low: u64, high: u64) {
            let delay = DelayRange { min_ns: low.min(high), max_ns: low.max(high) };
            prop_assert_eq!(parse_delay(&format_delay(&delay)), Ok(delay));
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            let _ = parse_delay(&text);
            let _ = parse_delay(&format!("uniform:{text}..{text}"));
        }
    }
}
