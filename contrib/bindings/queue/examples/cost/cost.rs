//! The cost of a push and a pop from Rust: see contrib/bindings/queue/cost.sh and cost.c.
//! `cost MESSAGES BYTES [one-thread]`.

use shm::queue::{self, Message, Receiver, Sender};
use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

type Result<T = ()> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Messages in the queue of a receiver that is behind.
const BEHIND: u64 = 512;

/// A message with a number in its first word.
trait Numbered: Message + Copy + Send {
    fn numbered(number: u64) -> Self;
    fn set_number(&mut self, number: u64);
    fn is_numbered(&self, number: u64) -> bool;
}

impl Numbered for [u32; 1] {
    fn numbered(number: u64) -> Self {
        [number as u32]
    }

    fn set_number(&mut self, number: u64) {
        self[0] = number as u32;
    }

    fn is_numbered(&self, number: u64) -> bool {
        self[0] == number as u32
    }
}

impl<const W: usize> Numbered for [u64; W]
where
    [u64; W]: Message,
{
    fn numbered(number: u64) -> Self {
        [number; W]
    }

    fn set_number(&mut self, number: u64) {
        self[0] = number;
    }

    fn is_numbered(&self, number: u64) -> bool {
        self[0] == number
    }
}

fn check<T: Numbered>(received: &T, number: u64) -> Result {
    if black_box(received).is_numbered(number) { Ok(()) } else { Err("another message arrived".into()) }
}

/// The receiver takes each message before the next one is pushed.
#[inline(never)]
fn push_and_pop<T: Numbered>(sender: &mut Sender<T>, receiver: &mut Receiver<T>, count: u64) -> Result {
    let mut sent = T::numbered(0);
    for number in 0..count {
        sent.set_number(number);
        sender.push(black_box(&sent))?;
        check(&receiver.pop()?.ok_or("a message was pushed")?, number)?;
    }
    Ok(())
}

/// The receiver finds many messages each time.
#[inline(never)]
fn push_then_pop<T: Numbered>(sender: &mut Sender<T>, receiver: &mut Receiver<T>, count: u64) -> Result {
    let mut sent = T::numbered(0);
    for first in (0..count).step_by(BEHIND as usize) {
        for number in first..first + BEHIND {
            sent.set_number(number);
            sender.push(black_box(&sent))?;
        }
        for number in first..first + BEHIND {
            check(&receiver.pop()?.ok_or("a message was pushed")?, number)?;
        }
    }
    Ok(())
}

fn push_all<T: Numbered>(sender: &mut Sender<T>, count: u64) {
    let mut sent = T::numbered(0);
    for number in 0..count {
        sent.set_number(number);
        while sender.push(black_box(&sent)).is_err() {}
    }
}

fn pop_next<T: Numbered>(receiver: &mut Receiver<T>) -> Result<T> {
    loop {
        if let Some(received) = receiver.pop()? {
            return Ok(received);
        }
    }
}

fn stream<T: Numbered>(sender: &mut Sender<T>, receiver: &mut Receiver<T>, count: u64) -> Result {
    std::thread::scope(|scope| {
        scope.spawn(|| push_all(sender, count));
        (0..count).try_for_each(|number| check(&pop_next(receiver)?, number))
    })
}

fn measure<T: Numbered>(count: u64, one_thread: bool) -> Result {
    let mut queue = queue::sealed::<T>(1, 1024)?;
    let (mut sender, mut receiver) = (queue.sender()?, queue.receiver()?);
    let print =
        |start: Instant, count: u64| print!("{:.2} ", start.elapsed().as_nanos() as f64 / count as f64);
    let start = Instant::now();
    push_and_pop(&mut sender, &mut receiver, count)?;
    print(start, count);
    let start = Instant::now();
    push_then_pop(&mut sender, &mut receiver, count)?;
    print(start, count.next_multiple_of(BEHIND));
    if !one_thread {
        let start = Instant::now();
        stream(&mut sender, &mut receiver, count)?;
        print(start, count);
        let mut back = queue::sealed::<T>(1, 1024)?;
        let (mut answer, mut answered) = (back.sender()?, back.receiver()?);
        let echoes = count / 8;
        let start = Instant::now();
        std::thread::scope(|scope| {
            let echo = scope.spawn(|| -> Result {
                for _ in 0..echoes {
                    let received = pop_next(&mut receiver)?;
                    answer.push(black_box(&received))?;
                }
                Ok(())
            });
            for number in 0..echoes {
                sender.push(black_box(&T::numbered(number)))?;
                check(&pop_next(&mut answered)?, number)?;
            }
            echo.join().expect("it does not panic")
        })?;
        print(start, echoes);
    }
    println!();
    Ok(())
}

fn main() -> Result {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [count, bytes, rest @ ..] = &words[..] else { return Err("cost MESSAGES BYTES [one-thread]".into()) };
    let (count, one_thread) = (count.parse()?, !rest.is_empty());
    match bytes.as_str() {
        "4" => measure::<[u32; 1]>(count, one_thread),
        "8" => measure::<[u64; 1]>(count, one_thread),
        "24" => measure::<[u64; 3]>(count, one_thread),
        "56" => measure::<[u64; 7]>(count, one_thread),
        "64" => measure::<[u64; 8]>(count, one_thread),
        "256" => measure::<[u64; 32]>(count, one_thread),
        "1000" => measure::<[u64; 125]>(count, one_thread),
        _ => Err("bytes of a message: 4, 8, 24, 56, 64, 256 or 1000".into()),
    }
}
