//! A queue without a name, whose descriptors a child inherits: `cargo run -p bulkhead-shm --example
//! sealed`.
//!
//! No other process can open it, and nothing of it is left in `/dev/shm`, however the two end. A
//! process that is not a child gets the descriptors over a Unix socket (`SCM_RIGHTS`).

use shm::memory::sealed::{inherited_by, take_inherited};
use shm::queue;
use std::error::Error;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

/// Number of messages.
const MESSAGES: u64 = 100_000;

fn send(fds: [i32; 2]) -> Result<(), Box<dyn Error>> {
    let [memory, pipe] = fds.map(take_inherited);
    let mut sender = queue::from_fds::<u64>([memory?, pipe?])?.sender()?;
    for n in 0..MESSAGES {
        while sender.push(&n).is_err() {
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [memory, pipe] = &arguments[..] {
        return send([memory.parse()?, pipe.parse()?]);
    }
    let mut queue = queue::sealed::<u64>(1, 1024)?;
    let mut receiver = queue.receiver()?;
    let fds = queue.fds().ok_or("a sealed queue has descriptors")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(fds.map(|fd| fd.as_raw_fd().to_string()));
    let mut child = inherited_by(&fds, || command.spawn())?;
    let mut next = 0;
    while next < MESSAGES {
        match receiver.pop_timeout(Duration::from_millis(100))? {
            Some(message) if message == next => next += 1,
            Some(message) => return Err(format!("{message} instead of {next}").into()),
            None => match child.try_wait()? {
                Some(status) if !status.success() => return Err(format!("the sender: {status}").into()),
                _ => {}
            },
        }
    }
    child.wait()?;
    println!("{MESSAGES} messages through memory without a name, in order");
    Ok(())
}
