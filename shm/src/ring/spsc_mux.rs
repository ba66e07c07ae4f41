//! `spsc-mux`: an SPSC ring for every producer; the consumer scans them round-robin.
//!
//! Each producer owns its ring's segment, so nothing that one producer does or omits can touch another's
//! messages. The price is the scan: an empty poll loads every producer's tail.

use super::spsc;
use super::{Full, Link, LinkSpec, PeerFault, SegmentSpec};
use crate::memory::{Kind, RegionError};
use crate::segments::Attached;
use crate::wire::{MESSAGE_WORDS, Message};

/// The technique.
pub struct SpscMux;

/// The consumer: all rings and where the next scan begins.
pub struct Mux {
    /// The rings still polled, each with its producer's index. One that misbehaved is taken out.
    rings: Vec<(usize, spsc::Consumer)>,
    next: usize,
    fault: Option<(usize, PeerFault)>,
}

impl Mux {
    /// A consumer over these rings; the producer's index is the ring's place.
    pub fn new(rings: Vec<spsc::Consumer>) -> Self {
        Self { rings: rings.into_iter().enumerate().collect(), next: 0, fault: None }
    }

    #[cold]
    fn quarantine(&mut self, place: usize, fault: PeerFault) {
        let (producer, _) = self.rings.remove(place);
        self.next = 0;
        self.fault = Some((producer, fault));
    }
}

impl super::Consumer for Mux {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // From `next` to the end, then from the start to `next`: round-robin without a division. Two plain walks over
        // slices that only look: an empty scan is nothing but N loads.
        let (start, rest) = self.rings.split_at(self.next);
        let place = match rest.iter().position(|(_, ring)| !ring.looks_empty()) {
            Some(place) => self.next + place,
            None => start.iter().position(|(_, ring)| !ring.looks_empty())?,
        };
        let (producer, ring) = &mut self.rings[place];
        match ring.try_pop() {
            Ok(message) => {
                let producer = *producer;
                self.next = if place + 1 == self.rings.len() { 0 } else { place + 1 };
                message.map(|message| (Some(producer), message))
            }
            Err(fault) => {
                self.quarantine(place, fault);
                None
            }
        }
    }

    fn take_fault(&mut self) -> Option<(usize, PeerFault)> {
        self.fault.take()
    }
}

impl super::Producer for SpscMuxProducer {
    #[inline(always)]
    fn try_push(&mut self, message: &Message) -> Result<(), Full> {
        self.0.try_push(message)
    }
}

/// The producer: its own ring.
pub struct SpscMuxProducer(pub spsc::Producer);

fn ring_name(spec: &LinkSpec, index: usize) -> String {
    format!("{}-{index}", spec.name)
}

/// The name of the consumer's part of a ring.
pub fn head_name(ring: &str) -> String {
    format!("{ring}.head")
}

/// The two segments of an SPSC ring: the producer's part under the ring's name, and the consumer's.
pub fn ring_segments(what: String, capacity: u32, index: u64) -> [SegmentSpec; 2] {
    let head = SegmentSpec {
        what: head_name(&what),
        words: spsc::HEAD_WORDS,
        kind: Kind::RingHead,
        capacity: 1,
        slot_words: 1,
        index,
    };
    let tail = SegmentSpec {
        what,
        words: spsc::tail_words(capacity as usize, MESSAGE_WORDS),
        kind: Kind::Ring,
        capacity: u64::from(capacity),
        slot_words: spsc::slot_words(MESSAGE_WORDS) as u64,
        index,
    };
    [tail, head]
}

impl Link for SpscMux {
    type Producer = SpscMuxProducer;
    type Consumer = Mux;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        (0..spec.producers).flat_map(|i| ring_segments(ring_name(spec, i), spec.capacity, i as u64)).collect()
    }

    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<SpscMuxProducer, RegionError> {
        attached.sender(&ring_name(spec, index)).map(SpscMuxProducer)
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Mux, RegionError> {
        let rings = (0..spec.producers).map(|index| attached.receiver(&ring_name(spec, index)));
        Ok(Mux::new(rings.collect::<Result<_, _>>()?))
    }
}
