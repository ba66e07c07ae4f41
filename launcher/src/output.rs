//! What the launcher prints of a run. Whoever reads it may stop reading (`launcher run | head`): the run is not lost then,
//! and its exit code says how it ended.

use std::io::{self, ErrorKind, IsTerminal, StdoutLock, Write};

/// Tells the reports how wide the terminal is that they go to, if they do.
pub fn measure() {
    if let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size_of(io::stdout()) {
        analysis::report::set_width(columns.into());
    }
}

/// Stdout, or nothing once its reader has gone.
pub struct Output<W>(W);

/// Stdout, locked.
pub fn stdout() -> Output<StdoutLock<'static>> {
    Output(io::stdout().lock())
}

impl Output<StdoutLock<'static>> {
    /// Whether a person reads it, who may like colours.
    pub fn is_coloured(&self) -> bool {
        self.0.is_terminal() && std::env::var_os("NO_COLOR").is_none()
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
        let mut gone = Output(Refuses(ErrorKind::BrokenPipe));
        writeln!(gone, "the plan").unwrap();
        gone.flush().unwrap();
        let mut full = Output(Refuses(ErrorKind::StorageFull));
        assert_eq!(writeln!(full, "the plan").unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
