//! Announces which slot a producer claims: after its death this shows which claimed slot was its
//! own.
//!
//! ```text
//! word 0        16      17
//!      │ header │ place │ block │ pad to 128 bytes     one segment a producer: `submit-3.intent`
//!        launcher  that producer; after its death the consumer, who clears it
//!
//! place   p + 1: the producer was last about to claim place p; 0: it never was, or has failed to
//! block   id + 1: it was last about to take that block (`linked`); 0: it never was
//! ```
//!
//! A push stores `place` and then claims by CAS on the ring's tail. It does not withdraw the
//! announcement afterwards: a position that is announced and written needs no repair. Only a
//! producer that fails to claim withdraws; otherwise it would prevent a repair until its next push.
//!
//! At the end of a duty cycle every producer withdraws
//! ([`Producer::withdraw`](super::Producer::withdraw)). The ring shows that the position is
//! written, but another producer may write "free" over it: then only the announcement of an
//! innocent producer would be left. A producer that still announces the position in a later duty
//! cycle is in the middle of a push that does not end.
//!
//! **Who claimed an unwritten position.** The claim is a Release, and every later claim continues
//! its release sequence. So a reader that finds the tail past p (Acquire) sees the announcement of
//! the producer that claimed p, or a later one of the same producer, which that stored (Release)
//! after it had written p. The consumer therefore reads the tail, then all announcements, then the
//! slot:
//!
//! | a living producer announces p | the place | what it is |
//! |---|---|---|
//! | any | written | a whole message, or taken already: nothing to repair |
//! | yes | not written | its own, or its claim fails: it writes or withdraws soon; check again |
//! | no | not written | claimed by a crashed producer, never written: the consumer skips it |
//!
//! The consumer checks this when it has reached the position, not before: skipping it is then the
//! consumer's own next step, which no other process needs to see.
//!
//! Several crashed producers may announce one position. Those known to be dead do not count; the
//! consumer waits for the others until their death is confirmed. The announcement of a dead
//! producer is cleared when it is retired: later values are its successor's, and count.
//!
//! **A position is never taken from a producer that is only slow**, however long it sleeps between
//! announcement, claim and message: the consumer acts on deaths only (which the kernel has
//! confirmed), and ignores the announcements of all others.
//!
//! **The others are not trusted.** A forged announcement of a running producer delays a repair, and
//! with it the ring; it cannot free a position that was not the dead producer's. A dead producer's
//! announcement is checked against the ring before it is used.

use crate::memory::{AtomicWords, Header, HeaderError, SegmentKind, Word, header::HEADER_WORDS};
use crate::sync::Ordering;

/// Offset (words), in a producer's segment for announcements, of the announced ring position plus
/// 1; 0 there means none.
pub const POSITION: usize = HEADER_WORDS;
/// Offset (words), in a producer's segment for announcements, of the announced memory block's id
/// plus 1; 0 there means none.
pub const BLOCK: usize = POSITION + 1;
/// Words for the two, and nothing else in their lines.
const LINES: usize = 16;
/// Number of 64-bit words in the segment in which a producer announces the slot that it is about to
/// write.
pub const INTENT_WORDS: usize = HEADER_WORDS + LINES;
/// The segment kind of one producer's announcements of the slots that it is about to write. Written
/// by that producer.
pub const KIND: SegmentKind = SegmentKind::new(9, "intent", &[("place", POSITION), ("block", BLOCK)])
    .of_slots(POSITION, INTENT_WORDS - POSITION);

/// Checks the header of an announcement's segment; the producer's index.
fn check(words: &AtomicWords) -> Result<u64, HeaderError> {
    let header = words.header(KIND)?;
    header.check_geometry(POSITION, LINES)?;
    if header.capacity == 1 { Ok(header.index) } else { Err(header.bad_geometry()) }
}

/// A producer's end for announcing the slot that it is about to write, so that a claim can be
/// repaired after its crash. For rings that several producers write.
pub struct Intent {
    position: Word,
    block: Word,
    /// The producer's index.
    pub index: u64,
}

