//! Two processes and one queue between them: `cargo run -p bulkhead-shm --example two_processes`.
//!
//! The program creates a queue, starts itself again as the sender, and receives its messages. It
//! waits asleep, and stops if the sender dies.

use shm::queue;
use std::error::Error;
use std::process::Command;
use std::time::Duration;
use zerocopy::{FromBytes, Immutable, IntoBytes};

/// Number of messages.
const MESSAGES: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Trade {
    sequence: u64,
    price: u64,
    quantity: u64,
}

fn trade(sequence: u64) -> Trade {
    Trade { sequence, price: 100 + sequence % 7, quantity: 1 + sequence % 3 }
}

fn send(name: &str) -> Result<(), Box<dyn Error>> {
    let mut sender = queue::open::<Trade>(name)?.sender()?;
    for sequence in 0..MESSAGES {
        while sender.push(&trade(sequence)).is_err() {
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(name) = std::env::args().nth(1) {
        return send(&name);
    }
    let name = format!("two-processes-{}", std::process::id());
    let mut queue = queue::spsc::<Trade>(&name, 1024)?;
    let mut receiver = queue.receiver()?;
    let mut child = Command::new(std::env::current_exe()?).arg(&name).spawn()?;
    for sequence in 0..MESSAGES {
        loop {
            match receiver.pop_timeout(Duration::from_millis(100))? {
                Some(message) if message == trade(sequence) => break,
                Some(message) => return Err(format!("{message:?} instead of trade {sequence}").into()),
                None => match child.try_wait()? {
                    Some(status) if !status.success() => return Err(format!("the sender: {status}").into()),
                    _ => {}
                },
            }
        }
    }
    child.wait()?;
    println!("{MESSAGES} trades from process {} to {}, in order", child.id(), std::process::id());
    Ok(())
}
