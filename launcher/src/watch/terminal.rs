//! What a user types, read from the terminal until it is closed.
//!
//! crossterm's own reader is not used: of a terminal that was closed it reads nothing for ever, and no signal ends that.

use crate::runtime::signals::Signals;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::io::{self, stdin};
use std::os::fd::AsFd;
use std::time::Duration;

/// What the terminal gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Typed {
    /// Keys, perhaps none.
    Keys(Vec<KeyEvent>),
    /// The terminal was closed: nothing comes any more.
    Closed,
}

/// Waits so long, but no longer than until a key is pressed, a signal comes or the terminal is closed.
///
/// # Errors
/// What the system refused.
pub fn typed(signals: &Signals, at_most: Duration) -> io::Result<Typed> {
    let stdin = stdin();
    let mut waits =
        [PollFd::new(stdin.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
    // Rounded up: a wait of less than a millisecond would be none.
    let at_most = at_most.as_millis().saturating_add(1).min(1_000) as u16;
    match poll(&mut waits, PollTimeout::from(at_most)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready = waits[0].revents().unwrap_or(PollFlags::empty());
    if ready.contains(PollFlags::POLLIN) {
        let mut bytes = [0; 256];
        return match nix::unistd::read(&stdin, &mut bytes) {
            Ok(0) | Err(Errno::EIO) => Ok(Typed::Closed),
            Ok(len) => Ok(Typed::Keys(keys_of(&bytes[..len]))),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(Typed::Keys(Vec::new())),
            Err(error) => Err(error.into()),
        };
    }
    let is_closed = ready.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL);
    Ok(if is_closed { Typed::Closed } else { Typed::Keys(Vec::new()) })
}

/// The keys that a terminal in raw mode sends as these bytes; `KeyCode::Null` for each that has no meaning here.
fn keys_of(mut bytes: &[u8]) -> Vec<KeyEvent> {
    let mut keys = Vec::new();
    while let Some((first, rest)) = bytes.split_first() {
        let (code, modifiers, taken) = match first {
            0x03 => (KeyCode::Char('c'), KeyModifiers::CONTROL, 1),
            b'\r' | b'\n' => (KeyCode::Enter, KeyModifiers::NONE, 1),
            0x08 | 0x7F => (KeyCode::Backspace, KeyModifiers::NONE, 1),
            b' '..=b'~' => (KeyCode::Char(char::from(*first)), KeyModifiers::NONE, 1),
            0x1B if rest.is_empty() => (KeyCode::Esc, KeyModifiers::NONE, 1),
            0x1B => {
                let (code, taken) = sequence(rest);
                (code, KeyModifiers::NONE, 1 + taken)
            }
            // A character beyond ASCII is one key, however many bytes it has.
            0xC0.. => {
                let more = rest.iter().take_while(|byte| (0x80..0xC0).contains(*byte)).count();
                (KeyCode::Null, KeyModifiers::NONE, 1 + more)
            }
            _ => (KeyCode::Null, KeyModifiers::NONE, 1),
        };
        keys.push(KeyEvent::new(code, modifiers));
        bytes = &bytes[taken.min(bytes.len())..];
    }
    keys
}

/// What follows an escape: `[A` or `OA` for an arrow, `[15~`, or a key with Alt. How many bytes it has.
fn sequence(rest: &[u8]) -> (KeyCode, usize) {
    let is_final = |byte: &u8| (0x40..=0x7E).contains(byte);
    match rest {
        [b'[' | b'O', more @ ..] => {
            let last = more.iter().position(is_final);
            let code = match last.map(|at| more[at]) {
                Some(b'A') => KeyCode::Up,
                Some(b'B') => KeyCode::Down,
                _ => KeyCode::Null,
            };
            (code, 1 + last.map_or(more.len(), |at| at + 1))
        }
        _ => (KeyCode::Null, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_a_terminal_become_keys() {
        let codes = |bytes: &[u8]| keys_of(bytes).into_iter().map(|key| key.code).collect::<Vec<_>>();
        use KeyCode::{Backspace, Char, Down, Enter, Esc, Null, Up};
        assert_eq!(codes(b"kK\x1b[A\x1bOB"), [Char('k'), Char('K'), Up, Down]);
        assert_eq!(codes(b"l9\x7f\r\x1b"), [Char('l'), Char('9'), Backspace, Enter, Esc]);
        assert_eq!(codes("\u{1b}[15~\u{1b}q\u{1b}[1;5Dé\0".as_bytes()), [Null; 5], "none of them quits");
        assert_eq!(codes(b"\x1b["), [Null]);
        let end = keys_of(b"\x03");
        assert_eq!((end[0].code, end[0].modifiers), (Char('c'), KeyModifiers::CONTROL));
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
