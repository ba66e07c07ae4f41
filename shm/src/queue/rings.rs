//! The rings of a queue's producers, which its receiver polls in turn.

use crate::attached::{Access, Attached};
use crate::memory::{HeaderError, RegionError};
use crate::ring::packed::{self, PackedLayout, PackedReceiver, PackedSender, PackedShape};
use crate::ring::spsc_mux::{head_name, next_nonempty, ring_name};
use crate::ring::{EndRights, LinkSpec, PeerFault, SegmentSpec};

/// Returns the shape of the rings of a queue.
const fn shape(link: &LinkSpec, message_bytes: usize) -> PackedShape {
    PackedShape { message_bytes, capacity: link.capacity as usize }
}

/// Specifies the segments of a queue's rings: two for each producer. None for a size that no queue
/// has: the messages are then those of a technique, or a peer scribbled on the descriptor.
pub(super) fn segments(link: &LinkSpec, message_bytes: usize) -> Vec<SegmentSpec> {
    let is_size = message_bytes <= packed::MAX_MESSAGE_BYTES;
    let ring = |producer: usize| {
        let (name, index) = (ring_name(link, producer), producer as u64);
        let ends = EndRights::for_producer(producer, Access::Read, Access::Write);
        let head = SegmentSpec::memory(head_name(&name), packed::HEAD_KIND, packed::HEAD_WORDS, ends);
        let ends = EndRights::for_producer(producer, Access::Write, Access::Read);
        let words = packed::tail_words(message_bytes, link.capacity as usize);
        let tail = SegmentSpec::memory(name, packed::KIND, words, ends);
        let (capacity, slot_words) = (link.capacity.into(), message_bytes as u64);
        [SegmentSpec { capacity, slot_words, index, ..tail }, SegmentSpec { index, ..head }]
    };
    (0..if is_size { link.producers } else { 0 }).flat_map(ring).collect()
}

fn named<T>(name: &str, attached: Result<T, HeaderError>) -> Result<T, RegionError> {
    attached.map_err(|source| RegionError::Header { name: name.into(), source })
}

/// Attaches the sending end of a producer's ring, after what was published there.
pub(super) fn attach_sender(
    link: &LinkSpec,
    index: usize,
    message_bytes: usize,
    attached: &mut Attached<'_>,
) -> Result<PackedSender, RegionError> {
    let name = ring_name(link, index);
    let head = attached.view(&head_name(&name), packed::HEAD_KIND)?;
    let tail = attached.region(&name, packed::KIND)?.words();
    named(&name, PackedSender::resume(shape(link, message_bytes), &tail, &head))
}

/// Attaches the receiving end of a producer's ring, after what was freed there.
fn attach_receiver(
    link: &LinkSpec,
    index: usize,
    message_bytes: usize,
    attached: &mut Attached<'_>,
) -> Result<PackedReceiver, RegionError> {
    let name = ring_name(link, index);
    let tail = attached.view(&name, packed::KIND)?;
    let head = attached.region(&head_name(&name), packed::HEAD_KIND)?.words();
    named(&name, PackedReceiver::resume(shape(link, message_bytes), &tail, &head))
}

/// The receiving ends of all producers' rings, polled round-robin.
pub(super) struct Rings {
    /// The rings that are polled, each with its producer's index, in that order.
    active: Vec<(usize, PackedReceiver)>,
    /// Those that are not: whose producer is dead, or misbehaved.
    inactive: Vec<(usize, PackedReceiver)>,
    next: usize,
    /// The place in `active` of the ring of the message that was taken last.
    last_taken: usize,
    fault: Option<(usize, PeerFault)>,
}

