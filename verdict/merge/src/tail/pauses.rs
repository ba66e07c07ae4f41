//! Pauses: the parts of a thread's gaps in which it stamped nothing.
//!
//! A gap is a time in which no duty cycle began. A thread that serves a hundred orders in one cycle
//! has a gap without a pause: its stamps show that it was running. A *sleep* is a time in which no
//! cycle began because the thread had given its core away itself.

use super::Cause;
use protocol::stamps::{Gap, KernelEvents};
use std::cell::Cell;

/// A time, in ticks, in which a thread made no progress on any order. It was preempted, slept or
/// worked on something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Start of the pause in ticks: a stamp, or the start of the gap.
    pub from: u64,
    /// End of the pause in ticks: a stamp, or the end of the gap.
    pub to: u64,
    /// Cause of the pause.
    pub cause: PauseCause,
}

/// The cause of a thread's pause: page fault, lost core or sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PauseCause {
    /// The kernel counted a page fault and no preemption.
    PageFault,
    /// Any other gap: the thread was off the CPU.
    OffCpu,
    /// The thread had given its core away, by its own idle strategy.
    Sleep,
}

impl PauseCause {
    /// All causes of pauses, in the order of totals by cause.
    pub const ALL: [Self; 3] = [Self::PageFault, Self::OffCpu, Self::Sleep];

    const fn from_gap(gap: &Gap) -> Self {
        let faulted = gap.events.has_counted(KernelEvents::MINOR_FAULT)
            || gap.events.has_counted(KernelEvents::MAJOR_FAULT);
        if faulted && !gap.events.has_counted(KernelEvents::INVOLUNTARY) {
            Self::PageFault
        } else {
            Self::OffCpu
        }
    }

    /// Returns the cause of delay to which this pause counts for orders that wait for the paused
    /// thread.
    pub const fn cause(self) -> Cause {
        match self {
            Self::PageFault => Cause::Memory,
            Self::OffCpu => Cause::Machine,
            Self::Sleep => Cause::WakeUp,
        }
    }
}

/// Returns the pauses of a thread, in which it did nothing for orders: the parts of its gaps and
/// sleeps between its stamps. Stamps are ascending; parts have at least `min_ticks` ticks. The
/// result is ascending and disjoint for any input: overlapping time belongs to the gap or sleep
/// that ended first.
pub fn pauses(gaps: &[Gap], sleeps: &[Gap], stamps: &[u64], min_ticks: u64) -> Vec<Pause> {
    let mut splitter = GapSplitter::new(gaps, sleeps, min_ticks);
    stamps.iter().for_each(|stamp| splitter.stamp(*stamp));
    splitter.finish()
}

/// Finds the pauses of a thread from its gaps and stamps, one stamp at a time. It computes
/// [`pauses`] and keeps only the stamps of the current gap.
pub(super) struct GapSplitter {
    gaps: Vec<(Gap, PauseCause)>,
    /// Earliest start of each gap and all later ones.
    earliest_begin: Vec<u64>,
    next: usize,
    stamps: Vec<u64>,
    min_ticks: u64,
    all: Vec<Pause>,
}

impl GapSplitter {
    /// Creates a splitter of a thread's gaps and sleeps that ignores pauses shorter than
    /// `min_ticks`.
    pub fn new(gaps: &[Gap], sleeps: &[Gap], min_ticks: u64) -> Self {
        let gaps = gaps.iter().map(|gap| (*gap, PauseCause::from_gap(gap)));
        let mut gaps: Vec<_> = gaps.chain(sleeps.iter().map(|sleep| (*sleep, PauseCause::Sleep))).collect();
        gaps.sort_by_key(|(gap, _)| gap.ended);
        let mut begun: Vec<u64> = gaps.iter().map(|(gap, _)| gap.ended.saturating_sub(gap.ticks)).collect();
        for index in (1..begun.len()).rev() {
            begun[index - 1] = begun[index - 1].min(begun[index]);
        }
        Self { gaps, earliest_begin: begun, next: 0, stamps: Vec::new(), min_ticks, all: Vec::new() }
    }

