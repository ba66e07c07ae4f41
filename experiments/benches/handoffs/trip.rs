//! Round trips of one message: the loops of both sides, generic over the carrier.
//!
//! Two threads that only wait for each other become *synchronized*: each poll of one falls at the
//! same moment of the other's store, trip after trip, and a few instructions in either loop shift
//! all of them at once. So trips are also made *unsynchronized*: each side works for a
//! pseudo-random time before it sends. The time of that work alone is measured on one thread and
//! subtracted.

use crate::flow::{Pop, Push, receive};
use crate::report::ns_each;
use shm::memory::{AtomicWords, Region};
use shm::ring::Message;
use shm::sync::{Ordering, spin_hint};
use std::ops::Range;
use system::floor::{PseudoRandomWork, wait};

/// Whether the two sides of a round trip are synchronized (in step).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Step {
    In,
    Out,
}

/// Returns the nanoseconds of the artificial work of both sides per round trip.
pub fn pauses_ns(count: u64) -> f64 {
    let (mut caller, mut echo) = (PseudoRandomWork::for_asker(), PseudoRandomWork::for_answerer());
    ns_each(count, || {
        for _ in 0..count {
            caller.run();
            echo.run();
        }
    })
}

/// Returns the nanoseconds of each of `count` pause hints of the CPU, back to back.
pub fn hint_ns(count: u64) -> f64 {
    ns_each(count, || (0..count).for_each(|_| spin_hint()))
}

/// Echoes each of `count` messages to the caller's side. Not inlined, like [`call`], so that its
/// instructions do not depend on its caller.
#[inline(never)]
pub fn echo<const OUT: bool>(producer: &mut impl Push, consumer: &mut impl Pop, count: u64) {
    let mut pauses = PseudoRandomWork::for_answerer();
    for _ in 0..count {
        let message = receive(consumer);
        if OUT {
            pauses.run();
        }
        wait(|| producer.try_send(&message));
    }
}

/// Sends messages with these numbers on the round trip, each after the echo of the previous one.
#[inline(never)]
pub fn call<const OUT: bool>(
    producer: &mut impl Push,
    consumer: &mut impl Pop,
    pauses: &mut PseudoRandomWork,
    numbers: Range<u64>,
) {
    for number in numbers {
        let message = [number; 7];
        if OUT {
            pauses.run();
        }
        wait(|| producer.try_send(&message));
        assert_eq!(receive(consumer), message, "what comes back is what was sent");
    }
}

/// An end of one cache line that two threads bounce with the round-trip loops: it holds a number,
/// and which side stored it.
pub struct BouncedLine {
    words: AtomicWords,
    /// `true` for the ends of the echo's direction.
    is_echo: bool,
}

impl BouncedLine {
    /// Makes the caller's sending end and the echo's receiving end, then the echo's sending end and
    /// the caller's receiving end.
    pub fn ends() -> ((Self, Self), (Self, Self)) {
        let words = Region::heap(16).words();
        let end = |is_echo| Self { words: words.clone(), is_echo };
        // The initial state is an answer of the echo.
        words[0].store(1, Ordering::Relaxed);
        ((end(false), end(false)), (end(true), end(true)))
    }
}

impl Push for BouncedLine {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        // Release: pairs with the load in `pop`.
        self.words[0].store(message[0] << 1 | u64::from(self.is_echo), Ordering::Release);
        true
    }
}

impl Pop for BouncedLine {
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        // Acquire: pairs with the store in `try_send`.
        let word = self.words[0].load(Ordering::Acquire);
        (word & 1 == u64::from(self.is_echo)).then_some([word >> 1; 7])
    }
}
