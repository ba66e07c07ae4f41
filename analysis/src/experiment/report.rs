//! The report of an experiment as one value, from which terminal output, files and page are made.
//!
//! The function `report` of each experiment fills an [`ExperimentReport`] with tables ([`Grid`])
//! and charts ([`verdict::chart`]). The launcher prints and saves it, `html::experiment_page` makes
//! the page.

use maud::{Markup, html};
use record::document::{SaveError, write_atomically};
use record::escape::markdown as escaped;
use record::fitness::Fitness;
use std::path::Path;
use verdict::table::grid::{Grid, GridRow, wrap_indented, wrap_list_item};

/// The report of an experiment: its answer, tables, charts and notes.
#[derive(Clone, Debug, Default)]
pub struct ExperimentReport {
    /// The name of the report's Markdown file, without the extension.
    pub name: &'static str,
    /// The heading of the Markdown file.
    pub heading: String,
    /// The heading of the HTML page.
    pub title: String,
    /// Description of what was measured, in the line below the page's heading.
    pub subject: String,
    /// Time and version with which the experiment was measured.
    pub origin: String,
    /// The result in one sentence: last on the terminal, first on the page.
    pub answer: String,
    /// The answer and the table of the first screen.
    pub brief: BriefReport,
    /// Whether the report's figures may be quoted, and why not.
    pub fitness: Fitness,
    /// Counts for programs that read the page: attributes of its verdict, `data-planned="12"`.
    pub counts: Vec<(&'static str, u64)>,
    /// The measuring conditions in one line; on the page they are among the facts.
    pub conditions: String,
    /// Machine and conditions, each with its name; folded on the page.
    pub facts: Vec<(String, String)>,
    /// Remarks, one line each.
    pub notes: Vec<String>,
    /// The remarks on the terminal, if not all are shown there.
    pub terminal_notes: Option<Vec<String>>,
    /// Tables and charts, in order. The first chart belongs into the first section.
    pub(crate) sections: Vec<ReportSection>,
}

/// The answer and the table on the first screen of an experiment's report, above the verdict on
/// whether figures may be quoted.
#[derive(Clone, Debug, Default)]
pub struct BriefReport {
    /// The result in one sentence; empty for the report's answer.
    pub answer: String,
    /// The table of the first screen; `None` for the first one of the report.
    pub table: Option<Grid>,
}

/// A section of an experiment's page, with tables, charts and texts.
#[derive(Clone, Debug)]
pub(crate) struct ReportSection {
    /// Id of the section, unique in the page.
    pub(crate) id: String,
    pub(crate) heading: String,
    /// Tables and drawings, in order.
    pub(crate) parts: Vec<SectionPart>,
}

/// A part of a section of an experiment's page.
#[derive(Clone, Debug)]
pub(crate) enum SectionPart {
    /// A table, and where it is shown: a sum of [`TERMINAL`], [`FILES`] and [`PAGE`].
    Table(Grid, u8),
    /// A drawing or a text on the page.
    Markup(Markup),
}

/// The target of a table: the terminal.
pub(crate) const TERMINAL: u8 = 1;
/// The target of a table: CSV files and the Markdown file.
pub(crate) const FILES: u8 = 2;
/// The target of a table: the experiment's HTML page.
pub(crate) const PAGE: u8 = 4;
/// The targets terminal, files and HTML page together, as a bit mask.
pub const ALL: u8 = TERMINAL | FILES | PAGE;

impl ReportSection {
    /// Creates a section with nothing below its heading.
    pub(crate) fn new(id: impl Into<String>, heading: impl Into<String>) -> Self {
        Self { id: id.into(), heading: heading.into(), parts: Vec::new() }
    }

    /// Adds tables that are shown at these targets.
    pub(crate) fn tables(mut self, targets: u8, grids: impl IntoIterator<Item = Grid>) -> Self {
        self.parts.extend(grids.into_iter().map(|grid| SectionPart::Table(grid, targets)));
        self
    }

    /// Adds drawings to the page.
    pub(crate) fn charts(mut self, charts: impl IntoIterator<Item = Markup>) -> Self {
        self.parts.extend(charts.into_iter().map(SectionPart::Markup));
        self
    }

