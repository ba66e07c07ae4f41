//! `spsc-mux`: an SPSC ring for every producer; the consumer scans them round-robin.
//!
//! Each producer owns its ring's segment, so nothing that one producer does or omits can touch
//! another's messages. The price is the scan: an empty poll loads the next sequence of every
//! producer's ring.
//!
//! **What a dead producer leaves:** its own ring, in which no message is half visible (see `spsc`),
//! and for which no other end waits. Its published messages are delivered; then its ring is removed
//! from the scan until a new producer has it ([`Consumer::retire`](super::Consumer::retire),
//! [`Consumer::renew`](super::Consumer::renew)). Other rings are not touched.

use super::spsc;
use super::{EndRights, Full, Home, Link, LinkSpec, PeerFault, SegmentSpec, Step, TechniqueInfo};
use crate::attached::Access;
use crate::attached::Attached;
use crate::memory::RegionError;
use crate::ring::{MESSAGE_WORDS, Message};
use core::ops::ControlFlow;

/// The technique `spsc-mux`: an SPSC ring for each producer, which one consumer scans.
pub struct SpscMux;

/// The consumer of `spsc-mux`, which scans all rings round-robin.
pub struct Mux {
    /// The rings that are polled, each with its producer's index, in that order.
    rings: Vec<(usize, spsc::Consumer)>,
    /// Those that are not: whose producer is dead, or misbehaved.
    inactive: Vec<(usize, spsc::Consumer)>,
    next: usize,
    /// The ring of the message that was taken last.
    last_taken: usize,
    fault: Option<(usize, PeerFault)>,
}

impl Mux {
    /// Creates a consumer over SPSC rings; a producer's index is that of its ring.
    pub fn new(rings: Vec<spsc::Consumer>) -> Self {
        let inactive = Vec::with_capacity(rings.len());
        Self { rings: rings.into_iter().enumerate().collect(), inactive, next: 0, last_taken: 0, fault: None }
    }

    /// Returns `true` if none of the rings that the consumer polls has a message now.
    pub fn looks_empty(&self) -> bool {
        self.find_nonempty().is_none()
    }

    /// Returns `true` if the ring of a producer has no message left to take. Its ring is empty, or
    /// is not polled.
    pub fn is_drained(&self, producer: usize) -> bool {
        self.rings.iter().all(|(index, ring)| *index != producer || ring.looks_empty())
    }

    /// Moves back by `count` messages in the ring of the message that was taken last, so that they
    /// are taken again. They must not have been released. Messages of other rings may be taken
    /// before them.
    pub fn rewind(&mut self, count: u64) {
        if let Some((_, ring)) = self.rings.get_mut(self.last_taken) {
            ring.rewind(count);
        }
    }

    /// Returns the index, from `next` on, of the first ring that has a message.
    #[inline(always)]
    fn find_nonempty(&self) -> Option<usize> {
        next_nonempty(&self.rings, self.next, |(_, ring)| ring.looks_empty())
    }

    /// Takes the next message; its slot is freed at once if `RELEASES`.
    #[inline(always)]
    fn next_message<const RELEASES: bool>(&mut self) -> Option<(Option<usize>, Message)> {
        let place = self.find_nonempty()?;
        let (producer, ring) = &mut self.rings[place];
        let producer = *producer;
        let mut fault = None;
        let message = if RELEASES { ring.pop(&mut fault) } else { ring.take_or(&mut fault) };
        if let Some(fault) = fault {
            self.fault = Some((producer, fault));
            self.deactivate(place);
            return None;
        }
        self.next = if place + 1 == self.rings.len() { 0 } else { place + 1 };
        if !RELEASES {
            self.last_taken = place;
        }
        message.map(|message| (Some(producer), message))
    }

    /// Returns the position in its ring of the message that [`take`](super::Consumer::take)
    /// returned last; `None` if none was taken.
    #[inline(always)]
    pub fn taken_position(&self) -> Option<u64> {
        self.rings.get(self.last_taken)?.1.taken().checked_sub(1)
    }

    #[cold]
    fn deactivate(&mut self, index: usize) {
        let ring = self.rings.remove(index);
        self.inactive.push(ring);
        self.next = 0;
    }
}

/// Returns the index of the first non-empty queue in a round-robin scan that begins at `next`;
/// `None` if all are empty. The scan of every technique with a queue for each producer.
#[inline(always)]
pub fn next_nonempty<Q>(queues: &[Q], next: usize, is_empty: impl Fn(&Q) -> bool) -> Option<usize> {
    // From `next` to the end, then from the start to `next`: round-robin without a division.
    // Two plain read-only passes over slices: an empty scan is just N loads.
    let (start, rest) = queues.split_at(next);
    match first_nonempty(rest, &is_empty) {
        Some(place) => Some(next + place),
        None => first_nonempty(start, &is_empty),
    }
}

