//! The report of an experiment as one value, from which terminal output, files and page are made.
//!
//! An experiment fills an [`ExperimentReport`] in one function of its document, `report` in a
//! module of its own here, and names that function in [`super::saved`]. It draws nothing itself: a
//! table is a [`Grid`], a chart comes from [`crate::chart`]. The launcher prints and saves the
//! value (`launcher/src/experiments/publish.rs`), `html::experiment_page` makes the page of it.

use crate::cpu_list;
use crate::document::{SaveError, write_atomically};
use crate::machine::Machine;
use crate::table::grid::{Grid, wrap_list_item};
use maud::Markup;
use std::path::Path;

/// Everything that an experiment shows.
#[derive(Clone, Debug, Default)]
pub struct ExperimentReport {
    /// The name of its Markdown file, without the ending.
    pub name: &'static str,
    /// The heading of that file.
    pub heading: String,
    /// The heading of the page.
    pub title: String,
    /// What was measured: one line below the page's heading.
    pub subject: String,
    /// When, and with which version.
    pub origin: String,
    /// The verdict on top of the page.
    pub answer: Option<Answer>,
    /// Machine and conditions, each with its name.
    pub facts: Vec<(String, String)>,
    /// What to know, one line each.
    pub notes: Vec<String>,
    /// Tables and charts, in order.
    pub sections: Vec<Section>,
}

/// A verdict.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// Whether all is well.
    pub good: bool,
    /// The verdict, in a sentence.
    pub sentence: String,
    /// What speaks against it, or what it means.
    pub reasons: Vec<String>,
    /// The numbers behind it, as attributes of the element: `data-fit="12"`.
    pub counts: Vec<(&'static str, u64)>,
}

/// A part of the page; on the terminal only its tables are shown.
#[derive(Clone, Debug)]
pub struct Section {
    /// Its id, unique in the page.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// What is in it, in order.
    pub parts: Vec<Part>,
}

/// A table, a chart or a text.
#[derive(Clone, Debug)]
pub enum Part {
    /// A paragraph of the page.
    Text(String),
    /// Remarks on the page.
    List(Vec<String>),
    /// A table, and where it is shown: a sum of [`TERMINAL`], [`FILES`] and [`PAGE`].
    Table(Grid, u8),
    /// A drawing on the page.
    Chart(Markup),
}

/// On the terminal.
pub const TERMINAL: u8 = 1;
/// As CSV, and in the Markdown file.
pub const FILES: u8 = 2;
/// On the page.
pub const PAGE: u8 = 4;
/// Everywhere.
pub const ALL: u8 = TERMINAL | FILES | PAGE;

impl Section {
    /// An empty section.
    pub fn new(id: impl Into<String>, heading: impl Into<String>) -> Self {
        Self { id: id.into(), heading: heading.into(), parts: Vec::new() }
    }

    /// The section with more parts.
    #[must_use]
    pub fn with(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        self.parts.extend(parts);
        self
    }
}

impl ExperimentReport {
    /// The tables that are shown there.
    pub fn tables(&self, place: u8) -> impl Iterator<Item = &Grid> {
        self.sections.iter().flat_map(|section| &section.parts).filter_map(move |part| match part {
            Part::Table(grid, places) if places & place != 0 => Some(grid),
            _ => None,
        })
    }

    /// The tables and notes as they are printed; what stands out is bold, if `colour`.
    pub fn terminal(&self, colour: bool) -> String {
        let tables = self.tables(TERMINAL).map(|grid| grid.terminal(colour));
        tables.chain(self.notes.iter().map(|note| wrap_list_item(note))).map(|text| text + "\n").collect()
    }

    /// Writes each table as `NAME.csv`, and all of them with the notes on top as `<name>.md`.
    pub fn save(&self, folder: &Path) -> anyhow::Result<()> {
        let write = |name: &str, bytes: &[u8]| -> Result<(), SaveError> {
            write_atomically(&folder.join(name), bytes)
        };
        let mut markdown = format!("# {}\n\n", self.heading);
        self.notes.iter().for_each(|note| markdown += &format!("- {note}\n"));
        for grid in self.tables(FILES) {
            markdown += &format!("\n{}", grid.markdown());
            write(&format!("{}.csv", grid.name), &grid.csv()?)?;
        }
        Ok(write(&format!("{}.md", self.name), markdown.as_bytes())?)
    }
}

/// What a page says of a machine.
pub fn machine_facts(machine: &Machine) -> Vec<(String, String)> {
    let hypervisor =
        machine.hypervisor.as_ref().map_or_else(String::new, |name| format!(", virtual ({name})"));
    let cores = format!("{} of {}", cpu_list::format(&machine.cores_allowed), machine.cores_online);
    let governor = machine.governor.as_deref().unwrap_or("not shown");
    let kernel =
        format!("Linux {}, clock source {}, governor {governor}", machine.kernel, machine.clocksource);
    [
        ("machine", format!("{}{hypervisor}", machine.hostname)),
        ("processor", machine.cpu_model.clone()),
        ("cores", cores),
        ("kernel", kernel),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .to_vec()
}
