//! Pauses: the parts of a thread's gaps in which it stamped nothing.
//!
//! A gap is a time in which no duty cycle began. A thread that serves a hundred orders in one cycle
//! has a gap without a pause: its stamps show that it was running. A *sleep* is a time in which no
//! cycle began because the thread had given its core away itself.

use super::Cause;
use protocol::stamps::{Gap, Switches};
use std::cell::Cell;

/// A time in which a thread did nothing, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Away {
    /// Start: a stamp, or the start of the gap.
    pub from: u64,
    /// End: a stamp, or the end of the gap.
    pub to: u64,
    /// Cause of the pause.
    pub why: Why,
}

/// The cause of a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The kernel counted a page fault and no preemption.
    Fault,
    /// Any other gap: the thread was off the CPU.
    Gone,
    /// The thread had given its core away by its own idle strategy.
    Slept,
}

impl Why {
    /// All causes, in the order of totals by cause.
    pub const ALL: [Self; 3] = [Self::Fault, Self::Gone, Self::Slept];

    /// Derives the cause from the kernel's counters of a gap.
    const fn of(gap: &Gap) -> Self {
        let faulted = gap.switches.has(Switches::MINOR_FAULT) || gap.switches.has(Switches::MAJOR_FAULT);
        if faulted && !gap.switches.has(Switches::INVOLUNTARY) { Self::Fault } else { Self::Gone }
    }

    /// Returns the cause for the orders that wait for the thread.
    pub const fn cause(self) -> Cause {
        match self {
            Self::Fault => Cause::Memory,
            Self::Gone => Cause::Machine,
            Self::Slept => Cause::WakeUp,
        }
    }
}

/// Returns the parts of gaps and sleeps that lie between the stamps (ascending) and have at least
/// `least` ticks. The result is ascending and disjoint for any input: overlapping time belongs to
/// the gap or sleep that ended first.
pub fn away(gaps: &[Gap], sleeps: &[Gap], stamps: &[u64], least: u64) -> Vec<Away> {
    let mut cutter = Cutter::new(gaps, sleeps, least);
    stamps.iter().for_each(|stamp| cutter.stamp(*stamp));
    cutter.end()
}

/// Computes [`pauses`] incrementally, keeping only the stamps of the current gap.
pub(super) struct Cutter {
    /// Gaps and sleeps by their ends.
    gaps: Vec<(Gap, Why)>,
    /// Earliest start of each gap and all later ones.
    begun: Vec<u64>,
    next: usize,
    stamps: Vec<u64>,
    least: u64,
    all: Vec<Away>,
}

impl Cutter {
    pub fn new(gaps: &[Gap], sleeps: &[Gap], least: u64) -> Self {
        let gaps = gaps.iter().map(|gap| (*gap, Why::of(gap)));
        let mut gaps: Vec<_> = gaps.chain(sleeps.iter().map(|sleep| (*sleep, Why::Slept))).collect();
        gaps.sort_by_key(|(gap, _)| gap.ended);
        let mut begun: Vec<u64> = gaps.iter().map(|(gap, _)| gap.ended.saturating_sub(gap.ticks)).collect();
        for place in (1..begun.len()).rev() {
            begun[place - 1] = begun[place - 1].min(begun[place]);
        }
        Self { gaps, begun, next: 0, stamps: Vec::new(), least, all: Vec::new() }
    }

    /// Adds a stamp, not earlier than the previous one.
    #[inline]
    pub fn stamp(&mut self, at: u64) {
        while self.gaps.get(self.next).is_some_and(|(gap, _)| gap.ended <= at) {
            self.cut();
        }
        if self.begun.get(self.next).is_some_and(|begun| *begun <= at) {
            self.stamps.push(at);
        }
    }

    /// Ends the stamps and returns the pauses.
    pub fn end(mut self) -> Vec<Away> {
        while self.next < self.gaps.len() {
            self.cut();
        }
        self.all
    }

    /// Splits the next gap, which is complete, at the stamps in it.
    fn cut(&mut self) {
        let (gap, why) = self.gaps[self.next];
        let begun = gap.ended.saturating_sub(gap.ticks);
        let mut from = self.all.last().map_or(begun, |last| last.to.max(begun));
        let inside = self.stamps.partition_point(|stamp| *stamp < from);
        let stamps = self.stamps[inside..].iter().copied().take_while(|stamp| *stamp < gap.ended);
        for to in stamps.chain([gap.ended]) {
            if to.saturating_sub(from) >= self.least.max(1) {
                self.all.push(Away { from, to, why });
            }
            from = from.max(to);
        }
        self.next += 1;
        // Stamps that a later gap may contain as well stay.
        let begun = self.begun.get(self.next).copied().unwrap_or(u64::MAX);
        let over = self.stamps.partition_point(|stamp| *stamp < begun);
        self.stamps.drain(..over);
    }
}

/// An index of pauses for repeated queries.
#[derive(Debug, Default)]
pub(super) struct Calendar {
    away: Vec<Away>,
    /// Ticks before each pause, by cause.
    before: Vec<[u64; Why::ALL.len()]>,
    /// Index of the last result: the next query is mostly close to it.
    hint: Cell<usize>,
}

impl Calendar {
    pub fn new(away: Vec<Away>) -> Self {
        let mut sum = [0; Why::ALL.len()];
        let before = away.iter().map(|away| {
            let before = sum;
            sum[away.why as usize] += away.to - away.from;
            before
        });
        let before = before.collect();
        Self { away, before, hint: Cell::new(0) }
    }

