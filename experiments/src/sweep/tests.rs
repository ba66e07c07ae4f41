//! Sweeps with made-up runs: order, seeds, saving, going on, failing; and what their tables say.

use crate::busy::{self, Load};
use crate::flags::{SweepRequest, read_values};
use crate::measure::{MeasureEnd, MeasuredRun, RunMaker, measure, measure_unless, shorten};
use crate::points;
use crate::progress::SweepProgress;
use crate::record::{new_record, read};
use crate::search::search;
use analysis::experiment::{
    ALL, Axis, Experiment, ExperimentRuns, ExperimentState, Figures, Kind, RateSearch, SearchLimits, Setting,
    sweep,
};
use analysis::stats::{Percentile, RunOutline, fixtures};
use anyhow::{Result, anyhow};
use planner::config::{Common, Settings};
use planner::host::fake;
use planner::host::signals::Interrupted;
use record::document::Document;
use record::run::RunOutcome;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use verdict::report::grid::Grid;

/// What most of these sweeps vary.
const LEVELS: [(Axis, &str); 1] = [(Axis::Isolation, "thread,process")];

pub(super) fn record(axes: &[(Axis, &str)], repeats: u64) -> Experiment {
    let machine = fake::plain(2).machine();
    let mut asked = SweepRequest {
        axes: axes.iter().map(|(axis, list)| read_values(*axis, list).unwrap()).collect(),
        ..SweepRequest::default()
    };
    asked.base.repeats = Some(record::units::Count(repeats));
    let mut record = new_record(Kind::Sweep, &asked, 5, machine, &Common::default());
    points::lay_out(&mut record, &asked).unwrap();
    record
}

/// A run that took 1 µs, and twice the work on top: its folder exists and has a log.
fn made(settings: &Settings) -> MeasuredRun {
    let (seed, work) = (settings.seed.unwrap().0, settings.work.unwrap_or_default().0);
    let isolation = settings.isolation.unwrap();
    let folder = settings.out.as_ref().unwrap().join(format!("{seed}-{work}-{isolation}"));
    fs::create_dir_all(&folder).unwrap();
    for file in ["config.yaml", "engine.stamps", "summary.json"] {
        fs::write(folder.join(file), "x").unwrap();
    }
    let mut outline = fixtures::run(seed as usize, 1_000.0 + 2.0 * work as f64);
    (outline.isolation, outline.work_ns) = (isolation, work);
    outline.run = format!("{seed}-{work}-{isolation}");
    outline.work_done_ns = Some(1.01 * work as f64);
    outline.utilization = Some(0.1 + work as f64 / 10_000.0);
    MeasuredRun { folder, outcome: RunOutcome::Complete, outline: Some(outline), extra: Figures::default() }
}

/// The outline of an invented run.
const fn outline(made: &mut MeasuredRun) -> &mut RunOutline {
    made.outline.as_mut().expect("an invented run has its figures")
}

/// A table of a sweep.
fn table(sweep: &Experiment, name: &str) -> Option<Grid> {
    sweep::report(&ExperimentRuns::new(sweep)).tables(ALL).find(|grid| grid.name == name).cloned()
}

fn bar() -> SweepProgress {
    SweepProgress::new(false, 0)
}

/// The same; processes take 300 ns more.
fn made_of_two(settings: &Settings) -> MeasuredRun {
    let mut made = made(settings);
    if outline(&mut made).isolation.to_string() == "process" {
        let figures = outline(&mut made).measures.get_mut("rt_venue").unwrap();
        figures.p50_ns = figures.p50_ns.map(|ns| ns + 300);
    }
    made
}

/// The same, which holds a rate below 100,000/s or does not.
fn tried(settings: &Settings, is_good: bool) -> MeasuredRun {
    let mut made = made(settings);
    let rate = settings.orders.unwrap().0 as f64 / (settings.window.unwrap().0 as f64 / 1e9);
    let figures = outline(&mut made).measures.get_mut("rt_venue_from_due").unwrap();
    figures.p999_ns = Some(if is_good && rate <= 100_000.0 { 50_000 } else { 150_000 });
    made
}