    /// Adds a paragraph to the page.
    pub(crate) fn text(self, text: &str) -> Self {
        self.charts([html! { p { (text) } }])
    }
}

impl ExperimentReport {
    /// Returns the report's tables for a target (terminal, files or page), including tables whose
    /// figures are all unknown.
    pub fn tables(&self, target: u8) -> impl Iterator<Item = &Grid> {
        self.sections.iter().flat_map(|section| &section.parts).filter_map(move |part| match part {
            SectionPart::Table(grid, targets) if targets & target != 0 => Some(grid),
            _ => None,
        })
    }

    /// Formats the experiment's report for the terminal: tables, notes, answer, and whether the
    /// figures may be quoted. Emphasized cells are bold if `color`.
    pub fn terminal(&self, color: bool) -> String {
        let mut blocks: Vec<String> =
            self.tables(TERMINAL).filter_map(with_figures).map(|grid| grid.terminal(color)).collect();
        let brief = self.terminal_notes.as_ref();
        let conditions = Some(&self.conditions).filter(|text| !text.is_empty());
        let notes = conditions.into_iter().chain(brief.unwrap_or(&self.notes));
        blocks.push(notes.map(|note| wrap_list_item(note) + "\n").collect());
        blocks.push(self.ending().iter().map(|line| wrap_indented(line, "  ") + "\n").collect());
        blocks.retain(|block| !block.is_empty());
        blocks.join("\n")
    }

