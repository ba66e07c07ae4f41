//! The attribution rule: splits the time of stage spans by cause. Pure, and linear except for a
//! binary search in a thread's history.

use super::Cause;
use super::pauses::{Pause, PauseCause, PauseIndex};
use crate::radix_select::BitSet;
use std::collections::VecDeque;

/// A stage of one order from stamp to stamp, or the wait from its due time until it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageSpan {
    /// Index of the order, from 0, without holes.
    pub order: usize,
    /// Index of the stage in [`AttributionParams::usual`]. `None` for a span that is not a stage of
    /// the engine: it is a stamp of its receiver, and a pause of the receiver from `from` on
    /// affects the order. This is how paused senders and the bursts after them are detected.
    pub stage: Option<usize>,
    /// Time of the first stamp, in ticks; of a first stamp, the due time.
    pub from: u64,
    /// Time of the second stamp, in ticks.
    pub to: u64,
    /// Thread of the first stamp.
    pub sender: usize,
    /// Thread of the second stamp.
    pub receiver: usize,
}

/// The parameters of attributing orders' time to causes.
#[derive(Clone, Debug, Default)]
pub struct AttributionParams {
    /// Median of each stage, in ticks.
    pub usual: Vec<u64>,
    /// Maximum service time in ticks: longer times between two stamps are not the service of an
    /// order.
    pub max_service: u64,
    /// Maximum length of a span with a stage, in ticks: older history of a thread is dropped.
    pub horizon: u64,
    /// A deliberately broken rule, for tests: backlog affects no order.
    pub ignores_backlog: bool,
}

/// Ticks of orders' time by cause, in the order of [`Cause::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TicksByCause(pub [u64; Cause::ALL.len()]);

impl TicksByCause {
    /// Returns the ticks attributed to one cause.
    pub const fn get(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// Returns the ticks attributed to all causes together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds the ticks of another total, cause by cause.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine += other);
    }

    fn add_ticks(&mut self, cause: Cause, ticks: u64) {
        self.0[cause as usize] += ticks;
    }
}

/// Service time of a thread up to a stamp, in ticks: for affected orders, for others, for none.
#[derive(Clone, Copy, Debug, Default)]
struct ServiceTotals {
    at: u64,
    sums: [u64; 3],
    /// Whether the order of this stamp was affected.
    is_affected: bool,
}

#[derive(Default)]
struct ThreadHistory {
    pauses: PauseIndex,
    served: VecDeque<ServiceTotals>,
}

impl ThreadHistory {
    /// Returns the totals at `at`, by continuing from the last stamp. A thread that slept has
    /// finished the order of that stamp.
    fn totals_at(&self, last: &ServiceTotals, at: u64, longest: u64) -> [u64; 3] {
        let mut sums = last.sums;
        let mut kept = |from: u64, to: u64, touched: bool| {
            let there =
                to.saturating_sub(from).saturating_sub(self.pauses.ticks_within(from, to).iter().sum());
            let served = there.min(longest);
            sums[usize::from(!touched)] += served;
            sums[2] += there - served;
        };
        match self.pauses.first_sleep(last.at, at) {
            Some(slept) => {
                kept(last.at, slept, last.is_affected);
                kept(slept, at, false);
            }
            None => kept(last.at, at, last.is_affected),
        }
        sums
    }

    fn stamp(&mut self, at: u64, touched: bool, rules: &AttributionParams) {
        let sums = self.served.back().map_or([0; 3], |last| self.totals_at(last, at, rules.max_service));
        self.served.push_back(ServiceTotals { at, sums, is_affected: touched });
        // The last entry before everything that will be requested stays.
        while self.served.get(1).is_some_and(|second| second.at < at.saturating_sub(rules.horizon)) {
            self.served.pop_front();
        }
    }