/// A search over axes on a machine of two cores.
fn searched(axes: &[(Axis, &str)], first_per_s: f64, repeats: u64) -> Experiment {
    let mut sweep = record(axes, repeats);
    sweep.kind = Kind::MaxRate;
    let limits = SearchLimits {
        bound_ns: 100_000,
        percentile: Percentile::P999,
        max_steps: 20,
        first_per_s,
        max_open: None,
    };
    sweep.figures.insert(SearchLimits::NAME, &limits);
    sweep.rows.retain(|row| row.repeat == 0);
    sweep
}

fn run_search(sweep: &mut Experiment, folder: &TempDir, make: &mut RunMaker<'_>) -> MeasureEnd {
    search(sweep, folder.path(), make, &mut bar(), false).unwrap()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Measures a sweep over axes with made-up runs, in a folder of its own.
fn measured(
    axes: &[(Axis, &str)],
    repeats: u64,
    make: &mut RunMaker<'_>,
) -> (Experiment, MeasureEnd, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = record(axes, repeats);
    let ended = measure(&mut sweep, folder.path(), make, &mut bar()).unwrap();
    (sweep, ended, folder)
}

/// Makes `count` runs with that function, and is interrupted then.
fn interrupted_after(
    mut count: usize,
    make: fn(&Settings) -> MeasuredRun,
) -> impl FnMut(&Settings) -> Result<MeasuredRun> {
    move |settings| {
        count = count.checked_sub(1).ok_or(Interrupted)?;
        Ok(make(settings))
    }
}

#[test]
fn shortened_record_keeps_whole_repeats() {
    let runs_of = |limit: usize| {
        let (mut sweep, ..) = measured(&LEVELS, 9, &mut interrupted_after(limit, made));
        shorten(&mut sweep);
        let runs = ExperimentRuns::new(&sweep).points;
        let runs: Vec<usize> = runs.iter().map(|point| point.runs.len()).collect();
        (sweep.repeats, runs, sweep.state)
    };
    assert_eq!(runs_of(7), (3, vec![3, 3], ExperimentState::Complete), "the fourth repeat was half made");
    assert_eq!(runs_of(1), (1, vec![1], ExperimentState::Complete), "the other setting has no run");
}

#[test]
fn stopped_sweep_resumes_with_missing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = record(&LEVELS, 2);
    for (stop, outcome) in [(2, Some(Interrupted)), (1, None)] {
        let mut left = stop;
        let mut make = |settings: &Settings| -> Result<MeasuredRun> {
            left -= 1;
            match (left, outcome) {
                (0, Some(interrupted)) => {
                    made(settings);
                    Err(interrupted.into())
                }
                (0, None) => Ok(MeasuredRun { outcome: RunOutcome::Interrupted, ..made(settings) }),
                _ => Ok(made(settings)),
            }
        };
        let ended = measure(&mut sweep, folder.path(), &mut make, &mut bar()).unwrap();
        assert_eq!((ended, sweep.state), (MeasureEnd::Interrupted, ExperimentState::Interrupted));
        assert_eq!(sweep.made().count(), 1);
        assert_eq!(files(folder.path()), ["1-0-thread", Experiment::FILE], "what was not finished is gone");
    }
    let mut sweep = Experiment::read(folder.path()).unwrap();
    let mut rest = interrupted_after(3, made);
    assert_eq!(measure(&mut sweep, folder.path(), &mut rest, &mut bar()).unwrap(), MeasureEnd::Complete);
    assert_eq!(sweep.made().count(), 4);
}

#[test]
fn a_run_that_failed_is_kept_and_tried_again() {
    let usable = |sweep: &Experiment| {
        sweep.made().filter(|row| row.outline().is_some_and(|run| run.is_usable())).count()
    };
    let (mut sweep, _, folder) = measured(&LEVELS, 1, &mut |settings| {
        let mut made = made(settings);
        outline(&mut made).complete = false;
        Ok(made)
    });
    assert_eq!((sweep.made().count(), usable(&sweep)), (2, 0));
    measure(&mut sweep, folder.path(), &mut |settings| Ok(made(settings)), &mut bar()).unwrap();
    assert_eq!((sweep.made().count(), usable(&sweep)), (2, 2));
}

