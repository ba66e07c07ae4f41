//! Tables as values: printed within the terminal's width, written as Markdown and as CSV.

use super::{ruled, table};
use comfy_table::presets::ASCII_MARKDOWN;
use record::escape::{markdown as escaped, single_line};
use record::screen::width;
use std::fmt::Write;

/// A table with a title, rows of text cells and notes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// Name of the table's CSV file, without the extension.
    pub name: String,
    /// Title of the table with the unit; empty if the table needs none.
    pub title: String,
    /// Column heads.
    pub head: Vec<String>,
    /// Number of key columns, from the left.
    pub keys: usize,
    /// Rows of the table.
    pub rows: Vec<GridRow>,
    /// Notes below the table; one line each.
    pub notes: Vec<String>,
}

/// A row of text cells in a [`Grid`], with the columns to highlight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GridRow {
    /// One cell per column.
    pub cells: Vec<String>,
    /// Indices of highlighted columns.
    pub best: Vec<usize>,
}

impl GridRow {
    /// Creates a table row without highlighted cells.
    pub fn plain(cells: Vec<String>) -> Self {
        Self { cells, best: Vec::new() }
    }
}

/// A table column: its head, and the function that formats the cell for a value of type `R`.
pub type Column<'a, R> = (&'a str, &'a dyn Fn(&R) -> String);

impl Grid {
    /// Creates a text table without notes. The first `keys` columns identify a row.
    pub fn new(
        name: impl Into<String>,
        title: impl Into<String>,
        keys: usize,
        head: impl IntoIterator<Item = impl Into<String>>,
        rows: impl IntoIterator<Item = GridRow>,
    ) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            head: head.into_iter().map(Into::into).collect(),
            keys,
            rows: rows.into_iter().collect(),
            notes: Vec::new(),
        }
    }

    /// Creates a text table from values, with a row for each of `rows`.
    pub fn from_rows<'r, R: 'r>(
        name: impl Into<String>,
        title: impl Into<String>,
        keys: usize,
        columns: &[Column<'_, R>],
        rows: impl IntoIterator<Item = &'r R>,
    ) -> Self {
        let row = |row: &R| GridRow::plain(columns.iter().map(|(_, cell)| cell(row)).collect());
        Self::new(name, title, keys, columns.iter().map(|(head, _)| *head), rows.into_iter().map(row))
    }

    /// Adds a text note below the table.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Formats the table for the terminal; one that is too wide is split into parts, each with the
    /// leading `keys` columns, which identify a row. Highlights are bold if `color`.
    pub fn terminal(&self, color: bool) -> String {
        let mut text = String::new();
        if !self.title.is_empty() {
            text = format!("{}\n\n", wrap_indented(&self.title, ""));
        }
        let all: Vec<usize> = (0..self.head.len()).collect();
        // comfy-table puts one space between columns; a second one is added if it fits.
        let padding = u16::from(self.width(&all, 1) > width() && self.width(&all, 0) <= width()) ^ 1;
        let parts = if padding == 0 { vec![all] } else { self.split() };
        for (number, columns) in parts.into_iter().enumerate() {
            if number > 0 {
                text.push('\n');
            }
            let heads: Vec<&str> = columns.iter().map(|column| self.head[*column].as_str()).collect();
            let mut shown = table(ruled(), &heads);
            for (number, column) in shown.column_iter_mut().enumerate() {
                column.set_padding((0, if number + 1 < columns.len() { padding } else { 0 }));
                if columns[number] < self.keys {
                    column.set_cell_alignment(comfy_table::CellAlignment::Left);
                }
            }
            for row in &self.rows {
                shown.add_row(columns.iter().map(|column| row.cell(*column, color)));
            }
            // The bold markers have no width during the layout.
            for line in shown.lines() {
                let _ = writeln!(
                    text,
                    "{}",
                    line.trim_end().replace(BOLD_ON, "\x1b[1m").replace(BOLD_OFF, "\x1b[0m")
                );
            }
        }
        for note in &self.notes {
            let _ = writeln!(text, "{}", wrap_list_item(note));
        }
        text
    }

    /// Returns the table with only the leading columns that fit the terminal's width; the other
    /// columns are dropped.
    #[must_use]
    pub fn first_part(mut self) -> Self {
        let all: Vec<usize> = (0..self.head.len()).collect();
        if self.width(&all, 0) > width() {
            let count = self.split()[0].len();
            self.head.truncate(count);
            self.rows.iter_mut().for_each(|row| row.cells.truncate(count));
        }
        self
    }

    /// Formats the table as Markdown; highlights are bold.
    pub fn markdown(&self) -> String {
        let heads: Vec<String> = self.head.iter().map(|head| escaped(head)).collect();
        let mut shown = table(ASCII_MARKDOWN, &heads.iter().map(String::as_str).collect::<Vec<_>>());
        for column in 0..self.keys {
            if let Some(column) = shown.column_mut(column) {
                column.set_cell_alignment(comfy_table::CellAlignment::Left);
            }
        }
        for row in &self.rows {
            let cell = |(column, cell): (usize, &String)| {
                let cell = escaped(cell);
                if row.best.contains(&column) { format!("**{cell}**") } else { cell }
            };
            shown.add_row(row.cells.iter().enumerate().map(cell));
        }
        let title =
            if self.title.is_empty() { String::new() } else { format!("{}:\n\n", escaped(&self.title)) };
        let mut text = format!("{title}{shown}\n");
        for note in &self.notes {
            let _ = write!(text, "\n- {}", escaped(note));
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        text
    }

    /// Formats the table as CSV: heads and cells as shown, an empty field for a missing value.
    pub fn csv(&self) -> Result<Vec<u8>, csv::Error> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.head)?;
        for row in &self.rows {
            writer.write_record(row.cells.iter().map(|cell| if cell == "–" { "" } else { cell }))?;
        }
        writer.into_inner().map_err(|error| error.into_error().into())
    }

    /// Returns the width of some columns with this padding and the space between them.
    fn width(&self, columns: &[usize], padding: usize) -> usize {
        let widest = |column: &usize| {
            let cells = self.rows.iter().map(|row| row.cells[*column].chars().count());
            cells.chain([self.head[*column].chars().count()]).max().unwrap_or(0)
        };
        columns.iter().map(widest).sum::<usize>() + columns.len().saturating_sub(1) * (padding + 1)
    }

    /// Returns the columns of each part that fits the width.
    fn split(&self) -> Vec<Vec<usize>> {
        let keys: Vec<usize> = (0..self.keys).collect();
        let mut parts = vec![keys.clone()];
        for column in self.keys..self.head.len() {
            let Some(part) = parts.last_mut() else { continue };
            part.push(column);
            if part.len() > self.keys + 1 && self.width(part, 1) > width() {
                part.pop();
                parts.push([&keys[..], &[column]].concat());
            }
        }
        parts
    }
}

