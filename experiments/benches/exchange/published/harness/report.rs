//! The table of a bench, and its rows as JSON.

use super::subject::Figure;
use benches::quantile;
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;

/// The number of the published document whose figures the benchmark repeats.
pub const SEED: &str = "002";
/// The machine of the published document, according to the document.
pub const THEIR_MACHINE: &str = "Windows 11; names no CPU";
/// Figures within this share of each other are equal.
const EQUAL: f64 = 0.05;

/// A row of the benchmark's report: a figure with its samples.
pub struct Row {
    pub figure: Figure,
    pub samples: usize,
    pub median: f64,
    /// First and third quartile.
    pub quartiles: [f64; 2],
}

impl Row {
    pub fn new(figure: Figure, mut samples: Vec<f64>) -> Self {
        let [low, median, high] = [0.25, 0.5, 0.75].map(|share| quantile(&mut samples, share));
        Row { figure, samples: samples.len(), median, quartiles: [low, high] }
    }

    /// Returns our figure as a multiple of the published document's.
    pub fn ratio(&self) -> Option<f64> {
        self.figure.theirs.map(|theirs| self.median / theirs)
    }

    /// Returns the verdict on our figure compared with the published document's.
    pub fn verdict(&self) -> &'static str {
        let Some(ratio) = self.ratio() else { return "extra" };
        match () {
            () if self.figure.is_reference => "std",
            () if (ratio - 1.0).abs() <= EQUAL => "equal",
            () if (ratio < 1.0) == self.figure.unit.is_lower_better() => "ahead",
            () => "behind",
        }
    }
}

/// The origin of the benchmark's figures: where and when they were measured.
pub struct Origin {
    bench: &'static str,
    machine: String,
    commit: String,
    date: String,
}

impl Origin {
    pub fn new(bench: &'static str) -> Self {
        let commit = output("git", &["rev-parse", "--short=8", "HEAD"]);
        // Lines of changed files that git tracks.
        let is_changed = output("git", &["status", "--porcelain", "--untracked-files=no"]) != "unknown";
        Origin {
            bench,
            machine: machine(),
            commit: if is_changed { format!("{commit}, changed") } else { commit },
            date: output("date", &["-u", "+%F"]),
        }
    }

    fn command(&self, row: &str) -> String {
        let quote = if row.contains(' ') { "'" } else { "" };
        format!("cargo bench -p benches --bench {} -- {quote}{row}{quote}", self.bench)
    }
}

/// Returns what a program prints; `unknown` if that is nothing.
fn output(program: &str, arguments: &[&str]) -> String {
    let printed = Command::new(program).args(arguments).output().map(|output| output.stdout);
    match String::from_utf8_lossy(&printed.unwrap_or_default()).trim() {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    }
}

fn machine() -> String {
    let cpus = std::thread::available_parallelism().map_or(0, |count| count.get());
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        let line = text.lines().find(|line| line.split(':').next().is_some_and(|name| name.trim() == key));
        line.and_then(|line| line.split(':').nth(1)).map_or("unknown", str::trim)
    };
    let (name, family, model) = (value("model name"), value("cpu family"), value("model"));
    let place = if text.contains(" hypervisor") { ", virtual" } else { "" };
    format!("{name} (family {family}, model {model}), {cpus} CPUs{place}")
}

/// Formats a figure of the report with about four digits.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 || value == 0.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns the lines of the report's table, of 80 columns at most.
pub fn table(rows: &[Row]) -> Vec<String> {
    let header =
        format!("{:<32} {:>9} {:>9} {:>13} {:>5} verdict", "row", "theirs", "ours", "quartiles", "×");
    let line = |row: &Row| {
        let unit = row.figure.unit.label();
        let with_unit = |value: f64| format!("{} {unit}", short(value)).trim_end().to_owned();
        let [low, high] = row.quartiles.map(short);
        format!(
            "{:<32} {:>9} {:>9} {:>13} {:>5} {}",
            row.figure.name,
            row.figure.theirs.map_or("-".to_owned(), with_unit),
            with_unit(row.median),
            format!("{low}–{high}"),
            row.ratio()
                .map_or("-".to_owned(), |ratio| format!("{ratio:.*}", if ratio < 100.0 { 2 } else { 0 })),
            row.verdict(),
        )
    };
    std::iter::once(header).chain(rows.iter().map(line)).collect()
}

/// Prints the report's table, its origin and the number of rounds.
pub fn print(rows: &[Row], origin: &Origin, rounds: usize) {
    table(rows).iter().for_each(|line| println!("{line}"));
    println!("\ntheirs: seed {SEED}, {THEIR_MACHINE}");
    println!("ours:   {}", origin.machine);
    println!("        {}, {}; medians of {rounds} samples in turns", origin.commit, origin.date);
    println!("What is timed, and remarks: --json FILE");
}

/// Returns the report's rows as JSON, in the schema that the bench's documentation describes.
pub fn document(rows: &[Row], origin: &Origin) -> Value {
    let row = |row: &Row| {
        json!({
            "name": row.figure.name,
            "theirs": row.figure.theirs,
            "theirs_machine": THEIR_MACHINE,
            "ours": row.median,
            "low": row.quartiles[0],
            "high": row.quartiles[1],
            "unit": row.figure.unit.label(),
            "better": if row.figure.unit.is_lower_better() { "lower" } else { "higher" },
            "samples": row.samples,
            "ratio": row.ratio(),
            "verdict": row.verdict(),
            "remark": row.figure.remark,
            "command": origin.command(row.figure.name),
            "machine": origin.machine,
            "commit": origin.commit,
            "date": origin.date,
        })
    };
    json!({ "seed": SEED, "rows": rows.iter().map(row).collect::<Vec<_>>() })
}

/// Checks that the report's file can be written, and leaves its contents.
///
/// # Errors
/// What failed, and what to do.
pub fn check_writable(file: &Path) -> Result<(), String> {
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(file)
        .map(drop)
        .map_err(|error| cannot_write(file, error))
}

/// Writes the report's rows as JSON into a file.
pub fn write(file: &Path, rows: &[Row], origin: &Origin) -> Result<(), String> {
    let text = format!("{:#}\n", document(rows, origin));
    std::fs::write(file, text).map_err(|error| cannot_write(file, error))
}

fn cannot_write(file: &Path, error: std::io::Error) -> String {
    format!("`--json {}` cannot be written: {error}; name a file in an existing folder", file.display())
}