#[test]
fn unwritable_folder_stops_sweep_and_keeps_saved_runs() {
    let root = tempfile::tempdir().unwrap();
    let (folder, aside) = (root.path().join("sweep"), root.path().join("aside"));
    fs::create_dir(&folder).unwrap();
    let mut sweep = record(&LEVELS, 1);
    let mut number = 0;
    let mut make = |settings: &Settings| {
        number += 1;
        let made = made(settings);
        if number == 2 {
            // What is written there from here on finds no folder.
            fs::rename(&folder, &aside)?;
        }
        Ok(made)
    };
    let error = format!("{:#}", measure(&mut sweep, &folder, &mut make, &mut bar()).unwrap_err());
    assert!(error.contains("No such file") && error.contains(" resume "), "{error}");
    fs::rename(&aside, &folder).unwrap();
    let mut saved = Experiment::read(&folder).unwrap();
    assert_eq!(saved.made().count(), 1);
    let mut failing = |_: &Settings| Err(anyhow!("no room in /dev/shm"));
    let error = measure(&mut sweep, &folder, &mut failing, &mut bar());
    assert!(error.is_ok(), "nothing is missing any more in this record");
    let error = measure(&mut saved, &folder, &mut failing, &mut bar()).unwrap_err();
    assert!(format!("{error:#}").contains("no room in /dev/shm"), "{error:#}");
}

#[test]
fn unmet_precondition_leaves_no_folder() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("sweep");
    let fail = |other: Option<&str>| {
        let mut sweep = record(&LEVELS, 1);
        fs::create_dir(&folder).unwrap();
        sweep.save(&folder).unwrap();
        other.into_iter().for_each(|file| fs::write(folder.join(file), "").unwrap());
        let mut failing = |_: &Settings| Err(anyhow!("no room in /dev/shm"));
        let error = format!("{:#}", measure(&mut sweep, &folder, &mut failing, &mut bar()).unwrap_err());
        (error, folder.exists())
    };
    assert_eq!(fail(None), ("no room in /dev/shm".to_owned(), false));
    // What an earlier call has published stays.
    let (error, is_kept) = fail(Some("rows.csv"));
    assert!(is_kept && error.contains("finished runs are saved"), "{error}");
}

#[test]
fn a_sweep_is_being_measured_while_its_launcher_lives() {
    let mut sweep = record(&[], 1);
    sweep.set_launcher();
    assert!(sweep.is_being_measured());
    let (pid, start) = sweep.launcher;
    sweep.launcher = (pid, start + 1);
    assert!(!sweep.is_being_measured(), "another process of that number");
    sweep.set_launcher();
    sweep.state = ExperimentState::Interrupted;
    assert!(!sweep.is_being_measured());
}

#[test]
fn invalid_setting_of_a_saved_sweep_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = record(&[], 1);
    sweep.rows[0].setting.settings.insert("venues".into(), "two".into());
    sweep.save(folder.path()).unwrap();
    let error = format!("{:#}", read(folder.path()).unwrap_err());
    assert!(error.contains("venues: \"two\" is not a count"), "{error}");
}

#[test]
fn the_tables_have_the_layout_of_the_seed_benchmark() {
    let axes = [LEVELS[0], (Axis::Work, "0ns,500ns,1us")];
    let (sweep, ..) = measured(&axes, 5, &mut |settings| Ok(made_of_two(settings)));
    let [p50, p99, p999] = ["p50", "p99", "p999"].map(|at| table(&sweep, &format!("rt_venue_{at}")).unwrap());
    let wanted = "\
| orch_work           |    thread | process |
|---------------------|-----------|---------|
| 0 ns                | **1,000** |   1,300 |
| 500 ns (505 done)   | **2,000** |   2,300 |
| 1000 ns (1010 done) | **3,000** |   3,300 |";
    assert!(p50.markdown().contains(wanted), "{}", p50.markdown());
    assert_eq!(p99.rows[0].cells, ["0 ns", "2,000", "2,000"]);
    assert_eq!(p999.rows[0].cells, ["0 ns", "–", "–"]);
}

