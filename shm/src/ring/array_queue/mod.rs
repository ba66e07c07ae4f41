//! `array-queue`: one bounded ring for all producers, with a stamp for each slot.
//!
//! ```text
//! word 0            16             32                    32 + 9                 32 + 9·capacity
//!      │ header      │ tail  (pad)  │ stamp │ message 0   │ stamp │ message 1 │ … │
//!        the launcher  any producer   producer: written; consumer: free again
//!
//! stamp      2·lap       free: the claimant of this position in that lap may write it
//!            2·lap + 1   written in that lap, not yet taken; the consumer leaves 2·(lap + 1)
//! ```
//!
//! Positions are counted from the start and never wrap (2^64 messages): message `p` is in slot `p
//! mod capacity` in lap `p div capacity`. Zeroed memory is the empty ring. A producer announces the
//! position at the tail in its own segment (`intent.rs`), claims it by CAS, writes, and stamps; the
//! one consumer has a private cursor and takes without a CAS and without looking at the tail.
//!
//! **Why nothing is lost or torn.** A position is claimed by one producer only, because each
//! successful CAS moves the tail. Its stamp (Release) is the only thing that shows the message; the
//! consumer loads it (Acquire), so it sees the words. The consumer copies the words and then stamps
//! the slot free (Release); a producer loads that (Acquire) before it claims, so it never
//! overwrites what is still to be read. A producer's messages are taken in the order of its claims.
//!
//! **What a dead producer leaves**, and what [`retire`](super::SharedQueue::retire) does:
//!
//! | died at | in the ring | repair |
//! |---|---|---|
//! | entered, or before the CAS | nothing, or an announcement | none: the tail is not past it |
//! | announced, CAS failed | an announcement of another's position | none, once that is written |
//! | claimed, half-written, written | a position that is never written | the consumer skips it |
//! | published | a whole message | none: the stamp shows it, or it is taken already |
//!
//! No other message is lost: the consumer waits at the unwritten position until no live producer
//! announces it, and skips it. It cannot be that of a slow producer: see `intent.rs`. The crashed
//! producer loses at most the message that it was publishing.
//!
//! **What a dead consumer leaves:** every message whose slot it has not freed. [`Consumer::resume`]
//! finds the first one by the stamps: taken ones are free for the next lap. The message that it was
//! copying is delivered again.
//!
//! **The others are not trusted.** An impossible stamp is a [`PeerFault`](super::PeerFault): the
//! message is skipped (at a claimed position) or the stamp is repaired (at an unclaimed one). A
//! stamp that several producers can write does not identify its writer, and a producer that
//! overwrites the tail stops the ring, which [`check`](super::SharedQueue::check) detects: that is
//! the price of sharing one ring.
//!
//! Source: Vyukov, "Bounded MPMC queue" (2010); crossbeam-queue's `ArrayQueue`.

mod consumer;
mod layout;
mod producer;

pub use consumer::Consumer;
pub use layout::{KIND, SLOTS, TAIL, ring_words, write_header};
pub use producer::Producer;

/// Creates an `array-queue` ring on the heap and attaches all producers and the consumer, for
/// tests, models and benches.
///
/// # Panics
/// If the capacity is not a power of two.
pub fn heap_ring<const W: usize>(producers: usize, capacity: usize) -> (Vec<Producer<W>>, Consumer<W>) {
    let ring = crate::memory::Region::heap(ring_words(capacity, W)).words();
    write_header::<W>(&ring, capacity);
    let intents = super::intent::on_heap(producers);
    let producer = |intent| Producer::attach(&ring, intent).expect("a fresh ring has good headers");
    (
        intents.iter().map(producer).collect(),
        Consumer::attach(&ring, intents.clone()).expect("a fresh ring has good headers"),
    )
}

#[cfg(not(loom))]
pub use link::{ArrayQueue, Receiver};
#[cfg(not(loom))]
pub use link::{STEPS, segment};

#[cfg(not(loom))]
mod link {
    use super::{Consumer, KIND, Producer, ring_words};
    use crate::attached::Attached;
    use crate::memory::RegionError;
    use crate::ring::step::Step::{Announced, Claimed, Entered, HalfWritten, Published, Written};
    use crate::ring::{
        EndRights, Home, Link, LinkSpec, MESSAGE_WORDS, SegmentSpec, Step, TechniqueInfo, intent,
    };

    /// The technique `array-queue`: one bounded ring for all producers, in which a number in each
    /// slot shows whether it is free or written.
    pub struct ArrayQueue;

    /// The receiving end of an `array-queue` ring that carries messages from several producers to
    /// one consumer.
    pub type Receiver = crate::ring::receiver::Receiver<Consumer>;

    /// Returns the specification (name, size, access rights) of the segment of an `array-queue`
    /// ring, which all producers share.
    pub fn segment(spec: &LinkSpec) -> SegmentSpec {
        let (capacity, slot_words) = (spec.capacity.into(), MESSAGE_WORDS as u64 + 1);
        let words = ring_words(spec.capacity as usize, MESSAGE_WORDS);
        let segment = SegmentSpec::memory(spec.name, KIND, words, EndRights::ALL_WRITE);
        SegmentSpec { capacity, slot_words, ..segment }
    }

