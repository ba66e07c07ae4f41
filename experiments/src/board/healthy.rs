//! The value of `--healthy`: limits of latency and rate of the board benchmark. A case beyond one
//! gets a warning. By default they are those of the document that the board began with (`seed`).

use analysis::experiment::{BoardWarnings, THRESHOLDS};
use record::units::{Count, Nanos};
use std::str::FromStr;

/// The value `seed` of `--healthy`, for the limits of the benchmark that this project started from.
pub const SEED: &str = "seed";
/// The limit of a threshold that is not checked.
const OFF: &str = "off";

/// The value of `--healthy`: limits of latency and rate, beyond which a case of the board benchmark
/// gets a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthyLimits(pub BoardWarnings);

impl FromStr for HealthyLimits {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut limits = BoardWarnings::SEED;
        if text == SEED {
            return Ok(Self(limits));
        }
        for part in text.split(',') {
            let (name, limit) = part.split_once('=').ok_or_else(|| {
                format!("{part:?} is not a limit: give NAME=LIMIT, for example write-p99=5us, or {SEED}")
            })?;
            let threshold = THRESHOLDS.iter().find(|threshold| threshold.name == name);
            let threshold = threshold.ok_or_else(|| {
                let names: Vec<&str> = THRESHOLDS.iter().map(|threshold| threshold.name).collect();
                format!("{name:?} is not a threshold: there are {}", names.join(", "))
            })?;
            let wrong = |error: String| format!("{part}: {error}");
            *threshold.limit_in(&mut limits) = match limit {
                OFF => None,
                _ if threshold.is_rate => {
                    Some(limit.parse::<Count>().map_err(|error| wrong(error.to_string()))?.0)
                }
                _ => Some(limit.parse::<Nanos>().map_err(|error| wrong(error.to_string()))?.0),
            };
        }
        Ok(Self(limits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_limits_replace_the_seeds() {
        let read = |text: &str| text.parse::<HealthyLimits>().map(|limits| limits.0);
        assert_eq!(read("seed"), Ok(BoardWarnings::SEED));
        let limits = read("write-p99=5us,read-rate=1M,read-p99=1ms,write-rate=off").unwrap();
        let expected = BoardWarnings {
            writer_p99_ns: Some(5_000),
            reader_p99_ns: Some(1_000_000),
            writes_per_s: None,
            reads_per_s: Some(1_000_000),
            ..BoardWarnings::SEED
        };
        assert_eq!(limits, expected);
        for (text, expected) in [
            ("write-p98=5us", "there are write-p50, write-p99, read-p95"),
            ("write-p99", "write-p99=5us"),
            ("write-p99=5", "no unit"),
            ("read-rate=5us", "read-rate=5us"),
            ("", "NAME=LIMIT"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
