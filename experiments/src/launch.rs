//! Makes the runs of an experiment with real processes.

use super::busy::{self, GIVEN_UP, Load};
use super::launcher::Launcher;
use super::measure::{MeasureEnd, MeasuredRun, RunMaker, is_missing, measure, measure_unless, shorten};
use super::progress::{Pace, SweepProgress};
use super::record::discard_unrecorded_runs;
use super::search::search;
use super::{extra_figures, pairs};
use analysis::experiment::{Experiment, SearchLimits, StormSearch};
use anyhow::{Context, Result};
use indicatif::HumanDuration;
use planner::config::Settings;
use planner::host::Machine;
use planner::host::signals::{self, Interrupted, Signals};
use planner::{self, Input};
use record::document::Document;
use record::numbers::counted;
use std::path::Path;
use std::time::{Duration, Instant};

/// An experiment that takes longer announces its expected time.
const MIN_ANNOUNCED: Duration = Duration::from_secs(10);
/// What a run takes in addition to its window and its longest delay: start, end, merge. A guess
/// for small runs.
const RUN_OVERHEAD: Duration = Duration::from_millis(1_300);

/// Returns the number of an experiment's missing runs and the time that they will take. For a
/// search, the maximum number of rates and of the time for all of their runs. `None` for a recorded
/// flow, whose length is not known here.
pub(super) fn expected_time(record: &Experiment, machine: &Machine) -> Option<(u32, Duration)> {
    let mut missing = 0u32;
    let mut time = Duration::ZERO;
    let limits = SearchLimits::from_experiment(record).ok();
    for setting in record.settings() {
        let of_setting = || record.rows.iter().filter(|row| row.setting.name == setting.name);
        let settings = Settings::from_texts(&record.settings_of(of_setting().next()?)).ok()?;
        let resolved = planner::resolve(&settings, machine).ok()?;
        let Input::Drawn { window_ns, .. } = resolved.input else { return None };
        let each = Duration::from_nanos(window_ns.saturating_add(resolved.settings.delay().max_ns))
            .saturating_add(RUN_OVERHEAD);
        let (rows, runs) = match &limits {
            Some(limits) => (limits.max_steps, limits.max_steps.saturating_mul(record.repeats)),
            None => [of_setting().filter(|row| is_missing(record, row)).count() as u32; 2].into(),
        };
        missing = missing.saturating_add(rows);
        time = time.saturating_add(each.saturating_mul(runs));
    }
    Some((missing, time))
}

/// Returns the number of all runs of an experiment; of a search, of all rates that may be tried.
pub(super) fn total_runs(record: &Experiment) -> usize {
    let limits = SearchLimits::from_experiment(record).ok();
    limits.map_or(record.rows.len(), |limits| record.settings().len() * limits.max_steps as usize)
}

/// Returns the announcement of the missing runs; `None` for those that take a moment. Runs that are
/// made in addition to earlier ones of the experiment, of which the pace is known, are always
/// announced.
fn announcement(record: &Experiment, (missing, time): (u32, Duration), is_more: bool) -> Option<String> {
    let entry = record.kind.entry();
    let at_most = if entry.is_search { "at most " } else { "" };
    let (noun, purpose) = match is_more {
        true if is_storm_search(record) => ("more run", " at other rates"),
        true if entry.has_pairs => ("more run", " for lost pairs"),
        true => ("more run", ""),
        false if entry.is_search => ("rate", ""),
        false => ("run", ""),
    };
    // What replaces lost pairs is not in the time.
    let most = pairs::max_repeats(record) as usize * record.settings().len();
    let has_budget = !is_more && most > total_runs(record);
    let budget = if has_budget { format!(" ({most} at most)") } else { String::new() };
    (is_more || time > MIN_ANNOUNCED).then(|| {
        let (runs, time) = (counted(missing as u64, noun), HumanDuration(time));
        format!("{at_most}{runs}{purpose}{budget}, about {time}; Ctrl-C keeps what was measured")
    })
}

