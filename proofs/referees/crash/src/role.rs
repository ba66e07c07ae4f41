//! A process with one end of a transport, which executes commands from its standard input. It
//! prints `gate` when it has started, and attaches its end after the line `go`.
//!
//! ```text
//! go          attaches between traps          → ready, or refused REASON
//! push N      sends N messages                → pushed ACCEPTED [error]
//! fill        sends until the ring is full    → pushed ACCEPTED [error]
//! drain       takes until nothing comes       → popped SENDER:NUMBER … [error]
//! take N      takes at most N messages        → popped SENDER:NUMBER … [error]
//! poll MS     takes for that long             → popped SENDER:NUMBER … [error]
//! step        one push or pop between traps   → stepped
//! drop        drops its end between traps     → dropped
//! exit        drops its end                   → bye
//! ```
//!
//! `marked` in front of `go` and `drop` asks for the traps. `?` stands for a message that no sender
//! has made. Programs in other languages speak the same: `external/README.md`.

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

fn marked<T>(is_marked: bool, action: impl FnOnce() -> T) -> T {
    if is_marked {
        trap();
    }
    let result = action();
    if is_marked {
        trap();
    }
    result
}

/// Attaches at the gate and carries out each command; the end is dropped at the last one.
fn serve<T>(attach: impl Fn() -> Result<T, String>, mut command: impl FnMut(&mut T, &str, u64) -> String) {
    print_line("gate");
    let mut end = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let (line, is_marked) = match line.strip_prefix("marked ") {
            Some(rest) => (rest, true),
            None => (&*line, false),
        };
        let (word, number) = line.split_once(' ').unwrap_or((line, "0"));
        match (word, &mut end) {
            ("go", _) => match marked(is_marked, &attach) {
                Ok(attached) => {
                    end = Some(attached);
                    print_line("ready");
                }
                Err(error) => return print_line(&format!("refused {error}").replace('\n', " ")),
            },
            ("exit", _) => break,
            ("drop", _) => {
                let dropped = end.take();
                marked(is_marked, || drop(dropped));
                print_line("dropped");
            }
            (_, Some(end)) => print_line(&command(end, word, number.parse().unwrap_or(0))),
            (_, None) => print_line("not attached"),
        }
    }
    drop(end);
    print_line("bye");
}

pub fn sender<S>(
    attach: impl Fn() -> Result<S, String>,
    push: impl Fn(&mut S, &Message) -> Result<bool, String>,
    id: u64,
) {
    let mut next = 0;
    serve(attach, |sender, word, number| {
        if word == "step" {
            let message = message(id, next);
            let _ = marked(true, || push(sender, &message));
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

pub fn receiver<R>(
    attach: impl Fn() -> Result<R, String>,
    pop: impl Fn(&mut R) -> Result<Option<Message>, String>,
) {
    serve(attach, |receiver, word, number| {
        if word == "step" {
            let _ = marked(true, || pop(receiver));
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
