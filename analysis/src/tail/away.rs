//! When a thread was away: the parts of its gaps in which it stamped nothing.
//!
//! A gap says that no duty cycle began. A thread that serves a hundred orders in one cycle has a gap and was there all the time: its
//! stamps show it.

use protocol::stamps::{Gap, Switches};
use std::cell::Cell;

/// A time in which a thread did nothing, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Its beginning: a stamp, or the gap's.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// The kernel counted a page fault and did not take the core away.
    pub is_fault: bool,
}

/// The parts of at least `least` ticks between the stamps (ascending) that lie in gaps. Ascending, without overlaps, whatever the gaps are.
pub fn away(gaps: &[Gap], stamps: &[u64], least: u64) -> Vec<Away> {
    let mut gaps: Vec<Gap> = gaps.to_vec();
    gaps.sort_by_key(|gap| gap.ended);
    let mut all: Vec<Away> = Vec::new();
    for gap in gaps {
        let begun = gap.ended.saturating_sub(gap.ticks);
        let mut from = all.last().map_or(begun, |last| last.to.max(begun));
        let faulted = gap.switches.has(Switches::MINOR_FAULT) || gap.switches.has(Switches::MAJOR_FAULT);
        let is_fault = faulted && !gap.switches.has(Switches::INVOLUNTARY);
        let inside = stamps.partition_point(|stamp| *stamp < from);
        let stamps = stamps[inside..].iter().copied().take_while(|stamp| *stamp < gap.ended);
        for to in stamps.chain([gap.ended]) {
            if to.saturating_sub(from) >= least.max(1) {
                all.push(Away { from, to, is_fault });
            }
            from = from.max(to);
        }
    }
    all
}

/// Times away, to be asked for many times.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    away: Vec<Away>,
    /// Ticks before each of them: of faults, of others.
    before: Vec<[u64; 2]>,
    /// Where the last question was answered: the next one is about much the same time.
    hint: Cell<usize>,
}

impl Calendar {
    pub fn new(away: Vec<Away>) -> Self {
        let mut sum = [0; 2];
        let before = away.iter().map(|away| {
            let before = sum;
            sum[usize::from(!away.is_fault)] += away.to - away.from;
            before
        });
        let before = before.collect();
        Self { away, before, hint: Cell::new(0) }
    }

    /// How many of them began before that.
    fn begun_before(&self, at: u64) -> usize {
        let begun = |place: usize| self.away.get(place).is_some_and(|away| away.from < at);
        let hint = self.hint.get();
        if (hint == 0 || begun(hint - 1)) && !begun(hint) {
            return hint;
        }
        let place = self.away.partition_point(|away| away.from < at);
        self.hint.set(place);
        place
    }

    /// Ticks up to then: of faults, of others.
    fn until(&self, at: u64) -> [u64; 2] {
        let Some(place) = self.begun_before(at).checked_sub(1) else {
            return [0; 2];
        };
        let (away, mut sum) = (self.away[place], self.before[place]);
        sum[usize::from(!away.is_fault)] += at.min(away.to) - away.from;
        sum
    }

    /// Ticks in `from..to`: of faults, of others.
    pub fn within(&self, from: u64, to: u64) -> [u64; 2] {
        let (from, to) = (self.until(from), self.until(to.max(from)));
        [to[0] - from[0], to[1] - from[1]]
    }

    /// Who went away with its stamp at `from` as its last and was back before `to`: until when.
    pub fn since(&self, from: u64, to: u64) -> Option<Away> {
        let place = self.begun_before(from);
        self.away.get(place).copied().filter(|away| away.from == from && away.to <= to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(from: u64, to: u64, switches: u8) -> Gap {
        Gap { ended: to, ticks: to - from, switches: Switches(switches) }
    }

    #[test]
    fn what_a_thread_stamped_cuts_its_gaps() {
        let fault = Switches::MINOR_FAULT;
        let gaps = [gap(100, 200, Switches::INVOLUNTARY | fault), gap(300, 400, fault), gap(500, 509, 0)];
        let found = away(&gaps, &[50, 100, 120, 125, 310, 600], 10);
        let of = |from, to, is_fault| Away { from, to, is_fault };
        assert_eq!(found, [of(100, 120, false), of(125, 200, false), of(300, 310, true), of(310, 400, true)]);
        let calendar = Calendar::new(found);
        assert_eq!(calendar.within(0, 1000), [100, 95]);
        assert_eq!(calendar.within(110, 130), [0, 15]);
        assert_eq!(calendar.within(130, 110), [0, 0]);
        assert_eq!(calendar.since(125, 200).map(|away| away.to), Some(200));
        assert_eq!((calendar.since(125, 199), calendar.since(126, 300)), (None, None));
    }

    #[test]
    fn gaps_that_overlap_or_lie_are_borne() {
        let gaps = [gap(0, u64::MAX, 0), gap(10, 20, 0), Gap { ended: 5, ticks: 9, switches: Switches(0) }];
        let found = away(&gaps, &[7], 1);
        assert!(found.windows(2).all(|pair| pair[0].to <= pair[1].from), "{found:?}");
        assert!(away(&[gap(5, 5, 0)], &[], 0).is_empty());
    }
}
