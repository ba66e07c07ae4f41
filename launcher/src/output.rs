//! Standard output whose reader may close it early (`launcher run | head`): the run continues, and
//! its exit code still reports how it ended.

use record::escape::{PrintableWriter, printable};
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};
use std::path::Path;

/// Sets the width of reports to that of the terminal, if stdout is one.
pub fn measure() {
    if let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size_of(io::stdout()) {
        analysis::report::set_width(columns.into());
    }
}

/// Standard output that ignores writes after its reader has closed it. Control characters in the
/// text are escaped, except for the reports' own colors.
pub struct Output<W: Write>(PrintableWriter<W>);

/// Locks standard output for a report.
pub fn stdout() -> Output<StdoutLock<'static>> {
    let out = io::stdout().lock();
    let has_colors = has_colors(&out);
    Output(PrintableWriter::new(out, has_colors))
}

/// Locks stdout for a command that ends when its reader closes it, with an error on a closed pipe.
pub fn stdout_while_read() -> PrintableWriter<StdoutLock<'static>> {
    PrintableWriter::new(io::stdout().lock(), false)
}

/// Returns the name of this program, for commands that it prints: the launcher with a user's parts
/// has another one.
pub fn program() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    Path::new(&program).file_name().map_or("launcher".into(), |name| name.to_string_lossy().into_owned())
}

/// Prints a warning to stderr with control characters escaped. Unlike `eprintln!` it does not panic
/// if stderr cannot be written, for example a file on a full disk.
pub fn complain(line: &str) {
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
