//! The working set of a strategy: heap memory that it walks between its orders, so that caches and
//! TLB are as full as those of a strategy with models and books when it sends.
//!
//! The walk follows pointers: each cache line holds the index of the next one, and the lines form
//! one cycle in random order. So the hardware cannot fetch ahead, and the walk touches the whole
//! set before it touches a line again.
//!
//! A strategy owes [`MemorySettings::LINES_PER_ORDER`] lines for each order that it has sent. It
//! walks them in steps of [`STEP_LINES`] in duty cycles that found neither a report nor a due
//! order, and does not begin a step shortly before an order is due. So a walk lies between the
//! orders, and a report waits for one step at most. A strategy without such cycles (overload,
//! closed loop) walks what it owes beyond [`MAX_OWED`] at once: no order is without its walk.

use core::cell::Cell;
use core::hint::black_box;
use protocol::counters::AgentSlot;
use protocol::labels::StrategyCounter;
use protocol::plan::MemorySettings;
use shm::random::SplitMix64;
use system::clock::{Clock, Timebase};

/// Cache lines of one step.
const STEP_LINES: u64 = 8;
/// Maximum number of lines that a strategy owes: the walks of 16 orders.
const MAX_OWED: u64 = 16 * MemorySettings::LINES_PER_ORDER;
/// A step does not begin if an order is due within this time, in nanoseconds.
const GUARD_NS: u64 = 2_000;

/// A cache line of the heap.
#[repr(align(64))]
struct Line {
    /// Index of the next line of the cycle.
    next: u32,
}

const _: () = assert!(size_of::<Line>() as u64 == MemorySettings::LINE_BYTES);

/// Heap memory whose cache lines are read between a strategy's orders, as the data of a larger
/// strategy would be.
pub struct WorkingSet {
    lines: Box<[Line]>,
    /// Index of the line at which the next step begins.
    at: u32,
    /// Lines walked since the incarnation began.
    walked: u64,
    /// Time of these walks, in ticks.
    ticks: u64,
    /// [`GUARD_NS`] in ticks; 0 before the first step.
    guard: u64,
    /// Ticks of the walk for the current order so far.
    order_ticks: u64,
    times: WalkTimes,
    /// Whether the strategy has ended, so that its percentiles are published.
    has_ended: Cell<bool>,
}

/// A histogram of times with eight buckets for each power of two.
struct WalkTimes([u32; Self::BUCKETS]);

impl WalkTimes {
    const BUCKETS: usize = 512;

    fn bucket(ticks: u64) -> usize {
        let log = ticks.max(1).ilog2();
        if log < 4 { ticks as usize } else { (log as usize - 2) * 8 + (ticks >> (log - 3)) as usize % 8 }
    }

    /// Returns the least time of a bucket.
    const fn least(bucket: usize) -> u64 {
        if bucket < 16 { bucket as u64 } else { (8 + bucket as u64 % 8) << (bucket / 8 - 1) }
    }

    fn record(&mut self, ticks: u64) {
        if let Some(count) = self.0.get_mut(Self::bucket(ticks)) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns the time below which this share of the recorded ones is; 0 without any.
    fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let mut left = (total as f64 * share) as u64;
        for (bucket, count) in self.0.iter().enumerate() {
            match left.checked_sub((*count).into()) {
                Some(rest) => left = rest,
                None => return Self::least(bucket),
            }
        }
        0
    }
}

impl WorkingSet {
    /// Allocates the working set of a strategy and touches each of its pages; `None` if the
    /// run has no working set.
    pub fn allocate(settings: &MemorySettings, strategy: u16) -> Option<Self> {
        let count = u32::try_from(settings.lines()).ok().filter(|count| *count > 0)?;
        let mut lines: Box<[Line]> = (0..count).map(|next| Line { next }).collect();
        // Sattolo's shuffle: a permutation that is one cycle.
        let mut random = SplitMix64(settings.seed ^ (u64::from(strategy) << 48));
        for last in (1..count).rev() {
            let other = random.below(last.into()) as usize;
            let (low, high) = lines.split_at_mut(last as usize);
            if let (Some(low), Some(high)) = (low.get_mut(other), high.first_mut()) {
                core::mem::swap(&mut low.next, &mut high.next);
            }
        }
        Some(Self {
            lines,
            at: 0,
            walked: 0,
            ticks: 0,
            guard: 0,
            order_ticks: 0,
            times: WalkTimes([0; WalkTimes::BUCKETS]),
            has_ended: Cell::new(false),
        })
    }

