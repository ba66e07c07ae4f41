//! A producer that is killed, and its successor, without a run: `cargo run -p techniques --example
//! successor [TECHNIQUE]`.
//!
//! The program creates a queue and starts itself again as its producer, several times: each
//! producer but the last is killed while it pushes. What a producer had pushed comes out once,
//! whole and in order, and its successor goes on in its place. Each producer counts its pushes on a
//! board, which outlives it, so that the count can be checked.

use shm::board::{self, BoardShape, NamedWriter};
use shm::queue::Queue;
use shm::ring::{Consumer, Link, Producer};
use std::error::Error;
use std::os::unix::process::parent_id;
use std::process::Command;
use std::time::{Duration, Instant};
use techniques::Technique;
use techniques::with_link;

/// Producers, one after the other.
const PRODUCERS: u64 = 4;
/// Messages of each; the killed ones do not get so far.
const MESSAGES: u64 = 100_000;
/// Messages after which a producer is killed.
const LIFE: u64 = 5_000;
/// Nothing takes so long unless something is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// The producer's process: pushes `[number, 0]`, `[number, 1]` and so on.
pub fn produce<T: Link>(name: &str, number: u64) -> Result<(), Box<dyn Error>> {
    let consumer = parent_id();
    // What the killed predecessor has left of its board is removed.
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
    // The board is read once more.
    count.leave();
    Ok(())
}

/// The messages that came of one producer: their number, if each is the next one.
fn check(taken: u64, number: u64, message: [u64; 7]) -> Result<u64, Box<dyn Error>> {
    let due = [number, taken, !taken, number, taken, !taken, number];
    if message == due { Ok(taken + 1) } else { Err(format!("{message:?} came instead of {due:?}").into()) }
}

/// The consumer's process. `start` is how it starts the producer of that number.
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
        // Its end is made ready for a successor. What it had pushed comes out meanwhile, or
        // directly after.
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
        // It may have died between a push and its count.
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