    /// Adds the thread's next stamp, a time in ticks that is not before the previous stamp.
    #[inline]
    pub fn stamp(&mut self, at: u64) {
        while self.gaps.get(self.next).is_some_and(|(gap, _)| gap.ended <= at) {
            self.split_next_gap();
        }
        if self.earliest_begin.get(self.next).is_some_and(|begun| *begun <= at) {
            self.stamps.push(at);
        }
    }

    /// Returns the pauses of the splitter's thread, after its last stamp.
    pub fn finish(mut self) -> Vec<Pause> {
        while self.next < self.gaps.len() {
            self.split_next_gap();
        }
        self.all
    }

    /// Splits the next gap, which is complete, at the stamps in it.
    fn split_next_gap(&mut self) {
        let (gap, why) = self.gaps[self.next];
        let begun = gap.ended.saturating_sub(gap.ticks);
        let mut from = self.all.last().map_or(begun, |last| last.to.max(begun));
        let inside = self.stamps.partition_point(|stamp| *stamp < from);
        let stamps = self.stamps[inside..].iter().copied().take_while(|stamp| *stamp < gap.ended);
        for to in stamps.chain([gap.ended]) {
            if to.saturating_sub(from) >= self.min_ticks.max(1) {
                self.all.push(Pause { from, to, cause: why });
            }
            from = from.max(to);
        }
        self.next += 1;
        // Stamps that a later gap may contain as well stay.
        let begun = self.earliest_begin.get(self.next).copied().unwrap_or(u64::MAX);
        let over = self.stamps.partition_point(|stamp| *stamp < begun);
        self.stamps.drain(..over);
    }
}

#[derive(Debug, Default)]
pub(super) struct PauseIndex {
    pauses: Vec<Pause>,
    before: Vec<[u64; PauseCause::ALL.len()]>,
    /// Index of the last result: the next query is mostly close to it.
    hint: Cell<usize>,
}

impl PauseIndex {
    /// Creates an index of a thread's pauses, which are in the order of time.
    pub fn new(pauses: Vec<Pause>) -> Self {
        let mut sum = [0; PauseCause::ALL.len()];
        let before = pauses.iter().map(|pause| {
            let before = sum;
            sum[pause.cause as usize] += pause.to - pause.from;
            before
        });
        let before = before.collect();
        Self { pauses, before, hint: Cell::new(0) }
    }

    fn count_before(&self, at: u64) -> usize {
        let begun = |index: usize| self.pauses.get(index).is_some_and(|pause| pause.from < at);
        let hint = self.hint.get();
        if (hint == 0 || begun(hint - 1)) && !begun(hint) {
            return hint;
        }
        let index = self.pauses.partition_point(|pause| pause.from < at);
        self.hint.set(index);
        index
    }

    fn ticks_until(&self, at: u64) -> [u64; PauseCause::ALL.len()] {
        let Some(index) = self.count_before(at).checked_sub(1) else {
            return [0; PauseCause::ALL.len()];
        };
        let (pause, mut sum) = (self.pauses[index], self.before[index]);
        sum[pause.cause as usize] += at.min(pause.to) - pause.from;
        sum
    }

    /// Returns how many ticks of `from..to` the thread paused, by cause, in the order of
    /// [`PauseCause::ALL`].
    pub fn ticks_within(&self, from: u64, to: u64) -> [u64; PauseCause::ALL.len()] {
        let (from, to) = (self.ticks_until(from), self.ticks_until(to.max(from)));
        std::array::from_fn(|why| to[why] - from[why])
    }

    /// Returns the tick at which the thread's first sleep in `from..to` began.
    pub fn first_sleep(&self, from: u64, to: u64) -> Option<u64> {
        let behind = &self.pauses[self.count_before(from)..];
        let before = behind.iter().take_while(|pause| pause.from < to);
        before.into_iter().find(|pause| pause.cause == PauseCause::Sleep).map(|pause| pause.from)
    }