/// Returns `true` if an experiment searches the heaviest storm.
fn is_storm_search(record: &Experiment) -> bool {
    record.figures.part::<StormSearch>(StormSearch::NAME).is_ok_and(|search| search.is_some())
}

/// Calls `work` with a function that makes one run of the experiment in `record` each time it is
/// called. Runs have real processes; Ctrl-C ends a run.
pub fn with_maker<T>(record: &Experiment, work: impl FnOnce(&mut RunMaker<'_>) -> Result<T>) -> Result<T> {
    let signals = Signals::catch().context("cannot catch Ctrl-C")?;
    let start_timeout = Duration::from_nanos(record.start_timeout_ns);
    let launcher = Launcher { weaker_sandbox: record.weaker_sandbox, start_timeout, signals: &signals };
    work(&mut |settings: &Settings| -> Result<MeasuredRun> {
        let finished = launcher.run(settings)?;
        let extra = extra_figures(record.kind, settings, &finished)?;
        Ok(MeasuredRun { extra, ..finished.into() })
    })
}

/// Returns the number of runs of the repeats that were asked for and are not planned yet: they
/// follow as far as the time limit allows.
fn later_runs(record: &Experiment) -> u32 {
    let later = record.asked_repeats.saturating_sub(record.repeats);
    record.time_limit_s.map_or(0, |_| later.saturating_mul(record.settings().len() as u32))
}

/// Adds the `later` runs of an experiment with a time limit to the missing runs and their time.
fn with_later_runs((missing, time): (u32, Duration), later: u32, limit: Option<Duration>) -> (u32, Duration) {
    let all = missing.saturating_add(later);
    let whole = time.mul_f64(f64::from(all) / f64::from(missing.max(1)));
    (all, limit.map_or(whole, |limit| whole.min(limit.max(time))))
}

/// Makes the missing runs of an experiment, and shows the progress unless `quiet`. `pace` is that
/// of its earlier runs, and of all afterwards. Before the first run, a busy machine's `slowdown`
/// lengthens the expected time.
pub fn measure_missing(
    record: &mut Experiment,
    folder: &Path,
    quiet: bool,
    pace: &mut Pace,
    slowdown: f64,
) -> Result<MeasureEnd> {
    record.notes.retain(|note| !note.starts_with(GIVEN_UP));
    let expected = expected_time(record, &planner::host::machine());
    let expected = expected.map(|(missing, time)| (missing, time.mul_f64(slowdown)));
    let measured = expected.and_then(|(missing, _)| Some((missing, pace.time_for(missing)?)));
    let is_more = measured.is_some();
    let limit = record.time_limit_s.map(Duration::from_secs);
    let later = if is_more { 0 } else { later_runs(record) };
    let expected = measured.or(expected.map(|missing| with_later_runs(missing, later, limit)));
    let announced = expected.map_or(Duration::ZERO, |(_, time)| time);
    let bar = SweepProgress::new(!quiet, total_runs(record));
    let mut bar = if quiet { bar } else { bar.correcting(*pace, announced, later, limit) };
    let message = expected.and_then(|expected| announcement(record, expected, is_more));
    if let Some(message) = message.filter(|_| !quiet) {
        bar.print_line(&message);
    }
    let ended = with_maker(&record.clone(), |make| {
        if record.kind.entry().is_search {
            return search(record, folder, make, &mut bar, !quiet);
        }
        measure_unless(record, folder, make, &mut bar, &|record| {
            busy::give_up_reason(record, || Load::sample(record.machine.cores_online))
        })
    });
    bar.clear();
    *pace = bar.pace();
    ended
}

/// Makes the missing runs of an experiment until the time `until`, and then shortens the record to
/// whole repeats. `show` is called with the number of each run. Returns why it stopped before that,
/// if a run could not begin.
pub fn measure_until(
    record: &mut Experiment,
    folder: &Path,
    until: Instant,
    show: &dyn Fn(u32),
) -> Result<(MeasureEnd, Option<String>)> {
    let (began, mut made) = (Instant::now(), 0);
    let mut bar = SweepProgress::new(false, 0);
    let ended = with_maker(&record.clone(), |make| {
        let mut make_in_time = |settings: &Settings| -> Result<MeasuredRun> {
            let each = began.elapsed() / u32::max(made, 1);
            if Instant::now() + each > until {
                return Err(Interrupted.into());
            }
            made += 1;
            show(made);
            make(settings)
        };
        measure(record, folder, &mut make_in_time, &mut bar)
    });
    let failure = match ended {
        Ok(ended) if ended == MeasureEnd::Complete || signals::is_end_requested() => {
            return Ok((ended, None));
        }
        Ok(_) => None,
        // The error recommends resuming the experiment, which a survey does not do: only its cause
        // counts.
        Err(error) if record.made().next().is_some() => Some(error.root_cause().to_string()),
        Err(error) => return Err(error),
    };
    shorten(record);
    record.save(folder)?;
    discard_unrecorded_runs(record, folder);
    Ok((MeasureEnd::Complete, failure))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::SweepRequest;
    use crate::record::new_record;
    use analysis::experiment::{Kind, Setting};
    use planner::config::Common;

    #[test]
    fn short_experiments_announce_added_runs_only() {
        let machine = planner::host::fake::plain(2).machine();
        let record = new_record(Kind::Compare, &SweepRequest::default(), 1, machine, &Common::default());
        let message = |seconds, is_more| announcement(&record, (4, Duration::from_secs(seconds)), is_more);
        assert_eq!(message(8, false), None);
        assert!(message(48, false).is_some_and(|message| message.starts_with("4 runs, about 48 seconds")));
        assert!(
            message(8, true).is_some_and(|message| message.starts_with("4 more runs for lost pairs, about"))
        );
    }

    /// A regression: a bill announced its first five repeats of up to fifteen.
    #[test]
    fn announced_time_includes_later_repeats() {
        let machine = planner::host::fake::plain(2).machine();
        let record = new_record(Kind::Bill, &SweepRequest::default(), 5, machine, &Common::default());
        let mut record = Experiment { repeats: 5, asked_repeats: 15, time_limit_s: Some(300), ..record };
        let setting = |name: &str| Setting { name: name.into(), ..Setting::default() };
        record.plan_rows(&["thread", "process"].map(setting));
        let later = later_runs(&record);
        let whole = |seconds| {
            let limit = record.time_limit_s.map(Duration::from_secs);
            let (runs, time) = with_later_runs((10, Duration::from_secs(seconds)), later, limit);
            (runs, time.as_secs())
        };
        assert_eq!([whole(20), whole(200), whole(400)], [(30, 60), (30, 300), (30, 400)]);
        let unlimited = Experiment { time_limit_s: None, ..record };
        assert_eq!(later_runs(&unlimited), 0, "lost pairs are announced when they are replaced");
    }

    #[test]
    fn announcements_fit_80_columns() {
        let machine = planner::host::fake::plain(2).machine();
        let widest = |kind, is_more| {
            let mut record =
                new_record(kind, &SweepRequest::default(), 1, machine.clone(), &Common::default());
            record.plan_rows(&[Setting {
                name: "A".into(),
                values: [].into(),
                settings: [].into(),
                ..Setting::default()
            }]);
            record.asked_repeats = 3_000;
            let minutes = [1, 47, 47 * 60, 400 * 24 * 60];
            let times = minutes.map(|minutes| Duration::from_secs(60 * minutes));
            let expected = times.map(|time| announcement(&record, (9_000, time), is_more).unwrap());
            expected.into_iter().max_by_key(|expected| expected.chars().count()).unwrap()
        };
        let expected =
            [widest(Kind::Compare, false), widest(Kind::Compare, true), widest(Kind::MaxRate, false)];
        for (expected, part) in expected.iter().zip([" at most), ", " more runs for lost pairs", "at most "])
        {
            assert!(expected.contains(part) && expected.chars().count() <= 80, "{expected}");
        }
    }
}