/// Returns the first of these queues that is not empty. Two at a time after an odd first one: the
/// loop is then not bound by its branch back. A ring at a time, that branch takes as long as two
/// polls if the loop's few instructions happen to lie in two lines.
#[inline(always)]
fn first_nonempty<Q>(queues: &[Q], is_empty: &impl Fn(&Q) -> bool) -> Option<usize> {
    let odd = queues.len() % 2;
    let (first, rest) = queues.split_at(odd);
    if first.iter().any(|queue| !is_empty(queue)) {
        return Some(0);
    }
    let (pairs, _) = rest.as_chunks::<2>();
    let pair = pairs.iter().position(|[one, two]| !(is_empty(one) && is_empty(two)))?;
    let one = odd + 2 * pair;
    Some(one + usize::from(is_empty(&queues[one])))
}

impl super::Consumer for Mux {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.next_message::<true>()
    }

    #[inline(always)]
    fn take(&mut self) -> Option<(Option<usize>, Message)> {
        self.next_message::<false>()
    }

    #[inline(always)]
    fn release(&mut self) {
        // Absent if the ring was taken out of the scan since.
        if let Some((_, ring)) = self.rings.get_mut(self.last_taken) {
            ring.release();
        }
    }

    fn pass_over(&mut self, producer: usize, taken: u64) -> Result<(), u64> {
        let ring = self.rings.iter_mut().find(|(index, _)| *index == producer);
        let Some((_, ring)) = ring else { return Ok(()) };
        if ring.taken() > taken {
            return Err(ring.taken());
        }
        ring.skip_to(taken);
        Ok(())
    }

    fn forget(&mut self, producer: usize) {
        if let Some(place) = self.rings.iter().position(|(index, _)| *index == producer) {
            self.deactivate(place);
            if let Some((_, ring)) = self.inactive.last_mut() {
                ring.renew();
            }
        }
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.fault.take().map(|(producer, fault)| (Some(producer), fault))
    }

    fn retire(&mut self, producer: usize) -> bool {
        if let Some(place) = self.rings.iter().position(|(index, _)| *index == producer) {
            if !self.rings[place].1.looks_empty() {
                return false;
            }
            self.deactivate(place);
        }
        // Also where a fault had taken it out. Now, while no producer pushes there: a new producer
        // may start before `renew`.
        if let Some((_, ring)) = self.inactive.iter_mut().find(|(index, _)| *index == producer) {
            ring.renew();
        }
        true
    }

    fn renew(&mut self, producer: usize) {
        if let Some(place) = self.inactive.iter().position(|(index, _)| *index == producer) {
            let ring = self.inactive.swap_remove(place);
            let place = self.rings.partition_point(|(index, _)| *index < producer);
            self.rings.insert(place, ring);
            self.next = 0;
        }
    }
}

impl super::Producer for SpscMuxProducer {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        self.0.try_push_with(message, at)
    }
}

/// The producer's end of the technique `spsc-mux`, with an SPSC ring of its own.
pub struct SpscMuxProducer(pub spsc::Producer);

/// Returns the name, within the run, of the segment with a producer's ring.
pub fn ring_name(spec: &LinkSpec, index: usize) -> String {
    format!("{}-{index}", spec.name)
}

/// Returns the name of the segment with the consumer's part of a ring.
pub fn head_name(ring: &str) -> String {
    format!("{ring}.head")
}

/// Specifies the two segments of an SPSC ring: its slots, and the consumer's cursor. The slots are
/// under the ring's name.
pub fn ring_segments(what: String, capacity: u32, index: u64, producer: usize) -> [SegmentSpec; 2] {
    let ends = EndRights::for_producer(producer, Access::Read, Access::Write);
    let head = SegmentSpec::memory(head_name(&what), spsc::HEAD_KIND, spsc::HEAD_WORDS, ends);
    let ends = EndRights::for_producer(producer, Access::Write, Access::Read);
    let words = spsc::tail_words(capacity as usize, MESSAGE_WORDS);
    let tail = SegmentSpec::memory(what, spsc::KIND, words, ends);
    let (capacity, slot_words) = (capacity.into(), spsc::slot_words(MESSAGE_WORDS) as u64);
    [SegmentSpec { capacity, slot_words, index, ..tail }, SegmentSpec { index, ..head }]
}

