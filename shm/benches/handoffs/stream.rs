//! A one-way stream of 64-byte messages, as fast as both ends can: ours beside the crate rtrb.
//!
//! Each producer makes the message from its number; each consumer checks the number and folds all eight words, so that
//! both read and write every byte and neither side's work can be optimised away. Contestants alternate; a ratio is
//! that of two neighbouring samples.

use crate::Options;
use crate::peer::{Job, Peer, Peers, Rtrb};
use crate::report::{Goal, Report, Row};
use shm::clock::{Clock, Monotonic};
use shm::floor::wait;
use shm::ring::spsc::Producer;
use shm::wire::{MESSAGE_WORDS, Message};

/// Messages that are published together.
pub const BATCH: u64 = 64;

#[inline(always)]
fn message(n: u64) -> Message {
    core::array::from_fn(|word| n + word as u64)
}

/// What the words of a message with that number add up to.
#[inline(always)]
fn folded(n: u64) -> u64 {
    n * MESSAGE_WORDS as u64 + (MESSAGE_WORDS * (MESSAGE_WORDS - 1) / 2) as u64
}

/// Our producer, one by one.
pub fn push(producer: &mut Producer, count: u64) {
    for n in 0..count {
        let message = message(n);
        wait::<true>(|| producer.try_push(&message).is_ok());
    }
}

/// Our producer, publishing in batches.
pub fn push_batched(producer: &mut Producer, count: u64) {
    for n in 0..count {
        let message = message(n);
        wait::<true>(|| {
            // A full ring is shown at once: the consumer could not make room for what it does not see.
            producer.stage(&message).inspect_err(|_| producer.publish()).is_ok()
        });
        if n % BATCH == BATCH - 1 {
            producer.publish();
        }
    }
    producer.publish();
}

/// rtrb's producer, one by one.
pub fn push_rtrb(producer: &mut rtrb::Producer<Message>, count: u64) {
    for n in 0..count {
        let message = message(n);
        wait::<true>(|| producer.push(message).is_ok());
    }
}

/// rtrb's producer, writing chunks: its documented way to be fast.
pub fn push_rtrb_chunks(producer: &mut rtrb::Producer<Message>, count: u64) {
    for first in (0..count).step_by(BATCH as usize) {
        let n = BATCH.min(count - first);
        wait::<true>(|| match producer.write_chunk_uninit(n as usize) {
            Ok(chunk) => {
                chunk.fill_from_iter((first..first + n).map(message));
                true
            }
            Err(_) => false,
        });
    }
}

/// Receives `count` messages through `next` and checks them; million messages a second from the first to the last.
#[inline(always)]
fn rate(count: u64, mut next: impl FnMut() -> Message) -> f64 {
    let check = |n: u64, message: Message| {
        let sum = message.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
        assert!(message[0] == n && sum == folded(n), "message {n} arrived as {message:?}");
    };
    check(0, next());
    let start = Monotonic.now();
    for n in 1..count {
        check(n, next());
    }
    (count - 1) as f64 * 1e3 / (Monotonic.now() - start) as f64
}

fn ours(peer: &mut Peer, job: Job, count: u64) -> f64 {
    peer.job(job, count, |peer| {
        rate(count, || {
            let mut received = None;
            wait::<true>(|| {
                received = peer.consumer.try_pop().expect("an honest peer");
                received.is_some()
            });
            received.expect("waited for")
        })
    })
}

fn rtrb(rtrb: &mut Rtrb, job: Job, count: u64) -> f64 {
    rtrb.job(job, count, |rtrb| {
        rate(count, || {
            let mut received = None;
            wait::<true>(|| {
                received = rtrb.consumer.pop().ok();
                received.is_some()
            });
            received.expect("waited for")
        })
    })
}

/// rtrb with chunks on both sides.
fn rtrb_chunks(rtrb: &mut Rtrb, count: u64) -> f64 {
    rtrb.job(Job::PushBatched, count, |rtrb| {
        let (mut n, mut start) = (0, 0);
        while n < count {
            let available = rtrb.consumer.slots();
            if available == 0 {
                core::hint::spin_loop();
                continue;
            }
            let chunk = rtrb.consumer.read_chunk(available).expect("they were there");
            for message in chunk {
                let sum = message.iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
                assert!(message[0] == n && sum == folded(n), "message {n} arrived as {message:?}");
                n += 1;
            }
            if start == 0 {
                start = Monotonic.now();
            }
        }
        count as f64 * 1e3 / (Monotonic.now() - start) as f64
    })
}

/// Measures all of them in turn.
pub fn run(options: &Options, peers: &mut Peers, report: &mut Report) {
    let (samples, count) = if options.quick { (3, 10_000) } else { (100, 1 << 20) };
    let mut rates: [Vec<f64>; 6] = Default::default();
    for _ in 0..samples {
        let Peers { process, thread, rtrb: other } = &mut *peers;
        rates[0].push(ours(process, Job::Push, count));
        rates[1].push(rtrb(other, Job::Push, count));
        rates[2].push(ours(thread, Job::Push, count));
        rates[3].push(ours(process, Job::PushBatched, count));
        rates[4].push(ours(thread, Job::PushBatched, count));
        rates[5].push(rtrb_chunks(other, count));
    }
    let ratio = |a: usize, b: usize| rates[a].iter().zip(&rates[b]).map(|(a, b)| a / b).collect::<Vec<f64>>();
    let figures = [
        ("rtrb push and pop, between threads", 1, 1, Goal::None),
        ("ours, between processes", 0, 1, Goal::AtLeast(1.5)),
        ("ours, between threads", 2, 1, Goal::None),
        ("ours in batches of 64, between processes", 3, 1, Goal::AtLeast(4.0)),
        ("ours in batches of 64, between threads", 4, 1, Goal::None),
        ("rtrb chunks of 64, between threads", 5, 1, Goal::None),
        ("ours in batches of 64, between processes", 3, 5, Goal::None),
    ];
    let mut rows = Vec::new();
    for (what, which, over, goal) in figures {
        if over == 1 {
            rows.push(Row::new(what, "M/s", rates[which].clone(), Goal::None));
        }
        if over != which {
            let unit = if over == 1 { "× rtrb" } else { "× rtrb chunks" };
            rows.push(Row::new(if over == 1 { "" } else { what }, unit, ratio(which, over), goal));
        }
    }
    report
        .add("Stream of 64-byte messages (rtrb: its push and pop; its chunks are a row of their own)", rows);
}
