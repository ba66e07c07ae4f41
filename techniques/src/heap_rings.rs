//! `rtrb-mux` and `rtrb-pointer-mux`: rings of the crate `rtrb` between the threads of one process.
//! What an engine has whose strategies are threads: the `native` rows of `launcher bill`.
//!
//! `rtrb` is the ring on the heap that audio and trading programs use for one producer and one
//! consumer. Each producer has its own, and the consumer scans them as `spsc-mux` scans its rings.
//!
//! - *By value*, a message is copied into a slot of one cache line.
//! - *By pointer*, a slot is a `Box`, and the message lies in its own cache line. Boxes are made
//!   before the run, and a second ring returns them to the producer (an object pool), so that
//!   nothing is allocated on the way of an order. The receiver copies the message out of its box,
//!   as it copies those of every technique.
//!
//! An end belongs to one thread at a time, so the ring lends it. A producer's end is returned when
//! the producer is dropped, and its successor gets it.

use crate::heap::{HeapMux, LineMessage, MuxQueue};
use crate::named::os;
use core::ops::ControlFlow;
use rtrb::{Consumer, Producer, RingBuffer};
use shm::attached::{Attached, HeapObjects};
use shm::memory::RegionError;
use shm::ring::spsc_mux::ring_name;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, MESSAGE_WORDS, Message, TechniqueInfo};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError};

/// The technique `rtrb-mux`: a ring of the crate `rtrb` for each producer, with messages by value.
pub struct RtrbMux;

/// The technique `rtrb-pointer-mux`: as [`RtrbMux`], with messages by pointer and an object pool.
pub struct RtrbPointerMux;

/// A place from which an end is lent to one thread.
struct Lending<T>(Mutex<Option<T>>);

impl<T> Lending<T> {
    const fn new(end: T) -> Self {
        Self(Mutex::new(Some(end)))
    }

    /// Lends the end.
    ///
    /// # Errors
    /// Another thread has it.
    fn lend(&self, name: &str) -> Result<T, RegionError> {
        let end = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        end.ok_or_else(|| os(name, "attach an end to it that is attached already")(ErrorKind::AddrInUse))
    }

    fn give_back(&self, end: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(end);
    }
}

/// The two ends of a ring, each until it is lent.
struct RingEnds<T: SendingEnd> {
    sending: Lending<T>,
    receiving: Lending<T::Receiving>,
}

impl<T: SendingEnd> RingEnds<T> {
    fn new(capacity: usize) -> Self {
        let (sending, receiving) = T::ring(capacity);
        Self { sending: Lending::new(sending), receiving: Lending::new(receiving) }
    }
}

/// The sending end of a ring of the crate `rtrb`, which carries messages by value or by pointer.
pub trait SendingEnd: Send + Sized + 'static {
    /// The type of the ring's receiving end.
    type Receiving: MuxQueue + Send + 'static;

    /// Creates a ring whose memory has been touched, so that no order waits for a page.
    fn ring(capacity: usize) -> (Self, Self::Receiving);

    /// Pushes a message.
    ///
    /// # Errors
    /// [`Full`] if the ring is full.
    fn push(&mut self, message: &Message) -> Result<(), Full>;
}

impl SendingEnd for Producer<LineMessage> {
    type Receiving = Consumer<LineMessage>;

    fn ring(capacity: usize) -> (Self, Self::Receiving) {
        let (mut sending, mut receiving) = RingBuffer::new(capacity);
        while sending.push(LineMessage([0; MESSAGE_WORDS])).is_ok() {}
        while receiving.pop().is_ok() {}
        (sending, receiving)
    }

    #[inline(always)]
    fn push(&mut self, message: &Message) -> Result<(), Full> {
        Self::push(self, LineMessage(*message)).map_err(|_| Full)
    }
}

impl MuxQueue for Consumer<LineMessage> {
    #[inline(always)]
    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        Self::pop(self).ok().map(|message| message.0)
    }
}

/// The sending end of an `rtrb` ring of boxed messages, which reuses the boxes that the receiver
/// returns.
pub struct PointerSender {
    full: Producer<Box<LineMessage>>,
    free: Consumer<Box<LineMessage>>,
}

/// The receiving end of an `rtrb` ring of boxed messages, which returns each box to the sender for
/// reuse.
pub struct PointerReceiver {
    full: Consumer<Box<LineMessage>>,
    free: Producer<Box<LineMessage>>,
}

impl SendingEnd for PointerSender {
    type Receiving = PointerReceiver;

    fn ring(capacity: usize) -> (Self, Self::Receiving) {
        let (mut full, mut taken) = RingBuffer::new(capacity);
        let (mut returned, free) = RingBuffer::new(capacity);
        // Through both rings, which touches their slots as well.
        while full.push(Box::new(LineMessage([0; MESSAGE_WORDS]))).is_ok() {}
        while let Ok(message) = taken.pop() {
            // As many boxes as slots, so there is one free for each.
            let _ = returned.push(message);
        }
        (Self { full, free }, PointerReceiver { full: taken, free: returned })
    }

    #[inline(always)]
    fn push(&mut self, message: &Message) -> Result<(), Full> {
        // As many boxes as slots: a box that is free has a slot.
        let mut pointer = self.free.pop().map_err(|_| Full)?;
        pointer.0 = *message;
        self.full.push(pointer).map_err(|_| Full)
    }
}

impl MuxQueue for PointerReceiver {
    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.full.is_empty()
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        let pointer = self.full.pop().ok()?;
        let message = pointer.0;
        let _ = self.free.push(pointer);
        Some(message)
    }
}

