//! The peer's loops: echo messages, swap a cache line, and send chunks.

use crate::flow::{BATCH, message};
use protocol::wire::Message;
use shm::ring::spsc::{Consumer, Producer};
use shm::sync::{AtomicU64, Ordering};
use system::floor::wait;
use techniques::element::LineMessage;

/// Echoes every message; the peer's side.
pub fn echo<const PAUSE: bool>(consumer: &mut Consumer, producer: &mut Producer, count: u64) {
    for _ in 0..count {
        let message = receive::<PAUSE>(consumer);
        wait::<PAUSE>(|| producer.try_push(&message).is_ok());
    }
}

/// Echoes every message through rtrb's rings.
pub fn echo_rtrb(
    consumer: &mut rtrb::Consumer<LineMessage>,
    producer: &mut rtrb::Producer<LineMessage>,
    count: u64,
) {
    for _ in 0..count {
        let message = receive_rtrb(consumer);
        wait::<true>(|| producer.push(message).is_ok());
    }
}

#[inline(always)]
pub fn receive<const PAUSE: bool>(consumer: &mut Consumer) -> Message {
    let mut received = None;
    wait::<PAUSE>(|| {
        received = consumer.try_pop().expect("an honest peer");
        received.is_some()
    });
    received.expect("waited for")
}

#[inline(always)]
pub fn receive_rtrb(consumer: &mut rtrb::Consumer<LineMessage>) -> LineMessage {
    let mut received = None;
    wait::<true>(|| {
        received = consumer.pop().ok();
        received.is_some()
    });
    received.expect("waited for")
}

/// One side of a cache line bounced by compare-and-swap, the round trip of the tool
/// core-to-core-latency. Each poll takes exclusive ownership of the line, so it is slower than
/// plain stores and loads.
pub fn swap(line: &AtomicU64, from: u64, to: u64) {
    wait::<false>(|| line.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok());
}

/// Sends through rtrb in chunks, its documented fast path. Chunks have at most half the ring: with
/// whole rings the two ends would wait for each other.
#[inline(never)]
pub fn send_chunks(producer: &mut rtrb::Producer<LineMessage>, count: u64) {
    let most = BATCH.min(producer.buffer().capacity() as u64 / 2).max(1);
    for first in (0..count).step_by(most as usize) {
        let n = most.min(count - first);
        wait::<true>(|| match producer.write_chunk_uninit(n as usize) {
            Ok(chunk) => {
                chunk.fill_from_iter((first..first + n).map(|n| LineMessage(message(n))));
                true
            }
            Err(_) => false,
        });
    }
}