#[test]
fn interrupted_sweep_counts_repeats_and_marks_no_winner() {
    for (runs, expected, marked) in [
        (2, "of one run each, of 5 asked for: no winner is marked", false),
        (3, "median over 1 to 2 repeats, of 5 asked for", false),
        // A lower median of two repeats each proves nothing.
        (4, "median over 2 repeats, of 5 asked for", false),
        (10, "median over 5 repeats;", true),
    ] {
        let (sweep, ..) = measured(&LEVELS, 5, &mut interrupted_after(runs, made_of_two));
        let p50 = table(&sweep, "rt_venue_p50").unwrap();
        assert!(p50.notes[0].starts_with(expected), "{runs}: {}", p50.notes[0]);
        assert_eq!(!p50.rows[0].best.is_empty(), marked, "{runs}");
    }
}

#[test]
fn near_and_far_cores_have_columns_of_their_own() {
    assert_eq!(table(&record(&LEVELS, 4), "by_floor"), None);
    let (sweep, ..) = measured(&LEVELS, 4, &mut |settings| {
        let mut made = made(settings);
        if settings.seed.unwrap().0 > 3 {
            let run = outline(&mut made);
            (run.core_rtt_ns, run.core_rtt_after_ns) = (Some(310.0), Some(320.0));
            outline(&mut made).measures.get_mut("rt_venue").unwrap().p50_ns = Some(2_500);
        }
        Ok(made)
    });
    let grid = table(&sweep, "by_floor").unwrap();
    assert_eq!(grid.head, ["isolation", "runs", "floor 100 ns", "runs", "floor 315 ns"]);
    assert_eq!(grid.rows[0].cells, ["thread", "3", "1,000", "1", "2,500"]);
}

#[test]
fn repeats_that_lie_far_apart_are_said_in_words() {
    let (sweep, ..) = measured(&LEVELS, 3, &mut |settings| {
        let mut made = made(settings);
        if settings.seed.unwrap().0 == 2 {
            outline(&mut made).measures.get_mut("rt_venue").unwrap().p50_ns = Some(901_580);
        }
        Ok(made)
    });
    let note = &table(&sweep, "rt_venue_p50").unwrap().notes[0];
    assert!(note.contains("far apart") && note.contains("901 times") && !note.contains('%'), "{note}");
}

#[test]
fn search_alternates_saves_every_step_and_resumes() {
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = searched(&LEVELS, 20_000.0, 1);
    // Threads hold 100,000/s, processes nothing.
    let of_threads =
        |settings: &Settings| tried(settings, settings.isolation.unwrap().to_string() == "thread");
    let ended = run_search(&mut sweep, &folder, &mut interrupted_after(4, of_threads));
    assert_eq!(ended, MeasureEnd::Interrupted);
    let mut sweep = Experiment::read(folder.path()).unwrap();
    let steps = RateSearch::all(&sweep).unwrap().into_iter().map(|search| search.steps.len());
    assert_eq!(steps.collect::<Vec<_>>(), [2, 2]);
    let ended = run_search(&mut sweep, &folder, &mut |settings| Ok(of_threads(settings)));
    assert_eq!(ended, MeasureEnd::Complete);
    let found = RateSearch::all(&sweep).unwrap();
    let highest = found[0].highest_per_s.unwrap();
    assert!((95_000.0..=100_000.0).contains(&highest), "{highest}");
    assert_eq!(found[1].highest_per_s, None);
    assert!(found[1].ended.contains("even the lowest"), "{}", found[1].ended);
}

