//! Two threads on two cores with a ring each way, and the jobs that one thread sends to the other.

use crate::flow;
pub use crate::flow::{Pop, Push};
use crate::trip::{self, Step};
use std::ops::Range;
use system::floor::PseudoRandomWork;
use system::pair::{self, BATCHES, median_ns};

/// A job of the peer thread, such as to echo messages.
#[derive(Clone, Copy)]
pub enum Job {
    Echo(Step),
    Push,
    PushMany,
}

/// The peer thread's part of a job, with a number of messages.
pub type Part = Box<dyn FnMut(Job, u64) + Send>;

/// The peer's ends, in cache lines of their own: the other thread's ends may be adjacent on the
/// heap.
#[repr(align(128))]
struct PeerEnds<P, C>(P, C);

/// The measuring thread's ends of a technique's two rings, one each way.
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

/// The peer thread, with the other ends of the rings: it does the numbered contestant's part.
pub type Peer = pair::Peer<(usize, Job, u64)>;

/// Starts the peer thread on a CPU core, with the other ends of all contestants' rings.
pub fn start_peer(core: u32, mut parts: Vec<Part>) -> Peer {
    Peer::start(core, move |(number, job, count)| parts[number](job, count))
}

impl<P: Push, C: Pop> Contestant<P, C> {
    /// Creates the measuring thread's ends of two rings, one each way; the other ends become the
    /// peer's part.
    pub fn new(parts: &mut Vec<Part>, there: (P, C), back: (P, C)) -> Self {
        parts.push(part(back.0, there.1));
        Self { producer: there.0, consumer: back.1, number: parts.len() - 1 }
    }

    /// Returns the nanoseconds per round trip of the contestant; unsynchronized without the time of
    /// the work itself.
    pub fn trips(&mut self, peer: &Peer, step: Step, count: u64) -> f64 {
        let batch = (count / BATCHES).max(1);
        let (producer, consumer) = (&mut self.producer, &mut self.consumer);
        let mut pauses = PseudoRandomWork::for_asker();
        let each = |numbers: Range<u64>| match step {
            Step::In => trip::call::<false>(producer, consumer, &mut pauses, numbers),
            Step::Out => trip::call::<true>(producer, consumer, &mut pauses, numbers),
        };
        let job = (self.number, Job::Echo(step), batch * BATCHES);
        let ns = peer.with(job, || median_ns(batch, each));
        ns - if step == Step::Out { trip::pauses_ns(batch * BATCHES) } else { 0.0 }
    }

    /// Returns the rate of the contestant's stream in million messages per second.
    pub fn stream<const MANY: bool>(&mut self, peer: &Peer, count: u64) -> f64 {
        let consumer = &mut self.consumer;
        if MANY {
            peer.with((self.number, Job::PushMany, count), || flow::take_batches(consumer, count))
        } else {
            peer.with((self.number, Job::Push, count), || consumer.take(count))
        }
    }
}