    /// Returns the thread's pause that began exactly at the tick `from`, a stamp, and ended by
    /// `to`; `None` if there is none. Sleeps are excluded: a thread that sleeps had nothing left to
    /// do.
    pub fn pause_from(&self, from: u64, to: u64) -> Option<Pause> {
        let index = self.count_before(from);
        let is_sender_pause =
            |pause: &Pause| pause.from == from && pause.to <= to && pause.cause != PauseCause::Sleep;
        self.pauses.get(index).copied().filter(is_sender_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The batch implementation of [`pauses`], as a reference.
    fn pauses_at_once(gaps: &[Gap], stamps: &[u64], min_ticks: u64) -> Vec<Pause> {
        let mut gaps: Vec<Gap> = gaps.to_vec();
        gaps.sort_by_key(|gap| gap.ended);
        let mut all: Vec<Pause> = Vec::new();
        for gap in gaps {
            let begun = gap.ended.saturating_sub(gap.ticks);
            let mut from = all.last().map_or(begun, |last| last.to.max(begun));
            let inside = stamps.partition_point(|stamp| *stamp < from);
            let stamps = stamps[inside..].iter().copied().take_while(|stamp| *stamp < gap.ended);
            for to in stamps.chain([gap.ended]) {
                if to.saturating_sub(from) >= min_ticks.max(1) {
                    all.push(Pause { from, to, cause: PauseCause::OffCpu });
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
            min_ticks in 0u64..20,
        ) {
            stamps.sort_unstable();
            let gap = |(ended, ticks)| Gap { ended, ticks, events: KernelEvents(0) };
            let gaps: Vec<Gap> = gaps.into_iter().map(gap).collect();
            prop_assert_eq!(pauses(&gaps, &[], &stamps, min_ticks), pauses_at_once(&gaps, &stamps, min_ticks));
        }
    }

    fn gap(from: u64, to: u64, switches: u8) -> Gap {
        Gap { ended: to, ticks: to - from, events: KernelEvents(switches) }
    }

    #[test]
    fn stamps_split_gaps_into_pauses() {
        let fault = KernelEvents::MINOR_FAULT;
        let gaps = [gap(100, 200, KernelEvents::INVOLUNTARY | fault), gap(300, 400, fault), gap(500, 509, 0)];
        // Overlapping time belongs to the gap if it ended first.
        let sleeps = [gap(190, 250, 0), gap(600, 700, 0)];
        let found = pauses(&gaps, &sleeps, &[50, 100, 120, 125, 310, 600], 10);
        let of = |from, to, why| Pause { from, to, cause: why };
        let (off_cpu, fault, slept) = (PauseCause::OffCpu, PauseCause::PageFault, PauseCause::Sleep);
        let expected = [
            of(100, 120, off_cpu),
            of(125, 200, off_cpu),
            of(200, 250, slept),
            of(300, 310, fault),
            of(310, 400, fault),
            of(600, 700, slept),
        ];
        assert_eq!(found, expected);
        let calendar = PauseIndex::new(found);
        assert_eq!(calendar.ticks_within(0, 1000), [100, 95, 150]);
        assert_eq!(calendar.ticks_within(110, 130), [0, 15, 0]);
        assert_eq!(calendar.ticks_within(130, 110), [0, 0, 0]);
        assert_eq!(calendar.pause_from(125, 200).map(|away| away.to), Some(200));
        assert_eq!((calendar.pause_from(125, 199), calendar.pause_from(126, 300)), (None, None));
        // A sender that sleeps has pushed before.
        assert_eq!(calendar.pause_from(600, 700), None);
        let first = [(0, 200), (0, 201), (200, 300), (201, 600), (201, 601)];
        let first = first.map(|(from, to)| calendar.first_sleep(from, to));
        assert_eq!(first, [None, Some(200), Some(200), None, Some(600)]);
    }

    #[test]
    fn overlapping_or_forged_gaps_are_tolerated() {
        let gaps = [gap(0, u64::MAX, 0), gap(10, 20, 0), Gap { ended: 5, ticks: 9, events: KernelEvents(0) }];
        for (gaps, sleeps) in [(&gaps[..], &[][..]), (&[], &gaps), (&gaps[1..], &gaps[..1])] {
            let found = pauses(gaps, sleeps, &[7], 1);
            assert!(found.windows(2).all(|pair| pair[0].to <= pair[1].from), "{found:?}");
        }
        assert!(pauses(&[gap(5, 5, 0)], &[], &[], 0).is_empty());
    }
}
