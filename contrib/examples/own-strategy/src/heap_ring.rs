//! A ring on the heap for each producer: the smallest technique to start from.

use core::ops::ControlFlow;
use launcher::shm::attached::{Attached, HeapObjects};
use launcher::shm::memory::RegionError;
use launcher::shm::ring::step::{Step, whole};
use launcher::shm::ring::{Consumer, Full, Home, Link, LinkSpec, Message, Producer, TechniqueInfo};
use launcher::shm::sync::AtomicU64;
use launcher::shm::sync::Ordering::{Acquire, Relaxed, Release};
use std::sync::Arc;

/// The queue itself: replace it with yours.
struct Ring {
    pushed: AtomicU64,
    popped: AtomicU64,
    slots: Box<[[AtomicU64; 7]]>,
}

impl Ring {
    fn new(capacity: u32) -> Self {
        let slots = (0..capacity).map(|_| Default::default()).collect();
        Self { pushed: AtomicU64::new(0), popped: AtomicU64::new(0), slots }
    }

    fn slot(&self, sequence: u64) -> &[AtomicU64; 7] {
        &self.slots[(sequence % self.slots.len() as u64) as usize]
    }

    fn push(&self, message: &Message) -> Result<(), Full> {
        let sequence = self.pushed.load(Relaxed);
        if sequence - self.popped.load(Acquire) == self.slots.len() as u64 {
            return Err(Full);
        }
        for (word, value) in self.slot(sequence).iter().zip(message) {
            word.store(*value, Relaxed);
        }
        self.pushed.store(sequence + 1, Release);
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.popped.load(Relaxed) == self.pushed.load(Acquire)
    }

    fn pop(&self) -> Option<Message> {
        let sequence = self.popped.load(Relaxed);
        if sequence == self.pushed.load(Acquire) {
            return None;
        }
        let message = self.slot(sequence).each_ref().map(|word| word.load(Relaxed));
        self.popped.store(sequence + 1, Release);
        Some(message)
    }
}

// ANCHOR: page
/// The technique `heap-ring`: a ring on the heap for each producer.
pub struct HeapRing;

/// The producer's end of `heap-ring`: its ring.
pub struct Sender(Arc<Ring>);

/// The consumer's end of `heap-ring`: all rings, and the index of the next one to poll.
pub struct Receiver(Vec<Arc<Ring>>, usize);

impl Producer for Sender {
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(message))
    }
}

impl Consumer for Receiver {
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        for _ in 0..self.0.len() {
            let producer = self.1;
            self.1 = (producer + 1) % self.0.len();
            if let Some(message) = self.0[producer].pop() {
                return Some((Some(producer), message));
            }
        }
        None
    }

    fn retire(&mut self, producer: usize) -> bool {
        self.0[producer].is_empty() // a dead producer's messages are taken first
    }
}

static RINGS: HeapObjects<Ring> = HeapObjects::new();

/// The ring of one producer of a link, the same one for both ends.
fn ring(spec: &LinkSpec<'_>, producer: usize, attached: &mut Attached<'_>) -> Arc<Ring> {
    RINGS.get_or_create(attached, &format!("{}-{producer}", spec.name), || Ring::new(spec.capacity))
}

impl Link for HeapRing {
    const INFO: TechniqueInfo = TechniqueInfo::new("heap-ring", Home::Heap).apart();

    type Producer = Sender;
    type Consumer = Receiver;

    fn producer(
        spec: &LinkSpec<'_>,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Sender, RegionError> {
        Ok(Sender(ring(spec, index, attached)))
    }

    fn consumer(spec: &LinkSpec<'_>, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        let rings = (0..spec.producers).map(|index| ring(spec, index, attached));
        Ok(Receiver(rings.collect(), 0))
    }
}
// ANCHOR_END: page

#[cfg(test)]
mod tests {
    #[test]
    fn heap_ring_passes_the_conformance_suite() {
        if let Err(failure) = launcher::techniques::conformance::check::<super::HeapRing>() {
            panic!("{failure}");
        }
    }
}
