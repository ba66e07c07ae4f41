//! The techniques on the heap of one process: real queues that the ones in shared memory are
//! compared with. They are polled, as the agents of a run poll.
//!
//! The crates keep a message and its stamp (or state) in a slot of 64 bytes, in memory that
//! `malloc` aligns to 16: each slot straddles two cache lines and shares both with the adjacent
//! slots. That is not part of their algorithms, and users can avoid it: with an element that is
//! aligned to a cache line, each slot has whole lines, at twice the memory. The crates' arrays are
//! faster then, as fast as in an aligned buffer. The standard library's list is slower, because it
//! allocates its blocks during the run, so it carries plain messages.

use crate::named::os;
use core::ops::ControlFlow;
use crossbeam_channel::{Receiver, Sender, bounded};
use crossbeam_queue::ArrayQueue;
use shm::attached::{Attached, HeapObjects};
use shm::memory::RegionError;
use shm::ring::spsc_mux::next_nonempty;
use shm::ring::step::{Step, whole};
use shm::ring::{Full, Home, Link, LinkSpec, Message, TechniqueInfo};
use std::io::ErrorKind;
use std::sync::{Arc, Mutex, PoisonError, mpsc};

/// A message in a cache line of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub struct LineMessage(pub Message);

/// The technique `crossbeam-array-queue`: the real `crossbeam_queue::ArrayQueue`, one for all
/// producers. The reference that `array-queue` is measured against. Its buffer is a `Box`, so it
/// cannot live in shared memory.
pub struct CrossbeamArrayQueue;

/// A sending or receiving end of a queue on the heap, an `ArrayQueue` of Crossbeam.
pub struct QueueEnd(Arc<ArrayQueue<LineMessage>>);

impl shm::ring::Producer for QueueEnd {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.0.push(LineMessage(*message)).map_err(|_| Full))
    }
}

impl shm::ring::Consumer for QueueEnd {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.pop().map(|message| (None, message.0))
    }
}

static QUEUES: HeapObjects<ArrayQueue<LineMessage>> = HeapObjects::new();

fn queue(name: &str, spec: &LinkSpec, attached: &mut Attached<'_>) -> QueueEnd {
    QueueEnd(QUEUES.get_or_create(attached, name, || ArrayQueue::new(spec.capacity as usize)))
}

impl Link for CrossbeamArrayQueue {
    const INFO: TechniqueInfo =
        TechniqueInfo::new("crossbeam-array-queue", Home::Heap).exact_capacity().twin("array-queue");

    type Producer = QueueEnd;
    type Consumer = QueueEnd;

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<QueueEnd, RegionError> {
        Ok(queue(spec.name, spec, attached))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<QueueEnd, RegionError> {
        Ok(queue(spec.name, spec, attached))
    }
}

/// The technique `array-queue-mux`: a real `crossbeam_queue::ArrayQueue` for every producer,
/// scanned round-robin. The fourth technique of the benchmark that this project started from.
///
/// It is a mux over MPMC queues: each push and each pop pays an uncontended CAS, and checking a
/// queue loads two cursors. `spsc-mux` is its counterpart in shared memory.
pub struct ArrayQueueMux;

/// A queue on the heap, one of several that one receiver scans.
pub trait MuxQueue {
    /// Returns `true` if there is no message now.
    fn is_empty(&self) -> bool;

    /// Takes the next message.
    fn pop(&mut self) -> Option<Message>;
}

/// A receiving end that scans several queues round-robin, one queue for each producer.
pub struct HeapMux<Q> {
    queues: Vec<Q>,
    next: usize,
}

impl<Q> HeapMux<Q> {
    /// Creates a receiver over one queue for each producer; a producer's index is that of its
    /// queue.
    pub const fn new(queues: Vec<Q>) -> Self {
        Self { queues, next: 0 }
    }
}

impl<Q: MuxQueue + Send> shm::ring::Consumer for HeapMux<Q> {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // The scan of `spsc_mux`, so that only the queues differ.
        let place = next_nonempty(&self.queues, self.next, Q::is_empty)?;
        let message = self.queues[place].pop()?;
        self.next = if place + 1 == self.queues.len() { 0 } else { place + 1 };
        Some((Some(place), message))
    }

    fn retire(&mut self, producer: usize) -> bool {
        // Its successor gets the same queue: nothing of a dead thread may be left there.
        self.queues.get(producer).is_none_or(Q::is_empty)
    }
}

impl MuxQueue for QueueEnd {
    #[inline(always)]
    fn is_empty(&self) -> bool {
        // Two loads; `pop` itself would add a fence for each empty queue.
        self.0.is_empty()
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        self.0.pop().map(|message| message.0)
    }
}

