//! The compared queues: bulkhead's ring and those of other crates.

use crate::Contestant;
use crate::pair::{Line, Payload, Words};
use disruptor::{BusySpin, Producer as _};
use shm::memory::Region;
use shm::ring::{MESSAGE_WORDS, spsc};
use shm::sync::{AtomicU64, Ordering};
use std::path::PathBuf;
use std::sync::{Arc, mpsc};

/// bulkhead's ring in mapped memory, as two processes share it.
pub fn bulkhead(capacity: usize, core: u32) -> Contestant {
    let ends = move || {
        let region = Region::memfd("peers-ring", spsc::ring_words(capacity, MESSAGE_WORDS));
        let words = region.expect("some pages").words();
        spsc::write_header::<MESSAGE_WORDS>(&words, capacity);
        let consumer = spsc::Consumer::attach(&words).expect("a fresh ring has a good header");
        (spsc::Producer::attach(&words).expect("a fresh ring has a good header"), consumer)
    };
    Contestant::new(
        ("bulkhead spsc (shared)", Line::NAME, core),
        ends,
        #[inline(always)]
        |end: &mut spsc::Producer, words| end.try_push(&words).is_ok(),
        #[inline(always)]
        |end| end.try_pop().expect("an honest peer"),
    )
}

/// All queues that take any type, with messages of type `P`.
pub fn of_any<P: Payload>(capacity: usize, core: u32) -> [Contestant; 6] {
    [
        Contestant::new(
            ("rtrb 0.4", P::NAME, core),
            move || rtrb::RingBuffer::new(capacity),
            #[inline(always)]
            |end, words| end.push(P::from(words)).is_ok(),
            #[inline(always)]
            |end| end.pop().ok().map(P::into),
        ),
        Contestant::new(
            ("disruptor 4", P::NAME, core),
            move || {
                let builder = disruptor::build_single_producer(capacity, P::default, BusySpin);
                let (poller, builder) = builder.new_event_poller();
                (builder.build(), poller)
            },
            #[inline(always)]
            |end, words| end.try_publish(|event| *event = P::from(words)).is_ok(),
            #[inline(always)]
            |end| {
                let mut events = end.take(1).ok()?;
                let event: &P = (&mut events).next()?;
                Some((*event).into())
            },
        ),
        // In a file under /dev/shm, as two processes share it.
        Contestant::new(
            ("shaq (shared)", P::NAME, core),
            move || shaq::spsc::pair(capacity).expect("some pages"),
            #[inline(always)]
            |end, words| end.try_write(P::from(words)).is_ok(),
            #[inline(always)]
            |end| end.try_read().map(P::into),
        ),
        Contestant::new(
            ("crossbeam ArrayQueue", P::NAME, core),
            move || {
                let queue = Arc::new(crossbeam_queue::ArrayQueue::new(capacity));
                (Arc::clone(&queue), queue)
            },
            #[inline(always)]
            |end, words| end.push(P::from(words)).is_ok(),
            #[inline(always)]
            |end| end.pop().map(P::into),
        ),
        Contestant::new(
            ("crossbeam channel", P::NAME, core),
            move || crossbeam_channel::bounded(capacity),
            #[inline(always)]
            |end, words| end.try_send(P::from(words)).is_ok(),
            #[inline(always)]
            |end| end.try_recv().ok().map(P::into),
        ),
        Contestant::new(
            ("std sync_channel", P::NAME, core),
            move || mpsc::sync_channel(capacity),
            #[inline(always)]
            |end, words| end.try_send(P::from(words)).is_ok(),
            #[inline(always)]
            |end| end.try_recv().ok().map(P::into),
        ),
    ]
}

/// A queue's end with the file that holds the queue.
struct File<T> {
    end: T,
    path: PathBuf,
}

impl<T> Drop for File<T> {
    fn drop(&mut self) {
        // The other end may have done it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The crate ringfire: its ring of one writer in a file under /dev/shm, without loss, with one
/// reader.
pub fn ringfire(capacity: usize, core: u32) -> Contestant {
    let ends = move || {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("/dev/shm/peers-{}-{number}", std::process::id()));
        let builder = ringfire::RingProducerBuilder::new(capacity as u64);
        let builder = builder.flow_control(ringfire::FlowControl::LosslessBackpressure);
        let producer = builder.build(&path).expect("some pages");
        let consumer = ringfire::RingConsumer::<Words>::attach(&path).expect("a ring");
        (File { end: producer, path: path.clone() }, File { end: consumer, path })
    };
    Contestant::new(
        ("ringfire 0.5 (shared)", Words::NAME, core),
        ends,
        #[inline(always)]
        |file, words| file.end.try_push(&words).is_ok(),
        #[inline(always)]
        |file| file.end.try_recv(),
    )
}

/// The crate tachyon-ipc: a byte ring in memory that is passed over a socket, as between two
/// processes. Its receiving end blocks; here it spins for as long as nothing is there.
#[cfg(feature = "tachyon")]
pub fn tachyon(capacity: usize, core: u32) -> Contestant {
    use tachyon_ipc::Bus;
    /// Bytes that a message takes in the ring: its header and itself, each a line.
    const MESSAGE_BYTES: usize = 128;
    let ends = move || {
        let folder = tempfile::tempdir().expect("a folder for the socket");
        let path = folder.path().join("bus").to_str().expect("a path of letters").to_owned();
        std::thread::scope(|scope| {
            let listens = scope.spawn(|| Bus::listen(&path, capacity * MESSAGE_BYTES).expect("some pages"));
            let connects = loop {
                match Bus::connect(&path) {
                    Ok(bus) => break bus,
                    // Nobody listens yet.
                    Err(_) => std::thread::sleep(std::time::Duration::from_millis(1)),
                }
            };
            let listened = listens.join().expect("it does not panic");
            listened.set_polling_mode(1);
            connects.set_polling_mode(1);
            (connects, listened)
        })
    };
    Contestant::new(
        ("tachyon-ipc 0.5 (shared)", Line::NAME, core),
        ends,
        #[inline(always)]
        |end: &mut Bus, words| {
            let Ok(mut slot) = end.acquire_tx(56) else { return false };
            // SAFETY: the 56 bytes that were asked for.
            let place = unsafe { slot.as_mut_slice() };
            for (bytes, word) in place.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            slot.commit(56, 1).is_ok()
        },
        #[inline(always)]
        |end| {
            let slot = end.acquire_rx(u32::MAX).expect("a peer that lives");
            let mut words = [0; 7];
            for (word, bytes) in words.iter_mut().zip(slot.data().chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().expect("eight"));
            }
            slot.commit().expect("a peer that lives");
            Some(words)
        },
    )
}
