//! `launcher compare`: whether B is faster or slower than A, or no difference is seen.
//!
//! A and B are runs, folders of runs, sweeps, two settings within one sweep, or two settings
//! measured now in alternation. Whichever they are, they become pairs of outlines with the same
//! schedule; [`analysis::stats`] judges.

mod gate;
mod load;
mod selector;

use super::dry_run::dry_run;
use super::flags::SweepRequest;
use super::measure::MeasureEnd;
use super::points::{Candidate, lay_out_sides};
use super::publish::{OutputForm, print, publish};
use super::record::{new_record, read};
use super::{ExperimentFlags, measure_experiment, usage};
use analysis::experiment::{
    Answer, ComparedSettings, Comparison, Comparisons, Endpoint, Experiment, ExperimentRuns, Kind, compare,
};
use analysis::stats::Margin;
use anyhow::Result;
use catalog::folder_of;
use clap::Args;
use load::{SettingRuns, format_setting, group, load};
use planner::config::{RunFlags, Slower, Undecided, UsageError};
use planner::host::Machine;
use record::document::Document;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use verdict::summary::Summary;

pub use gate::check_gate;
pub(super) use selector::SideSelector;

/// The repeats of a comparison that is measured now.
const REPEATS: u64 = 10;

/// The command-line flags of `launcher compare`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct CompareFlags {
    /// Two runs or folders of runs (`latest`: the last run in runs); or one, with --a and --b; or
    /// none
    #[arg(value_name = "FOLDER", num_args = 0..=2)]
    folders: Vec<PathBuf>,
    /// A in words: KEY=VALUE,… chosen from the folder, or measured
    #[arg(long, value_name = "WORDS")]
    a: Option<String>,
    /// B in words
    #[arg(long, value_name = "WORDS")]
    b: Option<String>,
    /// Largest difference that counts as none: a time, a percentage, or the larger of both
    /// [default: 10ns,5%]
    #[arg(long, value_name = "MARGIN", conflicts_with = "folders")]
    margin: Option<Margin>,
    /// Exit with code 1 if B's rt_venue_from_due is slower by more than that, with 3 if that cannot
    /// be told
    #[arg(long, value_name = "SHARE")]
    fail_if_slower: Option<Slower>,
    /// Keep every run's stamp logs (large)
    #[arg(long, help_heading = "Run")]
    keep_logs: bool,
    /// Print the runs that would be made, in their order, and stop
    #[arg(long, conflicts_with = "folders", help_heading = "Run")]
    dry_run: bool,
    #[command(flatten)]
    run: RunFlags,
}

/// Runs `launcher compare`: compares the settings A and B that the flags select, and measures them
/// if necessary.
pub fn run(flags: &CompareFlags) -> Result<ExitCode> {
    let json = flags.run.common.json;
    let (a, b) = sides(flags)?;
    let folders: Vec<PathBuf> = flags.folders.iter().map(|name| folder_of(name)).collect::<Result<_>>()?;
    let mut code = ExitCode::SUCCESS;
    if flags.dry_run {
        return dry_run(&flags.plan(planner::host::machine())?);
    }
    let comparisons = match (&folders[..], &a, &b) {
        ([], Some(_), Some(_)) => {
            let (mut record, folder) = flags.begin()?;
            let ended = measure_experiment(&mut record, &folder, json)?;
            record.save(&folder)?;
            let shown = record.answer(&folder)?;
            code = publish(&record, &folder, &shown, &flags.run.common, ended)?;
            if ended == MeasureEnd::Interrupted {
                return Ok(code);
            }
            of_record(&record)?
        }
        ([one], None, None) => {
            let Some(record) = read(one).ok().filter(|record| record.kind.entry().has_sides) else {
                return usage("one folder: name the two sides in it with --a and --b");
            };
            code = publish(&record, one, &record.answer(one)?, &flags.run.common, MeasureEnd::Complete)?;
            of_record(&record)?
        }
        ([one], Some(a), Some(b)) => {
            let found = within(one, a, b)?;
            show(&found, OutputForm::from_flags(&flags.run.common))?;
            found
        }
        ([left, right], a, b) => {
            let chosen = |path: &Path, side: &Option<SideSelector>| -> Result<Vec<SettingRuns>> {
                let cells = load(path)?;
                Ok(side.as_ref().map_or(Ok(cells.clone()), |side| side.choose(&cells))?)
            };
            let named: Vec<&SideSelector> = a.iter().chain(b).collect();
            let found =
                compare_settings(&chosen(left, a)?, &chosen(right, b)?, &named, &Endpoint::default())?;
            show(&found, OutputForm::from_flags(&flags.run.common))?;
            found
        }
        _ => return usage("give two folders, or both --a and --b: launcher compare --help shows how"),
    };
    if let Some(gate) = flags.fail_if_slower {
        check_gate(gate, &comparisons)?;
    }
    Ok(code)
}

