//! `array-queue`: one bounded ring for all producers, with a stamp for each slot.
//!
//! ```text
//! word 0            16             32                    32 + 9                      32 + 9·capacity
//!      │ header      │ tail  (pad)  │ stamp │ message 0   │ stamp │ message 1   │ …  │
//!        the launcher  any producer   producer: written; consumer: free again
//!
//! stamp      2·lap       free: who claims this place in that lap may write it
//!            2·lap + 1   written in that lap, not yet taken; the consumer leaves 2·(lap + 1)
//! ```
//!
//! Places are counted from the start and never wrap (2^64 messages): message `p` stands in slot `p mod capacity` in lap
//! `p div capacity`. Zeroed memory is the empty ring. A producer claims the place at the tail by CAS, writes, and
//! stamps; the one consumer has a private cursor and takes without a CAS and without looking at the tail.
//!
//! **Why nothing is lost or torn.** A place is claimed by one producer only, because each successful CAS moves the
//! tail. Its stamp (Release) is the only thing that shows the message; the consumer loads it (Acquire), so it sees the
//! words. The consumer copies the words and then stamps the slot free (Release); a producer loads that (Acquire) before
//! it claims, so it never overwrites what is still to be read. A producer's messages are taken in the order of its
//! claims.
//!
//! **What a dead producer leaves** (not yet repaired): before the CAS, nothing. After the CAS and before the
//! stamp, a claimed place that nobody will write: the consumer waits there for ever, and the ring fills up. After the
//! stamp, a whole message. The repair needs to know whose the place was: each producer will announce the place it is
//! about to claim in a word of its own, in its own segment, before the CAS (which is SeqCst for that as well). After its
//! death is certain, the consumer passes over a place that is claimed, unwritten and announced by the dead only.
//!
//! **The others are not trusted.** An impossible stamp is a [`PeerFault`]: the message is passed over (a claimed place)
//! or the stamp is put right (an unclaimed one). One that several producers can write has no owner to name, and who
//! scribbles over the tail stops the ring: that is what sharing one ring costs.
//!
//! Source: Vyukov, "Bounded MPMC queue" (2010); crossbeam-queue's `ArrayQueue`.

use super::{Full, PeerFault};
use crate::memory::{Header, HeaderError, Kind, Words, header::HEADER_WORDS};
use crate::sync::{Ordering, load_owned, spin_hint};

/// Where the producers' shared cursor is.
pub const TAIL: usize = HEADER_WORDS;
/// Where the slots begin.
pub const SLOTS: usize = TAIL + 16;

/// How often a push tries to claim a place before it says [`Full`]. Among honest producers each failed try is another
/// one's success, so that many in a row are as good as never seen; a hostile one cannot hold us for longer.
const MAX_TRIES: u32 = 128;

/// Words that a ring needs.
pub const fn ring_words(capacity: usize, slot_words: usize) -> usize {
    SLOTS + capacity * (slot_words + 1)
}

/// Tail, slots and capacity of a ring, as the attaching end found and checked them.
struct Parts<const W: usize> {
    tail: Words,
    slots: Words,
    mask: u64,
    log2: u32,
}

impl<const W: usize> Parts<W> {
    fn attach(words: &Words) -> Result<Self, HeaderError> {
        let header = Header::read(|i, ordering| words[i].load(ordering), words.len(), Kind::ArrayQueue)?;
        let capacity = header.check_geometry(SLOTS, W + 1)? as u64;
        let Header { slot_words, bytes, .. } = header;
        if !capacity.is_power_of_two() {
            return Err(HeaderError::Geometry { capacity, slot_words, bytes });
        }
        Ok(Self {
            tail: words.window(TAIL, 1),
            slots: words.window(SLOTS, capacity as usize * (W + 1)),
            mask: capacity - 1,
            log2: capacity.trailing_zeros(),
        })
    }

    /// Where the slot of that place begins.
    #[inline(always)]
    fn slot(&self, position: u64) -> usize {
        (position & self.mask) as usize * (W + 1)
    }

    /// The stamp of that place's slot while it is free for that place.
    #[inline(always)]
    fn free(&self, position: u64) -> u64 {
        (position >> self.log2) << 1
    }
}

