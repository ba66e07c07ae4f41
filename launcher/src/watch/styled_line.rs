//! A line of the terminal view: texts with styles.

use std::fmt;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// The terminal's default.
    #[default]
    Plain,
    /// A heading or a note.
    Dim,
    Bold,
    /// A heading of a finished run.
    Over,
    Bad,
    Selected,
}

impl Style {
    /// Returns the escape sequence (ECMA-48) that starts the style.
    pub const fn sequence(self) -> &'static str {
        match self {
            Self::Plain => "\x1b[0m",
            Self::Dim => "\x1b[0;2m",
            Self::Bold => "\x1b[0;1m",
            Self::Over => "\x1b[0;1;33m",
            Self::Bad => "\x1b[0;31m",
            Self::Selected => "\x1b[0;7m",
        }
    }
}

/// A line of the terminal view that consists of texts with styles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StyledLine {
    /// Texts from left to right.
    pub parts: Vec<(String, Style)>,
}

impl StyledLine {
    /// Creates a terminal line of one text with a style.
    pub fn styled(text: String, style: Style) -> Self {
        Self { parts: vec![(text, style)] }
    }

    /// Returns the width of the line in characters.
    pub fn width(&self) -> usize {
        self.parts.iter().map(|(text, _)| text.chars().count()).sum()
    }

    /// Appends another line, beginning at a column.
    #[must_use]
    pub fn followed_by(mut self, column: usize, right: Self) -> Self {
        let gap = " ".repeat(column.saturating_sub(self.width()));
        self.parts.push((gap, Style::Plain));
        self.parts.extend(right.parts);
        self
    }

    /// Truncates the line to `width` characters.
    #[must_use]
    pub fn clipped(mut self, width: usize) -> Self {
        let mut room = width;
        for (text, _) in &mut self.parts {
            if let Some((end, _)) = text.char_indices().nth(room) {
                text.truncate(end);
            }
            room -= text.chars().count();
        }
        self
    }
}

impl fmt::Display for StyledLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|(text, _)| f.write_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_beside_each_other_and_clipped() {
        let line = |text: &str| StyledLine::styled(text.into(), Style::Bad);
        let both = line("é…").followed_by(4, line("right"));
        assert_eq!((both.to_string().as_str(), both.width()), ("é…  right", 9));
        for (width, wanted) in [(0, ""), (1, "é"), (3, "é… "), (5, "é…  r"), (20, "é…  right")] {
            assert_eq!(both.clone().clipped(width).to_string(), wanted);
        }
        assert_eq!(line("longer").followed_by(2, line("x")).to_string(), "longerx");
    }
}
