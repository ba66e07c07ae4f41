//! One-way streams: the loops of both sides, generic over the carrier.
//!
//! A message is seven words that the producer makes from its number; the consumer checks all of
//! them, so that both sides access every byte and no work can be optimized away. Each loop is a
//! function that is never inlined, so that its instructions do not depend on its caller.

use shm::ring::Message;
use system::clock::{Clock, Monotonic};
use system::floor::wait;

/// Number of messages per batch of the stream, and per chunk of rtrb.
pub const BATCH: u64 = 64;

/// The sending end of a benchmarked stream of messages.
pub trait Push: Send + 'static {
    fn try_send(&mut self, message: &Message) -> bool;
    /// Pushes as many of the messages as fit. Returns their number.
    fn push_many(&mut self, messages: &[Message]) -> usize {
        messages.iter().take_while(|message| self.try_send(message)).count()
    }
    fn send(&mut self, count: u64)
    where
        Self: Sized,
    {
        send(self, count);
    }
    /// Pushes `count` messages in batches, by the carrier's fastest method.
    fn send_batches(&mut self, count: u64)
    where
        Self: Sized,
    {
        send_batches(self, count);
    }
}

/// The receiving end of a benchmarked stream of messages.
pub trait Pop: Send + 'static {
    fn pop(&mut self) -> Option<Message>;
    /// Receives and checks `count` messages one by one. Returns the rate in million messages per
    /// second.
    fn take(&mut self, count: u64) -> f64
    where
        Self: Sized,
    {
        take(self, count)
    }
    /// Receives the available messages. Returns their number.
    fn drain(&mut self, mut each: impl FnMut(Message)) -> usize {
        self.pop().map_or(0, |message| {
            each(message);
            1
        })
    }
}

/// Waits for the next message of the stream and returns it.
#[inline(always)]
pub fn receive(consumer: &mut impl Pop) -> Message {
    let mut got = None;
    wait(
        #[inline(always)]
        || {
            got = consumer.pop();
            got.is_some()
        },
    );
    got.expect("waited for")
}

/// Returns the words of message number `n`.
#[inline(always)]
pub fn message(n: u64) -> Message {
    core::array::from_fn(|word| n + word as u64)
}

/// Checks every word of message number `n` in turn, as a user reads the fields of an order.
#[inline(always)]
pub fn check(n: u64, message: &Message) {
    for (word, value) in message.iter().enumerate() {
        assert_eq!(*value, n + word as u64, "message {n} is lost or torn");
    }
}

/// A timer for a rate in million messages per second, from the first message to the last.
pub struct Rate {
    start_ns: u64,
}

impl Rate {
    /// Starts the timer of a rate at the present time.
    pub fn start() -> Self {
        Self { start_ns: Monotonic.now() }
    }

    /// Returns the rate of `count` messages since the start, in million messages per second.
    pub fn million_per_second(&self, count: u64) -> f64 {
        count as f64 * 1e3 / (Monotonic.now() - self.start_ns) as f64
    }
}

/// Sends `count` messages one by one.
#[inline(never)]
pub fn send(producer: &mut impl Push, count: u64) {
    for n in 0..count {
        let message = message(n);
        wait(|| producer.try_send(&message));
    }
}

/// Sends `count` messages in batches of [`BATCH`].
#[inline(never)]
pub fn send_batches(producer: &mut impl Push, count: u64) {
    let mut n = 0;
    while n < count {
        let batch: [Message; BATCH as usize] = core::array::from_fn(|place| message(n + place as u64));
        let mut rest = &batch[..BATCH.min(count - n) as usize];
        n += rest.len() as u64;
        wait(|| {
            let pushed = producer.push_many(rest);
            rest = &rest[pushed..];
            rest.is_empty()
        });
    }
}

/// Receives and checks `count` messages one by one, and returns the rate in million messages per
/// second.
#[inline(never)]
pub fn take(consumer: &mut impl Pop, count: u64) -> f64 {
    check(0, &receive(consumer));
    let rate = Rate::start();
    for n in 1..count {
        check(n, &receive(consumer));
    }
    rate.million_per_second(count - 1)
}

/// Receives and checks `count` messages, all available ones at a time, and returns the rate in
/// million messages per second.
#[inline(never)]
pub fn take_batches(consumer: &mut impl Pop, count: u64) -> f64 {
    check(0, &receive(consumer));
    let (rate, mut n) = (Rate::start(), 1);
    while n < count {
        wait(
            #[inline(always)]
            || {
                consumer.drain(
                    #[inline(always)]
                    |message| {
                        check(n, &message);
                        n += 1;
                    },
                ) > 0
            },
        );
    }
    rate.million_per_second(count - 1)
}