impl Intent {
    /// Attaches a producer's end for announcing slots to that producer's own segment.
    ///
    /// # Errors
    /// A header that is not of such a segment.
    pub fn attach(words: &AtomicWords) -> Result<Self, HeaderError> {
        let index = check(words)?;
        Ok(Self { position: Word::new(words, POSITION), block: Word::new(words, BLOCK), index })
    }

    /// Announces a ring position that the producer is about to claim.
    #[inline(always)]
    pub fn announce(&self, position: u64) {
        self.store_position(position.wrapping_add(1));
    }

    /// Withdraws the producer's last announcement of a slot, after a failed claim or, between two
    /// pushes, at the end of a duty cycle.
    #[inline]
    pub fn withdraw(&self) {
        self.store_position(0);
    }

    #[inline(always)]
    fn store_position(&self, position: u64) {
        // Release: pairs with the Acquire in `is_announced`; who sees this sees the message that we
        // wrote before.
        self.position.store(position, Ordering::Release);
    }

    /// Announces the memory block that the producer is about to take from the free list.
    #[inline]
    pub fn announce_block(&self, id: usize) {
        // Relaxed: read only after our death is certain; the Release of the taking keeps it before
        // that.
        self.block.store(id as u64 + 1, Ordering::Relaxed);
    }
}

/// The consumer's view of the slots that all producers have announced, with a mark on each producer
/// that is dead.
pub struct Intents(Vec<(AtomicWords, bool)>);

impl Intents {
    /// Attaches the consumer's view to the announcement segments of all producers of a ring, in
    /// producer order.
    ///
    /// # Errors
    /// A header that is not of such a segment.
    pub fn attach(segments: Vec<AtomicWords>) -> Result<Self, HeaderError> {
        let end = |words: AtomicWords| check(&words).map(|_| (words.slice(POSITION, LINES), false));
        segments.into_iter().map(end).collect::<Result<_, _>>().map(Self)
    }

    /// Marks a producer of the ring as dead, until its announcements are cleared for a successor
    /// ([`Intents::clear`]). Returns `false` if `producer` is out of range.
    pub fn try_mark_dead(&mut self, producer: usize) -> bool {
        self.0.get_mut(producer).map(|(_, is_dead)| *is_dead = true).is_some()
    }

    /// Clears a dead producer's announcements and its mark as dead, so that later announcements
    /// count as its successor's.
    ///
    /// # Panics
    /// If `producer` is out of range, as [`Intents::position`] and [`Intents::block`].
    pub fn clear(&mut self, producer: usize) {
        let (words, is_dead) = &mut self.0[producer];
        // Relaxed: only its successor writes there, which is started after this.
        words[0].store(0, Ordering::Relaxed);
        words[BLOCK - POSITION].store(0, Ordering::Relaxed);
        *is_dead = false;
    }

    /// Returns the ring position that a dead producer announced last; `None` if it announced none.
    pub fn position(&self, producer: usize) -> Option<u64> {
        // Relaxed: its death is certain, and so are all its stores.
        self.0[producer].0[0].load(Ordering::Relaxed).checked_sub(1)
    }

    /// Returns the id of the memory block that a dead producer announced last; `None` if it
    /// announced none.
    pub fn block(&self, producer: usize) -> Option<usize> {
        let block = self.0[producer].0[BLOCK - POSITION].load(Ordering::Relaxed);
        usize::try_from(block.checked_sub(1)?).ok()
    }

    /// Returns `true` if a producer not known to be dead announces this ring position. Call it
    /// after the tail was seen past the position (Acquire), and read the slot only afterwards.
    pub fn is_announced(&self, position: u64) -> bool {
        self.any(position, |is_dead| !is_dead)
    }

    /// Returns `true` if any producer announces this ring position, dead ones included until they
    /// are retired.
    pub fn is_announced_by_anybody(&self, position: u64) -> bool {
        self.any(position, |_| true)
    }

