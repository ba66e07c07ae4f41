//! The words of long messages that their slots have no room for.
//!
//! ```text
//! slot in the producer's ring             its first 7 words │ sequence
//! place in the producer's overflow        its other words
//! ```
//!
//! The message at position `p` of a ring has the place `p` modulo the number of places. Its sender
//! writes the place before it publishes the slot, and the receiver reads it before it frees the
//! slot: a place has the owner, the memory ordering and the fate after a crash of its slot.
//!
//! **Places shorter than a cache line** share lines, as short slots do
//! ([`spsc`](crate::ring::spsc)). There are twice as many of them as slots, so that the ends of a
//! full ring work in lines that are far apart.

use super::payload::{MAX_MESSAGE_BYTES, SLOT_BYTES};
use crate::attached::{Access, Attached};
use crate::memory::header::HEADER_WORDS;
use crate::memory::{AtomicWords, HeaderError, LINE_WORDS, ReadOnlyWords, RegionError, SegmentKind};
use crate::ring::spsc_mux::ring_name;
use crate::ring::{EndRights, LinkSpec, SegmentSpec};
use crate::sync::Ordering;

pub(super) const KIND: SegmentKind = SegmentKind::new(34, "overflow", &[("places", HEADER_WORDS)]);

/// Returns the words of a message that do not fit into its slot; 0 also for a size that no queue
/// has.
const fn place_words(message_bytes: usize) -> usize {
    if message_bytes > MAX_MESSAGE_BYTES { 0 } else { message_bytes.saturating_sub(SLOT_BYTES).div_ceil(8) }
}

/// Returns the number of places for a ring of `slots` slots, a power of two like them.
const fn place_count(slots: usize, place_words: usize) -> usize {
    slots << (place_words < LINE_WORDS) as u32
}

/// Returns the name of a producer's overflow within the queue.
fn segment_name(link: &LinkSpec, producer: usize) -> String {
    format!("{}.overflow", ring_name(link, producer))
}

/// Specifies the overflow segments of a queue, one for each producer; none if its messages fit into
/// slots.
pub(super) fn segments(link: &LinkSpec, message_bytes: usize) -> Vec<SegmentSpec> {
    let words = place_words(message_bytes);
    let count = place_count(link.capacity as usize, words);
    let segment = |producer| {
        let ends = EndRights::for_producer(producer, Access::Write, Access::Read);
        let name = segment_name(link, producer);
        let memory = SegmentSpec::memory(name, KIND, HEADER_WORDS + count * words, ends);
        SegmentSpec { capacity: count as u64, slot_words: words as u64, index: producer as u64, ..memory }
    };
    (0..if words == 0 { 0 } else { link.producers }).map(segment).collect()
}

/// The geometry of a producer's places, checked once and never read again.
struct Geometry {
    place_words: usize,
    mask: usize,
}

impl Geometry {
    /// Checks a segment's header against the queue's geometry.
    fn check(view: &ReadOnlyWords, link: &LinkSpec, message_bytes: usize) -> Result<Self, HeaderError> {
        let header = view.header(KIND)?;
        let place_words = place_words(message_bytes);
        let count = header.check_geometry(HEADER_WORDS, place_words)?;
        if count != place_count(link.capacity as usize, place_words) {
            return Err(header.bad_geometry());
        }
        Ok(Self { place_words, mask: count - 1 })
    }

    /// Returns the index of the first word of a position's place.
    #[inline(always)]
    const fn place(&self, position: u64) -> usize {
        HEADER_WORDS + (position as usize & self.mask) * self.place_words
    }
}

/// The sender's end of an overflow.
pub(super) struct OverflowWriter {
    words: AtomicWords,
    geometry: Geometry,
}

impl OverflowWriter {
    /// Attaches the end of a producer; `None` if the queue's messages fit into slots.
    ///
    /// # Errors
    /// A segment that is missing or damaged.
    pub(super) fn attach(
        link: &LinkSpec,
        producer: usize,
        message_bytes: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Option<Self>, RegionError> {
        if place_words(message_bytes) == 0 {
            return Ok(None);
        }
        let attach = |words: &AtomicWords| {
            let geometry = Geometry::check(&words.clone().into(), link, message_bytes)?;
            Ok(Self { words: words.clone(), geometry })
        };
        attached.end(&segment_name(link, producer), KIND, attach).map(Some)
    }

    /// Writes what a message's slot has no room for. The receiver does not read it until the slot
    /// is published.
    #[inline]
    pub(super) fn write(&self, position: u64, bytes: &[u8]) {
        let words = &self.words[self.geometry.place(position)..][..bytes.len().div_ceil(8)];
        let (whole, last) = bytes.as_chunks::<8>();
        for (word, bytes) in words.iter().zip(whole) {
            // Relaxed: the Release store of the slot's sequence publishes it.
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if let Some(word) = words.get(whole.len()) {
            let mut bytes = [0; 8];
            bytes[..last.len()].copy_from_slice(last);
            // Relaxed: as above.
            word.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }
}

/// The receiver's end of one producer's overflow.
pub(super) struct OverflowReader {
    words: ReadOnlyWords,
    geometry: Geometry,
}

impl OverflowReader {
    /// Attaches the receiver's ends, one for each producer; none if the queue's messages fit into
    /// slots.
    ///
    /// # Errors
    /// A segment that is missing or damaged.
    pub(super) fn attach(
        link: &LinkSpec,
        message_bytes: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Vec<Self>, RegionError> {
        let mut attach = |producer| {
            let name = segment_name(link, producer);
            let words = attached.view(&name, KIND)?;
            match Geometry::check(&words, link, message_bytes) {
                Ok(geometry) => Ok(Self { words, geometry }),
                Err(source) => Err(RegionError::Header { name, source }),
            }
        };
        (0..if place_words(message_bytes) == 0 { 0 } else { link.producers }).map(&mut attach).collect()
    }

    /// Fetches the line in which the overflow of a message begins, so that it arrives together with
    /// the message's slot and not after it.
    #[inline]
    pub(super) fn prefetch(&self, position: u64) {
        self.words.prefetch(self.geometry.place(position));
    }

    /// Copies what a message's slot has no room for. The slot must have been taken and not been
    /// freed.
    #[inline]
    pub(super) fn read(&self, position: u64, bytes: &mut [u8]) {
        self.words.copy_bytes(self.geometry.place(position), bytes);
    }
}
