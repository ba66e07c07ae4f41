//! `launcher compare`: finds or measures the two sides, pairs their settings, prints.

use super::load::{Cell, load, of_summaries, words};
use super::select::{self, SideWords};
use super::table::{compare, grid};
use crate::config::{RunFlags, Slower, UsageError};
use crate::experiments::documents::{self, Documents};
use crate::experiments::flags::Asked;
use crate::experiments::points::{Side, lay_out_sides};
use crate::experiments::record::{create, new_record, read};
use crate::shelf::folder_of;
use analysis::document::Document;
use analysis::experiment::{Comparison, Comparisons, SweepRecord};
use analysis::report::grid::Grid;
use analysis::summary::Summary;
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};

/// The repeats of a comparison that is measured now.
const REPEATS: u64 = 10;

/// The flags of `compare`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct CompareFlags {
    /// Two runs or folders of runs (`latest`: the last run in runs); or one, with --a and --b; or none
    #[arg(value_name = "FOLDER", num_args = 0..=2)]
    pub folders: Vec<PathBuf>,
    /// A in words: KEY=VALUE,… chosen from the folder, or measured
    #[arg(long, value_name = "WORDS")]
    pub a: Option<String>,
    /// B in words
    #[arg(long, value_name = "WORDS")]
    pub b: Option<String>,
    /// Exit with code 1 if B's rt_venue is slower by more than that
    #[arg(long, value_name = "SHARE")]
    pub fail_if_slower: Option<Slower>,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    pub keep_logs: bool,
    /// What both sides are measured with.
    #[command(flatten)]
    pub run: RunFlags,
}

/// What a comparison comes to.
pub enum Asks {
    /// Of what was measured before: this is what it shows.
    Shown(Documents),
    /// Of a comparison that was measured before, in its folder.
    Finished(SweepRecord, PathBuf),
    /// To be measured now.
    Measured(SweepRecord, PathBuf),
}

/// Finds the two sides, or what is to be measured.
///
/// # Errors
/// [`UsageError`] for what cannot be had; folders without runs, of another version, or damaged.
pub fn begin(flags: &CompareFlags) -> Result<Asks> {
    let side =
        |flag: &str, text: &Option<String>| text.as_deref().map(|text| select::read(flag, text)).transpose();
    let (a, b) = (side("a", &flags.a)?, side("b", &flags.b)?);
    let folders: Vec<PathBuf> = flags.folders.iter().map(|name| folder_of(name)).collect::<Result<_>>()?;
    match (&folders[..], a, b) {
        ([], Some(a), Some(b)) => new(flags, &a, &b),
        ([one], None, None) => match read(one).ok().filter(|record| record.kind == "compare") {
            Some(record) => Ok(Asks::Finished(record, one.clone())),
            None => usage("one folder: name the two sides in it with --a and --b"),
        },
        ([one], Some(a), Some(b)) => {
            let cells = load(one)?;
            let (left, right) = (a.choose("a", &cells)?, b.choose("b", &cells)?);
            let named: Vec<&str> = a.pairs.iter().chain(&b.pairs).map(|(key, _)| key.as_str()).collect();
            let shown = shown(&report(&left, &right, &named)?)?;
            // A folder of runs may hold anything; a sweep's is its own.
            if one.join(SweepRecord::FILE).exists() {
                shown.save(one)?;
            }
            Ok(Asks::Shown(shown))
        }
        ([left, right], a, b) => {
            let chosen = |flag: &str, path: &Path, words: &Option<SideWords>| -> Result<Vec<Cell>> {
                let cells = load(path)?;
                Ok(match words {
                    Some(words) => words.choose(flag, &cells)?,
                    None => cells,
                })
            };
            let named: Vec<&str> =
                a.iter().chain(&b).flat_map(|w| &w.pairs).map(|(key, _)| key.as_str()).collect();
            Ok(Asks::Shown(shown(&report(&chosen("a", left, &a)?, &chosen("b", right, &b)?, &named)?)?))
        }
        _ => usage("give two folders, or both --a and --b: launcher compare --help shows how"),
    }
}

fn usage<T>(message: &str) -> Result<T> {
    Err(UsageError(message.into()).into())
}

/// Both sides measured now, alternated.
fn new(flags: &CompareFlags, a: &SideWords, b: &SideWords) -> Result<Asks> {
    let machine = crate::host::machine();
    let asked = Asked {
        base: flags.run.settings()?,
        weaker_sandbox: flags.run.common.allow_weaker_sandbox,
        ..Asked::default()
    };
    let sides = [("A", a), ("B", b)].map(|(letter, words)| Side {
        name: format!("{letter}: {}", super::load::words(&words.pairs)),
        settings: words.settings.clone(),
        rate: words.rate.clone(),
    });
    let layout = lay_out_sides(&asked, &sides, &machine)?;
    let mut record = new_record("compare", &asked, layout, REPEATS, machine, &flags.run.common)?;
    record.keep_logs = flags.keep_logs;
    let folder = create(&mut record)?;
    Ok(Asks::Measured(record, folder))
}

