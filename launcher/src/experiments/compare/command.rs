//! `launcher compare`: finds or measures the two sides, pairs their settings, prints.

use super::load::{Cell, load, words};
use super::select::{self, Words};
use super::table::{COMPARE_SCHEMA, Comparison, Report};
use crate::cli::RunFlags;
use crate::config::UsageError;
use crate::experiments::sweep::{self, Asked, Ended, SweepRecord};
use analysis::report::grid::{Grid, wrapped};
use anyhow::{Context, Result};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The repeats of a comparison that is measured now.
const REPEATS: u64 = 10;

/// The flags of `compare`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct CompareFlags {
    /// Two runs or folders of runs; or one, with --a and --b; or none
    #[arg(value_name = "FOLDER", num_args = 0..=2)]
    pub folders: Vec<PathBuf>,
    /// A in words: KEY=VALUE,… chosen from the folder, or measured
    #[arg(long, value_name = "WORDS")]
    pub a: Option<String>,
    /// B in words
    #[arg(long, value_name = "WORDS")]
    pub b: Option<String>,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    pub keep_logs: bool,
    /// What both sides are measured with.
    #[command(flatten)]
    pub run: RunFlags,
}

/// Does what `launcher compare` says.
///
/// # Errors
/// [`UsageError`] for what cannot be had; folders without runs, of another version, or damaged.
pub fn command(flags: &CompareFlags) -> Result<ExitCode> {
    let side =
        |flag: &str, text: &Option<String>| text.as_deref().map(|text| select::read(flag, text)).transpose();
    let (a, b) = (side("a", &flags.a)?, side("b", &flags.b)?);
    let json = flags.run.json;
    match (&flags.folders[..], a, b) {
        ([], Some(a), Some(b)) => measure(flags, &a, &b),
        ([one], None, None) => {
            let record = sweep::read(one).ok().filter(|record| record.kind == "compare");
            let Some(record) = record else {
                return usage("one folder: name the two sides in it with --a and --b");
            };
            finish(&record, one, json)
        }
        ([one], Some(a), Some(b)) => {
            let cells = load(one)?;
            let (left, right) = (a.choose("a", &cells)?, b.choose("b", &cells)?);
            let named: Vec<&str> = a.pairs.iter().chain(&b.pairs).map(|(key, _)| key.as_str()).collect();
            let report = report(&left, &right, &named)?;
            // A folder of runs may hold anything; a sweep's is its own.
            if one.join(sweep::SWEEP_FILE).exists() {
                save(&report, one)?;
            }
            show(&report, json)
        }
        ([left, right], a, b) => {
            let chosen = |flag: &str, path: &Path, words: &Option<Words>| -> Result<Vec<Cell>> {
                let cells = load(path)?;
                Ok(match words {
                    Some(words) => words.choose(flag, &cells)?,
                    None => cells,
                })
            };
            let named: Vec<&str> =
                a.iter().chain(&b).flat_map(|w| &w.pairs).map(|(key, _)| key.as_str()).collect();
            show(&report(&chosen("a", left, &a)?, &chosen("b", right, &b)?, &named)?, json)
        }
        _ => usage("give two folders, or both --a and --b: launcher compare --help shows how"),
    }
}

fn usage<T>(message: &str) -> Result<T> {
    Err(UsageError(message.into()).into())
}

/// Measures both sides now, alternated, and compares them.
fn measure(flags: &CompareFlags, a: &Words, b: &Words) -> Result<ExitCode> {
    let machine = crate::host::machine();
    let asked = Asked {
        base: flags.run.settings()?,
        weaker_sandbox: flags.run.allow_weaker_sandbox,
        ..Asked::default()
    };
    let sides = [("A", a), ("B", b)].map(|(letter, words)| sweep::Side {
        name: format!("{letter}: {}", super::load::words(&words.pairs)),
        settings: words.settings.clone(),
        rate: words.rate.clone(),
    });
    let layout = sweep::lay_out_sides(&asked, &sides, &machine)?;
    let mut record = sweep::new_record("compare", &asked, layout, REPEATS, machine)?;
    record.keep_logs = flags.keep_logs;
    record.start_timeout_ns = flags.run.start_timeout.0;
    let folder = sweep::create(&mut record)?;
    match sweep::measured(&mut record, &folder, flags.run.json)? {
        Ended::Complete => finish(&record, &folder, flags.run.json),
        ended => sweep::finish(&record, &folder, flags.run.json, ended),
    }
}

