//! Reads keys from the terminal until it is closed or a signal comes.
//!

use crate::runtime::signals::Signals;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, stdin};
use std::os::fd::AsFd;
use std::time::Duration;

/// A key pressed in `launcher watch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    /// The Enter key.
    Enter,
    /// The Backspace key.
    Backspace,
    /// The Escape key.
    Escape,
    Up,
    Down,
    Interrupt,
    /// Any other key.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyInput {
    Keys(Vec<Key>),
    /// The terminal was closed.
    Closed,
}

/// Waits for keys, at most `at_most`, or until a signal comes or the terminal is closed.
pub fn read_keys(signals: &Signals, at_most: Duration) -> io::Result<KeyInput> {
    let stdin = stdin();
    let mut waits =
        [PollFd::new(stdin.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    // Rounded up: less than a millisecond would not wait.
    let at_most = at_most.as_millis().saturating_add(1).min(1_000) as u16;
    match poll(&mut waits, PollTimeout::from(at_most)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready = waits[0].revents().unwrap_or(PollFlags::empty());
    if ready.contains(PollFlags::POLLIN) {
        let mut bytes = [0; 256];
        return match nix::unistd::read(&stdin, &mut bytes) {
            Ok(0) | Err(Errno::EIO) => Ok(KeyInput::Closed),
            Ok(len) => Ok(KeyInput::Keys(keys_of(&bytes[..len]))),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(KeyInput::Keys(Vec::new())),
            Err(error) => Err(error.into()),
        };
    }
    let is_closed = ready.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL);
    Ok(if is_closed { KeyInput::Closed } else { KeyInput::Keys(Vec::new()) })
}

/// Parses the bytes of a terminal in raw mode.
fn keys_of(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        let (key, taken) = match first {
            0x03 => (Key::Interrupt, 1),
            b'\r' | b'\n' => (Key::Enter, 1),
            0x08 | 0x7F => (Key::Backspace, 1),
            b' '..=b'~' => (Key::Char(char::from(*first)), 1),
            0x1B if rest.is_empty() => (Key::Escape, 1),
            0x1B => {
                let (key, taken) = sequence(rest);
                (key, 1 + taken)
            }
            // A character beyond ASCII is one key, however many bytes it has.
            0xC0.. => {
                let more = rest.iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count();
                (Key::Other, 1 + more)
            }
            _ => (Key::Other, 1),
        };
        keys.push(key);
        bytes = &bytes[taken.min(bytes.len())..];
    }
    keys
}

/// Parses the rest of an escape sequence: `[A` or `OA` for an arrow, `[15~`, or a key with Alt.
/// Returns the key and the number of bytes.
fn sequence(rest: &[u8]) -> (Key, usize) {
    let is_final = |byte: &u8| (0x40..=0x7E).contains(byte);
    match rest {
        [b'[' | b'O', more @ ..] => {
            let last = more.iter().position(is_final);
            let key = match last.map(|at| more[at]) {
                Some(b'A') => Key::Up,
                Some(b'B') => Key::Down,
                _ => Key::Other,
            };
            (key, 1 + last.map_or(more.len(), |at| at + 1))
        }
        _ => (Key::Other, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_terminal_become_keys() {
        use Key::{Backspace, Char, Down, Enter, Escape, Interrupt, Other, Up};
        assert_eq!(keys_of(b"kK\x1b[A\x1bOB"), [Char('k'), Char('K'), Up, Down]);
        assert_eq!(keys_of(b"l9\x7f\r\x1b"), [Char('l'), Char('9'), Backspace, Enter, Escape]);
        assert_eq!(keys_of("\u{1b}[15~\u{1b}q\u{1b}[1;5Dé\0".as_bytes()), [Other; 5], "none of them quits");
        assert_eq!(keys_of(b"\x1b["), [Other]);
        assert_eq!(keys_of(b"\x03"), [Interrupt]);
    }

    #[test]
    fn no_bytes_are_too_odd_for_keys() {
        for first in 0..=255 {
            for second in 0..=255 {
                assert!(!keys_of(&[first, second, 0x1B]).is_empty());
            }
        }
    }
}