/// Prints the report of comparisons of settings, as text or JSON.
pub fn show(comparisons: &Comparisons, form: OutputForm) -> Result<()> {
    print(&Answer { report: compare::report(comparisons), json: comparisons.json()? }, form)
}

fn sides(flags: &CompareFlags) -> Result<(Option<SideSelector>, Option<SideSelector>)> {
    let side =
        |flag, text: &Option<String>| text.as_deref().map(|text| SideSelector::parse(flag, text)).transpose();
    Ok((side("a", &flags.a)?, side("b", &flags.b)?))
}

/// Compares two sides in a folder. The comparison is saved in that of a sweep.
pub(super) fn within(folder: &Path, a: &SideSelector, b: &SideSelector) -> Result<Comparisons> {
    let cells = load(folder)?;
    let record = read(folder).ok();
    let endpoint = record.as_ref().map_or_else(Endpoint::default, |record| record.endpoint.clone());
    let found = compare_settings(&a.choose(&cells)?, &b.choose(&cells)?, &[a, b], &endpoint)?;
    // A folder of runs may hold anything; a sweep's is its own.
    if let Some(mut record) = record {
        if !record.kind.entry().has_sides {
            let pairs = found.comparisons.iter().map(|one| [one.a.clone(), one.b.clone()]).collect();
            record.compared = Some(ComparedSettings { pairs, notes: found.notes.clone() });
            record.save(folder)?;
        }
        compare::report(&found).save(folder)?;
    }
    Ok(found)
}

impl ExperimentFlags for CompareFlags {
    /// The runs of A and B alternate.
    fn plan(&self, machine: Machine) -> Result<Experiment> {
        let (Some(a), Some(b)) = sides(self)? else { return usage("give both --a and --b") };
        let asked = SweepRequest { base: self.run.settings()?, ..SweepRequest::default() };
        let sides = [("A", a), ("B", b)].map(|(letter, side)| Candidate {
            name: format!("{letter}: {}", format_setting(&side.pairs)),
            own: side.settings,
            values: side.rate.into_iter().collect(),
        });
        let mut record = new_record(Kind::Compare, &asked, REPEATS, machine, &self.run.common);
        record.keep_logs = self.keep_logs;
        record.endpoint.margin = self.margin.unwrap_or_default();
        lay_out_sides(&mut record, &asked, sides)?;
        Ok(record)
    }

    fn out(&self) -> Result<Option<PathBuf>> {
        Ok(self.run.settings()?.out)
    }
}

/// The two sides of a record, compared.
fn of_record(record: &Experiment) -> Result<Comparisons> {
    Ok(Comparisons::from_runs(&ExperimentRuns::new(record)).map_err(UsageError)?)
}

/// Compares new runs with the saved runs of a baseline folder. Against the one setting that both
/// have, if the folder has several.
pub fn against(baseline: &Path, runs: &[Summary]) -> Result<Comparisons> {
    let Some(ours) = group(runs).into_iter().next() else {
        return usage("--baseline: nothing was run to compare with it");
    };
    let cells = load(baseline)?;
    let found = match &cells[..] {
        [only] => Some(only),
        several => several.iter().find(|cell| cell.key == ours.key),
    };
    match found {
        Some(found) => compare_settings(std::slice::from_ref(found), &[ours], &[], &Endpoint::default()),
        None => undecided(format!("--baseline {}: no run of this setting in it", baseline.display())),
    }
}

