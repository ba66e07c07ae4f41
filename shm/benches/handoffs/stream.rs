//! A one-way stream of 56-byte messages, as fast as both ends can: ours beside the crate rtrb.
//!
//! A message is seven words of the user's in a line of its own: ours has its sequence beside them, rtrb's is aligned to the
//! line. Each producer makes the message from its number; each consumer checks all words, so that both read and write
//! every byte and neither side's work can be optimised away. Contestants alternate; a ratio is that of two neighbouring
//! samples.

use crate::Options;
use crate::peer::{Job, Peer, Peers, Rtrb};
use crate::report::{BenchReport, FigureRow, Goal};
use shm::clock::{Clock, Monotonic};
use shm::floor::wait;
use shm::ring::element::LineMessage;
use shm::ring::spsc::Producer;

/// Messages in a chunk of rtrb's.
pub const BATCH: u64 = 64;

#[inline(always)]
pub fn message<const N: usize>(n: u64) -> [u64; N] {
    core::array::from_fn(|word| n + word as u64)
}

/// Checks every word, one after the other, as a user reads the fields of an order.
#[inline(always)]
pub fn check<const N: usize>(n: u64, message: &[u64; N]) {
    for (word, value) in message.iter().enumerate() {
        assert_eq!(*value, n + word as u64, "message {n} is lost or torn");
    }
}

/// Our producer, one by one.
pub fn push(producer: &mut Producer, count: u64) {
    for n in 0..count {
        let message = message(n);
        wait::<true>(|| producer.try_push(&message).is_ok());
    }
}

/// rtrb's producer, one by one.
pub fn push_rtrb(producer: &mut rtrb::Producer<LineMessage>, count: u64) {
    for n in 0..count {
        let message = LineMessage(message(n));
        wait::<true>(|| producer.push(message).is_ok());
    }
}

/// rtrb's producer, writing chunks: its documented way to be fast.
pub fn push_rtrb_chunks(producer: &mut rtrb::Producer<LineMessage>, count: u64) {
    for first in (0..count).step_by(BATCH as usize) {
        let n = BATCH.min(count - first);
        wait::<true>(|| match producer.write_chunk_uninit(n as usize) {
            Ok(chunk) => {
                chunk.fill_from_iter((first..first + n).map(|n| LineMessage(message(n))));
                true
            }
            Err(_) => false,
        });
    }
}

/// Million messages a second, from the first message to the last.
struct Rate {
    start_ns: u64,
}

impl Rate {
    fn start() -> Self {
        Self { start_ns: Monotonic.now() }
    }

    fn of(&self, count: u64) -> f64 {
        count as f64 * 1e3 / (Monotonic.now() - self.start_ns) as f64
    }
}

/// Receives and checks that many messages, one by one.
#[inline(always)]
fn receive<const N: usize>(count: u64, mut try_pop: impl FnMut() -> Option<[u64; N]>) -> f64 {
    let mut rate = Rate::start();
    let mut n = 0;
    while n < count {
        let mut received = None;
        wait::<true>(
            #[inline(always)]
            || {
                received = try_pop();
                received.is_some()
            },
        );
        let Some(message) = received else { continue };
        check(n, &message);
        if n == 0 {
            rate = Rate::start();
        }
        n += 1;
    }
    rate.of(count - 1)
}

fn ours(peer: &mut Peer, count: u64) -> f64 {
    peer.job(Job::Push, count, |peer| {
        receive(
            count,
            #[inline(always)]
            || peer.consumer.try_pop().expect("an honest peer"),
        )
    })
}

fn rtrb(rtrb: &mut Rtrb, count: u64) -> f64 {
    rtrb.job(Job::Push, count, |rtrb| {
        receive(
            count,
            #[inline(always)]
            || rtrb.consumer.pop().ok().map(|line| line.0),
        )
    })
}

/// rtrb with chunks on both sides: all that is there at a time.
fn rtrb_chunks(rtrb: &mut Rtrb, count: u64) -> f64 {
    rtrb.job(Job::PushChunks, count, |rtrb| {
        let mut rate = None;
        let mut n = 0;
        while n < count {
            let mut available = 0;
            wait::<true>(|| {
                available = rtrb.consumer.slots();
                available > 0
            });
            for message in rtrb.consumer.read_chunk(available).expect("they were there") {
                check(n, &message.0);
                n += 1;
            }
            rate.get_or_insert_with(|| (Rate::start(), n));
        }
        let (rate, first) = rate.expect("at least one chunk");
        rate.of(count - first)
    })
}

/// Measures all of them in turn.
pub fn run(options: &Options, peers: &mut Peers, report: &mut BenchReport) {
    let (samples, count) = options.effort(100, 10_000, 1 << 20);
    let mut rates: [Vec<f64>; 4] = Default::default();
    for _ in 0..samples {
        let Peers { process, thread, rtrb: other } = &mut *peers;
        rates[0].push(ours(process, count));
        rates[1].push(rtrb(other, count));
        rates[2].push(ours(thread, count));
        rates[3].push(rtrb_chunks(other, count));
    }
    let ratio = |a: usize, b: usize| rates[a].iter().zip(&rates[b]).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let figures = [
        ("rtrb push and pop, threads", 1, 1, Goal::None),
        ("ours, processes", 0, 1, Goal::AtLeast(4.0)),
        ("ours, threads", 2, 1, Goal::None),
        ("rtrb chunks of 64, threads", 3, 1, Goal::None),
        ("ours, processes", 0, 3, Goal::None),
    ];
    let mut rows = Vec::new();
    for (what, which, over, goal) in figures {
        if over == 1 {
            rows.push(FigureRow::new(what, "M/s", rates[which].clone(), Goal::None));
        }
        if over != which {
            let unit = if over == 1 { "× rtrb" } else { "× rtrb chunks" };
            rows.push(FigureRow::new(if over == 1 { "" } else { what }, unit, ratio(which, over), goal));
        }
    }
    report
        .add("Stream of 56-byte messages (rtrb: its push and pop; its chunks are a row of their own)", rows);
}
