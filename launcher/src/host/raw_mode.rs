//! The terminal's raw mode: each key is delivered immediately, without echo and without a meaning
//! for the kernel.

use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use std::io::{self, stdin};
use std::sync::Mutex;

/// The previous settings; `None` if the mode is not raw.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Puts the terminal at stdin into raw mode.
///
/// # Errors
/// Stdin is not a terminal.
pub fn enter() -> io::Result<()> {
    let before = tcgetattr(stdin())?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    tcsetattr(stdin(), SetArg::TCSANOW, &raw)?;
    if let Ok(mut kept) = BEFORE.lock() {
        kept.get_or_insert(before);
    }
    Ok(())
}

/// Restores the terminal's settings after raw mode. Does nothing if it was not in raw mode, or is
/// gone.
pub fn leave() {
    let before = BEFORE.lock().ok().and_then(|mut kept| kept.take());
    if let Some(before) = before {
        let _ = tcsetattr(stdin(), SetArg::TCSANOW, &before);
    }
}
