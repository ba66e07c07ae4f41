//! A process with one end of a transport, which executes commands from its standard input.
//!
//! ```text
//! push N      sends N messages                 → pushed ACCEPTED [error]
//! fill        sends until the ring is full     → pushed ACCEPTED [error]
//! drain       takes until nothing comes        → popped SENDER:NUMBER … [error]
//! take N      takes at most N messages         → popped SENDER:NUMBER … [error]
//! poll MS     takes for that long              → popped SENDER:NUMBER … [error]
//! step        one push or pop between traps    → stepped
//! exit        drops its end                    → bye
//! ```
//!
//! `?` stands for a message that no sender has made.

use crate::messages::{CAPACITY, Message, decode, message};
use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

/// Pauses of a receiver that finds nothing, before it reports that.
const LOOKS: usize = 3;

/// Stops for the tracer, which counts these points.
#[inline(always)]
fn trap() {
    // SAFETY: the tracer, which requested it, continues after the instruction.
    unsafe { core::arch::asm!("int3") };
}

fn print_line(line: &str) {
    // The tracer may be gone, which ends this process with the next command.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Carries out each command; the end is dropped at the last one.
fn serve<T>(attached: Result<T, String>, mut command: impl FnMut(&mut T, &str, u64) -> String) {
    let mut end = match attached {
        Ok(end) => end,
        Err(error) => return print_line(&format!("refused {error}")),
    };
    print_line("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (word, number) = line.split_once(' ').unwrap_or((&line, "0"));
        if word == "exit" {
            break;
        }
        print_line(&command(&mut end, word, number.parse().unwrap_or(0)));
    }
    drop(end);
    print_line("bye");
}

pub fn sender<S>(
    attached: Result<S, String>,
    push: impl Fn(&mut S, &Message) -> Result<bool, String>,
    id: u64,
) {
    let mut next = 0;
    serve(attached, |sender, word, number| {
        if word == "step" {
            let message = message(id, next);
            trap();
            let _ = push(sender, &message);
            trap();
            return "stepped".into();
        }
        let first = next;
        let count = if word == "fill" { 4 * CAPACITY as u64 } else { number };
        while next < first + count {
            match push(sender, &message(id, next)) {
                Ok(true) => next += 1,
                Ok(false) => break,
                Err(error) => return format!("pushed {} {error}", next - first),
            }
        }
        format!("pushed {}", next - first)
    });
}

pub fn receiver<R>(attached: Result<R, String>, pop: impl Fn(&mut R) -> Result<Option<Message>, String>) {
    serve(attached, |receiver, word, number| {
        if word == "step" {
            trap();
            let _ = pop(receiver);
            trap();
            return "stepped".into();
        }
        let mut line = String::from("popped");
        let end = Instant::now() + Duration::from_millis(if word == "poll" { number } else { 0 });
        let limit = if word == "take" { number as usize } else { 16 * CAPACITY };
        let (mut looks, mut taken) = (0, 0);
        while taken < limit && (looks < LOOKS || (word == "poll" && Instant::now() < end)) {
            match pop(receiver) {
                Ok(Some(found)) => {
                    taken += 1;
                    match decode(&found) {
                        Some((sender, number)) => line += &format!(" {sender}:{number}"),
                        None => line += " ?",
                    }
                }
                Ok(None) => {
                    looks += 1;
                    std::thread::sleep(Duration::from_micros(50));
                }
                Err(error) => return format!("{line} {error}").replace('\n', " "),
            }
        }
        line
    });
}
