//! Two threads on two cores with a ring each way, and the jobs that one thread sends to the other.

use crate::flow;
pub use crate::flow::{Pop, Push};
use crate::report::ns_each;
use crate::trip::{self, Step};
use shm::memory::{AtomicWords, Region};
use std::ops::Range;
use std::sync::mpsc;
use system::floor::{self, PseudoRandomWork};

const BATCHES: u64 = 50;

#[derive(Clone, Copy)]
pub enum Job {
    Echo(Step),
    Push,
    PushMany,
}

/// The peer's part of a job, with a number of messages.
pub type Part = Box<dyn FnMut(Job, u64) + Send>;

/// The peer's ends, in cache lines of their own: the other thread's ends may be adjacent on the
/// heap.
#[repr(align(128))]
struct PeerEnds<P, C>(P, C);

/// The measuring thread's ends of a ring each way.
#[repr(align(128))]
pub struct Contestant<P, C> {
    producer: P,
    consumer: C,
    number: usize,
}

fn part<P: Push, C: Pop>(producer: P, consumer: C) -> Part {
    let mut ends = PeerEnds(producer, consumer);
    Box::new(move |job, count| {
        // The whole struct moves into the closure, and keeps its alignment there.
        let PeerEnds(producer, consumer) = &mut ends;
        match job {
            Job::Echo(Step::In) => trip::echo::<false>(producer, consumer, count),
            Job::Echo(Step::Out) => trip::echo::<true>(producer, consumer, count),
            Job::Push => producer.send(count),
            Job::PushMany => producer.send_batches(count),
        }
    })
}

pub struct Peer {
    orders: mpsc::Sender<(usize, Job, u64)>,
    done: mpsc::Receiver<()>,
    line: AtomicWords,
}

const FLOOR: usize = usize::MAX;

impl Peer {
    pub fn start(core: u32, mut parts: Vec<Part>) -> Self {
        let (orders, jobs) = mpsc::channel::<(usize, Job, u64)>();
        let (says, done) = mpsc::channel();
        let line = Region::heap(16).words();
        let ours = line.clone();
        std::thread::spawn(move || {
            system::pin::pin_to(core).expect("an allowed core");
            for (number, job, count) in jobs {
                if number == FLOOR {
                    floor::answer(&line[0]);
                } else {
                    parts[number](job, count);
                }
                let _ = says.send(());
            }
        });
        Self { orders, done, line: ours }
    }

    fn with<R>(&self, number: usize, job: Job, count: u64, ours: impl FnOnce() -> R) -> R {
        self.orders.send((number, job, count)).expect("the other thread waits");
        let result = ours();
        self.done.recv().expect("the other thread goes on");
        result
    }

    /// Measures the floor between the two cores, in nanoseconds.
    pub fn floor(&self, rounds: u64) -> f64 {
        self.with(FLOOR, Job::Echo(Step::In), 0, || {
            let round_trip = floor::measure(&self.line[0], rounds as u32);
            floor::stop_answering(&self.line[0]);
            round_trip
        })
    }

    /// Measures between two floors. Returns the mean of the floors in nanoseconds, and the
    /// measurement; `None` if the floors differ by more than a tenth.
    pub fn between_floors<R>(&self, rounds: u64, measure: impl FnOnce() -> R) -> Option<(f64, R)> {
        between(&mut || self.floor(rounds), measure)
    }
}

/// Measures between two runs of a yardstick. Returns their mean, and the measurement; `None` if
/// they differ by more than a tenth.
pub fn between<R>(yardstick: &mut impl FnMut() -> f64, measure: impl FnOnce() -> R) -> Option<(f64, R)> {
    let before = yardstick();
    let measured = measure();
    let after = yardstick();
    let is_steady = (before - after).abs() <= 0.1 * before.min(after);
    is_steady.then_some(((before + after) / 2.0, measured))
}

impl<P: Push, C: Pop> Contestant<P, C> {
    /// Makes the measuring thread's ends of a ring each way; the other ends become the peer's part.
    pub fn new(parts: &mut Vec<Part>, there: (P, C), back: (P, C)) -> Self {
        parts.push(part(back.0, there.1));
        Self { producer: there.0, consumer: back.1, number: parts.len() - 1 }
    }

    /// Returns the nanoseconds per round trip; unsynchronized without the time of the work itself.
    pub fn trips(&mut self, peer: &Peer, step: Step, count: u64) -> f64 {
        let batch = (count / BATCHES).max(1);
        let (producer, consumer) = (&mut self.producer, &mut self.consumer);
        let mut pauses = PseudoRandomWork::for_asker();
        let mut each = |numbers: Range<u64>| match step {
            Step::In => trip::call::<false>(producer, consumer, &mut pauses, numbers),
            Step::Out => trip::call::<true>(producer, consumer, &mut pauses, numbers),
        };
        let ns = peer.with(self.number, Job::Echo(step), batch * BATCHES, || {
            let mut samples = Vec::new();
            for first in (0..BATCHES).map(|number| number * batch) {
                samples.push(ns_each(batch, || each(first..first + batch)));
            }
            floor::median(samples)
        });
        ns - if step == Step::Out { trip::pauses_ns(batch * BATCHES) } else { 0.0 }
    }

    /// Returns the rate of a stream in million messages per second.
    pub fn stream<const MANY: bool>(&mut self, peer: &Peer, count: u64) -> f64 {
        let consumer = &mut self.consumer;
        if MANY {
            peer.with(self.number, Job::PushMany, count, || flow::take_batches(consumer, count))
        } else {
            peer.with(self.number, Job::Push, count, || consumer.take(count))
        }
    }
}
