//! One message there and back: the loops of both sides, the same ones for whatever carries it.
//!
//! Two threads that only wait for each other fall *in step*: each look of the one falls at the same
//! moment of the other's store, trip after trip, and a few instructions more or less in either loop
//! move all of them at once. So the same trips are also made *out of step*: each side works for a
//! pseudo-random time before it sends, as one does that has something to say now and then. How long
//! that takes by itself is measured on one thread and taken off.

use crate::flow::{Pop, Push, receive};
use shm::memory::{AtomicWords, Region};
use shm::ring::Message;
use shm::sync::{Ordering, spin_hint};
use std::ops::Range;
use system::clock::{Clock, Monotonic};
use system::floor::{Pauses, wait};

/// Which of both ways.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    In,
    Out,
}

/// Nanoseconds that the pauses of both sides take in a trip, by themselves.
pub fn pauses_ns(count: u64) -> f64 {
    let (mut caller, mut echo) = (Pauses::of_asker(), Pauses::of_answerer());
    let start = Monotonic.now();
    for _ in 0..count {
        caller.pause();
        echo.pause();
    }
    (Monotonic.now() - start) as f64 / count as f64
}

/// Nanoseconds that the processor's pause hint takes, one behind the other.
pub fn hint_ns(count: u64) -> f64 {
    let start = Monotonic.now();
    for _ in 0..count {
        spin_hint();
    }
    (Monotonic.now() - start) as f64 / count as f64
}

/// Sends every message back. A function of its own, as [`call`]: what else its caller does would
/// change its instructions.
#[inline(never)]
pub fn echo<const OUT: bool>(producer: &mut impl Push, consumer: &mut impl Pop, count: u64) {
    let mut pauses = Pauses::of_answerer();
    for _ in 0..count {
        let message = receive(consumer);
        if OUT {
            pauses.pause();
        }
        wait::<true>(|| producer.push(&message));
    }
}

/// Sends messages of these numbers, each when the last one has come back.
#[inline(never)]
pub fn call<const OUT: bool>(
    producer: &mut impl Push,
    consumer: &mut impl Pop,
    pauses: &mut Pauses,
    numbers: Range<u64>,
) {
    for number in numbers {
        let message = [number; 7];
        if OUT {
            pauses.pause();
        }
        wait::<true>(|| producer.push(&message));
        assert_eq!(receive(consumer), message, "what comes back is what was sent");
    }
}

/// An end of one line that two threads bounce, as the floor is, by the loops above: a number, and
/// who stored it.
pub struct Line {
    words: AtomicWords,
    /// Whether this end is about what the echo stores.
    is_echo: bool,
}

impl Line {
    /// The caller's sending end and the echo's receiving end, then the echo's sending end and the
    /// caller's receiving end.
    pub fn ends() -> ((Self, Self), (Self, Self)) {
        let words = Region::heap(16).words();
        let end = |is_echo| Self { words: words.clone(), is_echo };
        // As if the echo had answered.
        words[0].store(1, Ordering::Relaxed);
        ((end(false), end(false)), (end(true), end(true)))
    }
}

impl Push for Line {
    #[inline(always)]
    fn push(&mut self, message: &Message) -> bool {
        // Release: pairs with the load in `pop`.
        self.words[0].store(message[0] << 1 | u64::from(self.is_echo), Ordering::Release);
        true
    }
}

impl Pop for Line {
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        // Acquire: pairs with the store in `push`.
        let word = self.words[0].load(Ordering::Acquire);
        (word & 1 == u64::from(self.is_echo)).then_some([word >> 1; 7])
    }
}
