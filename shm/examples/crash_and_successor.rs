//! A sender that is killed, and its successor: `cargo run -p bulkhead-shm --example
//! crash_and_successor`.
//!
//! The program starts itself again as a sender, kills it while it sends, sees that it is dead, and
//! starts a successor that resumes its end of the queue. The receiver is then replaced as well.

use shm::queue::{self, MessageQueue, ProducerState, Receiver};
use std::error::Error;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A message: number of the sender's incarnation, and number of the message.
type Tick = [u64; 2];

/// Messages received before the first sender is killed.
const FIRST_MESSAGES: u64 = 5_000;
/// Messages of the successor.
const MESSAGES: u64 = 20_000;

/// Sends `[incarnation, 0]`, `[incarnation, 1]` and so on; the first incarnation never ends.
fn send(name: &str, incarnation: u64) -> Result<(), Box<dyn Error>> {
    let mut queue = queue::open::<Tick>(name)?;
    let mut sender = if incarnation == 0 { queue.sender()? } else { queue.resume_sender(0)? };
    let messages = if incarnation == 0 { u64::MAX } else { MESSAGES };
    for n in 0..messages {
        while sender.push(&[incarnation, n]).is_err() {
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn start(name: &str, incarnation: u64) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command.arg(name).arg(incarnation.to_string()).stdin(Stdio::null()).spawn()?)
}

/// Receives message after message of an incarnation until `last`, or until the queue is empty for
/// 200 ms. Returns the number received.
fn receive(receiver: &mut Receiver<Tick>, from: Tick, last: u64) -> Result<u64, Box<dyn Error>> {
    let [incarnation, mut next] = from;
    while next < last {
        match receiver.pop_timeout(Duration::from_millis(200))? {
            Some(message) if message == [incarnation, next] => next += 1,
            Some(message) => return Err(format!("{message:?} instead of [{incarnation}, {next}]").into()),
            None => break,
        }
    }
    Ok(next)
}

fn receive_all(queue: &mut MessageQueue<Tick>, name: &str) -> Result<(), Box<dyn Error>> {
    let mut receiver = queue.receiver()?;
    let mut first = start(name, 0)?;
    let mut taken = 0;
    while taken < FIRST_MESSAGES {
        taken = receive(&mut receiver, [0, taken], FIRST_MESSAGES)?;
    }
    first.kill()?;
    first.wait()?;
    if !matches!(receiver.producers()?[..], [ProducerState::Dead { .. }]) {
        return Err("the kernel has released the lock of a killed process".into());
    }
    // Everything that it had pushed, and nothing that it had not.
    taken = receive(&mut receiver, [0, taken], u64::MAX)?;
    println!("the first sender was killed: {taken} messages, all of them received");

    let mut successor = start(name, 1)?;
    let mut half = 0;
    while half < MESSAGES / 2 {
        half = receive(&mut receiver, [1, half], MESSAGES / 2)?;
    }
    drop(receiver);
    let mut receiver = queue.receiver()?;
    let mut total = half;
    while total < MESSAGES {
        total = receive(&mut receiver, [1, total], MESSAGES)?;
    }
    println!("its successor: {total} messages, to two receivers one after the other");
    if !successor.wait()?.success() {
        return Err("the successor failed".into());
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [name, incarnation] = &arguments[..] {
        return send(name, incarnation.parse()?);
    }
    let name = format!("crash-and-successor-{}", std::process::id());
    receive_all(&mut queue::spsc::<Tick>(&name, 1024)?, &name)
}
