//! Enters the alternate screen in raw mode, draws frames line by line, and restores the terminal on
//! drop.

use super::styled_line::StyledLine;
use crate::host::raw_mode;
use std::fmt::Write as _;
use std::io::{self, Write, stdout};
use terminal_size::{Height, Width, terminal_size_of};

/// Switches to the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// Shows the cursor and returns to the main screen.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// Default size of a terminal of unknown size.
const SIZE: (usize, usize) = (80, 24);

/// The terminal while `launcher watch` draws on it; restored on drop.
pub struct Screen;

impl Screen {
    /// Switches the terminal to the alternate screen and raw input. A panic restores the terminal
    /// before its message is printed.
    pub fn open() -> io::Result<Self> {
        raw_mode::enter()?;
        let screen = Self;
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            leave();
            tell(panic);
        }));
        put(ENTER)?;
        Ok(screen)
    }

    pub fn size(&self) -> (usize, usize) {
        terminal_size_of(stdout())
            .map_or(SIZE, |(Width(columns), Height(rows))| (columns.into(), rows.into()))
    }

    /// Draws lines on the terminal from the top, up to its number of rows.
    pub fn draw(&self, lines: &[StyledLine]) -> io::Result<()> {
        let mut text = String::new();
        for (row, line) in (1..).zip(lines) {
            // Cleared first: a line that ends in the last column would lose it otherwise.
            let _ = write!(text, "\x1b[{row};1H\x1b[0m\x1b[2K");
            for (part, style) in &line.parts {
                text += style.sequence();
                text += part;
            }
        }
        put(&text)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

/// Restores the terminal; ignores errors, since it may be gone.
fn leave() {
    let _ = put(LEAVE);
    raw_mode::leave();
}

fn put(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
