//! The terminal as the view has it: the alternate screen in raw mode, drawn line by line, and given
//! back as it was.

use super::styled_line::Line;
use crate::host::raw_mode;
use std::fmt::Write as _;
use std::io::{self, Write, stdout};
use terminal_size::{Height, Width, terminal_size_of};

/// To the alternate screen, and no cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
/// A cursor, and back to the screen that was there.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// The size of a terminal that does not tell it.
const SIZE: (usize, usize) = (80, 24);

/// The terminal, until this is dropped.
pub struct Screen;

impl Screen {
    /// Takes the terminal. A panic gives it back before it is told of.
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

    /// Draws lines from the top, as many as there are rows.
    pub fn draw(&self, lines: &[Line]) -> io::Result<()> {
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

/// Gives the terminal back. Where it is gone nothing can be given back, or said.
fn leave() {
    let _ = put(LEAVE);
    raw_mode::leave();
}

fn put(text: &str) -> io::Result<()> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