impl Rings {
    /// Attaches the receiving ends of all rings of a queue.
    pub(super) fn attach(
        link: &LinkSpec,
        message_bytes: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Self, RegionError> {
        let ring = |index| Ok((index, attach_receiver(link, index, message_bytes, attached)?));
        let active = (0..link.producers).map(ring).collect::<Result<Vec<_>, RegionError>>()?;
        let inactive = Vec::with_capacity(active.len());
        Ok(Self { active, inactive, next: 0, last_taken: 0, fault: None })
    }

    /// Returns the ring of the only producer of a queue, while it is polled.
    pub(super) fn only(&mut self) -> Option<&mut PackedReceiver> {
        match (&mut self.active[..], self.inactive.is_empty()) {
            ([(_, ring)], true) => Some(ring),
            _ => None,
        }
    }

    /// Returns the layout of the ring of the first producer, polled or not.
    pub(super) fn first_layout(&self) -> PackedLayout {
        let first = self.active.iter().chain(&self.inactive).min_by_key(|(index, _)| *index);
        first.map(|(_, ring)| ring.layout()).expect("a queue has a producer")
    }

    /// Returns `true` if no ring that is polled has a message now.
    pub(super) fn look_empty(&self) -> bool {
        self.find_nonempty().is_none()
    }

    /// Returns `true` if no message of a producer is left to take. Its ring is empty, or is not
    /// polled.
    pub(super) fn is_drained(&self, producer: usize) -> bool {
        self.active.iter().all(|(index, ring)| *index != producer || ring.looks_empty())
    }

    /// Returns the place, from `next` on, of the first ring that has a message.
    #[inline(always)]
    fn find_nonempty(&self) -> Option<usize> {
        next_nonempty(&self.active, self.next, |(_, ring)| ring.looks_empty())
    }

    /// Returns the next ring that has a message, with its producer; the next call begins with the
    /// ring after it. Asks the sender for more if fewer than `wanted` are known. `None`: there is
    /// no message now, or there is a fault.
    #[inline(always)]
    pub(super) fn next_ring(&mut self, wanted: u64) -> Option<(usize, &mut PackedReceiver)> {
        let mut fault = None;
        let place = match &mut self.active[..] {
            // The ring of the only producer: without a scan.
            [(_, ring)] => {
                if !ring.has_next(wanted, &mut fault) {
                    ring.prefetch_next();
                    return self.no_message(0, fault);
                }
                0
            }
            _ => {
                let Some(place) = self.find_nonempty() else { return self.no_message(0, None) };
                if !self.active[place].1.has_message(wanted, &mut fault) {
                    return self.no_message(place, fault);
                }
                self.next = if place + 1 == self.active.len() { 0 } else { place + 1 };
                place
            }
        };
        self.last_taken = place;
        self.active.get_mut(place).map(|(producer, ring)| (*producer, ring))
    }

    /// Stores a fault, after which its ring is not polled any more.
    #[inline(always)]
    fn no_message<T>(&mut self, place: usize, fault: Option<PeerFault>) -> Option<T> {
        if let Some(fault) = fault {
            self.deactivate_faulty(place, fault);
        }
        None
    }

    #[cold]
    fn deactivate_faulty(&mut self, place: usize, fault: PeerFault) {
        self.fault = Some((self.active[place].0, fault));
        self.deactivate(place);
    }

    /// Returns the fault that was found last, once.
    #[inline]
    pub(super) fn take_fault(&mut self) -> Option<(usize, PeerFault)> {
        self.fault.take()
    }

    /// Frees the messages that were taken from the ring of the last one.
    #[inline(always)]
    pub(super) fn release(&mut self) {
        // Absent if the ring was taken out of the scan since.
        if let Some((_, ring)) = self.active.get_mut(self.last_taken) {
            ring.release();
        }
    }

    /// Moves the ring of the message that was taken last back by one message, which must not have
    /// been released. Messages of other rings may be taken before it is taken again.
    pub(super) fn put_back(&mut self) {
        if let Some((_, ring)) = self.active.get_mut(self.last_taken) {
            ring.rewind(1);
        }
    }

    fn deactivate(&mut self, place: usize) {
        let ring = self.active.remove(place);
        self.inactive.push(ring);
        self.next = 0;
    }

    /// Stops polling a ring, whose memory is then reset before it is polled again.
    pub(super) fn retire(&mut self, producer: usize) {
        if let Some(place) = self.active.iter().position(|(index, _)| *index == producer) {
            self.deactivate(place);
        }
        // Also where a fault had taken it out. Now, while no producer pushes there: a new one may
        // start before `renew`.
        if let Some((_, ring)) = self.inactive.iter_mut().find(|(index, _)| *index == producer) {
            ring.renew();
        }
    }

    /// Polls a retired ring again, after its memory was reset for a new producer.
    pub(super) fn renew(&mut self, producer: usize) {
        if let Some(place) = self.inactive.iter().position(|(index, _)| *index == producer) {
            let ring = self.inactive.swap_remove(place);
            let place = self.active.partition_point(|(index, _)| *index < producer);
            self.active.insert(place, ring);
            self.next = 0;
        }
    }
}