/// Compares what belongs together: settings that are equal in all that the sides do not name.
fn compare_settings(
    a: &[SettingRuns],
    b: &[SettingRuns],
    sides: &[&SideSelector],
    endpoint: &Endpoint,
) -> Result<Comparisons> {
    let is_single = a.len() == 1 && b.len() == 1;
    let mut report = Comparisons::default();
    let rest = |cell: &SettingRuns| -> Vec<(String, String)> {
        let is_named = |key: &str| sides.iter().flat_map(|side| &side.pairs).any(|(named, _)| named == key);
        cell.key.iter().filter(|(key, _)| !is_named(key)).cloned().collect()
    };
    for left in a {
        let Some(right) = b.iter().find(|right| is_single || rest(right) == rest(left)) else {
            report.notes.push(format!("{} has no counterpart in B", format_setting(&left.key)));
            continue;
        };
        let comparison = Comparison::new((&left.name, &left.runs), (&right.name, &right.runs), endpoint);
        match why_incomparable(&comparison) {
            Some((Remedy::NameTwo, why)) if is_single => {
                return usage(format!("A and B cannot be compared: {why}"));
            }
            Some((Remedy::MeasureBoth, why)) if is_single => {
                return undecided(format!("A and B cannot be compared: {why}"));
            }
            Some((_, why)) => {
                report.notes.push(format!("{}: cannot be compared: {why}", format_setting(&left.key)))
            }
            None => report.comparisons.push(comparison),
        }
    }
    if !report.comparisons.is_empty() {
        return Ok(report);
    }
    match report.notes.first() {
        Some(first) if first.ends_with(NAME_TWO) => usage(first),
        Some(first) if first.contains("cannot be compared") => undecided(first),
        _ => usage(
            "not comparable: A and B hold several settings and none is in both; choose with --a and --b, \
             for example --a isolation=thread --b isolation=process",
        ),
    }
}

fn undecided<T>(message: impl Into<String>) -> Result<T> {
    Err(Undecided(message.into()).into())
}

/// What a user can do about two sides that are the same runs.
const NAME_TWO: &str = "name two";

/// What a user can do about two sides that cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    /// Both sides are the same runs.
    NameTwo,
    MeasureBoth,
}

/// Why two cells have nothing that could be held against each other: a table of them would be
/// dashes.
fn why_incomparable(comparison: &Comparison) -> Option<(Remedy, String)> {
    let why = &comparison.lines.first()?.why;
    let is_one = comparison.a == comparison.b
        && comparison.pairs > 0
        && why.iter().any(|why| why.contains("the same runs"));
    (is_one || comparison.pairs == 0).then(|| {
        let reasons: Vec<&str> = why.iter().chain(&comparison.caveats).map(String::as_str).collect();
        let (remedy, text) = match is_one {
            true => (Remedy::NameTwo, NAME_TWO),
            false => (Remedy::MeasureBoth, "measure both with the same --seed, load and machine"),
        };
        (remedy, format!("{}; {text}", reasons.join("; ")))
    })
}

#[cfg(test)]
mod tests {
    use super::super::forecast::warnings;
    use super::*;
    use clap::Parser;
    use planner::host::fake;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        flags: CompareFlags,
    }

    fn warned(cores: u32, line: &str) -> Vec<String> {
        let arguments = ["compare", "--a", "isolation=thread", "--b"].into_iter().chain(line.split(' '));
        let flags = TestCommandLine::try_parse_from(arguments).unwrap().flags;
        warnings(&flags.plan(fake::plain(cores).machine()).unwrap())
    }

    #[test]
    fn plan_that_cannot_be_comparable_is_found() {
        assert_eq!(warned(2, "isolation=process"), [""; 0]);
        // A regression: parked strategies that share a core were never compared.
        assert_eq!(warned(2, "isolation=process --strategies 8 --idle park"), [""; 0]);
        for (line, wanted) in [
            // A regression: 60 runs were made before this was said.
            (
                "isolation=process --strategies 8 --idle spin",
                "shared cores: threads wait for each other in 2 of 2",
            ),
            ("isolation=thread,venues=2", "other schedule: A and B differ in venues"),
            ("isolation=process --repeats 3", "no verdicts: 3 repeats, 5 are needed"),
        ] {
            let found = warned(2, line);
            assert!(found.len() == 1 && found[0].contains(wanted), "{line}: {found:?}");
        }
        assert_eq!(warned(16, "isolation=process --strategies 8 --idle park"), [""; 0]);
    }
}
