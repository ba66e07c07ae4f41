//! The measured loops of the queue benchmark: producer and consumer, compiled for each technique.
//! Waiting and slowness are branches off an event's path.

pub mod ledger;
pub mod waiting;

use crate::technique_ends::TechniqueEnds;
use ledger::{Ledger, event};
use protocol::control::{Control, RunState};
use protocol::counters::AgentSlot;
use protocol::labels::{ConsumerCounter, ProducerCounter};
use shm::attached::Attached;
use shm::bell::Doorbell;
use shm::memory::{AtomicWords, RegionError};
use shm::ring::{Consumer, LinkSpec, Producer};
use system::clock::{Clock, ClockSource};
use waiting::{Pace, WaitStrategy};

/// The clock, counters and waiting of a queue benchmark's producer or consumer.
#[allow(missing_docs, reason = "the names say it")]
pub struct QueueEnd<'a> {
    pub control: &'a Control,
    pub counters: AgentSlot<'a>,
    pub clock: ClockSource,
    /// The wait strategy of this end, with its counters.
    pub waiting: WaitStrategy,
    pub pace: Pace,
    /// Doorbells to ring after an event: empty unless the other side parks.
    pub bells: Vec<Doorbell>,
    pub index: u16,
    pub producers: u16,
    /// Number of events to push or to take.
    pub events: u64,
}

/// Runs the loop of a queue benchmark's producer: pushes every event into every queue.
pub fn produce<P: Producer>(mut queues: Vec<P>, mut end: QueueEnd<'_>) {
    let (mut sum, mut longest, mut pushed) = (0u64, 0, 0);
    'events: for number in 0..end.events {
        let created_at = end.clock.now();
        let (message, check) = event(end.index.into(), number, created_at);
        for queue in &mut queues {
            if queue.try_push(&message).is_err() {
                while queue.try_push(&message).is_err() {
                    if end.control.state() == RunState::Stop {
                        break 'events;
                    }
                    end.waiting.wait();
                }
                end.waiting.on_progress();
                longest = longest.max(end.clock.now().saturating_sub(created_at));
            }
        }
        for bell in &end.bells {
            bell.ring();
        }
        sum = sum.wrapping_add(check);
        pushed += 1;
        end.counters.set(ProducerCounter::Sent, pushed);
        if end.pace.is_slow() {
            end.pace.work(end.clock);
            if end.control.state() == RunState::Stop {
                break;
            }
        }
    }
    for (counter, value) in [
        (ProducerCounter::Checksum, sum),
        (ProducerCounter::LongestWait, longest),
        (ProducerCounter::Waits, end.waiting.polls),
        (ProducerCounter::Wakes, end.waiting.wakes),
    ] {
        end.counters.set(counter, value);
    }
}

/// Runs the loop of a queue benchmark's consumer: takes every event of a queue and checks it. The
/// latencies go into `results`. A stopped run means that all producers have ended, so that the
/// queue's rest is all that comes.
pub fn consume<C: Consumer>(mut queue: C, mut end: QueueEnd<'_>, results: &AtomicWords) {
    let mut ledger = Ledger::new(results, end.producers, end.events);
    let mut is_last_poll = false;
    loop {
        if let Some((from, message)) = queue.try_pop() {
            end.counters.set(ConsumerCounter::Taken, ledger.check_event(from, &message, end.clock.now()));
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
            match end.control.state() {
                // Everything was pushed before: this poll finds all that will come.
                RunState::Stop if is_last_poll => break,
                RunState::Stop => is_last_poll = true,
                _ => end.waiting.wait(),
            }
        }
    }
    // Doubled events come after the last one that is due.
    while let Some((from, message)) = queue.try_pop() {
        end.counters.set(ConsumerCounter::Taken, ledger.check_event(from, &message, end.clock.now()));
    }
    ledger.close(&end.counters);
    end.counters.set(ConsumerCounter::Waits, end.waiting.polls);
    end.counters.set(ConsumerCounter::Wakes, end.waiting.wakes);
}

/// A queue producer's loop with its attached queues, started by one dynamic call per thread.
pub type AttachedProducer = Box<dyn FnOnce(QueueEnd<'_>) + Send>;
/// A queue consumer's loop with its attached queue; the caller passes the shared memory into which
/// the loop writes its results.
pub type AttachedConsumer = Box<dyn FnOnce(QueueEnd<'_>, &AtomicWords) + Send>;

type AttachProducer =
    dyn Fn(&[LinkSpec<'_>], usize, &mut Attached<'_>) -> Result<AttachedProducer, RegionError> + Send + Sync;
type AttachConsumer =
    dyn Fn(&LinkSpec<'_>, &mut Attached<'_>) -> Result<AttachedConsumer, RegionError> + Send + Sync;

/// The queue benchmark's producer loop and consumer loop, compiled for one technique: a kind of
/// queue, for example a ring or a pipe.
pub struct TechniqueLoops {
    /// Attaches a producer, by its index, to all queues.
    pub producer: Box<AttachProducer>,
    /// Attaches the consumer of a queue, by the queue's index.
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
                Ok(Box::new(move |end, results| consume(queue, end, results)))
            }),
        }
    }
}