/// The ring is the producer's alone: there is nothing to announce or to claim.
const STEPS: &[Step] = &[Step::Entered, Step::HalfWritten, Step::Written, Step::Published];

impl Link for SpscMux {
    const INFO: TechniqueInfo = TechniqueInfo::new("spsc-mux", Home::Memory)
        .steps(STEPS)
        .apart()
        .consumer_resumable()
        .producer_resumable();

    type Producer = SpscMuxProducer;
    type Consumer = Mux;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        let ring = |i| ring_segments(ring_name(spec, i), spec.capacity, i as u64, i);
        (0..spec.producers).flat_map(ring).collect()
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

    fn resume_producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<SpscMuxProducer, RegionError> {
        attached.resume_sender(&ring_name(spec, index)).map(SpscMuxProducer)
    }

    fn resume_consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Mux, RegionError> {
        let rings = (0..spec.producers).map(|index| attached.resume_receiver(&ring_name(spec, index)));
        Ok(Mux::new(rings.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::Consumer;

    const RINGS: usize = 5;

    /// Returns the maximum number of messages of others that overtake an available one. The first
    /// two producers push all the time, the others occasionally.
    fn longest_wait(mut take: impl FnMut(&mut Mux) -> Vec<usize>) -> usize {
        let rings = (0..RINGS).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(8));
        let (mut producers, consumers): (Vec<_>, Vec<_>) = rings.unzip();
        let mut mux = Mux::new(consumers);
        let (mut there, mut waited, mut longest) = ([0; RINGS], [0; RINGS], 0);
        for round in 0..if cfg!(miri) { 200 } else { 1_000 } {
            for (index, producer) in producers.iter_mut().enumerate() {
                let pushes = if index < 2 { 8 } else { usize::from(round % (3 * index) == 0) };
                there[index] += producer.try_push_many(&vec![[7; MESSAGE_WORDS]; pushes]);
            }
            for from in take(&mut mux) {
                there[from] -= 1;
                waited[from] = 0;
                for other in (0..RINGS).filter(|other| *other != from && there[*other] > 0) {
                    waited[other] += 1;
                    longest = longest.max(waited[other]);
                }
            }
        }
        longest
    }

    fn pop(mux: &mut Mux) -> Vec<usize> {
        mux.try_pop().and_then(|(from, _)| from).into_iter().collect()
    }

    #[test]
    fn no_ring_starves_another() {
        assert_eq!(longest_wait(pop), RINGS - 1, "each of the others once");
    }

    /// Lists of even and odd lengths, every set of rings that have something, every place to begin:
    /// the first one from there on, round the end.
    #[test]
    fn scan_finds_first_nonempty_ring_round_robin() {
        for rings in 1..=RINGS {
            for full in 0..1u32 << rings {
                let ends = (0..rings).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(2));
                let (mut producers, consumers): (Vec<_>, Vec<_>) = ends.unzip();
                let has = |place: &usize| full >> place & 1 == 1;
                let sending = producers.iter_mut().enumerate().filter(|(place, _)| has(place));
                sending.for_each(|(_, producer)| producer.try_push(&[7; MESSAGE_WORDS]).unwrap());
                let mut mux = Mux::new(consumers);
                for next in 0..rings {
                    mux.next = next;
                    assert_eq!(
                        mux.find_nonempty(),
                        (next..rings).chain(0..next).find(has),
                        "{full:b} of {rings} from {next}"
                    );
                }
            }
        }
    }

    #[test]
    fn taken_messages_have_the_position_in_their_ring() {
        let rings = (0..2).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(8));
        let (mut producers, consumers): (Vec<_>, Vec<_>) = rings.unzip();
        let mut mux = Mux::new(consumers);
        producers[0].try_push_many(&[[1; MESSAGE_WORDS], [2; MESSAGE_WORDS]]);
        producers[1].try_push(&[3; MESSAGE_WORDS]).unwrap();
        let mut take = || mux.take().map(|(producer, _)| (producer, mux.taken_position()));
        assert_eq!(take(), Some((Some(0), Some(0))));
        assert_eq!(take(), Some((Some(1), Some(0))));
        assert_eq!(take(), Some((Some(0), Some(1))));
        assert_eq!(take(), None);
    }

    #[test]
    fn scan_always_from_first_ring_starves_others() {
        let broken = |mux: &mut Mux| {
            mux.next = 0;
            pop(mux)
        };
        assert!(longest_wait(broken) > 100);
    }
}
