//! The log that the merge is reading: its format errors, its violations and its gaps.
//!
//! One thread writes a log and reads its clock when it appends a stamp, so times never decrease.
//! This reveals a strategy that changes its stamps afterwards, unless it moves none past another
//! one. In a log of the engine, which is trusted, it means that the clock went back.

use super::row::bit;
use super::violation::{Findings, ViolationKind, Violations, order_name};
use protocol::gaps::MAX_GAPS;
use protocol::index::StrategyIndex;
use protocol::stamps::{Gap, Point, Record};
use record::numbers::duration;

/// The points whose times never decrease within a log.
const ORDERED: u64 = {
    let (mut points, mut index) = (0, 0);
    while index < Point::ALL.len() {
        if Point::ALL[index].is_stamped_when_logged() {
            points |= bit(Point::ALL[index]);
        }
        index += 1;
    }
    points
};

/// The state of reading one thread's log: its last time and the violations found in it.
#[derive(Default)]
pub(super) struct CurrentLog {
    /// Index in the plan of the thread that wrote the log.
    pub thread: usize,
    pub file: String,
    /// Bit mask of the points that the thread's roles stamp.
    pub points: u64,
    /// Whether the log is untrusted, so that invalid records are skipped.
    pub is_untrusted: bool,
    /// Number of skipped records of the log.
    pub ignored: u64,
    /// Strategy that alone writes this log, to which invalid records are therefore attributed.
    pub author: Option<StrategyIndex>,
    /// Violations that no correct author would cause.
    pub own_violations: Violations,
    /// Violations by stamps that precede their predecessor, in a log without a sole author.
    pub backward_steps: Violations,
    /// Gaps and sleeps of the thread, in log order.
    pub gaps: Vec<Gap>,
    pub sleeps: Vec<Gap>,
    pub max_sleeps: u64,
    /// Time of the log's last stamp, in ticks.
    pub last: u64,
}

impl CurrentLog {
    /// Records the time of the log's next stamp, and returns by how many ticks it precedes the
    /// previous one, if it does.
    #[inline]
    pub fn observe_time(&mut self, record: &Record) -> Option<u64> {
        if ORDERED & bit(record.point) == 0 {
            return None;
        }
        let last = core::mem::replace(&mut self.last, record.value);
        last.checked_sub(record.value).filter(|back| *back > 0)
    }

    /// Counts a violation: a stamp of the current log is `back` ticks earlier than the one before
    /// it.
    #[cold]
    pub fn add_backward_step(&mut self, record: &Record, back: u64, ns_per_tick: f64) {
        let found = match self.author {
            _ if self.is_untrusted => return,
            Some(_) => &mut self.own_violations,
            None => &mut self.backward_steps,
        };
        found.add(ViolationKind::TimeOrder, || {
            let (order, point) = (order_name(record.id), record.point.name());
            let (back, file) = (duration((back as f64 * ns_per_tick) as u64), &self.file);
            format!("{order}: its {point} lies {back} before the stamp in front of it in {file}")
        });
    }

    /// Counts a violation in the log that is being read. The strategy that alone writes it is its
    /// sole source, if there is one; otherwise `sole_source` is.
    #[cold]
    pub fn add_violation(
        &mut self,
        findings: &mut Findings,
        sole_source: Option<StrategyIndex>,
        kind: ViolationKind,
        example: impl FnOnce() -> String,
    ) {
        match self.author {
            Some(_) => self.own_violations.add(kind, example),
            None => findings.add(sole_source, kind, example),
        }
    }

    /// Stores a gap or sleep (times without a duty cycle) of the log's thread, unless the maximum
    /// number for a log is already stored. Nothing is stored from an untrusted log.
    pub fn add_gap(&mut self, record: &Record) {
        let (all, max) = match record.point {
            Point::Gap => (&mut self.gaps, MAX_GAPS),
            _ => (&mut self.sleeps, self.max_sleeps),
        };
        if !self.is_untrusted && (all.len() as u64) < max {
            all.extend(Gap::from_record(record));
        }
    }
}
