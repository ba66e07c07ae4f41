//! Measures a queue in each direction between two threads on two cores: round trips of one message,
//! and a stream of messages.

use system::clock::{Clock, Monotonic};
use system::floor::{self, wait};
use shm::memory::Region;
use std::sync::mpsc;

/// Batches that round trips are cut into: a preemption spoils one and not the median.
const BATCHES: u64 = 50;

/// A message: seven words, like bulkhead's.
pub trait Payload: Copy + Send + Sync + Default + 'static {
    /// The message's name in the table.
    const NAME: &'static str;
    fn of(words: [u64; 7]) -> Self;
    fn words(&self) -> [u64; 7];
}

/// A message of 56 bytes without padding.
#[derive(Clone, Copy, Default)]
pub struct Packed(pub [u64; 7]);

/// A message of 56 bytes, padded to a cache line of its own.
#[derive(Clone, Copy, Default)]
#[repr(align(64))]
pub struct Line(pub [u64; 7]);

impl Payload for Packed {
    const NAME: &'static str = "56 bytes";

    #[inline(always)]
    fn of(words: [u64; 7]) -> Self {
        Self(words)
    }

    #[inline(always)]
    fn words(&self) -> [u64; 7] {
        self.0
    }
}

impl Payload for Line {
    const NAME: &'static str = "a line";

    #[inline(always)]
    fn of(words: [u64; 7]) -> Self {
        Self(words)
    }

    #[inline(always)]
    fn words(&self) -> [u64; 7] {
        self.0
    }
}

/// A compared queue with one producer and one consumer. Neither end blocks.
pub trait Queue: Sized + 'static {
    const NAME: &'static str;
    type Sender: Send + 'static;
    type Receiver: Send + 'static;

    /// Creates both ends of a queue for at least `capacity` messages.
    fn pair(capacity: usize) -> (Self::Sender, Self::Receiver);
    /// Pushes a message; returns `true` if it fitted.
    fn push(sender: &mut Self::Sender, words: [u64; 7]) -> bool;
    fn pop(receiver: &mut Self::Receiver) -> Option<[u64; 7]>;
}

/// The job of the other thread, with a number of messages.
#[derive(Clone, Copy)]
enum Job {
    Floor,
    Echo,
    Stream,
}

/// A queue in each direction between two threads, for round trips.
pub struct Pair<Q: Queue> {
    sender: Q::Sender,
    receiver: Q::Receiver,
    orders: mpsc::Sender<(Job, u64)>,
    done: mpsc::Receiver<()>,
    line: shm::memory::AtomicWords,
}

/// The times measured of a pair of queues.
#[derive(Clone, Copy)]
pub struct Sample {
    /// Round trip of one line that the two cores bounce, in nanoseconds.
    pub floor_ns: f64,
    /// A message there and one back.
    pub trip_ns: f64,
    /// A message of a stream.
    pub stream_ns: f64,
}

#[inline(always)]
fn message(n: u64) -> [u64; 7] {
    core::array::from_fn(|word| n + word as u64)
}

#[inline(always)]
fn receive<Q: Queue>(receiver: &mut Q::Receiver) -> [u64; 7] {
    let mut got = None;
    wait(
        #[inline(always)]
        || {
            got = Q::pop(receiver);
            got.is_some()
        },
    );
    got.expect("waited for")
}

impl<Q: Queue> Pair<Q> {
    /// Creates both queues, with the other thread on core `core`.
    pub fn new(capacity: usize, core: u32) -> Self {
        let ((sender, mut theirs), (mut back, receiver)) = (Q::pair(capacity), Q::pair(capacity));
        let (orders, jobs) = mpsc::channel();
        let (says, done) = mpsc::channel();
        let line = Region::heap(16).words();
        let ours = line.clone();
        std::thread::spawn(move || {
            system::pin::pin_to(core).expect("an allowed core");
            for (job, count) in jobs {
                match job {
                    Job::Floor => floor::answer(&ours[0]),
                    Job::Echo => {
                        for _ in 0..count {
                            let words = receive::<Q>(&mut theirs);
                            wait(|| Q::push(&mut back, words));
                        }
                    }
                    Job::Stream => {
                        for n in 0..count {
                            let words = message(n);
                            wait(|| Q::push(&mut back, words));
                        }
                    }
                }
                let _ = says.send(());
            }
        });
        Self { sender, receiver, orders, done, line }
    }

    fn ask<R>(&mut self, job: Job, count: u64, ours: impl FnOnce(&mut Self) -> R) -> R {
        self.orders.send((job, count)).expect("the other thread waits");
        let result = ours(self);
        self.done.recv().expect("the other thread goes on");
        result
    }

    fn floor(&mut self, trips: u64) -> f64 {
        self.ask(Job::Floor, 0, |pair| {
            let round_trip = floor::measure(&pair.line[0], trips as u32);
            floor::stop_answering(&pair.line[0]);
            round_trip
        })
    }

    /// Measures one sample of a ring: round trips, and a stream of twenty times as many messages.
    /// `None` if the cores moved during it: the core-to-core round trips before and after differ by
    /// more than a tenth.
    pub fn sample(&mut self, trips: u64) -> Option<Sample> {
        let before = self.floor(trips);
        let each = trips.div_ceil(BATCHES);
        let trip_ns = self.ask(Job::Echo, each * BATCHES, |pair| {
            let mut batches = Vec::new();
            for batch in 0..BATCHES {
                let start = Monotonic.now();
                for n in 0..each {
                    let words = message(batch << 32 | n);
                    wait(|| Q::push(&mut pair.sender, words));
                    assert_eq!(receive::<Q>(&mut pair.receiver), words, "what comes back is what was sent");
                }
                batches.push((Monotonic.now() - start) as f64 / each as f64);
            }
            floor::median(batches)
        });
        let count = trips * 20;
        let stream_ns = self.ask(Job::Stream, count, |pair| {
            assert_eq!(receive::<Q>(&mut pair.receiver), message(0));
            let start = Monotonic.now();
            for n in 1..count {
                assert_eq!(receive::<Q>(&mut pair.receiver), message(n), "lost, doubled or torn");
            }
            (Monotonic.now() - start) as f64 / (count - 1) as f64
        });
        let after = self.floor(trips);
        let is_steady = (before - after).abs() <= 0.1 * before.min(after);
        is_steady.then_some(Sample { floor_ns: (before + after) / 2.0, trip_ns, stream_ns })
    }
}
