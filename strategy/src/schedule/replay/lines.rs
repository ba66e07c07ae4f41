//! Bounds the length of a line and the number of blank lines that are read of an invalid file.

use std::io::{self, Read};

/// Maximum length of a line in bytes; those of a recorded flow have a hundred.
const MAX_LINE: u64 = 4096;
/// Maximum number of consecutive blank lines.
const MAX_BLANK: u64 = 1 << 20;

/// A reader that fails as soon as its input cannot be a recorded flow. That is a line too long, or
/// too many blank lines.
pub(super) struct BoundedLines<R> {
    input: R,
    length: u64,
    lines: u64,
    blank: u64,
}

impl<R> BoundedLines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, length: 0, lines: 0, blank: 0 }
    }

    fn check(&mut self, bytes: &[u8]) -> Result<(), String> {
        for byte in bytes {
            if *byte != b'\n' {
                self.length += 1;
                if self.length > MAX_LINE {
                    return Err(format!(
                        "line {} is longer than {MAX_LINE} bytes: no recorded flow",
                        self.lines + 1
                    ));
                }
                continue;
            }
            self.lines += 1;
            // CRLF leaves the CR.
            self.blank = if self.length <= 1 { self.blank + 1 } else { 0 };
            self.length = 0;
            if self.blank > MAX_BLANK {
                return Err(format!("{MAX_BLANK} lines in a row have nothing in them: no recorded flow"));
            }
        }
        Ok(())
    }
}

impl<R: Read> Read for BoundedLines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(into)?;
        self.check(into.get(..count).unwrap_or_default()).map_err(io::Error::other)?;
        Ok(count)
    }
}