/// A producer's end of the `rtrb` techniques: dropping it returns the sending end to its ring, for
/// a successor.
pub struct RingSender<T: SendingEnd> {
    end: T,
    ring: Arc<RingEnds<T>>,
}

impl<T: SendingEnd> shm::ring::Producer for RingSender<T> {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.end.push(message))
    }
}

impl<T: SendingEnd> Drop for RingSender<T> {
    fn drop(&mut self) {
        // A ring without slots in its place, which is dropped with this value.
        let (unused, _) = T::ring(0);
        self.ring.sending.give_back(std::mem::replace(&mut self.end, unused));
    }
}

/// Implements a technique over rings with this sending end.
macro_rules! rings {
    ($link:ident, $name:literal, $end:ty, $rings:ident) => {
        static $rings: HeapObjects<RingEnds<$end>> = HeapObjects::new();

        impl Link for $link {
            const INFO: TechniqueInfo =
                TechniqueInfo::new($name, Home::Heap).exact_capacity().apart().twin("spsc-mux");

            type Producer = RingSender<$end>;
            type Consumer = HeapMux<<$end as SendingEnd>::Receiving>;

            fn producer(
                spec: &LinkSpec,
                index: usize,
                attached: &mut Attached<'_>,
            ) -> Result<Self::Producer, RegionError> {
                let name = ring_name(spec, index);
                let ring = $rings.get_or_create(attached, &name, || RingEnds::new(spec.capacity as usize));
                Ok(RingSender { end: ring.sending.lend(&name)?, ring })
            }

            fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
                let receiving = |index| {
                    let name = ring_name(spec, index);
                    let ring =
                        $rings.get_or_create(attached, &name, || RingEnds::new(spec.capacity as usize));
                    ring.receiving.lend(&name)
                };
                Ok(HeapMux::new((0..spec.producers).map(receiving).collect::<Result<_, _>>()?))
            }
        }
    };
}

rings!(RtrbMux, "rtrb-mux", Producer<LineMessage>, VALUE_RINGS);
rings!(RtrbPointerMux, "rtrb-pointer-mux", PointerSender, POINTER_RINGS);

#[cfg(test)]
mod tests {
    use super::*;
    use shm::ring::Consumer as _;
    use std::collections::BTreeSet;

    /// Returns how many messages fit, with `taken` of them sent and taken before.
    fn messages_that_fit<T: SendingEnd>(mut sending: T, mut receiving: T::Receiving, taken: u64) -> u64 {
        for n in 0..taken {
            sending.push(&[n; MESSAGE_WORDS]).unwrap();
            assert_eq!(receiving.pop(), Some([n; MESSAGE_WORDS]));
        }
        (0..100).take_while(|n| sending.push(&[*n; MESSAGE_WORDS]).is_ok()).count() as u64
    }

    #[test]
    fn pool_has_as_many_boxes_as_slots() {
        for taken in [0, 1, 8, 100] {
            let (sending, receiving) = PointerSender::ring(8);
            assert_eq!(messages_that_fit(sending, receiving, taken), 8);
            let (sending, receiving) = Producer::ring(8);
            assert_eq!(messages_that_fit(sending, receiving, taken), 8);
        }
        // The broken variant: a receiver that keeps its boxes.
        let (mut sending, mut receiving) = PointerSender::ring(8);
        let pushed = |n: &u64| {
            let is_pushed = SendingEnd::push(&mut sending, &[*n; MESSAGE_WORDS]).is_ok();
            std::mem::forget(receiving.full.pop());
            is_pushed
        };
        assert_eq!((0..100).take_while(pushed).count(), 8);
    }

    #[test]
    fn boxes_are_those_made_before_the_run() {
        let address = |pointer: &LineMessage| std::ptr::from_ref(pointer).addr();
        let (mut sending, mut receiving) = PointerSender::ring(4);
        let mut addresses = BTreeSet::new();
        for n in 0..50 {
            SendingEnd::push(&mut sending, &[n; MESSAGE_WORDS]).unwrap();
            let pointer = receiving.full.pop().unwrap();
            assert!(addresses.insert(address(&pointer)) || n >= 4);
            receiving.free.push(pointer).unwrap();
        }
        assert_eq!(addresses.len(), 4);
        assert!(addresses.iter().all(|address| address % 64 == 0), "each in a cache line of its own");
    }

    /// A producer's successor gets its queue, in which orders of the dead incarnation are left.
    #[test]
    fn dead_producer_is_retired_once_its_queue_is_empty() {
        let (mut sending, receiving) = PointerSender::ring(8);
        let mut mux = HeapMux::new(vec![receiving]);
        sending.push(&[7; MESSAGE_WORDS]).unwrap();
        drop(sending);
        assert!(!mux.retire(0), "a message is left");
        assert_eq!(mux.try_pop(), Some((Some(0), [7; MESSAGE_WORDS])));
        assert!(mux.retire(0));
    }

    #[test]
    fn end_is_lent_to_one_thread_at_a_time() {
        let ring = Arc::new(RingEnds::<PointerSender>::new(8));
        let lend = || ring.sending.lend("submit-0");
        let sender = RingSender { end: lend().unwrap(), ring: Arc::clone(&ring) };
        assert!(lend().is_err(), "another thread has it");
        drop(sender);
        assert!(SendingEnd::push(&mut lend().unwrap(), &[7; MESSAGE_WORDS]).is_ok(), "the lent end itself");
    }
}
