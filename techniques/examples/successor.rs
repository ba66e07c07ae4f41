//! Replaces killed producers of a queue, without a run: `cargo run -p techniques --example
//! successor [TECHNIQUE]`.
//!
//! The program creates a queue and starts itself several times as its producer; each producer
//! except the last is killed while it pushes. The pushed messages of each producer arrive once,
//! whole and in order, and its successor continues. Each producer counts its pushes on a board,
//! which survives it, so that the count can be checked.

use shm::board::{self, BoardShape, NamedWriter};
use shm::queue::Queue;
use shm::ring::{Consumer, Link, Producer};
use std::error::Error;
use std::os::unix::process::parent_id;
use std::process::Command;
use std::time::{Duration, Instant};
use techniques::Technique;
use techniques::with_link;

/// Number of producers, one after the other.
const PRODUCERS: u64 = 4;
/// Messages per producer; killed producers send fewer.
const MESSAGES: u64 = 100_000;
/// Messages after which a producer is killed.
const LIFE: u64 = 5_000;
/// Timeout: the program is stuck if a producer takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs the producer's process: pushes `[number, 0]`, `[number, 1]` and so on.
pub fn produce<T: Link>(name: &str, number: u64) -> Result<(), Box<dyn Error>> {
    let consumer = parent_id();
    // The board of a killed predecessor is removed.
    let mut count = NamedWriter::create(name, BoardShape::with_cells(1, 1)?)?;
    let mut producer = Queue::<T>::open(name)?.producer(0)?;
    for n in 0..MESSAGES {
        while producer.try_push(&[number, n, !n, number, n, !n, number]).is_err() {
            if parent_id() != consumer {
                return Err("the consumer is gone".into());
            }
            std::thread::yield_now();
        }
        count.write(0, 0, &[n + 1]);
    }
    // The board is kept: the consumer reads it once more.
    count.leave();
    Ok(())
}

/// Checks that a message is the next one of its producer. Returns the number of messages so far.
fn check(taken: u64, number: u64, message: [u64; 7]) -> Result<u64, Box<dyn Error>> {
    let due = [number, taken, !taken, number, taken, !taken, number];
    if message == due { Ok(taken + 1) } else { Err(format!("{message:?} came instead of {due:?}").into()) }
}

/// Runs the consumer's process. `start` makes the command of a producer by its number.
pub fn consume<T: Link>(name: &str, start: impl Fn(u64) -> Command) -> Result<(), Box<dyn Error>> {
    let mut queue = Queue::<T>::create(name, 1, 1024)?;
    let mut consumer = queue.consumer()?;
    for number in 0..PRODUCERS {
        let mut child = start(number).spawn()?;
        let (mut taken, begun, mut ended) = (0, Instant::now(), None);
        while ended.is_none() {
            match consumer.try_pop() {
                Some((_, message)) => taken = check(taken, number, message)?,
                None => std::thread::yield_now(),
            }
            if number + 1 < PRODUCERS && taken == LIFE {
                child.kill()?;
            }
            if begun.elapsed() > PATIENCE {
                child.kill()?;
                return Err("nothing comes any more".into());
            }
            // Reaped: from here on its death is certain.
            ended = child.try_wait()?;
        }
        // Its end is prepared for a successor. Its pushed messages arrive during that, or directly
        // after it.
        while !queue.renew(0, &mut consumer)? {
            if let Some((_, message)) = consumer.try_pop() {
                taken = check(taken, number, message)?;
            }
        }
        while let Some((_, message)) = consumer.try_pop() {
            taken = check(taken, number, message)?;
        }
        let mut pushed = [0];
        board::Reader::open(name)?.read(0, &mut pushed)?;
        let [pushed] = pushed;
        // The producer may have died between a push and its count.
        if !(pushed..=pushed + 1).contains(&taken) || consumer.take_fault().is_some() {
            return Err(format!("producer {number} pushed {pushed} messages, {taken} came").into());
        }
        println!("producer {number} ({}): {pushed} pushed, {taken} came", ended.expect("it has ended"));
    }
    // Removes the board, which the last producer has left.
    drop(NamedWriter::succeed(name)?);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let technique = args.first().map_or("spsc-mux", String::as_str);
    let technique = Technique::from_name(technique)
        .filter(|technique| technique.crosses_processes())
        .ok_or("no such technique")?;
    if let [_, name, number] = args.as_slice() {
        return with_link!(technique, T => produce::<T>(name, number.parse()?));
    }
    let name = format!("successor-{}", std::process::id());
    let this = std::env::current_exe()?;
    let start = |number: u64| {
        let mut command = Command::new(&this);
        command.args([technique.name(), &name, &number.to_string()]);
        command
    };
    with_link!(technique, T => consume::<T>(&name, start))
}
