//! The rule: from passages and times away to parts. Pure, and linear but for a search in what a
//! thread has served.

use super::Cause;
use super::away::{Away, Calendar, Why};
use crate::select::Bits;
use std::collections::VecDeque;

/// A stage of an order, or its wait for the sender before the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Whose: from 0, without holes.
    pub order: usize,
    /// Which stage: a place in [`Rules::usual`]. `None`: no stage of the engine. It is a stamp of
    /// its receiver, and what kept the receiver from `from` on touches the order: that is how a
    /// sender which was away, and the burst behind that, are known.
    pub stage: Option<usize>,
    /// The stamp at its beginning, in ticks; of a first stamp, when the order was due.
    pub from: u64,
    /// The stamp at its end.
    pub to: u64,
    /// The thread of the first stamp.
    pub sender: usize,
    /// That of the second.
    pub receiver: usize,
}

/// What is usual.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The median of each stage, in ticks.
    pub usual: Vec<u64>,
    /// From this length on, in ticks, something between two stamps is no order's service.
    pub longest: u64,
    /// No passage with a stage is longer, in ticks: what a thread served before that is forgotten.
    pub horizon: u64,
    /// A broken rule, for the tests of the check: backlog touches nobody.
    pub forgets_backlog: bool,
}

/// Ticks by cause, in the order of [`Cause::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(pub [u64; Cause::ALL.len()]);

impl Parts {
    /// Of one cause.
    pub const fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// All together.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// With another one's.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine += other);
    }

    fn take(&mut self, cause: Cause, ticks: u64) {
        self.0[cause as usize] += ticks;
    }
}

/// What a thread has served up to a stamp, in ticks: of touched orders, of others, of nobody.
#[derive(Clone, Copy, Debug, Default)]
struct Served {
    at: u64,
    sums: [u64; 3],
    /// Whether the order of this stamp was touched.
    touched: bool,
}

#[derive(Default)]
struct Thread {
    away: Calendar,
    served: VecDeque<Served>,
}

impl Thread {
    /// From its last stamp until then: by whom it was kept. Who has slept is through with the order
    /// of that stamp.
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
        // The last one that lies before all that will be asked for stays.
        while self.served.get(1).is_some_and(|second| second.at < at.saturating_sub(rules.horizon)) {
            self.served.pop_front();
        }
    }

    /// What it served in `from..` its last stamp, and when that was; `None` if it has stamped
    /// nothing since.
    fn since_then(&self, from: u64, longest: u64) -> Option<([u64; 3], u64)> {
        let last = self.served.back().filter(|last| last.at > from)?;
        let place = self.served.partition_point(|served| served.at <= from);
        let mut sums = last.sums;
        match place.checked_sub(1) {
            Some(place) => {
                let before = self.since(&self.served[place], from, longest);
                sums.iter_mut().zip(before).for_each(|(sum, before)| *sum -= before);
            }
            // It had served nobody yet.
            None => {
                let first = self.served[0].at;
                sums[2] += (first - from) - self.away.within(from, first).iter().sum::<u64>();
            }
        }
        Some((sums, last.at))
    }
}

/// Cuts each passage into parts and hands it to `hear` with whether its order is touched by then.
/// Passages come in the order of their ends; a thread's times away are ascending and do not
/// overlap, as `away` gives them. Gives which orders are touched in the end.
///
/// # Panics
/// If a passage names a thread or a stage that there is not. A passage that is longer than
/// [`Rules::horizon`] may get less backlog and queueing than it had.
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
            // Orders that were late before it were sent within that time, and hand on what touched
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
    // What the receiver served while the order waited; it was away in between, and behind that.
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