impl Link for ArrayQueueMux {
    const INFO: TechniqueInfo =
        TechniqueInfo::new("array-queue-mux", Home::Heap).exact_capacity().apart().twin("spsc-mux");

    type Producer = QueueEnd;
    type Consumer = HeapMux<QueueEnd>;

    fn producer(spec: &LinkSpec, index: usize, attached: &mut Attached<'_>) -> Result<QueueEnd, RegionError> {
        Ok(queue(&format!("{}-{index}", spec.name), spec, attached))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<HeapMux<QueueEnd>, RegionError> {
        let queues = (0..spec.producers).map(|index| Self::producer(spec, index, attached));
        Ok(HeapMux::new(queues.collect::<Result<_, _>>()?))
    }
}

/// The technique `crossbeam-channel`: the real crate's bounded channel. The reference that
/// `channel` is measured against.
pub struct CrossbeamChannel;

/// A sending end of `crossbeam-channel`.
pub struct ChannelSender(Sender<LineMessage>);

/// The receiving end of `crossbeam-channel`.
pub struct ChannelReceiver(Receiver<LineMessage>);

static CHANNELS: HeapObjects<(Sender<LineMessage>, Receiver<LineMessage>)> = HeapObjects::new();

impl shm::ring::Producer for ChannelSender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // Disconnected counts as full: the receiver is gone, the run is ending.
        whole(at, || self.0.try_send(LineMessage(*message)).map_err(|_| Full))
    }
}

impl shm::ring::Consumer for ChannelReceiver {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_recv().ok().map(|message| (None, message.0))
    }
}

impl Link for CrossbeamChannel {
    const INFO: TechniqueInfo =
        TechniqueInfo::new("crossbeam-channel", Home::Heap).exact_capacity().twin("channel");

    type Producer = ChannelSender;
    type Consumer = ChannelReceiver;

    fn producer(
        spec: &LinkSpec,
        _: usize,
        attached: &mut Attached<'_>,
    ) -> Result<ChannelSender, RegionError> {
        let ends = CHANNELS.get_or_create(attached, spec.name, || bounded(spec.capacity as usize));
        Ok(ChannelSender(ends.0.clone()))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<ChannelReceiver, RegionError> {
        let ends = CHANNELS.get_or_create(attached, spec.name, || bounded(spec.capacity as usize));
        Ok(ChannelReceiver(ends.1.clone()))
    }
}

/// The technique `std-mpsc`: the standard library's unbounded channel. The reference that `linked`
/// is measured against.
///
/// Unbounded, as in the benchmark that this project started from: a push is never refused, and
/// every 31st message costs an allocation.
pub struct StdMpsc;

/// The sending end of `std-mpsc`.
pub struct MpscSender(mpsc::Sender<Message>);

/// The receiving end of `std-mpsc`.
pub struct MpscReceiver(mpsc::Receiver<Message>);

/// Both ends until they are attached; the receiving end can be taken once.
type MpscEnds = Mutex<(mpsc::Sender<Message>, Option<mpsc::Receiver<Message>>)>;

static MPSC_CHANNELS: HeapObjects<MpscEnds> = HeapObjects::new();

fn new_channel() -> MpscEnds {
    let (sender, receiver) = mpsc::channel();
    Mutex::new((sender, Some(receiver)))
}

impl shm::ring::Producer for MpscSender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        // The only error is that the receiver is gone: the run is ending.
        whole(at, || self.0.send(*message).map_err(|_| Full))
    }
}

impl shm::ring::Consumer for MpscReceiver {
    #[inline(always)]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        self.0.try_recv().ok().map(|message| (None, message))
    }
}

impl Link for StdMpsc {
    const INFO: TechniqueInfo = TechniqueInfo::new("std-mpsc", Home::Heap).unbounded().twin("linked");

    type Producer = MpscSender;
    type Consumer = MpscReceiver;

    fn producer(spec: &LinkSpec, _: usize, attached: &mut Attached<'_>) -> Result<MpscSender, RegionError> {
        let ends = MPSC_CHANNELS.get_or_create(attached, spec.name, new_channel);
        let sender = ends.lock().unwrap_or_else(PoisonError::into_inner).0.clone();
        Ok(MpscSender(sender))
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<MpscReceiver, RegionError> {
        let ends = MPSC_CHANNELS.get_or_create(attached, spec.name, new_channel);
        let receiver = ends.lock().unwrap_or_else(PoisonError::into_inner).1.take();
        let second = || os(spec.name, "attach a second receiver to it")(ErrorKind::AddrInUse);
        receiver.map(MpscReceiver).ok_or_else(second)
    }
}
