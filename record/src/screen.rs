//! The screen: its width, and a standard output that its reader may close early.
//!
//! In `launcher run | head` the run continues, and its exit code still reports how it ended.

use crate::escape::{PrintableWriter, printable};
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::path::Path;
use std::sync::OnceLock;

/// Default width of a report in columns, for files and pipes.
pub const DEFAULT_WIDTH: usize = 80;
/// Minimum and maximum width: longer lines are hard to read.
const BOUNDS: (usize, usize) = (60, 132);

static COLUMNS: OnceLock<usize> = OnceLock::new();

/// Sets the terminal's width in columns for all later reports. Only the first call has an effect.
pub fn set_width(columns: usize) {
    // Set already: the process has one terminal.
    let _ = COLUMNS.set(columns.clamp(BOUNDS.0, BOUNDS.1));
}

/// Returns the maximum width of a report's line in columns.
pub fn width() -> usize {
    COLUMNS.get().copied().unwrap_or(DEFAULT_WIDTH)
}

/// Sets the width of reports to that of the terminal, if stdout is one.
pub fn measure() {
    if let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size_of(io::stdout()) {
        set_width(columns.into());
    }
}

/// Standard output that ignores writes after its reader has closed it. Control characters in the
/// text are escaped, except for the reports' own colors.
pub struct Output<W: Write>(PrintableWriter<W>);

/// Locks standard output, and returns a writer that escapes control characters and ignores writes
/// after the reader closed it.
pub fn stdout() -> Output<StdoutLock<'static>> {
    let out = io::stdout().lock();
    let has_colors = has_colors(&out);
    Output(PrintableWriter::new(out, has_colors))
}

/// Locks standard output, and returns an escaping writer whose writes fail once the reader has
/// closed the pipe, so that the printing command can end.
pub fn stdout_while_read() -> PrintableWriter<StdoutLock<'static>> {
    PrintableWriter::new(io::stdout().lock(), false)
}

/// Returns the file name of this program, for commands that it prints: `launcher`, or the name of a
/// user's own build.
pub fn program() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    Path::new(&program).file_name().map_or("launcher".into(), |name| name.to_string_lossy().into_owned())
}

/// Prints a text and a line end to stderr; control characters other than newline and tab are
/// escaped. Unlike `eprintln!` it does not panic if stderr cannot be written, for example a file on
/// a full disk.
pub fn print_warning(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

/// Returns `true` if `out` is a terminal and colors are allowed.
fn has_colors(out: &impl IsTerminal) -> bool {
    out.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

impl Output<StdoutLock<'static>> {
    /// Returns `true` if standard output is a terminal and colors are allowed.
    pub fn has_colors(&self) -> bool {
        has_colors(self.0.inner())
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(bytes.len()),
            result => result,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Refuses(ErrorKind);

    impl Write for Refuses {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn closed_reader_is_ignored_and_full_disk_reported() {
        let output = |kind| Output(PrintableWriter::new(Refuses(kind), false));
        let mut gone = output(ErrorKind::BrokenPipe);
        writeln!(gone, "the plan").unwrap();
        gone.flush().unwrap();
        let mut full = output(ErrorKind::StorageFull);
        assert_eq!(writeln!(full, "the plan").unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
