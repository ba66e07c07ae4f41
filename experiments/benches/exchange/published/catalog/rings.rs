//! The ring next to the standard library's channel, between two threads and on one.

use super::super::harness::subject::{Case, Counts, Figure, Group, Subject, Unit};
use shm::ring::spsc::{Consumer, Producer, heap_ring};
use std::hint::{black_box, spin_loop};
use std::marker::PhantomData;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::Instant;

const CAPACITY: usize = 8_192;
const RING: &str = "push and pop one by one, with the threads' start and end. A slot of our ring is a cache \
                    line of 64 bytes, for 56 bytes of message, with a sequence each, so that it can be taken \
                    over after a crash; theirs packs eight u64 into a line";
const CHANNEL: &str = "std::sync::mpsc, measured here as there: with Rust's version of the day";
const SPEEDUP: &str = "the faster of both uses of std::sync::mpsc divided by the ring, sample by sample";

/// What travels.
trait Payload: Send + 'static {
    fn new(n: u64) -> Self;
    fn into_message(self) -> [u64; 7];
    /// Returns its number.
    fn number(&self) -> u64;
}

impl Payload for u64 {
    fn new(n: u64) -> Self {
        n
    }

    fn into_message(self) -> [u64; 7] {
        [self, 0, 0, 0, 0, 0, 0]
    }

    fn number(&self) -> u64 {
        *self
    }
}

/// An order as their ring carries it: 48 bytes.
struct Order([u64; 6]);

impl Payload for Order {
    fn new(n: u64) -> Self {
        Order([n, n % 100, n % 2, 10_000 + n % 500, n % 1_000 + 1, n * 1_000])
    }

    fn into_message(self) -> [u64; 7] {
        let [id, trader, side, price, quantity, time] = self.0;
        [id, trader, side, price, quantity, time, 0]
    }

    fn number(&self) -> u64 {
        self.0[0]
    }
}

pub fn groups(scaled: impl Fn(u64) -> u64) -> Vec<Group> {
    let count = scaled(1_000_000);
    let figures = |names: [&'static str; 4], [ring, receive, try_receive, speedup]: [f64; 4]| {
        let time = |name, theirs, remark| Figure::new(name, theirs, Unit::Milliseconds, remark);
        vec![
            time(names[0], ring, RING),
            time(names[1], receive, CHANNEL).reference(),
            time(names[2], try_receive, CHANNEL).reference(),
            Figure::new(names[3], speedup, Unit::Times, SPEEDUP),
        ]
    };
    let words = [
        "u64 / 1M: SPSC ring",
        "u64 / 1M: mpsc (recv)",
        "u64 / 1M: mpsc (try_recv spin)",
        "u64 / 1M: speedup",
    ];
    let orders = [
        "Order (48B) / 1M: SPSC ring",
        "Order (48B) / 1M: mpsc (recv)",
        "Order (48B) / 1M: mpsc try_recv",
        "Order (48B) / 1M: speedup",
    ];
    vec![
        Group {
            figures: figures(words, [1.85, 16.35, 20.04, 8.8]),
            subject: Box::new(Race::<u64> { count, payload: PhantomData }),
        },
        Group {
            figures: figures(orders, [5.51, 20.03, 24.10, 3.6]),
            subject: Box::new(Race::<Order> { count, payload: PhantomData }),
        },
        alternating(count),
    ]
}

/// The same messages through the ring and through the channel.
struct Race<T> {
    count: u64,
    payload: PhantomData<T>,
}

impl<T: Payload> Race<T> {
    /// Sends all messages through the ring. Returns the sum of their numbers.
    fn ring(&self) -> u64 {
        let count = self.count;
        let (mut producer, mut consumer) = heap_ring::<7>(CAPACITY);
        let sender = thread::spawn(move || {
            for n in 0..count {
                let message = T::new(n).into_message();
                while producer.try_push(&message).is_err() {
                    spin_loop();
                }
            }
        });
        let mut sum = 0;
        for _ in 0..count {
            let message = loop {
                match consumer.try_pop().expect("an honest producer") {
                    Some(message) => break message,
                    None => spin_loop(),
                }
            };
            sum += black_box(message)[0];
        }
        sender.join().expect("it has sent all");
        sum
    }

    /// Sends all messages through the channel. Returns the sum of their numbers.
    fn channel(&self, receive: impl Fn(&Receiver<T>) -> T) -> u64 {
        let count = self.count;
        let (sender, receiver) = channel::<T>();
        let sender = thread::spawn(move || {
            (0..count).for_each(|n| sender.send(T::new(n)).expect("the receiver is alive"));
        });
        let sum = (0..count).map(|_| black_box(receive(&receiver)).number()).sum();
        sender.join().expect("it has sent all");
        sum
    }

    fn block(receiver: &Receiver<T>) -> T {
        receiver.recv().expect("one more")
    }

    fn spin(receiver: &Receiver<T>) -> T {
        loop {
            match receiver.try_recv() {
                Ok(message) => return message,
                Err(TryRecvError::Empty) => spin_loop(),
                Err(TryRecvError::Disconnected) => panic!("one more"),
            }
        }
    }
}

impl<T: Payload> Subject for Race<T> {
    fn sample(&mut self) -> Vec<f64> {
        let time = |run: &dyn Fn() -> u64| {
            let started = Instant::now();
            black_box(run());
            started.elapsed().as_secs_f64() * 1e3
        };
        let ring = time(&|| self.ring());
        let receive = time(&|| self.channel(Self::block));
        let try_receive = time(&|| self.channel(Self::spin));
        vec![ring, receive, try_receive, receive.min(try_receive) / ring]
    }

    fn count(&mut self) -> Counts {
        Counts::from([
            ("sum of the ring", self.ring()),
            ("sum of recv", self.channel(Self::block)),
            ("sum of try_recv", self.channel(Self::spin)),
        ])
    }
}

fn alternating(count: u64) -> Group {
    let remark = "a u64 pushed and popped on one thread; the message has 56 bytes here, 8 there";
    let figure = Figure::new("push_pop_alternating", 2.11, Unit::Nanoseconds, remark);
    let run = move |(producer, consumer, sum): &mut (Producer<7>, Consumer<7>, u64)| {
        for n in 0..count {
            producer.try_push(&n.into_message()).expect("room for one");
            *sum += black_box(consumer.try_pop().expect("an honest producer").expect("one message"))[0];
        }
    };
    let prepare = || {
        let (producer, consumer) = heap_ring::<7>(1_024);
        (producer, consumer, 0)
    };
    let count_all = |(_, _, sum)| Counts::from([("sum", sum)]);
    let operations = count as usize;
    Group::timed(figure, Case { batch: 1, operations, prepare, run, drop_is_timed: false, count: count_all })
}