    /// Formats the first screen of the experiment's report: the answer, one table without its
    /// notes, and whether the figures may be quoted. The last rows of a table that is too long for
    /// it are counted only.
    pub fn first_screen(&self, color: bool) -> String {
        let brief = &self.brief;
        let answer = if brief.answer.is_empty() { &self.answer } else { &brief.answer };
        let [answer, fitness] = [answer, &self.fitness.brief()].map(|line| wrap_indented(line, "  ") + "\n");
        let lines = SCREEN_LINES.saturating_sub(answer.lines().count() + fitness.lines().count() + 2);
        let first = || self.tables(TERMINAL).find_map(with_figures);
        let table = brief.table.as_ref().and_then(with_figures).or_else(first);
        let table = table.map(|grid| shortened(grid, lines, color));
        let blocks = [Some(answer).filter(|text| !text.trim().is_empty()), table, Some(fitness)];
        blocks.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    /// Returns conditions and notes.
    fn remarks(&self) -> impl Iterator<Item = &String> {
        Some(&self.conditions).filter(|text| !text.is_empty()).into_iter().chain(&self.notes)
    }

    /// Returns answer and verdict.
    fn ending(&self) -> Vec<String> {
        [self.answer.clone(), self.fitness.sentence()].into_iter().filter(|line| !line.is_empty()).collect()
    }

    /// Saves the report: each table as a CSV file named after the table, and one Markdown file with
    /// answer, tables and notes.
    pub fn save(&self, folder: &Path) -> anyhow::Result<()> {
        let write = |name: &str, bytes: &[u8]| -> Result<(), SaveError> {
            write_atomically(&folder.join(name), bytes)
        };
        let mut markdown = format!("# {}\n\n", self.heading);
        self.ending().iter().for_each(|line| markdown += &format!("{}\n\n", escaped(line)));
        self.remarks().for_each(|note| markdown += &format!("- {note}\n"));
        for grid in self.tables(FILES) {
            if let Some(shown) = with_figures(grid) {
                markdown += &format!("\n{}", shown.markdown());
            }
            write(&format!("{}.csv", grid.name), &grid.csv()?)?;
        }
        Ok(write(&format!("{}.md", self.name), markdown.as_bytes())?)
    }
}

/// Lines of the first screen of an experiment. Three more name its folder and the next commands.
const SCREEN_LINES: usize = 20;
/// The minimum number of rows of a table on the first screen.
const MIN_ROWS: usize = 3;

/// Formats a table without its notes in at most `lines` lines, and within the terminal's width. A
/// note counts the rows and columns that are shown, if not all are.
fn shortened(grid: Grid, lines: usize, color: bool) -> String {
    let (all, all_columns) = (grid.rows.len(), grid.head.len());
    let grid = grid.first_part();
    let columns = grid.head.len();
    let first = |count: usize| {
        let note = match (count < all, columns < all_columns) {
            (false, false) => None,
            (true, false) => Some(format!("{count} of {all} rows")),
            (_, true) => Some(format!("{count} of {all} rows, {columns} of {all_columns} columns")),
        };
        let (rows, notes) = (grid.rows[..count].to_vec(), note.into_iter().collect());
        Grid { rows, notes, ..grid.clone() }.terminal(color)
    };
    let counts = (MIN_ROWS.min(all)..=all.min(lines)).rev();
    let fits = |text: &String| text.lines().count() <= lines;
    counts.map(first).find(fits).unwrap_or_else(|| first(MIN_ROWS.min(all)))
}

/// Returns the table without its empty columns; `None` if no column with figures remains.
pub(crate) fn with_figures(grid: &Grid) -> Option<Grid> {
    let has_figure = |column: &usize| {
        let mut cells = grid.rows.iter().filter_map(|row| row.cells.get(*column));
        *column < grid.keys || cells.any(|cell| !cell.is_empty() && cell != "–")
    };
    let kept: Vec<usize> = (0..grid.head.len()).filter(has_figure).collect();
    let has_any = !grid.rows.is_empty() && (kept.len() > grid.keys || grid.keys == grid.head.len());
    let row = |row: &GridRow| GridRow {
        cells: kept.iter().filter_map(|column| row.cells.get(*column).cloned()).collect(),
        best: row.best.iter().filter_map(|best| kept.iter().position(|column| column == best)).collect(),
    };
    has_any.then(|| Grid {
        head: kept.iter().map(|column| grid.head[*column].clone()).collect(),
        rows: grid.rows.iter().map(row).collect(),
        ..grid.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(rows: &[[&str; 3]]) -> Grid {
        let row = |cells: &[&str; 3]| GridRow { cells: cells.map(String::from).into(), best: vec![2] };
        Grid::new("x", "a title", 1, ["setting", "p99", "p50"], rows.iter().map(row))
    }

    #[test]
    fn columns_and_tables_without_figures_are_dropped() {
        let shown = with_figures(&grid(&[["a", "–", "1"], ["b", "", "–"]])).unwrap();
        assert_eq!(
            (shown.head, shown.rows[0].best.clone()),
            (vec!["setting".to_owned(), "p50".into()], vec![1])
        );
        assert_eq!(with_figures(&grid(&[["a", "–", "–"]])), None);
        assert_eq!(with_figures(&grid(&[])), None);
    }

    #[test]
    fn terminal_ends_with_answer_and_fitness() {
        let report = ExperimentReport {
            answer: "B is faster".into(),
            fitness: Fitness::new(vec!["a single core".into()]),
            notes: vec!["a note".into()],
            conditions: "measured today".into(),
            sections: vec![ReportSection::new("s", "S").tables(ALL, [grid(&[["a", "2", "1"]])])],
            ..ExperimentReport::default()
        };
        let screen = |brief| ExperimentReport { brief, ..report.clone() }.first_screen(false);
        let text = screen(BriefReport::default());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[1]), ("B is faster", ""));
        assert_eq!(lines.last(), Some(&"not fit for latency claims: a single core"));
        assert!(text.contains("a title") && !text.contains("a note"), "{text}");
        let text = screen(BriefReport { answer: "B".into(), table: Some(grid(&[["b", "8", "9"]])) });
        assert!(text.starts_with("B\n") && text.contains('8') && !text.contains('2'), "{text}");
        let many: Vec<[&str; 3]> = vec![["c", "4", "5"]; 99];
        let text = screen(BriefReport { answer: String::new(), table: Some(grid(&many)) });
        assert!(text.lines().count() <= SCREEN_LINES && text.contains("of 99 rows"), "{text}");
        let text = report.terminal(false);
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        assert_eq!(last[..2], ["not fit for latency claims: a single core", "B is faster"]);
        assert_eq!(last[2..], ["", "· a note", "· measured today"]);
    }
}
