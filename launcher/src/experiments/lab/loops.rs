//! The measured loops of the lab: one pushes events, one takes them. Each technique compiles its own.
//! How an end waits and how slow it is are branches outside of the way of an event.

use super::ledger::{LabField, Ledger, event, set};
use super::waiting::{Pace, Waiting};
use crate::bench::account::{AgentAccount, Field};
use crate::bench::control::{ControlView, DRAIN, STOP};
use shm::bell::Bell;
use shm::ring::{Consumer, Producer};
use system::clock::{Clock, ClockSource};

/// What an end has besides its queues.
pub(super) struct QueueEnd<'a> {
    pub control: &'a ControlView,
    pub account: &'a AgentAccount,
    pub clock: ClockSource,
    pub waiting: Waiting,
    pub pace: Pace,
    /// The bells to ring after an event: none unless the other side parks.
    pub bells: Vec<Bell>,
    /// This producer's number.
    pub index: u16,
    /// The producers of the run.
    pub producers: u16,
    /// Events to push, or to take.
    pub events: u64,
}

impl QueueEnd<'_> {
    fn close(&self, begin: u64) {
        self.account.set(Field::Begin, begin);
        self.account.set(Field::End, self.clock.now());
        set(self.account, LabField::Looks, self.waiting.looks);
        set(self.account, LabField::Wakes, self.waiting.wakes);
    }
}

/// Pushes every event into every queue.
pub(super) fn produce<P: Producer>(mut queues: Vec<P>, mut end: QueueEnd<'_>) {
    let (mut sum, mut longest, mut pushed) = (0u64, 0, 0);
    let begin = end.clock.now();
    'events: for number in 0..end.events {
        let made = end.clock.now();
        let (message, check) = event(end.index.into(), number, made);
        for queue in &mut queues {
            if queue.try_push(&message).is_err() {
                while queue.try_push(&message).is_err() {
                    if end.control.phase() == STOP {
                        break 'events;
                    }
                    end.waiting.wait();
                }
                end.waiting.went_on();
                longest = longest.max(end.clock.now().saturating_sub(made));
            }
        }
        for bell in &end.bells {
            bell.ring();
        }
        sum = sum.wrapping_add(check);
        pushed += 1;
        end.account.set(Field::Count, pushed);
        if end.pace.is_slow() {
            end.pace.work(end.clock);
        }
    }
    set(end.account, LabField::Sum, sum);
    set(end.account, LabField::LongestWait, longest);
    end.close(begin);
}

/// Takes every event of a queue and checks it.
pub(super) fn consume<C: Consumer>(mut queue: C, mut end: QueueEnd<'_>) {
    let mut ledger = Ledger::new(end.account, end.producers, end.events);
    let begin = end.clock.now();
    let mut is_last_look = false;
    loop {
        if let Some((from, message)) = queue.try_pop() {
            ledger.take(from, &message, end.clock.now());
            end.waiting.went_on();
            for bell in &end.bells {
                bell.ring();
            }
            if ledger.reached >= end.events {
                break;
            }
            if end.pace.is_slow() {
                end.pace.work(end.clock);
            }
        } else {
            match end.control.phase() {
                STOP => break,
                // Everything was pushed before: this look finds all that will come.
                DRAIN if is_last_look => break,
                DRAIN => is_last_look = true,
                _ => end.waiting.wait(),
            }
        }
    }
    // Doubled events come after the last one that is due.
    while let Some((from, message)) = queue.try_pop() {
        ledger.take(from, &message, end.clock.now());
    }
    ledger.close();
    end.close(begin);
}
