//! The measured loops of the queue benchmark: producer and consumer, compiled for each technique.
//! Waiting and slowness are branches off an event's path.

pub mod ledger;
pub mod waiting;

use super::account::{AgentAccount, Field};
use super::control::{ControlView, DRAIN, STOP};
use crate::technique_ends::TechniqueEnds;
use ledger::{LabField, Ledger, event, set};
use shm::attached::Attached;
use shm::bell::Doorbell;
use shm::memory::RegionError;
use shm::ring::{Consumer, LinkSpec, Producer};
use system::clock::{Clock, ClockSource};
use waiting::{Pace, WaitStrategy};

/// The clock, results and waiting of a queue benchmark's producer or consumer.
#[allow(missing_docs, reason = "the names say it")]
pub struct QueueEnd<'a> {
    pub control: &'a ControlView,
    pub account: &'a AgentAccount,
    pub clock: ClockSource,
    /// The wait strategy.
    pub waiting: WaitStrategy,
    pub pace: Pace,
    /// Doorbells to ring after an event: empty unless the other side parks.
    pub bells: Vec<Doorbell>,
    pub index: u16,
    pub producers: u16,
    /// Number of events to push or to take.
    pub events: u64,
}

impl QueueEnd<'_> {
    fn close(&self, begin: u64) {
        self.account.set(Field::Begin, begin);
        self.account.set(Field::End, self.clock.now());
        set(self.account, LabField::Looks, self.waiting.polls);
        set(self.account, LabField::Wakes, self.waiting.wakes);
    }
}

/// Runs the producer's loop: pushes every event into every queue.
pub fn produce<P: Producer>(mut queues: Vec<P>, mut end: QueueEnd<'_>) {
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
                end.waiting.on_progress();
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

/// Runs the consumer's loop: takes every event of a queue and checks it.
pub fn consume<C: Consumer>(mut queue: C, mut end: QueueEnd<'_>) {
    let mut ledger = Ledger::new(end.account, end.producers, end.events);
    let begin = end.clock.now();
    let mut is_last_poll = false;
    loop {
        if let Some((from, message)) = queue.try_pop() {
            ledger.take(from, &message, end.clock.now());
            end.waiting.on_progress();
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
                // Everything was pushed before: this poll finds all that will come.
                DRAIN if is_last_poll => break,
                DRAIN => is_last_poll = true,
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

/// A producer's or consumer's loop with its attached queues: one dynamic call per thread.
pub type AttachedEnd = Box<dyn FnOnce(QueueEnd<'_>) + Send>;

type AttachProducer =
    dyn Fn(&[LinkSpec<'_>], usize, &mut Attached<'_>) -> Result<AttachedEnd, RegionError> + Send + Sync;
type AttachConsumer =
    dyn Fn(&LinkSpec<'_>, &mut Attached<'_>) -> Result<AttachedEnd, RegionError> + Send + Sync;

/// The measured loops of producer and consumer, compiled for the ends of one technique.
pub struct TechniqueLoops {
    /// Attaches a producer, by index, to all queues.
    pub producer: Box<AttachProducer>,
    /// Attaches the consumer of a queue.
    pub consumer: Box<AttachConsumer>,
}

impl TechniqueLoops {
    pub(crate) fn on_ends<P: Producer + 'static, C: Consumer + 'static>(ends: TechniqueEnds<P, C>) -> Self {
        Self {
            producer: Box::new(move |queues, index, attached| {
                let queues = queues.iter().map(|queue| (ends.producer)(queue, index, attached));
                let queues = queues.collect::<Result<Vec<_>, _>>()?;
                Ok(Box::new(move |end| produce(queues, end)))
            }),
            consumer: Box::new(move |queue, attached| {
                let queue = (ends.consumer)(queue, attached)?;
                Ok(Box::new(move |end| consume(queue, end)))
            }),
        }
    }
}
