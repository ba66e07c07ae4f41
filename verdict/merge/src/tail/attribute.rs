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
    pub order: u32,
    /// Index of the stage in [`AttributionParams::usual`]. `None` for a span that is not a stage of
    /// the engine: it is a stamp of its receiver, and a pause of the receiver from `from` on
    /// affects the order. This is how paused senders and the bursts after them are detected.
    pub stage: Option<u8>,
    /// Time of the first stamp, in ticks; the due time for the wait until an order was sent.
    pub from: u64,
    /// Time of the second stamp, in ticks.
    pub to: u64,
    /// Index of the thread that took the first stamp.
    pub sender: u16,
    /// Index of the thread that took the second stamp.
    pub receiver: u16,
}

// Millions of them are sorted at a time.
const _: () = assert!(size_of::<StageSpan>() == 32);

/// The parameters of the rule that attributes orders' time to causes, in ticks: each stage's
/// median, the maximum service time and the maximum stage length.
#[derive(Clone, Debug, Default)]
pub struct AttributionParams {
    /// Median of each stage, in ticks.
    pub usual: Vec<u64>,
    /// Maximum service time in ticks: longer times between two stamps are not the service of an
    /// order.
    pub max_service: u64,
    /// Maximum length of a stage, in ticks: older history of a thread is dropped.
    pub horizon: u64,
}

/// The time of orders split by cause of delay, in ticks, in the order of [`Cause::ALL`].
pub type TicksByCause = [u64; Cause::ALL.len()];

/// Adds ticks to a sum, cause by cause.
pub(super) fn add_ticks(sum: &mut TicksByCause, ticks: &TicksByCause) {
    sum.iter_mut().zip(ticks).for_each(|(sum, ticks)| *sum += ticks);
}

/// How long the backlog of a pause lasts after it, as a multiple of the pause: the queue of a
/// server that works 90 % of its time empties in 0.9 / (1 − 0.9) of it.
const BACKLOG_PER_PAUSE: u64 = 9;

/// Service time of a thread up to a stamp, in ticks: for affected orders, for others, for none.
#[derive(Clone, Copy, Debug, Default)]
struct ServiceTotals {
    at: u64,
    sums: [u64; 3],
    is_affected: bool,
}

#[derive(Default)]
struct ThreadHistory {
    pauses: PauseIndex,
    served: VecDeque<ServiceTotals>,
    /// The latest end of the backlog of an affected order that it served, in ticks.
    backlog_until: u64,
}

impl ThreadHistory {
    /// Returns the totals at `at`, by continuing from the last stamp. A thread that slept has
    /// finished the order of that stamp.
    fn totals_at(&self, last: &ServiceTotals, at: u64, longest: u64) -> [u64; 3] {
        let mut sums = last.sums;
        let mut add_running_time = |from: u64, to: u64, touched: bool| {
            let running =
                to.saturating_sub(from).saturating_sub(self.pauses.ticks_within(from, to).iter().sum());
            let served = running.min(longest);
            sums[usize::from(!touched)] += served;
            sums[2] += running - served;
        };
        match self.pauses.first_sleep(last.at, at) {
            Some(slept) => {
                add_running_time(last.at, slept, last.is_affected);
                add_running_time(slept, at, false);
            }
            None => add_running_time(last.at, at, last.is_affected),
        }
        sums
    }

    /// Adds a stamp. `is_affected`: service from it on is backlog.
    fn stamp(&mut self, at: u64, is_affected: bool, rules: &AttributionParams) {
        let sums = self.served.back().map_or([0; 3], |last| self.totals_at(last, at, rules.max_service));
        self.served.push_back(ServiceTotals { at, sums, is_affected });
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

/// Splits the time of each order's stages by cause, and passes each stage with its ticks by cause
/// to `on_span`. Also passes whether its order is affected so far. Spans are sorted by their ends;
/// the pauses of a thread are ascending and disjoint, as `pauses` returns them. Returns the set of
/// affected orders.
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
    let has_pauses = threads.iter().any(|pauses| !pauses.is_empty());
    let thread = |away| ThreadHistory { pauses: PauseIndex::new(away), ..ThreadHistory::default() };
    let mut threads: Vec<ThreadHistory> = threads.into_iter().map(thread).collect();
    let mut affected = BitSet::new(orders);
    // By order: until when others that wait for it are in the backlog of a pause.
    let mut backlog_until = vec![0u64; if has_pauses { orders } else { 0 }];
    for mut span in spans {
        let usual = span.stage.map_or(0, |stage| rules.usual[usize::from(stage)]);
        if span.stage.is_none() {
            // Orders that were late before it were sent within that time and pass on what affected
            // them.
            span.from = span.from.max(span.to.saturating_sub(rules.horizon));
        }
        let causes = split_span(&span, &threads, usual, rules.max_service);
        let (order, thread) = (span.order as usize, usize::from(span.receiver));
        let receiver = threads[thread].pauses.ticks_within(span.from, span.to);
        let sender = threads[usize::from(span.sender)].pauses.pause_from(span.from, span.to);
        let paused = receiver[PauseCause::PageFault as usize] + receiver[PauseCause::OffCpu as usize];
        let paused = paused.max(sender.map_or(0, |pause| pause.to - pause.from));
        let until =
            if paused > 0 { span.to.saturating_add(BACKLOG_PER_PAUSE.saturating_mul(paused)) } else { 0 };
        let inherited = if causes[Cause::Backlog as usize] > 0 { threads[thread].backlog_until } else { 0 };
        let until = until.max(inherited);
        if until > 0 {
            affected.set(order);
            backlog_until[order] = backlog_until[order].max(until);
        }
        let is_affected = affected.get(order);
        let until = backlog_until.get(order).copied().unwrap_or(0);
        let has_backlog = is_affected && span.to < until;
        if has_backlog {
            threads[thread].backlog_until = threads[thread].backlog_until.max(until);
        }
        threads[thread].stamp(span.to, has_backlog, rules);
        on_span(&span, &causes, is_affected);
    }
    affected
}

fn split_span(span: &StageSpan, threads: &[ThreadHistory], usual: u64, longest: u64) -> TicksByCause {
    let [sender, receiver] = [span.sender, span.receiver].map(|thread| &threads[usize::from(thread)]);
    let mut causes = TicksByCause::default();
    let mut from = span.from;
    let mut away = |ticks: [u64; PauseCause::ALL.len()]| {
        for (why, ticks) in PauseCause::ALL.into_iter().zip(ticks) {
            causes[why.cause() as usize] += ticks;
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
        causes[cause as usize] += ticks;
    }
    let over = own.saturating_sub(usual);
    causes[Cause::Usual as usize] += own - over;
    causes[if over <= longest { Cause::Memory } else { Cause::Unexplained } as usize] += over;
    causes
}
