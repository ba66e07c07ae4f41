//! A receiver in tokio's event loop: `cargo run -p bulkhead-shm --example tokio_consumer`.
//!
//! The program starts itself again as a sender. The receiver's file descriptor is registered with
//! [`AsyncFd`], so waiting for a message takes no thread and no polling.

use shm::queue::{self, MAX_WAIT, Message, Receiver};
use std::error::Error;
use std::process::Command;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

/// Number of messages.
const MESSAGES: u64 = 20_000;
/// Number of messages after which the sender pauses, so that the receiver has to wait.
const BURST: u64 = 500;

fn send(name: &str) -> Result<(), Box<dyn Error>> {
    let mut sender = queue::open::<u64>(name)?.sender()?;
    for n in 0..MESSAGES {
        if n % BURST == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        while sender.push(&n).is_err() {
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Returns the next message. Waits in the event loop, at most [`MAX_WAIT`] at a time: a sender that
/// is killed between its message and its wake-up leaves the message unannounced.
async fn receive<T: Message>(receiver: &mut AsyncFd<Receiver<T>>) -> Result<T, Box<dyn Error>> {
    loop {
        if let Some(message) = receiver.get_mut().pop()? {
            return Ok(message);
        }
        if receiver.get_mut().prepare_wait()
            && let Ok(ready) = timeout(MAX_WAIT, receiver.readable()).await
        {
            ready?.clear_ready();
        }
    }
}

async fn consume(receiver: Receiver<u64>) -> Result<(), Box<dyn Error>> {
    // SAFETY: the descriptor is the receiver's own, which has it open until it is dropped.
    let mut receiver = unsafe { AsyncFd::register_with_interest(receiver, Interest::READABLE) }?;
    for n in 0..MESSAGES {
        let message = timeout(Duration::from_secs(60), receive(&mut receiver)).await??;
        if message != n {
            return Err(format!("{message} instead of {n}").into());
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(name) = std::env::args().nth(1) {
        return send(&name);
    }
    let name = format!("tokio-consumer-{}", std::process::id());
    let mut queue = queue::spsc::<u64>(&name, 1024)?;
    let receiver = queue.receiver()?;
    let mut child = Command::new(std::env::current_exe()?).arg(&name).spawn()?;
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(consume(receiver))?;
    child.wait()?;
    println!("{MESSAGES} messages in tokio's event loop, in order");
    Ok(())
}