/// Zero-width placeholders for the bold codes during the layout.
const BOLD_ON: &str = "\u{200b}";
const BOLD_OFF: &str = "\u{2060}";

impl GridRow {
    fn cell(&self, column: usize, color: bool) -> String {
        let cell = single_line(&self.cells[column]).replace(BOLD_ON, "").replace(BOLD_OFF, "");
        if color && self.best.contains(&column) { format!("{BOLD_ON}{cell}{BOLD_OFF}") } else { cell }
    }
}

/// Wraps a text at the terminal's width; continuation lines begin with `indent`.
pub fn wrap_indented(text: &str, indent: &str) -> String {
    wrap(text, width(), indent.chars().count()).join(&format!("\n{indent}"))
}

/// Splits a text into lines of at most `width` characters, `indent` less from the second line on.
/// A longer word stays whole.
pub fn wrap(text: &str, width: usize, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in single_line(text).split_whitespace() {
        let hanging_indent = if lines.len() > 1 { indent } else { 0 };
        let Some(line) = lines.last_mut() else { continue };
        if line.is_empty() {
            *line = word.to_owned();
        } else if hanging_indent + line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            *line += &format!(" {word}");
        }
    }
    lines
}

/// Wraps a text as a list item, at the terminal's width in columns.
pub fn wrap_list_item(text: &str) -> String {
    wrap_indented(&format!("· {text}"), " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::screen::DEFAULT_WIDTH;

    fn grid(columns: usize, width: usize) -> Grid {
        let cells = |name: &str| (0..columns).map(|n| format!("{name}{n:0width$}")).collect::<Vec<_>>();
        Grid {
            name: "x".into(),
            title: "a title".into(),
            head: [vec!["work".into()], cells("h")].concat(),
            keys: 1,
            rows: vec![GridRow { cells: [vec!["500 ns".into()], cells("c")].concat(), best: vec![1] }],
            notes: vec!["word ".repeat(40)],
        }
    }

    #[test]
    fn grid_fits_terminal_and_keeps_all_columns() {
        for columns in 1..30 {
            let grid = grid(columns, 14);
            let text = grid.terminal(false);
            assert!(text.lines().all(|line| line.chars().count() <= DEFAULT_WIDTH), "{text}");
            for cell in &grid.rows[0].cells {
                assert!(text.contains(cell.as_str()), "{cell} is missing:\n{text}");
            }
            assert!(!text.contains('\u{1b}'));
        }
        assert!(
            grid(2, 3).terminal(true).contains("\u{1b}[1mc000\u{1b}[0m"),
            "{}",
            grid(2, 3).terminal(true)
        );
    }

    #[test]
    fn markdown_and_csv_have_equal_cells() {
        let mut grid = grid(2, 1);
        grid.rows[0].cells[2] = "–".into();
        let text = grid.markdown();
        assert!(text.contains("| 500 ns | **c0** |"), "{text}");
        assert_eq!(String::from_utf8(grid.csv().unwrap()).unwrap(), "work,h0,h1\n500 ns,c0,\n");
    }
}
