//! What the other end does with its rings: it echoes, swaps a line, and sends chunks.

use crate::flow::{BATCH, message};
use protocol::wire::Message;
use shm::ring::spsc::{Consumer, Producer};
use shm::sync::{AtomicU64, Ordering};
use system::floor::wait;
use techniques::element::LineMessage;

/// The peer's side: sends every message back.
pub fn echo<const PAUSE: bool>(consumer: &mut Consumer, producer: &mut Producer, count: u64) {
    for _ in 0..count {
        let message = receive::<PAUSE>(consumer);
        wait::<PAUSE>(|| producer.try_push(&message).is_ok());
    }
}

/// The same with rtrb.
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

/// One side of the line bounced by compare-and-swap: what the tool core-to-core-latency calls a
/// round trip. Each look claims the line for itself, so it is slower than a line that is only
/// stored to and loaded.
pub fn swap(line: &AtomicU64, from: u64, to: u64) {
    wait::<false>(|| line.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok());
}

/// rtrb's producer, writing chunks: its documented way to be fast. Of half the ring at most: with
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
