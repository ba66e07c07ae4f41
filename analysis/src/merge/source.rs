//! Names the log that is being read, and what is wrong with it as a log.
//!
//! One thread writes a log and reads its clock when it appends a stamp, so times never fall from
//! one stamp to the next. A strategy that changes its stamps afterwards is found by that, unless it
//! moves none past another one. In a log of the engine, which is believed, it means that the clock
//! went back.

use super::row::bit;
use super::violation::{Findings, ViolationKind, Violations, name_of};
use crate::numbers::duration;
use protocol::stamps::{Point, Record};

/// The points whose times never fall within a log.
const ORDERED: u64 = {
    let (mut points, mut place) = (0, 0);
    while place < Point::ALL.len() {
        if Point::ALL[place].is_stamped_when_logged() {
            points |= bit(Point::ALL[place]);
        }
        place += 1;
    }
    points
};

/// A log that is being read.
#[derive(Default)]
pub(super) struct LogSource {
    /// The thread that wrote it, by its place in the plan.
    pub thread: usize,
    /// The name of its file.
    pub file: String,
    /// The points that the thread's roles stamp.
    pub points: u64,
    /// The log proves nothing: what makes no sense in it is passed over.
    pub is_untrusted: bool,
    /// Number of records that were passed over.
    pub ignored: u64,
    /// The strategy that alone writes this log, where nonsense in it is its own affair: `own` says
    /// what was found.
    pub author: Option<u16>,
    pub own: Violations,
    /// Stamps that lie before the one in front of them, in a log without such an author.
    pub went_back: Violations,
    /// Time of the last stamp, in ticks.
    pub last: u64,
}

impl LogSource {
    /// Takes the time of the next record. Returns by how many ticks it lies before the stamp in
    /// front of it, if it does.
    #[inline]
    pub fn follow(&mut self, record: &Record) -> Option<u64> {
        if ORDERED & bit(record.point) == 0 {
            return None;
        }
        let last = core::mem::replace(&mut self.last, record.value);
        last.checked_sub(record.value).filter(|back| *back > 0)
    }

    /// Notes that a stamp lies so many ticks before the one in front of it.
    #[cold]
    pub fn goes_back(&mut self, record: &Record, back: u64, ns_per_tick: f64) {
        let Self { file, author, own, went_back, is_untrusted, .. } = self;
        let found = match author {
            _ if *is_untrusted => return,
            Some(_) => own,
            None => went_back,
        };
        found.add(ViolationKind::TimeOrder, || {
            let (order, point) = (name_of(record.id), record.point.name());
            let back = duration((back as f64 * ns_per_tick) as u64);
            format!("{order}: its {point} lies {back} before the stamp in front of it in {file}")
        });
    }

    /// Counts a violation in this log: of its author, if it has one; else of nobody. `example` is
    /// told the name of the file.
    #[cold]
    pub fn accuse(
        &mut self,
        findings: &mut Findings,
        kind: ViolationKind,
        example: impl FnOnce(&str) -> String,
    ) {
        let Self { file, author, own, .. } = self;
        match author {
            Some(_) => own.add(kind, || example(file)),
            None => findings.add(None, kind, || example(file)),
        }
    }
}