    /// The steps of a push into an `array-queue` ring at which faults can interrupt it.
    pub const STEPS: &[Step] = &[Entered, Announced, Claimed, HalfWritten, Written, Published];

    impl Link for ArrayQueue {
        const INFO: TechniqueInfo = TechniqueInfo::new("array-queue", Home::Memory)
            .steps(STEPS)
            .consumer_resumable()
            .port_of("crossbeam-array-queue");

        type Producer = Producer;
        type Consumer = Receiver;

        fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
            [segment(spec)].into_iter().chain(intent::segments(spec)).collect()
        }

        fn producer(
            spec: &LinkSpec,
            index: usize,
            attached: &mut Attached<'_>,
        ) -> Result<Producer, RegionError> {
            let intent = intent::producer(spec, index, attached)?;
            attached.end(spec.name, KIND, |ring| Producer::attach(ring, &intent))
        }

        fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
            let intents = intent::all(spec, attached)?;
            attached.end(spec.name, KIND, |ring| Consumer::attach(ring, intents)).map(Receiver::from)
        }

        fn resume_consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
            let intents = intent::all(spec, attached)?;
            attached.end(spec.name, KIND, |ring| Consumer::resume(ring, intents)).map(Receiver::from)
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::{AtomicWords, Region};
    use crate::ring::{PeerFault, SharedQueue as _, Step, intent};
    use crate::sync::Ordering;
    use core::ops::ControlFlow;

    const CAPACITY: usize = 4;

    /// Returns a ring and the announcements of two producers.
    fn memory() -> (AtomicWords, Vec<AtomicWords>) {
        let ring = Region::heap(ring_words(CAPACITY, 1)).words();
        write_header::<1>(&ring, CAPACITY);
        (ring, intent::on_heap(2))
    }

    fn ends(ring: &AtomicWords, intents: &[AtomicWords]) -> ([Producer<1>; 2], Consumer<1>) {
        let producer = |index: usize| Producer::attach(ring, &intents[index]).unwrap();
        ([producer(0), producer(1)], Consumer::attach(ring, intents.to_vec()).unwrap())
    }

    fn pop(consumer: &mut Consumer<1>) -> Option<u64> {
        let mut fault = None;
        let message = consumer.pop(&mut fault);
        assert_eq!(fault, None);
        message.map(|[word]| word)
    }

    /// Ends a push at a step, as a crash there does.
    fn crash_at(producer: &mut Producer<1>, last: Step) {
        let at = &mut |step| if step == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let _ = producer.try_push_with(&[99], at);
    }

    #[test]
    fn unwritten_claim_of_dead_producer_is_skipped() {
        let (ring, intents) = memory();
        let ([mut one, mut dead], mut consumer) = ends(&ring, &intents);
        one.try_push(&[1]).unwrap();
        crash_at(&mut dead, Step::Claimed);
        one.try_push(&[3]).unwrap();
        assert!(!consumer.retire(1), "its position is not reached");
        assert_eq!((pop(&mut consumer), pop(&mut consumer)), (Some(1), None));
        assert!(consumer.retire(1));
        assert_eq!((pop(&mut consumer), pop(&mut consumer)), (Some(3), None));
        assert_eq!(consumer.passed_over(), 1);
        assert!(consumer.retire(1) && consumer.retire(2), "nothing is left to repair");
        assert_eq!(consumer.passed_over(), 1);
    }

    #[test]
    fn claim_that_a_living_producer_announces_is_kept() {
        let (ring, intents) = memory();
        let ([mut living, mut dead], mut consumer) = ends(&ring, &intents);
        crash_at(&mut living, Step::Announced);
        crash_at(&mut dead, Step::Claimed);
        assert!(!consumer.retire(1));
        living.withdraw();
        assert!(consumer.retire(1));
        assert_eq!(consumer.passed_over(), 1);
    }

    #[test]
    fn successor_of_consumer_continues_at_first_untaken_message() {
        let (ring, intents) = memory();
        let ([mut producer, _], mut consumer) = ends(&ring, &intents);
        for message in 1..=3 * CAPACITY as u64 {
            producer.try_push(&[message]).unwrap();
            producer.try_push(&[message + 100]).unwrap();
            assert_eq!(pop(&mut consumer), Some(message));
            consumer = Consumer::resume(&ring, intents.clone()).unwrap();
            assert_eq!(pop(&mut consumer), Some(message + 100));
            consumer = Consumer::resume(&ring, intents.clone()).unwrap();
            assert_eq!(pop(&mut consumer), None);
        }
    }

    #[test]
    fn tail_outside_the_ring_is_found_by_check() {
        let (ring, intents) = memory();
        let ([mut producer, mut announcer], mut consumer) = ends(&ring, &intents);
        assert_eq!(consumer.check(), Ok(()));
        producer.try_push(&[1]).unwrap();
        assert_eq!(consumer.check(), Ok(()));
        assert_eq!(pop(&mut consumer), Some(1));
        for tail in [0, 2, 6, u64::MAX] {
            ring[TAIL].store(tail, Ordering::Relaxed);
            assert_eq!(consumer.check(), Err(PeerFault::InvalidTail { tail, position: 1 }));
        }
        ring[TAIL].store(1, Ordering::Relaxed);
        crash_at(&mut announcer, Step::Claimed);
        assert_eq!(consumer.check(), Ok(()), "a claim that is announced");
    }
}