    /// Returns the index of the first producer, not known to be dead, that announces this ring
    /// position; `None` without one.
    pub fn announcer(&self, position: u64) -> Option<usize> {
        let announced = position.wrapping_add(1);
        // Relaxed: see `Consumer::blocked`.
        let theirs = |words: &AtomicWords| words[0].load(Ordering::Relaxed) == announced;
        self.0.iter().position(|(words, is_dead)| !is_dead && theirs(words))
    }

    fn any(&self, position: u64, counts: impl Fn(bool) -> bool) -> bool {
        let announced = position.wrapping_add(1);
        // Acquire: pairs with the Release in `store_position`; a producer that announces something
        // else has written the position that it had claimed.
        let theirs = |words: &AtomicWords| words[0].load(Ordering::Acquire) == announced;
        self.0.iter().any(|(words, is_dead)| counts(*is_dead) && theirs(words))
    }
}

/// Writes the header of an announcement's segment into zeroed words, for tests and benches. The
/// launcher writes those of a run's segments.
pub fn write_header(words: &AtomicWords, producer: u64) {
    Header::anonymous(KIND, words.len(), 1, LINES as u64, producer).write(words);
}

/// Creates the announcement segments of producers on the heap, for tests, models and benches.
pub fn on_heap(producers: usize) -> Vec<AtomicWords> {
    let segment = |producer| {
        let words = crate::memory::Region::heap(INTENT_WORDS).words();
        write_header(&words, producer as u64);
        words
    };
    (0..producers).map(segment).collect()
}

#[cfg(not(loom))]
pub use link::{all, producer, segments};

#[cfg(not(loom))]
mod link {
    use super::{INTENT_WORDS, LINES};
    use crate::attached::Access;
    use crate::attached::Attached;
    use crate::memory::{AtomicWords, RegionError};
    use crate::ring::{EndRights, LinkSpec, SegmentSpec};

    fn name(spec: &LinkSpec, index: usize) -> String {
        format!("{}-{index}.intent", spec.name)
    }

    /// Returns the specifications of the segments in which a link's producers announce slots, one
    /// for each producer.
    pub fn segments(spec: &LinkSpec) -> impl Iterator<Item = SegmentSpec> {
        (0..spec.producers).map(|index| {
            // The consumer clears what a dead producer had announced.
            let ends = EndRights::for_producer(index, Access::Write, Access::Write);
            let segment = SegmentSpec::memory(name(spec, index), super::KIND, INTENT_WORDS, ends);
            SegmentSpec { slot_words: LINES as u64, index: index as u64, ..segment }
        })
    }

    /// Maps the segment in which one producer announces the slots that it is about to write, and
    /// returns its words.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<AtomicWords, RegionError> {
        Ok(attached.region(&name(spec, index), super::KIND)?.words())
    }

    /// Maps the segments with the slot announcements of all producers, for the consumer, and
    /// returns their words in producer order.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn all(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Vec<AtomicWords>, RegionError> {
        (0..spec.producers).map(|index| producer(spec, index, attached)).collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn dead_producer_is_known_by_its_last_announcement() {
        let segments = on_heap(2);
        let intent = Intent::attach(&segments[1]).unwrap();
        let mut intents = Intents::attach(segments).unwrap();
        assert_eq!((intents.position(1), intents.block(1)), (None, None));
        intent.announce(0);
        intent.announce_block(0);
        assert_eq!((intents.position(1), intents.block(1)), (Some(0), Some(0)));
        intent.announce(7);
        intent.announce_block(3);
        assert_eq!((intents.position(1), intents.block(1)), (Some(7), Some(3)));
        assert!(intents.is_announced(7) && !intents.is_announced(0));
        assert!(intents.try_mark_dead(1) && !intents.try_mark_dead(2), "two producers");
        assert!(!intents.is_announced(7) && intents.is_announced_by_anybody(7));
        assert_eq!((intents.announcer(7), intents.position(0)), (None, None));
        intents.clear(1);
        assert_eq!((intents.position(1), intents.block(1)), (None, None));
        intent.announce(8);
        assert_eq!((intents.announcer(8), intents.is_announced(8)), (Some(1), true), "its successor's");
        intent.withdraw();
        assert_eq!((intents.announcer(8), intents.position(1)), (None, None));
    }
}
