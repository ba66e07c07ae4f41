//! Escaping of untrusted text for terminals, Markdown and HTML.
//!
//! Control characters and bidirectional controls, which hide or reorder text, are shown as
//! `\u001b`, the notation of JSON. Programs print through [`PrintableWriter`]; fields that must
//! stay on one line, and Markdown, are escaped where they are assembled.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

/// The color codes that reports use.
const COLORS: [&str; 5] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;32m", "\x1b[1;31m"];

/// Returns `true` for a control character, a line separator or a bidirectional control.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn push(out: &mut String, c: char) {
    if is_control(c) {
        let _ = write!(out, "\\u{:04x}", u32::from(c));
    } else {
        out.push(c);
    }
}

/// Returns a text with line breaks and tabs kept and other control characters escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_kept = |c: char| matches!(c, '\n' | '\t') || !is_control(c);
    if text.chars().all(is_kept) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    text.chars().for_each(|c| if is_kept(c) { out.push(c) } else { push(&mut out, c) });
    Cow::Owned(out)
}

/// Returns a text on one line: line breaks and tabs become spaces, other control characters are
/// escaped.
pub fn single_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars()
        .for_each(|c| if c.is_whitespace() && is_control(c) { out.push(' ') } else { push(&mut out, c) });
    out
}

/// Returns a text for one line of Markdown, including a table cell, without HTML, links, images or
/// column separators.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in single_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '|' | '[' | ']' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// A writer that escapes its output like [`printable`]; invalid UTF-8 becomes `\x9b`.
#[derive(Debug)]
pub struct PrintableWriter<W: Write> {
    out: W,
    has_colors: bool,
    /// The first bytes of a character whose remaining bytes have not been written yet.
    partial: Vec<u8>,
}

impl<W: Write> PrintableWriter<W> {
    /// Creates a writer that escapes its output and passes it to `out`. With `has_colors` the color
    /// codes of reports pass unchanged.
    pub const fn new(out: W, has_colors: bool) -> Self {
        Self { out, has_colors, partial: Vec::new() }
    }

    /// Returns the writer to which the escaped output goes.
    pub const fn inner(&self) -> &W {
        &self.out
    }

    fn push(&self, mut text: &str, out: &mut String) {
        while let Some(c) = text.chars().next() {
            let color_code =
                COLORS.into_iter().find(|code| self.has_colors && c == '\x1b' && text.starts_with(code));
            let taken = color_code.map_or(c.len_utf8(), str::len);
            match color_code {
                Some(code) => out.push_str(code),
                None if matches!(c, '\n' | '\t') => out.push(c),
                None => push(out, c),
            }
            text = &text[taken..];
        }
    }
}

impl<W: Write> Write for PrintableWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.partial.is_empty() && bytes.iter().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) {
            return self.out.write(bytes);
        }
        let mut all = std::mem::take(&mut self.partial);
        all.extend_from_slice(bytes);
        let (mut rest, mut text) = (all.as_slice(), String::with_capacity(all.len()));
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(whole) => break self.push(whole, &mut text),
                Err(error) => error,
            };
            let (valid, invalid) = rest.split_at(error.valid_up_to());
            self.push(std::str::from_utf8(valid).unwrap_or_default(), &mut text);
            let Some(len) = error.error_len() else {
                self.partial = invalid.to_vec();
                break;
            };
            for byte in &invalid[..len] {
                let _ = write!(text, "\\x{byte:02x}");
            }
            rest = &invalid[len..];
        }
        self.out.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Drop for PrintableWriter<W> {
    fn drop(&mut self) {
        for byte in std::mem::take(&mut self.partial) {
            let _ = write!(self.out, "\\x{byte:02x}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\x1b[2J\u{9b}31m\u{7f}\r\u{202e}b\nc\té";

    fn write_parts(parts: &[&[u8]], has_colors: bool) -> String {
        let mut out = Vec::new();
        let mut writer = PrintableWriter::new(&mut out, has_colors);
        parts.iter().for_each(|part| writer.write_all(part).unwrap());
        writer.flush().unwrap();
        drop(writer);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn control_characters_are_escaped() {
        let shown = "a\\u001b[2J\\u009b31m\\u007f\\u000d\\u202eb\nc\té";
        assert_eq!(printable(HOSTILE), shown);
        assert_eq!(write_parts(&[HOSTILE.as_bytes()], false), shown);
        assert_eq!(single_line(HOSTILE), "a\\u001b[2J\\u009b31m\\u007f \\u202eb c é");
        assert!(matches!(printable("plain – text\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn split_characters_join_and_invalid_bytes_are_escaped() {
        let bytes = HOSTILE.as_bytes();
        for at in 0..bytes.len() {
            assert_eq!(write_parts(&[&bytes[..at], &bytes[at..]], false), printable(HOSTILE), "{at}");
        }
        assert_eq!(write_parts(&[b"\x9b\xffx\xc3"], false), "\\x9b\\xffx\\xc3");
    }

    #[test]
    fn only_known_color_codes_pass() {
        let text = "\x1b[1;32mgood\x1b[0m \x1b[8mhidden\x1b[2J";
        assert_eq!(write_parts(&[text.as_bytes()], true), "\x1b[1;32mgood\x1b[0m \\u001b[8mhidden\\u001b[2J");
        assert!(!write_parts(&[text.as_bytes()], false).contains('\x1b'));
    }

    #[test]
    fn markdown_escapes_tags_links_and_columns() {
        assert_eq!(
            markdown("<script>|x|\n![p](http://x)\x1b"),
            "&lt;script>\\|x\\| !\\[p\\](http://x)\\u001b"
        );
    }
}