    /// Walks the next step of what the strategy owes for `sent` orders, if it may now. `due`: when
    /// its next order is due, in ticks; `is_idle`: the duty cycle found nothing else to do. Returns
    /// the number of steps.
    #[inline(never)]
    pub(crate) fn advance(
        &mut self,
        sent: u64,
        is_idle: bool,
        due: u64,
        clock: &impl Clock,
        time: Timebase,
    ) -> usize {
        let owed = sent.saturating_mul(MemorySettings::LINES_PER_ORDER).saturating_sub(self.walked);
        let beyond = owed.saturating_sub(MAX_OWED);
        let count = if beyond > 0 {
            beyond
        } else if is_idle {
            owed.min(STEP_LINES)
        } else {
            0
        };
        if count == 0 {
            return 0;
        }
        if self.guard == 0 {
            self.guard = time.ticks(GUARD_NS).max(1);
        }
        let began = clock.peek();
        if beyond == 0 && due.saturating_sub(began) < self.guard {
            return 0;
        }
        self.walk(count);
        // Ordered after the loads.
        let ticks = clock.now().saturating_sub(began);
        self.ticks += ticks;
        self.order_ticks += ticks;
        if beyond == 0 && self.walked.is_multiple_of(MemorySettings::LINES_PER_ORDER) {
            self.times.record(core::mem::take(&mut self.order_ticks));
        } else if beyond > 0 {
            // Of several orders together, which is no order's time.
            self.order_ticks = 0;
        }
        1
    }

    fn walk(&mut self, count: u64) {
        for _ in 0..count {
            self.at = self.lines.get(self.at as usize).map_or(0, |line| line.next);
        }
        self.at = black_box(self.at);
        self.walked += count;
    }

    /// Marks the end of the strategy: the next publication has the percentiles.
    pub(crate) fn end(&self) {
        self.has_ended.set(true);
    }

    pub(crate) fn publish(&self, slot: &AgentSlot<'_>) {
        slot.set(StrategyCounter::Walked, self.walked);
        slot.set(StrategyCounter::WalkTime, self.ticks);
        if self.has_ended.get() {
            slot.set(StrategyCounter::WalkP50, self.times.quantile(0.5));
            slot.set(StrategyCounter::WalkP99, self.times.quantile(0.99));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use system::clock::VirtualClock;

    const LINES: u64 = MemorySettings::LINES_PER_ORDER;

    fn settings(lines: u64, seed: u64) -> MemorySettings {
        let working_set_bytes = lines * MemorySettings::LINE_BYTES;
        MemorySettings { working_set_bytes, seed, ..MemorySettings::default() }
    }

    fn visited(settings: &MemorySettings, strategy: u16, count: u64) -> Vec<u32> {
        let mut set = WorkingSet::allocate(settings, strategy).unwrap();
        let step = |_| {
            set.walk(1);
            set.at
        };
        (0..count).map(step).collect()
    }

    proptest! {
        #[test]
        fn walk_visits_each_line_once_a_cycle(lines in 1u64..3_000, seed: u64) {
            let mut cycle = visited(&settings(lines, seed), 3, lines);
            prop_assert_eq!(cycle.last(), Some(&0), "back at the beginning");
            cycle.sort_unstable();
            prop_assert!(cycle.into_iter().eq(0..lines as u32));
        }
    }

    #[test]
    fn walk_is_drawn_by_seed_and_strategy() {
        let walk = |seed, strategy| visited(&settings(500, seed), strategy, 500);
        assert_eq!(walk(1, 0), walk(1, 0));
        assert_ne!(walk(1, 0), walk(2, 0));
        assert_ne!(walk(1, 0), walk(1, 1));
        let ahead = walk(1, 0).windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(ahead < 25, "not in the order of addresses: {ahead} of 500");
        assert!(WorkingSet::allocate(&settings(0, 1), 0).is_none());
    }

    proptest! {
        #[test]
        fn quantile_is_within_an_eighth(times in proptest::collection::vec(1u64..1 << 40, 1..300)) {
            let mut found = WalkTimes([0; WalkTimes::BUCKETS]);
            times.iter().for_each(|ticks| found.record(*ticks));
            let mut sorted = times;
            sorted.sort_unstable();
            for share in [0.0, 0.5, 0.99] {
                let exact = sorted[(sorted.len() as f64 * share) as usize];
                let quantile = found.quantile(share);
                prop_assert!(quantile <= exact && exact - quantile <= exact / 8, "{} {}", quantile, exact);
            }
        }
    }

    #[test]
    fn owed_lines_are_walked_only_between_orders() {
        let mut set = WorkingSet::allocate(&settings(1_000, 1), 0).unwrap();
        let (clock, time) = (VirtualClock::default(), Timebase { start_ticks: 0, ns_per_tick: 1.0 });
        let mut advance = |sent, is_idle, due| {
            set.advance(sent, is_idle, due, &clock, time);
            set.walked
        };
        assert_eq!(advance(0, true, u64::MAX), 0, "nothing was sent");
        assert_eq!(advance(1, false, u64::MAX), 0, "a report or an order came first");
        assert_eq!(advance(1, true, GUARD_NS - 1), 0, "an order is about to be due");
        assert_eq!(advance(1, true, GUARD_NS), STEP_LINES);
        for _ in 0..LINES / STEP_LINES {
            advance(1, true, u64::MAX);
        }
        assert_eq!(advance(1, true, u64::MAX), LINES, "all of one order, and no more");
        assert_eq!(advance(17, false, 0), LINES, "16 orders may be owed");
        assert_eq!(advance(20, false, 0), 4 * LINES, "the rest is walked at once");
    }
}
