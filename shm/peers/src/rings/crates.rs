//! The compared queues: bulkhead's ring and those of other crates.

use crate::pair::{Packed, Payload, Queue};
use disruptor::{
    BusySpin, EventPoller, Producer as _, SingleConsumerBarrier, SingleProducer, SingleProducerBarrier,
};
use shm::memory::Region;
use shm::ring::{MESSAGE_WORDS, spsc};
use shm::sync::{AtomicU64, Ordering};
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

/// bulkhead's ring in mapped memory, as two processes share it.
pub struct Bulkhead;

impl Queue for Bulkhead {
    const NAME: &'static str = "bulkhead spsc (shared)";
    type Sender = spsc::Producer;
    type Receiver = spsc::Consumer;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let words = Region::memfd("peers-ring", spsc::ring_words(capacity, MESSAGE_WORDS))
            .expect("some pages")
            .words();
        spsc::write_header::<MESSAGE_WORDS>(&words, capacity);
        let consumer = spsc::Consumer::attach(&words).expect("a fresh ring has a good header");
        (spsc::Producer::attach(&words).expect("a fresh ring has a good header"), consumer)
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.try_push(&words).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        receiver.try_pop().expect("an honest peer")
    }
}

/// The crate rtrb, on the heap.
pub struct Rtrb<P>(PhantomData<P>);

impl<P: Payload> Queue for Rtrb<P> {
    const NAME: &'static str = "rtrb 0.4";
    type Sender = rtrb::Producer<P>;
    type Receiver = rtrb::Consumer<P>;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        rtrb::RingBuffer::new(capacity)
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.push(P::of(words)).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        receiver.pop().ok().map(|payload| payload.words())
    }
}

/// The crate disruptor with a poller of our own thread, on the heap.
pub struct Disruptor<P>(PhantomData<P>);

impl<P: Payload> Queue for Disruptor<P> {
    const NAME: &'static str = "disruptor 4";
    type Sender = SingleProducer<P, SingleConsumerBarrier>;
    type Receiver = EventPoller<P, SingleProducerBarrier>;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let builder = disruptor::build_single_producer(capacity, P::default, BusySpin);
        let (poller, builder) = builder.new_event_poller();
        (builder.build(), poller)
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.try_publish(|event| *event = P::of(words)).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        let mut events = receiver.take(1).ok()?;
        let event = (&mut events).next()?;
        Some(event.words())
    }
}

/// The crate shaq: its queue in a file under /dev/shm, as two processes share it.
pub struct Shaq<P>(PhantomData<P>);

impl<P: Payload> Queue for Shaq<P> {
    const NAME: &'static str = "shaq (shared)";
    type Sender = shaq::spsc::Producer<P>;
    type Receiver = shaq::spsc::Consumer<P>;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        shaq::spsc::pair(capacity).expect("some pages")
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.try_write(P::of(words)).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        receiver.try_read().map(|payload| payload.words())
    }
}

/// The crate ringfire: its ring of one writer in a file under /dev/shm, without loss, with one
/// reader.
pub struct Ringfire;

/// A queue's end with the file that holds the queue.
pub struct File<T> {
    end: T,
    path: PathBuf,
}

impl<T> Drop for File<T> {
    fn drop(&mut self) {
        // The other end may have done it.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Queue for Ringfire {
    const NAME: &'static str = "ringfire 0.5 (shared)";
    type Sender = File<ringfire::RingProducer<Packed>>;
    type Receiver = File<ringfire::RingConsumer<Packed>>;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/shm/peers-{}-{number}", std::process::id()));
        let producer = ringfire::RingProducerBuilder::new(capacity as u64)
            .flow_control(ringfire::FlowControl::LosslessBackpressure)
            .build(&path)
            .expect("some pages");
        let consumer = ringfire::RingConsumer::attach(&path).expect("a ring");
        (File { end: producer, path: path.clone() }, File { end: consumer, path })
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.end.try_push(&Packed(words)).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        receiver.end.try_recv().map(|packed| packed.0)
    }
}

/// crossbeam's array queue, of many ends, on the heap.
pub struct ArrayQueue<P>(PhantomData<P>);

impl<P: Payload> Queue for ArrayQueue<P> {
    const NAME: &'static str = "crossbeam ArrayQueue";
    type Sender = Arc<crossbeam_queue::ArrayQueue<P>>;
    type Receiver = Arc<crossbeam_queue::ArrayQueue<P>>;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        let queue = Arc::new(crossbeam_queue::ArrayQueue::new(capacity));
        (Arc::clone(&queue), queue)
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.push(P::of(words)).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        receiver.pop().map(|payload| payload.words())
    }
}

/// crossbeam's bounded channel, of many ends, on the heap.
pub struct Channel<P>(PhantomData<P>);

impl<P: Payload> Queue for Channel<P> {
    const NAME: &'static str = "crossbeam channel";
    type Sender = crossbeam_channel::Sender<P>;
    type Receiver = crossbeam_channel::Receiver<P>;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        crossbeam_channel::bounded(capacity)
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.try_send(P::of(words)).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        receiver.try_recv().ok().map(|payload| payload.words())
    }
}

/// The standard library's bounded channel, on the heap.
pub struct Std<P>(PhantomData<P>);

impl<P: Payload> Queue for Std<P> {
    const NAME: &'static str = "std sync_channel";
    type Sender = mpsc::SyncSender<P>;
    type Receiver = mpsc::Receiver<P>;

    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver) {
        mpsc::sync_channel(capacity)
    }

    #[inline(always)]
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool {
        sender.try_send(P::of(words)).is_ok()
    }

    #[inline(always)]
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]> {
        receiver.try_recv().ok().map(|payload| payload.words())
    }
}