    /// Returns the number of pauses that began before `at`.
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

    /// Returns the paused ticks until `at`, by cause.
    fn until(&self, at: u64) -> [u64; Why::ALL.len()] {
        let Some(place) = self.begun_before(at).checked_sub(1) else {
            return [0; Why::ALL.len()];
        };
        let (away, mut sum) = (self.away[place], self.before[place]);
        sum[away.why as usize] += at.min(away.to) - away.from;
        sum
    }

    /// Returns the paused ticks in `from..to`, in the order of [`Why::ALL`].
    pub fn within(&self, from: u64, to: u64) -> [u64; Why::ALL.len()] {
        let (from, to) = (self.until(from), self.until(to.max(from)));
        std::array::from_fn(|why| to[why] - from[why])
    }

    /// Returns the start of the first sleep in `from..to`.
    pub fn first_sleep(&self, from: u64, to: u64) -> Option<u64> {
        let behind = &self.away[self.begun_before(from)..];
        let before = behind.iter().take_while(|away| away.from < to);
        before.into_iter().find(|away| away.why == Why::Slept).map(|away| away.from)
    }

    /// Returns the pause that began exactly with the stamp at `from` and ended by `to`. Sleeps are
    /// excluded: a thread that sleeps had nothing left to do.
    pub fn since(&self, from: u64, to: u64) -> Option<Away> {
        let place = self.begun_before(from);
        let is_it = |away: &Away| away.from == from && away.to <= to && away.why != Why::Slept;
        self.away.get(place).copied().filter(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The batch implementation of [`pauses`], as a reference.
    fn at_once(gaps: &[Gap], stamps: &[u64], least: u64) -> Vec<Away> {
        let mut gaps: Vec<Gap> = gaps.to_vec();
        gaps.sort_by_key(|gap| gap.ended);
        let mut all: Vec<Away> = Vec::new();
        for gap in gaps {
            let begun = gap.ended.saturating_sub(gap.ticks);
            let mut from = all.last().map_or(begun, |last| last.to.max(begun));
            let inside = stamps.partition_point(|stamp| *stamp < from);
            let stamps = stamps[inside..].iter().copied().take_while(|stamp| *stamp < gap.ended);
            for to in stamps.chain([gap.ended]) {
                if to.saturating_sub(from) >= least.max(1) {
                    all.push(Away { from, to, why: Why::Gone });
                }
                from = from.max(to);
            }
        }
        all
    }

    proptest! {
        #[test]
        fn incremental_pauses_match_batch(
            gaps in prop::collection::vec((0u64..300, 0u64..400), 0..12),
            mut stamps in prop::collection::vec(0u64..350, 0..60),
            least in 0u64..20,
        ) {
            stamps.sort_unstable();
            let gap = |(ended, ticks)| Gap { ended, ticks, switches: Switches(0) };
            let gaps: Vec<Gap> = gaps.into_iter().map(gap).collect();
            prop_assert_eq!(away(&gaps, &[], &stamps, least), at_once(&gaps, &stamps, least));
        }
    }

    fn gap(from: u64, to: u64, switches: u8) -> Gap {
        Gap { ended: to, ticks: to - from, switches: Switches(switches) }
    }

    #[test]
    fn stamps_split_gaps_into_pauses() {
        let fault = Switches::MINOR_FAULT;
        let gaps = [gap(100, 200, Switches::INVOLUNTARY | fault), gap(300, 400, fault), gap(500, 509, 0)];
        // Overlapping time belongs to the gap if it ended first.
        let sleeps = [gap(190, 250, 0), gap(600, 700, 0)];
        let found = away(&gaps, &sleeps, &[50, 100, 120, 125, 310, 600], 10);
        let of = |from, to, why| Away { from, to, why };
        let (gone, fault, slept) = (Why::Gone, Why::Fault, Why::Slept);
        let wanted = [
            of(100, 120, gone),
            of(125, 200, gone),
            of(200, 250, slept),
            of(300, 310, fault),
            of(310, 400, fault),
            of(600, 700, slept),
        ];
        assert_eq!(found, wanted);
        let calendar = Calendar::new(found);
        assert_eq!(calendar.within(0, 1000), [100, 95, 150]);
        assert_eq!(calendar.within(110, 130), [0, 15, 0]);
        assert_eq!(calendar.within(130, 110), [0, 0, 0]);
        assert_eq!(calendar.since(125, 200).map(|away| away.to), Some(200));
        assert_eq!((calendar.since(125, 199), calendar.since(126, 300)), (None, None));
        // A sender that sleeps has pushed before.
        assert_eq!(calendar.since(600, 700), None);
        let first = [(0, 200), (0, 201), (200, 300), (201, 600), (201, 601)];
        let first = first.map(|(from, to)| calendar.first_sleep(from, to));
        assert_eq!(first, [None, Some(200), Some(200), None, Some(600)]);
    }

    #[test]
    fn overlapping_or_forged_gaps_are_tolerated() {
        let gaps = [gap(0, u64::MAX, 0), gap(10, 20, 0), Gap { ended: 5, ticks: 9, switches: Switches(0) }];
        for (gaps, sleeps) in [(&gaps[..], &[][..]), (&[], &gaps), (&gaps[1..], &gaps[..1])] {
            let found = away(gaps, sleeps, &[7], 1);
            assert!(found.windows(2).all(|pair| pair[0].to <= pair[1].from), "{found:?}");
        }
        assert!(away(&[gap(5, 5, 0)], &[], &[], 0).is_empty());
    }
}