/// Searches on a machine that holds 100,000/s and stalls once, at the first run, with `repeats`
/// runs a rate. The highest rate found, and in how many runs.
fn found_with_a_stall(repeats: u64) -> (Option<f64>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let mut sweep = searched(&[], 200.0, repeats);
    let mut runs = 0;
    let ended = run_search(&mut sweep, &folder, &mut |settings| {
        runs += 1;
        Ok(tried(settings, runs > 1))
    });
    assert_eq!(ended, MeasureEnd::Complete);
    let saved = RateSearch::all(&Experiment::read(folder.path()).unwrap()).unwrap();
    let first = &saved[0].steps[0];
    assert!(first.held == (repeats > 1) && first.why.starts_with("p99.9"), "{first:?}");
    assert!((repeats == 1 || first.runs_held == 2) && first.folders.len() as u64 == repeats, "{first:?}");
    (saved[0].highest_per_s, runs)
}

#[test]
fn one_stall_does_not_mislead_a_search_that_repeats() {
    let (highest, runs) = found_with_a_stall(3);
    assert!((95_000.0..=100_000.0).contains(&highest.unwrap()), "{highest:?} in {runs} runs");
    // The broken variant: one run a rate. The lowest rate is lost, and with it everything.
    assert_eq!(found_with_a_stall(1), (None, 1));
}

#[test]
fn search_bounds_the_percentile_that_was_asked_for() {
    // p99.9 is beyond the bound at every rate, p99 from 100,000/s on.
    let highest = |percentile| {
        let folder = tempfile::tempdir().unwrap();
        let mut sweep = searched(&[], 20_000.0, 1);
        let limits = SearchLimits { percentile, ..SearchLimits::from_experiment(&sweep).unwrap() };
        sweep.figures.insert(SearchLimits::NAME, &limits);
        let ended = run_search(&mut sweep, &folder, &mut |settings| {
            let mut made = tried(settings, false);
            let rate = settings.orders.unwrap().0 as f64 / (settings.window.unwrap().0 as f64 / 1e9);
            let figures = outline(&mut made).measures.get_mut("rt_venue_from_due").unwrap();
            figures.p99_ns = Some(if rate <= 100_000.0 { 50_000 } else { 120_000 });
            Ok(made)
        });
        assert_eq!(ended, MeasureEnd::Complete);
        let search = RateSearch::all(&Experiment::read(folder.path()).unwrap()).unwrap().remove(0);
        let failed = search.steps.iter().find(|step| !step.held).unwrap();
        let prefix = format!("{} ", percentile.name());
        assert!(failed.why.starts_with(&prefix) && failed.bounded_ns(&limits).is_some(), "{failed:?}");
        search.highest_per_s
    };
    assert_eq!(highest(Percentile::P999), None);
    assert!((95_000.0..=100_000.0).contains(&highest(Percentile::P99).unwrap()));
}

#[test]
fn bill_given_up_keeps_its_whole_repeats() {
    for (is_busy, ended, repeats) in [(true, MeasureEnd::GivenUp, 2), (false, MeasureEnd::Complete, 5)] {
        let folder = tempfile::tempdir().unwrap();
        let mut bill = Experiment { kind: Kind::Bill, time_limit_s: Some(300), ..record(&LEVELS, 5) };
        let mut settings = bill.settings();
        let first = settings[0].clone();
        settings.push(Setting { name: format!("{} A/A", first.name), is_aa_test: true, ..first });
        bill.plan_rows(&settings);
        let mut number = 0;
        let mut make = |settings: &Settings| {
            number += 1;
            let noisy = fixtures::run(number, 1_000.0 * 100f64.powi(number as i32 % 3));
            Ok(MeasuredRun { outline: Some(noisy), ..made(settings) })
        };
        let load = Load::with_runnable(if is_busy { 9.0 } else { 0.1 }, 2);
        let give_up = |bill: &Experiment| busy::give_up_reason(bill, || Some(load));
        let found = measure_unless(&mut bill, folder.path(), &mut make, &mut bar(), &give_up).unwrap();
        assert_eq!((found, bill.state), (ended, ExperimentState::Complete));
        assert_eq!((bill.repeats, bill.rows.len()), (repeats, 3 * repeats as usize));
        assert_eq!(bill.notes.iter().any(|note| note.starts_with("given up after 2 of 5")), is_busy);
        assert_eq!(read(folder.path()).unwrap().notes, bill.notes, "it is saved");
    }
}