/// A sending end of a ring of messages of `W` words; any number of them.
pub struct Producer<const W: usize = { crate::wire::MESSAGE_WORDS }> {
    ring: Parts<W>,
}

impl<const W: usize> Producer<W> {
    /// Attaches a sending end to a ring that has its header.
    ///
    /// # Errors
    /// A header that is not that of a ring of `W`-word messages, or does not fit the region.
    pub fn attach(words: &Words) -> Result<Self, HeaderError> {
        Ok(Self { ring: Parts::attach(words)? })
    }

    /// Puts a message into the ring, or says that it is full.
    ///
    /// # Errors
    /// [`Full`] if the next slot still holds the message of the lap before, or if somebody damaged the ring.
    #[inline(always)]
    pub fn try_push(&mut self, message: &[u64; W]) -> Result<(), Full> {
        let ring = &self.ring;
        // Relaxed: only a proposal; the CAS decides, and the stamp orders the slot's words.
        let mut tail = ring.tail[0].load(Ordering::Relaxed);
        for _ in 0..MAX_TRIES {
            let slot = ring.slot(tail);
            let slot = &ring.slots[slot..slot + W + 1];
            let free = ring.free(tail);
            // Acquire: pairs with the consumer's Release of the stamp; its reads of the slot are over.
            let stamp = slot[0].load(Ordering::Acquire);
            if stamp == free {
                // SeqCst: comes before the producer's look at a parked receiver (see `channel`) in the one order
                // that all SeqCst operations have. For the ring alone Relaxed would do.
                let claimed = ring.tail[0].compare_exchange(
                    tail,
                    tail.wrapping_add(1),
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                );
                match claimed {
                    Ok(_) => {
                        for (word, value) in slot[1..].iter().zip(message) {
                            // Relaxed: the Release of the stamp publishes it.
                            word.store(*value, Ordering::Relaxed);
                        }
                        // Release: pairs with the consumer's Acquire of the stamp; it sees the words above.
                        slot[0].store(free | 1, Ordering::Release);
                        return Ok(());
                    }
                    Err(now) => tail = now,
                }
            } else if stamp < free {
                // Of the lap before: not taken yet, or claimed and not yet written. No place is free.
                return Err(Full);
            } else {
                // Somebody has claimed this place meanwhile. Who stamps has moved the tail before, and we have seen
                // the stamp (Acquire), so the tail that we find now is a later one: if not, the stamp is a lie.
                let now = ring.tail[0].load(Ordering::Relaxed);
                if now == tail {
                    return Err(Full);
                }
                tail = now;
            }
            spin_hint();
        }
        Err(Full)
    }
}

impl super::Producer for Producer {
    #[inline(always)]
    fn try_push(&mut self, message: &crate::wire::Message) -> Result<(), Full> {
        Producer::try_push(self, message)
    }
}

/// The receiving end of a ring of messages of `W` words. At most one in a ring's life.
pub struct Consumer<const W: usize = { crate::wire::MESSAGE_WORDS }> {
    ring: Parts<W>,
    /// The number of the next message to take. Private: nobody else needs it.
    head: u64,
}

impl<const W: usize> Consumer<W> {
    /// Attaches the receiving end to a ring that has its header.
    ///
    /// # Errors
    /// A header that is not that of a ring of `W`-word messages, or does not fit the region.
    pub fn attach(words: &Words) -> Result<Self, HeaderError> {
        Ok(Self { ring: Parts::attach(words)?, head: 0 })
    }

    /// Takes the next message, or `None` if there is none now.
    ///
    /// # Errors
    /// [`PeerFault::InvalidStamp`]: somebody scribbled over the stamp. It was mended; the next call goes on.
    #[inline(always)]
    pub fn try_pop(&mut self) -> Result<Option<[u64; W]>, PeerFault> {
        let free = self.ring.free(self.head);
        let slot = self.ring.slot(self.head);
        let slot = &self.ring.slots[slot..slot + W + 1];
        // Acquire: pairs with the producer's Release of the stamp; the words are written.
        let stamp = slot[0].load(Ordering::Acquire);
        if stamp != free | 1 {
            return if stamp == free { Ok(None) } else { Err(self.mend(stamp)) };
        }
        let mut message = [0; W];
        for (value, word) in message.iter_mut().zip(&slot[1..]) {
            // Ours until we give it back: the Acquire of the stamp orders this after the stores of the words.
            *value = load_owned(word);
        }
        // Release: pairs with a producer's Acquire of the stamp one lap later; our reads come before its writes.
        slot[0].store(free + 2, Ordering::Release);
        self.head += 1;
        Ok(Some(message))
    }

