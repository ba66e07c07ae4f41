//! A stream one way: the loops of both sides, the same ones for whatever carries it.
//!
//! A message is seven words that the producer makes from its number; the consumer checks all of
//! them, one after the other, so that both sides read and write every byte and neither one's work
//! can be optimised away. Each loop is a function of its own that is never inlined, so that its
//! instructions do not depend on what else its caller does.

use shm::ring::Message;
use system::clock::{Clock, Monotonic};
use system::floor::wait;

/// Messages in a batch, and in a chunk of rtrb's.
pub const BATCH: u64 = 64;

/// A sending end.
pub trait Push: Send + 'static {
    fn push(&mut self, message: &Message) -> bool;
    /// Puts in the first ones of these; how many.
    fn push_many(&mut self, messages: &[Message]) -> usize {
        messages.iter().take_while(|message| self.push(message)).count()
    }
    /// Puts that many in, one by one.
    fn send(&mut self, count: u64)
    where
        Self: Sized,
    {
        send(self, count);
    }
    /// Puts that many in, in the way in which it does so in batches best.
    fn send_batches(&mut self, count: u64)
    where
        Self: Sized,
    {
        send_batches(self, count);
    }
}

/// A receiving end.
pub trait Pop: Send + 'static {
    fn pop(&mut self) -> Option<Message>;
    /// Takes and checks that many, one by one; million messages a second.
    fn take(&mut self, count: u64) -> f64
    where
        Self: Sized,
    {
        take(self, count)
    }
    /// Takes what is there; how many.
    fn drain(&mut self, mut each: impl FnMut(Message)) -> usize {
        self.pop().map_or(0, |message| {
            each(message);
            1
        })
    }
}

/// The next message, waited for.
#[inline(always)]
pub fn receive(consumer: &mut impl Pop) -> Message {
    let mut got = None;
    wait::<true>(
        #[inline(always)]
        || {
            got = consumer.pop();
            got.is_some()
        },
    );
    got.expect("waited for")
}

#[inline(always)]
pub fn message(n: u64) -> Message {
    core::array::from_fn(|word| n + word as u64)
}

/// Checks every word, one after the other, as a user reads the fields of an order.
#[inline(always)]
pub fn check(n: u64, message: &Message) {
    for (word, value) in message.iter().enumerate() {
        assert_eq!(*value, n + word as u64, "message {n} is lost or torn");
    }
}

/// Million messages a second, from the first message to the last.
pub struct Rate {
    start_ns: u64,
}

impl Rate {
    pub fn start() -> Self {
        Self { start_ns: Monotonic.now() }
    }

    pub fn of(&self, count: u64) -> f64 {
        count as f64 * 1e3 / (Monotonic.now() - self.start_ns) as f64
    }
}

/// Puts that many in, one by one.
#[inline(never)]
pub fn send(producer: &mut impl Push, count: u64) {
    for n in 0..count {
        let message = message(n);
        wait::<true>(|| producer.push(&message));
    }
}

/// Puts that many in, in batches.
#[inline(never)]
pub fn send_batches(producer: &mut impl Push, count: u64) {
    let mut n = 0;
    while n < count {
        let batch: [Message; BATCH as usize] = core::array::from_fn(|place| message(n + place as u64));
        let mut rest = &batch[..BATCH.min(count - n) as usize];
        n += rest.len() as u64;
        wait::<true>(|| {
            let pushed = producer.push_many(rest);
            rest = &rest[pushed..];
            rest.is_empty()
        });
    }
}

/// Takes and checks that many, one by one.
#[inline(never)]
pub fn take(consumer: &mut impl Pop, count: u64) -> f64 {
    check(0, &receive(consumer));
    let rate = Rate::start();
    for n in 1..count {
        check(n, &receive(consumer));
    }
    rate.of(count - 1)
}

/// Takes and checks that many, all that is there at a time.
#[inline(never)]
pub fn take_batches(consumer: &mut impl Pop, count: u64) -> f64 {
    check(0, &receive(consumer));
    let (rate, mut n) = (Rate::start(), 1);
    while n < count {
        wait::<true>(
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
    rate.of(count - 1)
}
