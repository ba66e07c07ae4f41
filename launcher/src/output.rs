//! Standard output that may be closed early (`launcher run | head`). Whoever reads it may stop
//! reading (`launcher run | head`): the run is not lost then, and its exit code says how it ended.

use analysis::escape::{PrintableWriter, printable};
use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};

/// Tells the reports how wide the terminal is that they go to, if they do.
pub fn measure() {
    if let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size_of(io::stdout()) {
        analysis::report::set_width(columns.into());
    }
}

/// Stdout, or nothing once its reader has gone. No text that it is given is obeyed by a terminal,
/// but for the reports' own colours.
pub struct Output<W: Write>(PrintableWriter<W>);

/// Stdout, locked.
pub fn stdout() -> Output<StdoutLock<'static>> {
    let out = io::stdout().lock();
    let colours = is_coloured(&out);
    Output(PrintableWriter::new(out, colours))
}

/// Stdout, locked, for what ends when its reader has gone: that is an error here.
pub fn stdout_while_read() -> PrintableWriter<StdoutLock<'static>> {
    PrintableWriter::new(io::stdout().lock(), false)
}

/// Prints a line to stderr, with nothing in it that a terminal obeys. Unlike `eprintln!` it goes on
/// where that cannot be written, for example a file on a full disk.
pub fn complain(line: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(line));
}

fn is_coloured(out: &impl IsTerminal) -> bool {
    out.is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

impl Output<StdoutLock<'static>> {
    /// Whether a person reads it, who may like colours.
    pub fn is_coloured(&self) -> bool {
        is_coloured(self.0.inner())
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
    fn a_reader_that_has_gone_is_no_error_and_a_full_disk_is() {
        let output = |kind| Output(PrintableWriter::new(Refuses(kind), false));
        let mut gone = output(ErrorKind::BrokenPipe);
        writeln!(gone, "the plan").unwrap();
        gone.flush().unwrap();
        let mut full = output(ErrorKind::StorageFull);
        assert_eq!(writeln!(full, "the plan").unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
