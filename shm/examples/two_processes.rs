//! Two processes and one queue between them, without a run: `cargo run -p shm --example
//! two_processes`.
//!
//! The program creates a queue by name, starts itself again as the producer, and takes what that
//! one sends. Each ends if the other one does: a queue says nothing about its peers.

use shm::queue::Queue;
use shm::ring::Consumer;
use shm::ring::array_queue::ArrayQueue;
use std::error::Error;
use std::os::unix::process::parent_id;
use std::process::Command;

/// How many messages go across.
const MESSAGES: u64 = 100_000;

fn produce(name: &str) -> Result<(), Box<dyn Error>> {
    let consumer = parent_id();
    let mut producer = Queue::<ArrayQueue>::open(name)?.producer(0)?;
    for n in 0..MESSAGES {
        while producer.try_push(&[n; 7]).is_err() {
            if parent_id() != consumer {
                return Err("the consumer is gone".into());
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(name) = std::env::args().nth(1) {
        return produce(&name);
    }
    let name = format!("two-processes-{}", std::process::id());
    let mut queue = Queue::<ArrayQueue>::create(&name, 1, 1024)?;
    let mut consumer = queue.consumer()?;
    let mut child = Command::new(std::env::current_exe()?).arg(&name).spawn()?;
    let mut next = 0;
    while next < MESSAGES {
        match consumer.try_pop() {
            Some((_, message)) if message == [next; 7] => next += 1,
            Some((_, message)) => return Err(format!("{message:?} came instead of {next}").into()),
            None => match child.try_wait()? {
                // What it had sent before its end may have come since we looked.
                Some(status) if !status.success() => return Err(format!("the producer: {status}").into()),
                _ => std::thread::yield_now(),
            },
        }
    }
    child.wait()?;
    println!(
        "{MESSAGES} messages came from process {} to {}, whole and in order",
        child.id(),
        std::process::id()
    );
    Ok(())
}
