//! The limits of a board's figures, beyond which a case gets a warning; those of the benchmark that
//! this project started from are the defaults.

use super::BoardCase;
use record::numbers::{duration, short};
use serde::{Deserialize, Serialize};

/// Upper limits of the board benchmark's figures: times in nanoseconds, rates a second; `None`: no
/// warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardWarnings {
    /// Limit of a write's median, in nanoseconds.
    pub writer_p50_ns: Option<u64>,
    /// Limit of a write's p99, in nanoseconds.
    pub writer_p99_ns: Option<u64>,
    /// Limit of a read's p95, in nanoseconds.
    pub reader_p95_ns: Option<u64>,
    /// Limit of a read's p99, in nanoseconds.
    pub reader_p99_ns: Option<u64>,
    /// Limit of the number of writes a second.
    pub writes_per_s: Option<u64>,
    /// Limit of the number of reads a second.
    pub reads_per_s: Option<u64>,
}

/// A warning that a latency reached, or a rate exceeded, the upper limit that is set for it, in a
/// case of the board benchmark. It does not make the case invalid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoardWarning {
    /// The name of the limited figure: `write-p99`.
    pub threshold: String,
    /// The limit, in `unit`.
    pub limit: u64,
    /// The measured figure, in `unit`.
    pub measured: u64,
    /// The unit of limit and figure: `ns`, or `per_s` for a rate.
    pub unit: String,
}

/// A figure of a board benchmark's case that can have a limit.
#[derive(Debug)]
pub struct BoardThreshold {
    /// Name of the figure on the command line.
    pub name: &'static str,
    /// Whether the figure is a rate; a time otherwise.
    pub is_rate: bool,
    limit: fn(&mut BoardWarnings) -> &mut Option<u64>,
    measured: fn(&BoardCase) -> Option<u64>,
}

/// The six figures of a board benchmark that can have a limit: write p50 and p99, read p95 and p99,
/// writes and reads a second. They are in the order of the original benchmark's table.
pub const THRESHOLDS: [BoardThreshold; 6] = [
    BoardThreshold {
        name: "write-p50",
        is_rate: false,
        limit: |limits| &mut limits.writer_p50_ns,
        measured: |case| case.writer.write.p50_ns,
    },
    BoardThreshold {
        name: "write-p99",
        is_rate: false,
        limit: |limits| &mut limits.writer_p99_ns,
        measured: |case| case.writer.write.p99_ns,
    },
    BoardThreshold {
        name: "read-p95",
        is_rate: false,
        limit: |limits| &mut limits.reader_p95_ns,
        measured: |case| case.all.read_p95_ns,
    },
    BoardThreshold {
        name: "read-p99",
        is_rate: false,
        limit: |limits| &mut limits.reader_p99_ns,
        measured: |case| case.all.read.p99_ns,
    },
    BoardThreshold {
        name: "write-rate",
        is_rate: true,
        limit: |limits| &mut limits.writes_per_s,
        measured: |case| Some(case.writer.writes_per_s.round() as u64),
    },
    BoardThreshold {
        name: "read-rate",
        is_rate: true,
        limit: |limits| &mut limits.reads_per_s,
        measured: |case| Some(case.all.reads_per_s.round() as u64),
    },
];

impl BoardThreshold {
    /// Returns a mutable reference to this figure's limit in `limits`, where `None`: no limit.
    pub fn limit_in<'a>(&self, limits: &'a mut BoardWarnings) -> &'a mut Option<u64> {
        (self.limit)(limits)
    }

    /// Returns the warning of a case; `None` if the figure is below its limit or one of them is
    /// unknown. A time reaches its limit, a rate exceeds it, as in the seed's table.
    fn check(&self, mut limits: BoardWarnings, case: &BoardCase) -> Option<BoardWarning> {
        let (limit, measured) = ((*self.limit_in(&mut limits))?, (self.measured)(case)?);
        let is_reached = if self.is_rate { measured > limit } else { measured >= limit };
        is_reached.then(|| BoardWarning {
            threshold: self.name.into(),
            limit,
            measured,
            unit: if self.is_rate { "per_s" } else { "ns" }.into(),
        })
    }
}

impl BoardWarnings {
    /// The warning limits of the seed benchmark, the original board benchmark from which this
    /// project started; not a random seed. Its rates are upper limits too: beyond the load that it
    /// was tried with.
    pub const SEED: Self = Self {
        writer_p50_ns: Some(2_000),
        writer_p99_ns: Some(60_000),
        reader_p95_ns: Some(5_000),
        reader_p99_ns: None,
        writes_per_s: Some(60_000),
        reads_per_s: Some(700_000),
    };

    /// Returns a warning for each figure of a board benchmark's case that reached its limit.
    pub fn check(&self, case: &BoardCase) -> Vec<BoardWarning> {
        THRESHOLDS.iter().filter_map(|threshold| threshold.check(*self, case)).collect()
    }
}

impl BoardWarning {
    /// Describes the warning about a figure's limit: `write-p99 is 61 µs, limit 60 µs`.
    pub fn describe(&self) -> String {
        let text = |value| if self.unit == "ns" { duration(value) } else { format!("{}/s", short(value)) };
        format!("{} is {}, limit {}", self.threshold, text(self.measured), text(self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Boards;
    use super::*;
    use crate::fixture;

    fn case() -> BoardCase {
        let mut case = Boards::from_experiment(&fixture("saved/board.json")).unwrap().cases.remove(0);
        (case.writer.write.p50_ns, case.writer.write.p99_ns) = (Some(1_999), Some(59_999));
        (case.all.read_p95_ns, case.all.read.p99_ns) = (Some(4_999), Some(1_000_000));
        (case.writer.writes_per_s, case.all.reads_per_s) = (60_000.0, 700_000.0);
        case
    }

    #[test]
    fn seed_limits_are_five_and_each_is_found() {
        let mut case = case();
        assert_eq!(BoardWarnings::SEED.check(&case), [], "just below");
        (case.writer.write.p50_ns, case.writer.write.p99_ns) = (Some(2_000), Some(60_000));
        case.all.read_p95_ns = Some(5_000);
        (case.writer.writes_per_s, case.all.reads_per_s) = (7_500_000.0, 700_001.0);
        let found: Vec<String> =
            BoardWarnings::SEED.check(&case).iter().map(BoardWarning::describe).collect();
        assert_eq!(found.len(), 5, "{found:?}");
        assert_eq!(found[1], "write-p99 is 60.0 µs, limit 60.0 µs");
        assert_eq!(found[3], "write-rate is 7.50 M/s, limit 60,000/s");
        assert_eq!(BoardWarnings::default().check(&case), []);
    }

    #[test]
    fn each_threshold_has_a_limit_of_its_own() {
        let mut limits = BoardWarnings::default();
        for (number, threshold) in (1..).zip(&THRESHOLDS) {
            *threshold.limit_in(&mut limits) = Some(number);
        }
        let BoardWarnings { writer_p50_ns, writer_p99_ns, reader_p95_ns, reader_p99_ns, .. } = limits;
        let found = [writer_p50_ns, writer_p99_ns, reader_p95_ns, reader_p99_ns];
        assert_eq!(found, [1, 2, 3, 4].map(Some));
        assert_eq!((limits.writes_per_s, limits.reads_per_s), (Some(5), Some(6)));
    }
}
