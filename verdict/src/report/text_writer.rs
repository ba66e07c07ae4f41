//! The lines of a report on a run for the terminal, with their styles.

use record::escape::single_line;
use record::screen::width;
use std::fmt::Write;

/// The SGR code (ECMA-48) of a line's style.
pub(super) type LineStyle = &'static str;

pub(super) const GOOD: LineStyle = "1;32";
pub(super) const BAD: LineStyle = "1;31";
pub(super) const STRONG: LineStyle = "1";
pub(super) const DIM: LineStyle = "2";

/// The text of a report as far as it is written.
pub(super) struct TextReport {
    pub(super) text: String,
    color: bool,
}

impl TextReport {
    /// Creates a report without lines. Styles are written only if `color`.
    pub(super) fn new(color: bool) -> Self {
        Self { text: String::new(), color }
    }

    /// Adds an empty line.
    pub(super) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a line, without spaces at its end.
    pub(super) fn line(&mut self, line: &str, style: Option<LineStyle>) {
        let line = single_line(line.trim_end());
        // Writing to a string cannot fail.
        let _ = match style.filter(|_| self.color) {
            Some(style) => writeln!(self.text, "\x1b[{style}m{line}\x1b[0m"),
            None => writeln!(self.text, "{line}"),
        };
    }

    /// Adds a paragraph that begins with `head`; continuation lines are indented below the body, or
    /// by four columns.
    pub(super) fn item(&mut self, head: &str, body: &str, style: Option<LineStyle>) {
        let head_width = head.chars().count();
        let indent = if head_width > 12 { 4 } else { head_width };
        for (number, line) in wrap(body.split(' '), " ", head_width, indent).iter().enumerate() {
            let front = if number == 0 { head.to_owned() } else { " ".repeat(indent) };
            self.line(&format!("{front}{line}"), style);
        }
    }

    /// Adds a name and its texts, separated by dots.
    pub(super) fn fields(&mut self, name: &str, fields: &[String]) {
        const NAME_WIDTH: usize = 11;
        let fields = fields.iter().filter(|field| !field.is_empty()).map(String::as_str);
        for (number, line) in wrap(fields, " · ", NAME_WIDTH, NAME_WIDTH).iter().enumerate() {
            let front = if number == 0 { name } else { "" };
            self.line(&format!("{front:NAME_WIDTH$}{line}"), None);
        }
    }
}

/// Joins texts to lines within [`width`]: the first begins at column `first`, the others at
/// `indent`. A text wider than a line is split.
fn wrap<'a>(parts: impl Iterator<Item = &'a str>, joint: &str, first: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let (mut available, mut used) = (width().saturating_sub(first), 0);
    let next_available = width().saturating_sub(indent).max(1);
    for part in parts {
        let pieces: Vec<char> = single_line(part).chars().collect();
        for piece in pieces.chunks(next_available) {
            let joined = if used == 0 { 0 } else { joint.chars().count() };
            if used + joined + piece.len() > available {
                lines.push(String::new());
                (available, used) = (next_available, 0);
            }
            if let Some(line) = lines.last_mut() {
                if used > 0 {
                    line.push_str(joint);
                    used += joined;
                }
                line.extend(piece);
                used += piece.len();
            }
        }
    }
    lines
}
