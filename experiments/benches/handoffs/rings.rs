//! The two rings that are compared, as carriers: ours and that of the crate rtrb, with a message of
//! 56 bytes.
//!
//! Our ring has its sequence next to the seven words, rtrb's messages are aligned to cache lines,
//! so each message has its own line. Messages are built and checked in place.

use crate::flow::{BATCH, Pop, Push, Rate, check, message};
use shm::ring::{Message, spsc};
use system::floor::wait;
use techniques::heap::LineMessage;

impl Push for spsc::Producer {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        self.try_push(message).is_ok()
    }

    fn send_batches(&mut self, count: u64) {
        send_in_place(self, count);
    }
}

impl Pop for spsc::Consumer {
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        self.try_pop().expect("an honest peer")
    }

    #[inline(always)]
    fn drain(&mut self, each: impl FnMut(Message)) -> usize {
        spsc::Consumer::drain(self, BATCH as usize, each).expect("an honest peer")
    }
}

impl Push for rtrb::Producer<LineMessage> {
    #[inline(always)]
    fn try_send(&mut self, message: &Message) -> bool {
        rtrb::Producer::push(self, LineMessage(*message)).is_ok()
    }

    fn send(&mut self, count: u64) {
        send_lines(self, count);
    }

    fn send_batches(&mut self, count: u64) {
        send_chunks(self, count);
    }
}

impl Pop for rtrb::Consumer<LineMessage> {
    #[inline(always)]
    fn pop(&mut self) -> Option<Message> {
        rtrb::Consumer::pop(self).ok().map(|line| line.0)
    }

    fn take(&mut self, count: u64) -> f64 {
        take_lines(self, count)
    }

    #[inline(always)]
    fn drain(&mut self, mut each: impl FnMut(Message)) -> usize {
        let there = self.slots();
        let Ok(chunk) = self.read_chunk(there) else { return 0 };
        chunk.into_iter().for_each(|line| each(line.0));
        there
    }
}

#[inline(never)]
fn send_lines(producer: &mut rtrb::Producer<LineMessage>, count: u64) {
    for n in 0..count {
        wait(|| producer.push(LineMessage(message(n))).is_ok());
    }
}

#[inline(never)]
fn send_in_place(producer: &mut spsc::Producer, count: u64) {
    let mut n = 0;
    while n < count {
        let most = BATCH.min(count - n) as u32;
        wait(|| {
            let pushed = producer.try_push_iter((0..most).map(|place| message(n + u64::from(place))));
            n += pushed as u64;
            pushed > 0
        });
    }
}

/// Receives through rtrb one by one, each message checked in place: with the generic loop it was a
/// third slower in some builds.
#[inline(never)]
fn take_lines(consumer: &mut rtrb::Consumer<LineMessage>, count: u64) -> f64 {
    let (mut rate, mut n) = (None, 0);
    while n < count {
        wait(
            #[inline(always)]
            || {
                let Ok(line) = consumer.pop() else { return false };
                check(n, &line.0);
                true
            },
        );
        rate.get_or_insert_with(Rate::start);
        n += 1;
    }
    rate.map_or(f64::NAN, |rate| rate.million_per_second(count - 1))
}

/// Sends through rtrb in chunks, its documented fast path. Chunks have at most half the ring: with
/// whole rings the two ends would wait for each other.
#[inline(never)]
fn send_chunks(producer: &mut rtrb::Producer<LineMessage>, count: u64) {
    let most = BATCH.min(producer.buffer().capacity() as u64 / 2).max(1);
    for first in (0..count).step_by(most as usize) {
        let n = most.min(count - first);
        wait(|| match producer.write_chunk_uninit(n as usize) {
            Ok(chunk) => {
                chunk.fill_from_iter((first..first + n).map(|n| LineMessage(message(n))));
                true
            }
            Err(_) => false,
        });
    }
}