    /// Returns the service times from `from` to its last stamp, and the time of that stamp; `None`
    /// if it has not stamped since.
    fn served_since(&self, from: u64, longest: u64) -> Option<([u64; 3], u64)> {
        let last = self.served.back().filter(|last| last.at > from)?;
        let index = self.served.partition_point(|served| served.at <= from);
        let mut sums = last.sums;
        match index.checked_sub(1) {
            Some(index) => {
                let before = self.totals_at(&self.served[index], from, longest);
                sums.iter_mut().zip(before).for_each(|(sum, before)| *sum -= before);
            }
            // Before its first stamp it served no order.
            None => {
                let first = self.served[0].at;
                sums[2] += (first - from) - self.pauses.ticks_within(from, first).iter().sum::<u64>();
            }
        }
        Some((sums, last.at))
    }
}

/// Splits the time of each stage by cause and passes it to `on_span`. Also passes whether its order
/// is affected so far. Spans are sorted by their ends; the pauses of a thread are ascending and
/// disjoint, as `pauses` returns them. Returns the set of affected orders.
///
/// # Panics
/// If a span names a thread or stage that does not exist. A span longer than
/// [`AttributionParams::horizon`] may get less backlog and queueing than it had.
pub fn attribute(
    spans: impl IntoIterator<Item = StageSpan>,
    orders: usize,
    threads: Vec<Vec<Pause>>,
    rules: &AttributionParams,
    mut on_span: impl FnMut(&StageSpan, &TicksByCause, bool),
) -> BitSet {
    let thread = |away| ThreadHistory { pauses: PauseIndex::new(away), served: VecDeque::new() };
    let mut threads: Vec<ThreadHistory> = threads.into_iter().map(thread).collect();
    let mut affected = BitSet::new(orders);
    for mut span in spans {
        let usual = span.stage.map_or(0, |stage| rules.usual[stage]);
        if span.stage.is_none() {
            // Orders that were late before it were sent within that time and pass on what affected
            // them.
            span.from = span.from.max(span.to.saturating_sub(rules.horizon));
        }
        let parts = split_span(&span, &threads, usual, rules.max_service);
        let backlog = parts.get(Cause::Backlog) > 0 && !rules.ignores_backlog;
        let receiver = threads[span.receiver].pauses.ticks_within(span.from, span.to);
        let sender = threads[span.sender].pauses.pause_from(span.from, span.to);
        if backlog
            || receiver[PauseCause::PageFault as usize] + receiver[PauseCause::OffCpu as usize] > 0
            || sender.is_some()
        {
            affected.set(span.order);
        }
        let is_affected = affected.get(span.order);
        threads[span.receiver].stamp(span.to, is_affected, rules);
        on_span(&span, &parts, is_affected);
    }
    affected
}

fn split_span(span: &StageSpan, threads: &[ThreadHistory], usual: u64, longest: u64) -> TicksByCause {
    let (sender, receiver) = (&threads[span.sender], &threads[span.receiver]);
    let mut parts = TicksByCause::default();
    let mut from = span.from;
    let mut away = |ticks: [u64; PauseCause::ALL.len()]| {
        for (why, ticks) in PauseCause::ALL.into_iter().zip(ticks) {
            parts.add_ticks(why.cause(), ticks);
        }
        ticks.iter().sum::<u64>()
    };
    if let Some(gone) = sender.pauses.pause_from(from, span.to) {
        let mut ticks = [0; PauseCause::ALL.len()];
        ticks[gone.cause as usize] = gone.to - from;
        away(ticks);
        from = gone.to;
    }
    // The receiver's service while the order waited; the receiver may have paused within and after
    // it.
    let served_since = receiver.served_since(from, longest);
    let (served, last) = served_since.unwrap_or(([0; 3], from));
    away(receiver.pauses.ticks_within(from, last));
    let own = span.to.saturating_sub(last).saturating_sub(away(receiver.pauses.ticks_within(last, span.to)));
    for (cause, ticks) in [Cause::Backlog, Cause::Queueing, Cause::Unexplained].into_iter().zip(served) {
        parts.add_ticks(cause, ticks);
    }
    let over = own.saturating_sub(usual);
    parts.add_ticks(Cause::Usual, own - over);
    parts.add_ticks(if over <= longest { Cause::Memory } else { Cause::Unexplained }, over);
    parts
}