/// Compares the two points of a comparison that was measured, prints it and writes it beside `sweep.json`.
///
/// # Errors
/// A folder that cannot be written, or a record without two sides.
pub fn finish(record: &SweepRecord, folder: &Path, json: bool) -> Result<ExitCode> {
    let cells: Vec<Cell> = record
        .points
        .iter()
        .map(|point| {
            let name = point.name.split_once(": ").map_or(point.name.as_str(), |(_, words)| words);
            Cell { name: name.to_owned(), key: Vec::new(), runs: point.outlines() }
        })
        .collect();
    let [a, b] = &cells[..] else { return usage("this comparison has not two sides") };
    let comparison = Comparison::of(a, b);
    let report =
        Report { schema: COMPARE_SCHEMA.into(), comparisons: vec![comparison], notes: sweep::notes(record) };
    sweep::save_runs(record, folder)?;
    save(&report, folder)?;
    show(&report, json)?;
    if !json {
        writeln!(crate::output::stdout(), "\nSaved in {}", folder.display())?;
    }
    Ok(sweep::code(record, folder, Ended::Complete))
}

/// Compares what belongs together: settings that are equal in all that the words do not name.
fn report(a: &[Cell], b: &[Cell], named: &[&str]) -> Result<Report> {
    let mut report = Report { schema: COMPARE_SCHEMA.into(), comparisons: Vec::new(), notes: Vec::new() };
    if let ([a], [b]) = (a, b) {
        report.comparisons.push(Comparison::of(a, b));
        return Ok(report);
    }
    let rest = |cell: &Cell| -> Vec<(String, String)> {
        cell.key.iter().filter(|(key, _)| !named.contains(&key.as_str())).cloned().collect()
    };
    for left in a {
        match b.iter().find(|right| rest(right) == rest(left)) {
            Some(right) => report.comparisons.push(Comparison::of(left, right)),
            None => report.notes.push(format!("{} has no counterpart in B", words(&left.key))),
        }
    }
    if report.comparisons.is_empty() {
        return usage(
            "not comparable: A and B hold several settings and none is in both; choose with --a and --b, \
             for example --a isolation=thread --b isolation=process",
        );
    }
    Ok(report)
}

/// The tables: with every stage where there is one comparison, of rt_venue alone where there are more.
fn grids(report: &Report) -> Vec<Grid> {
    let single = report.comparisons.len() == 1;
    let numbered = |(number, comparison): (usize, &Comparison)| {
        let mut grid = comparison.grid(single);
        if !single {
            grid.name = format!("compare_{}", number + 1);
        }
        grid
    };
    report.comparisons.iter().enumerate().map(numbered).collect()
}

fn save(report: &Report, folder: &Path) -> Result<()> {
    sweep::save_grids(folder, "compare", "Comparison", &report.notes, &grids(report))?;
    let path = folder.join("compare.json");
    std::fs::write(&path, serde_json::to_vec_pretty(report)?)
        .with_context(|| format!("cannot write {}", path.display()))
}

fn show(report: &Report, json: bool) -> Result<ExitCode> {
    let mut out = crate::output::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, report)?;
        writeln!(out)?;
    } else {
        let colour = out.is_coloured();
        for grid in grids(report) {
            writeln!(out, "{}", grid.terminal(colour))?;
        }
        for note in &report.notes {
            writeln!(out, "{}", wrapped(note))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