    /// Whether a producer has claimed a place that we have not taken: its message is there or on its way.
    ///
    /// SeqCst: pairs with the producers' CAS, see `channel`.
    #[inline]
    pub(super) fn is_claimed(&self) -> bool {
        self.ring.tail[0].load(Ordering::SeqCst) != self.head
    }

    /// Somebody scribbled over the stamp at our place.
    #[cold]
    fn mend(&mut self, stamp: u64) -> PeerFault {
        let (position, free) = (self.head, self.ring.free(self.head));
        let slot = &self.ring.slots[self.ring.slot(position)];
        // Relaxed: it may be a lie as well, and then one damaged message more or less makes no difference.
        let claimed = self.ring.tail[0].load(Ordering::Relaxed).wrapping_sub(position);
        if (1..=self.ring.mask + 1).contains(&claimed) {
            // Whatever was written there cannot be told from what was not: passed over.
            slot.store(free + 2, Ordering::Release);
            self.head += 1;
        } else {
            // Nobody's place: as it was, unless it has changed again meanwhile.
            let _ = slot.compare_exchange(stamp, free, Ordering::Release, Ordering::Relaxed);
        }
        PeerFault::InvalidStamp { stamp, position }
    }
}

/// Makes a ring of zeroed words by writing its header: for tests and benches; a run's segments get theirs from
/// the launcher.
pub fn write_header<const W: usize>(words: &Words, capacity: usize) {
    Header {
        kind: Kind::ArrayQueue,
        bytes: words.len() as u64 * 8,
        capacity: capacity as u64,
        slot_words: W as u64 + 1,
        creator_pid: 0,
        creator_start: 0,
        run: 0,
        index: 0,
    }
    .write(words);
}

#[cfg(not(loom))]
pub(super) use link::segment;
#[cfg(not(loom))]
pub use link::{ArrayQueue, Receiver};

#[cfg(not(loom))]
mod link {
    use super::{Consumer, Producer, ring_words};
    use crate::memory::{Kind, RegionError, Words};
    use crate::ring::{self, Link, LinkSpec, PeerFault, Place, SegmentSpec};
    use crate::segments::Attached;
    use crate::wire::{MESSAGE_WORDS, Message};

    /// The technique.
    pub struct ArrayQueue;

    /// The receiving end, and what it found wrong.
    pub struct Receiver {
        pub(in crate::ring) ring: Consumer,
        fault: Option<PeerFault>,
    }

    impl Receiver {
        /// A receiving end over the ring in these words.
        ///
        /// # Errors
        /// As [`Consumer::attach`].
        pub fn attach(words: &Words) -> Result<Self, crate::memory::HeaderError> {
            Ok(Self { ring: Consumer::attach(words)?, fault: None })
        }
    }

    impl ring::Consumer for Receiver {
        #[inline(always)]
        fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
            match self.ring.try_pop() {
                Ok(message) => message.map(|message| (None, message)),
                Err(fault) => {
                    self.fault = Some(fault);
                    None
                }
            }
        }

        fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
            self.fault.take().map(|fault| (None, fault))
        }
    }

    /// The segment of a link's ring: one for all producers.
    pub(in crate::ring) fn segment(spec: &LinkSpec) -> SegmentSpec {
        SegmentSpec {
            what: spec.name.into(),
            place: Place::Memory,
            words: ring_words(spec.capacity as usize, MESSAGE_WORDS),
            kind: Kind::ArrayQueue,
            capacity: spec.capacity.into(),
            slot_words: MESSAGE_WORDS as u64 + 1,
            index: 0,
        }
    }

    impl Link for ArrayQueue {
        type Producer = Producer;
        type Consumer = Receiver;

        fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
            vec![segment(spec)]
        }

        fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<Producer, RegionError> {
            attached.end(spec.name, Kind::ArrayQueue, Producer::attach)
        }

        fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
            attached.end(spec.name, Kind::ArrayQueue, Receiver::attach)
        }
    }
}
