//! The attribution rule: splits the time of stage spans by cause. Pure, and linear except for a
//! binary search in a thread's history.

use super::Cause;
use super::pauses::{Away, Calendar, Why};
use crate::radix_select::Bits;
use std::collections::VecDeque;

/// A stage of an order with its two stamps, or the wait from its due time until it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Index of the order, from 0, without holes.
    pub order: usize,
    /// Index of the stage in [`Rules::usual`]. `None` for a span that is not a stage of the engine:
    /// it is a stamp of its receiver, and a pause of the receiver from `from` on affects the order.
    /// This is how paused senders and the bursts after them are detected.
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

/// The parameters of the attribution.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Median of each stage, in ticks.
    pub usual: Vec<u64>,
    /// Maximum service time in ticks: longer times between two stamps are not the service of an
    /// order.
    pub longest: u64,
    /// Maximum length of a span with a stage, in ticks: older history of a thread is dropped.
    pub horizon: u64,
    /// A deliberately broken rule, for tests: backlog affects no order.
    pub forgets_backlog: bool,
}

/// Ticks by cause, in the order of [`Cause::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(pub [u64; Cause::ALL.len()]);

impl Parts {
    /// Returns the ticks of one cause.
    pub const fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// Returns the sum over all causes.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Adds another one, cause by cause.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine += other);
    }

    fn take(&mut self, cause: Cause, ticks: u64) {
        self.0[cause as usize] += ticks;
    }
}

/// Service time of a thread up to a stamp, in ticks: for affected orders, for others, for none.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    at: u64,
    sums: [u64; 3],
    /// Whether the order of this stamp was affected.
    touched: bool,
}

#[derive(Default)]
struct Thread {
    away: Calendar,
    served: VecDeque<Served>,
}

impl Thread {
    /// Returns the totals at `at`, by continuing from the last stamp. A thread that slept has
    /// finished the order of that stamp.
    fn since(&self, last: &Served, at: u64, longest: u64) -> [u64; 3] {
        let mut sums = last.sums;
        let mut kept = |from: u64, to: u64, touched: bool| {
            let there = to.saturating_sub(from).saturating_sub(self.away.within(from, to).iter().sum());
            let served = there.min(longest);
            sums[usize::from(!touched)] += served;
            sums[2] += there - served;
        };
        match self.away.first_sleep(last.at, at) {
            Some(slept) => {
                kept(last.at, slept, last.touched);
                kept(slept, at, false);
            }
            None => kept(last.at, at, last.touched),
        }
        sums
    }

    fn stamp(&mut self, at: u64, touched: bool, rules: &Rules) {
        let sums = self.served.back().map_or([0; 3], |last| self.since(last, at, rules.longest));
        self.served.push_back(Served { at, sums, touched });
        // The last entry before everything that will be requested stays.
        while self.served.get(1).is_some_and(|second| second.at < at.saturating_sub(rules.horizon)) {
            self.served.pop_front();
        }
    }

    /// Returns the service times from `from` to its last stamp, and the time of that stamp; `None`
    /// if it has not stamped since.
    fn since_then(&self, from: u64, longest: u64) -> Option<([u64; 3], u64)> {
        let last = self.served.back().filter(|last| last.at > from)?;
        let place = self.served.partition_point(|served| served.at <= from);
        let mut sums = last.sums;
        match place.checked_sub(1) {
            Some(place) => {
                let before = self.since(&self.served[place], from, longest);
                sums.iter_mut().zip(before).for_each(|(sum, before)| *sum -= before);
            }
            // Before its first stamp it served no order.
            None => {
                let first = self.served[0].at;
                sums[2] += (first - from) - self.away.within(from, first).iter().sum::<u64>();
            }
        }
        Some((sums, last.at))
    }
}

/// Splits each span by cause and passes it to `hear`, with whether its order is affected so far.
/// Spans are sorted by their ends; the pauses of a thread are ascending and disjoint, as `pauses`
/// returns them. Returns the set of affected orders.
///
/// # Panics
/// If a span names a thread or stage that does not exist. A span longer than [`Rules::horizon`] may
/// get less backlog and queueing than it had.
pub fn attribute(
    passages: impl IntoIterator<Item = Passage>,
    orders: usize,
    threads: Vec<Vec<Away>>,
    rules: &Rules,
    mut hear: impl FnMut(&Passage, &Parts, bool),
) -> Bits {
    let thread = |away| Thread { away: Calendar::new(away), served: VecDeque::new() };
    let mut threads: Vec<Thread> = threads.into_iter().map(thread).collect();
    let mut touched = Bits::new(orders);
    for mut passage in passages {
        let usual = passage.stage.map_or(0, |stage| rules.usual[stage]);
        if passage.stage.is_none() {
            // Orders that were late before it were sent within that time and pass on what affected
            // them.
            passage.from = passage.from.max(passage.to.saturating_sub(rules.horizon));
        }
        let parts = cut(&passage, &threads, usual, rules.longest);
        let backlog = parts.of(Cause::Backlog) > 0 && !rules.forgets_backlog;
        let receiver = threads[passage.receiver].away.within(passage.from, passage.to);
        let sender = threads[passage.sender].away.since(passage.from, passage.to);
        if backlog || receiver[Why::Fault as usize] + receiver[Why::Gone as usize] > 0 || sender.is_some() {
            touched.set(passage.order);
        }
        let is_touched = touched.get(passage.order);
        threads[passage.receiver].stamp(passage.to, is_touched, rules);
        hear(&passage, &parts, is_touched);
    }
    touched
}

fn cut(passage: &Passage, threads: &[Thread], usual: u64, longest: u64) -> Parts {
    let (sender, receiver) = (&threads[passage.sender], &threads[passage.receiver]);
    let mut parts = Parts::default();
    let mut from = passage.from;
    let mut away = |ticks: [u64; Why::ALL.len()]| {
        for (why, ticks) in Why::ALL.into_iter().zip(ticks) {
            parts.take(why.cause(), ticks);
        }
        ticks.iter().sum::<u64>()
    };
    if let Some(gone) = sender.away.since(from, passage.to) {
        let mut ticks = [0; Why::ALL.len()];
        ticks[gone.why as usize] = gone.to - from;
        away(ticks);
        from = gone.to;
    }
    // The receiver's service while the order waited; the receiver may have paused within and after
    // it.
    let behind = receiver.since_then(from, longest);
    let (served, last) = behind.unwrap_or(([0; 3], from));
    away(receiver.away.within(from, last));
    let own = passage.to.saturating_sub(last).saturating_sub(away(receiver.away.within(last, passage.to)));
    for (cause, ticks) in [Cause::Backlog, Cause::Queueing, Cause::Unexplained].into_iter().zip(served) {
        parts.take(cause, ticks);
    }
    let over = own.saturating_sub(usual);
    parts.take(Cause::Usual, own - over);
    parts.take(if over <= longest { Cause::Memory } else { Cause::Unexplained }, over);
    parts
}
