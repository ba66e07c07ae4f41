//! The two loops of the lab: one that pushes events, one that takes them. Compiled once for each technique, and for nothing
//! else: how an end waits and how slow it is are branches outside of the way of an event.

use super::account::{Account, DONE, Field, Ledger, event};
use super::plan::{DRAIN, PREPARE, STATE, STOP};
use super::waiting::{Pace, Waiting};
use shm::bell::Bell;
use shm::memory::View;
use shm::ring::{Consumer, Producer};
use shm::sync::Ordering;
use system::clock::{Clock, ClockSource};
use system::usage::{Usage, cpu_ns_of_this_thread};

/// What an end has beside its queues.
pub(super) struct Job<'a> {
    pub control: &'a View,
    pub account: &'a Account,
    pub clock: ClockSource,
    pub waiting: Waiting,
    pub pace: Pace,
    /// Whom to ring after an event: none unless the other side parks.
    pub bells: Vec<Bell>,
    /// This producer's number.
    pub index: u16,
    /// The producers of the run.
    pub producers: u16,
    /// Events to push, or to take.
    pub events: u64,
}

impl Job<'_> {
    fn state(&self) -> u64 {
        // Acquire: what the launcher did before is done.
        self.control.load(STATE, Ordering::Acquire)
    }

    /// Waits for the start; false if there will be none.
    fn starts(&self) -> bool {
        loop {
            match self.state() {
                PREPARE => std::thread::yield_now(),
                state => return state != STOP,
            }
        }
    }

    /// Says what the thread has used since, and that it is done.
    fn close(&self, (cpu_ns, before): (u64, Usage)) {
        self.account.set(Field::Cpu, cpu_ns_of_this_thread().saturating_sub(cpu_ns));
        let used = Usage::of_this_thread().since(before);
        self.account.set(Field::Voluntary, used.voluntary_switches);
        self.account.set(Field::Involuntary, used.involuntary_switches);
        self.account.set(Field::Looks, self.waiting.looks);
        self.account.set(Field::Wakes, self.waiting.wakes);
        self.account.set_state(DONE);
    }
}

/// Pushes every event into every queue.
pub(super) fn produce<P: Producer>(mut queues: Vec<P>, mut job: Job<'_>) {
    if !job.starts() {
        return;
    }
    let before = (cpu_ns_of_this_thread(), Usage::of_this_thread());
    let (mut sum, mut longest, mut pushed) = (0u64, 0, 0);
    let begin = job.clock.now();
    'events: for number in 0..job.events {
        let made = job.clock.now();
        let (message, check) = event(job.index.into(), number, made);
        for queue in &mut queues {
            if queue.try_push(&message).is_err() {
                while queue.try_push(&message).is_err() {
                    if job.state() == STOP {
                        break 'events;
                    }
                    job.waiting.wait();
                }
                job.waiting.went_on();
                longest = longest.max(job.clock.now().saturating_sub(made));
            }
        }
        for bell in &job.bells {
            bell.ring();
        }
        sum = sum.wrapping_add(check);
        pushed += 1;
        job.account.set(Field::Count, pushed);
        if job.pace.is_slow() {
            job.pace.work(job.clock);
        }
    }
    job.account.set(Field::Begin, begin);
    job.account.set(Field::End, job.clock.now());
    job.account.set(Field::Sum, sum);
    job.account.set(Field::LongestWait, longest);
    job.close(before);
}

/// Takes every event of a queue and checks it.
pub(super) fn consume<C: Consumer>(mut queue: C, mut job: Job<'_>) {
    if !job.starts() {
        return;
    }
    let before = (cpu_ns_of_this_thread(), Usage::of_this_thread());
    let mut ledger = Ledger::new(job.account, job.producers, job.events);
    let begin = job.clock.now();
    let mut is_last_look = false;
    loop {
        if let Some((from, message)) = queue.try_pop() {
            ledger.take(from, &message, job.clock.now());
            job.waiting.went_on();
            for bell in &job.bells {
                bell.ring();
            }
            if ledger.reached >= job.events {
                break;
            }
            if job.pace.is_slow() {
                job.pace.work(job.clock);
            }
        } else {
            match job.state() {
                STOP => break,
                // Everything was pushed before: what a look finds now is all that will come.
                DRAIN if is_last_look => break,
                DRAIN => is_last_look = true,
                _ => job.waiting.wait(),
            }
        }
    }
    // Doubled events come behind the last one that is due.
    while let Some((from, message)) = queue.try_pop() {
        ledger.take(from, &message, job.clock.now());
    }
    job.account.set(Field::Begin, begin);
    job.account.set(Field::End, job.clock.now());
    ledger.close();
    job.close(before);
}