/// What a comparison that was measured shows.
///
/// # Errors
/// A record without two sides.
pub fn documents(record: &SweepRecord) -> Result<Documents> {
    let cells: Vec<Cell> = record
        .points
        .iter()
        .map(|point| {
            let name = point.name.split_once(": ").map_or(point.name.as_str(), |(_, words)| words);
            Cell { name: name.to_owned(), key: Vec::new(), runs: point.outlines() }
        })
        .collect();
    let [a, b] = &cells[..] else { return usage("this comparison has not two sides") };
    let comparisons = vec![compare(a, b)];
    shown(&Comparisons { comparisons, notes: documents::notes(record) })
}

/// What runs that were made now show against those of a folder: against the one setting that both have, if it has several.
///
/// # Errors
/// As [`begin`]; a folder without that setting.
pub fn against(baseline: &Path, runs: &[Summary]) -> Result<Documents> {
    let Some(ours) = of_summaries(runs) else {
        return usage("--baseline: nothing was run to compare with it");
    };
    let cells = load(baseline)?;
    let found = match &cells[..] {
        [only] => Some(only),
        several => several.iter().find(|cell| cell.key == ours.key),
    };
    match found {
        Some(found) => shown(&report(std::slice::from_ref(found), &[ours], &[])?),
        None => usage(&format!("--baseline {}: no run of this setting in it", baseline.display())),
    }
}

/// The documents of a report.
fn shown(report: &Comparisons) -> Result<Documents> {
    let grids = grids(report);
    Ok(Documents {
        name: "compare",
        heading: "Comparison".into(),
        notes: report.notes.clone(),
        narrow: grids.clone(),
        wide: grids,
        json: report.json()?,
        file: Some(Comparisons::FILE),
    })
}

/// Compares what belongs together: settings that are equal in all that the words do not name.
fn report(a: &[Cell], b: &[Cell], named: &[&str]) -> Result<Comparisons> {
    let mut report = Comparisons::default();
    if let ([a], [b]) = (a, b) {
        let comparison = compare(a, b);
        if let Some(why) = nothing(&comparison) {
            return usage(&format!("A and B cannot be compared: {why}"));
        }
        report.comparisons.push(comparison);
        return Ok(report);
    }
    let rest = |cell: &Cell| -> Vec<(String, String)> {
        cell.key.iter().filter(|(key, _)| !named.contains(&key.as_str())).cloned().collect()
    };
    for left in a {
        match b.iter().find(|right| rest(right) == rest(left)) {
            Some(right) => {
                let comparison = compare(left, right);
                match nothing(&comparison) {
                    Some(why) => {
                        report.notes.push(format!("{}: cannot be compared: {why}", words(&left.key)))
                    }
                    None => report.comparisons.push(comparison),
                }
            }
            None => report.notes.push(format!("{} has no counterpart in B", words(&left.key))),
        }
    }
    if let ([], [first, ..]) = (&report.comparisons[..], &report.notes[..])
        && first.contains("cannot be compared")
    {
        return usage(first);
    }
    if report.comparisons.is_empty() {
        return usage(
            "not comparable: A and B hold several settings and none is in both; choose with --a and --b, \
             for example --a isolation=thread --b isolation=process",
        );
    }
    Ok(report)
}

/// Why two cells have nothing that could be held against each other: a table of them would be dashes.
fn nothing(comparison: &Comparison) -> Option<String> {
    let why = &comparison.lines.first()?.why;
    let is_one = comparison.a == comparison.b
        && comparison.pairs > 0
        && why.iter().any(|why| why.contains("the same runs"));
    (is_one || comparison.pairs == 0).then(|| {
        let reasons: Vec<&str> = why.iter().chain(&comparison.caveats).map(String::as_str).collect();
        let remedy = if is_one { "name two" } else { "measure both with the same --seed, load and machine" };
        format!("{}; {remedy}", reasons.join("; "))
    })
}

/// The tables: with every stage where there is one comparison, of rt_venue alone where there are more.
fn grids(report: &Comparisons) -> Vec<Grid> {
    let single = report.comparisons.len() == 1;
    let numbered = |(number, comparison): (usize, &Comparison)| {
        let mut grid = grid(comparison, single);
        if !single {
            grid.name = format!("compare_{}", number + 1);
        }
        grid
    };
    report.comparisons.iter().enumerate().map(numbered).collect()
}
