//! Planned sweeps with made-up runs: made by several at once, foreign ones refused, gathered as if
//! one launcher had made them.

use super::*;
use crate::measure::{MeasuredRun, measure};
use crate::progress::SweepProgress;
use crate::sweep::tests::record;
use analysis::experiment::{Axis, ExperimentRuns, sweep};
use analysis::stats::fixtures;
use tempfile::TempDir;

/// The file with a made-up run's figures.
const FIGURES: &str = "figures.json";

/// A plan of two levels with this number of repeats, in a folder of its own.
fn planned(repeats: u64) -> (TempDir, PlannedSweep) {
    let folder = tempfile::tempdir().unwrap();
    let sweep = record(&[(Axis::Isolation, "thread,process")], repeats);
    Experiment { is_shared: true, ..sweep }.save(folder.path()).unwrap();
    let read = |place: &Path| Ok(serde_json::from_slice(&fs::read(place.join(FIGURES))?)?);
    let planned = PlannedSweep { outline: read, ..PlannedSweep::read(folder.path()).unwrap() };
    (folder, planned)
}

/// A run that was made up on that host.
fn made(settings: &Settings, host: &str) -> MeasuredRun {
    let (seed, isolation) = (settings.seed.unwrap().0, settings.isolation.unwrap());
    let folder = settings.out.as_ref().unwrap().join(format!("{seed}-{isolation}"));
    let mut outline = fixtures::run(seed as usize, 1_000.0 + seed as f64);
    outline.isolation = isolation;
    outline.machine.hostname = host.into();
    fs::create_dir_all(&folder).unwrap();
    settings.save(&folder).unwrap();
    fs::write(folder.join("engine.stamps"), "x").unwrap();
    fs::write(folder.join(FIGURES), serde_json::to_vec(&outline).unwrap()).unwrap();
    MeasuredRun { folder, outcome: RunOutcome::Complete, outline: Some(outline), extra: Figures::default() }
}

fn make(planned: &PlannedSweep, number: usize, make: &mut RunMaker<'_>) -> Result<(GatheredRun, bool)> {
    planned.one(number, make)
}

fn in_the_making(planned: &PlannedSweep) -> usize {
    fs::read_dir(planned.folder.join(IN_PROGRESS)).map_or(0, Iterator::count)
}

#[test]
fn runs_are_chosen_by_number_turn_or_all() {
    let (_folder, planned) = planned(3);
    let chosen = |text: &str| planned.chosen(text.parse()?).map_err(|error| error.to_string());
    let level = |row: &Row| row.setting.values[&Axis::Isolation].clone();
    let levels: Vec<String> = planned.sweep.rows.iter().map(level).collect();
    assert_eq!(levels, ["thread", "process", "process", "thread", "thread", "process"], "alternated");
    for (text, wanted) in
        [("2-3", &[2, 3][..]), ("turn:2", &[4, 5]), ("all", &[0, 1, 2, 3, 4, 5]), ("4", &[4])]
    {
        assert_eq!(chosen(text).unwrap(), wanted, "{text}");
    }
    for none in ["5-6", "6", "turn:3"] {
        assert!(chosen(none).unwrap_err().contains("6 runs in 3 turns"), "{none}");
    }
    for wrong in ["", "-", "3-1", "+3", "turn:", "turn:x", "4294967296", "1-2-3", "every"] {
        assert!(chosen(wrong).unwrap_err().contains("give a run's number"), "{wrong:?}");
    }
}

#[test]
fn run_is_made_once_also_by_two_launchers() {
    let (_folder, planned) = planned(1);
    // While the first one makes its run, another one is faster.
    let mut slow = |settings: &Settings| {
        make(&planned, 0, &mut |settings| Ok(made(settings, "fast"))).unwrap();
        Ok(made(settings, "slow"))
    };
    let (entry, is_mine) = make(&planned, 0, &mut slow).unwrap();
    assert_eq!((entry.outline.machine.hostname.as_str(), is_mine), ("fast", false));
    assert!(!make(&planned, 0, &mut |_| panic!("it is made")).unwrap().1);
    let files = fs::read_dir(planned.folder.join("runs/0000")).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, [CONFIG_FILE, FIGURES], "its logs are gone");
    assert_eq!(in_the_making(&planned), 0);
}

#[test]
fn interrupted_run_leaves_nothing_and_failed_run_repeats() {
    let (_folder, planned) = planned(1);
    assert!(make(&planned, 0, &mut |_| Err(Interrupted.into())).unwrap_err().is::<Interrupted>());
    assert!(!planned.folder.join("runs/0000").exists() && in_the_making(&planned) == 0);
    let mut failing = |settings: &Settings| {
        let mut made = made(settings, "a");
        made.outline.as_mut().unwrap().complete = false;
        fs::write(made.folder.join(FIGURES), serde_json::to_vec(&made.outline)?)?;
        Ok(made)
    };
    assert!(!make(&planned, 0, &mut failing).unwrap().0.outline.complete);
    assert!(make(&planned, 0, &mut |settings| Ok(made(settings, "a"))).unwrap().0.outline.complete);
}

#[test]
fn foreign_run_folders_are_refused_and_named() {
    let (_folder, planned) = planned(1);
    make(&planned, 1, &mut |settings| Ok(made(settings, "a"))).unwrap();
    assert_eq!(planned.gather().unwrap().1, ["run 0 (isolation=thread, repeat 0)"]);
    let wrong = || planned.gather().unwrap_err().to_string();
    let place = |name: &str| planned.folder.join(RUNS).join(name);
    // One run's folder in another's place.
    fs::rename(place("0001"), place("0000")).unwrap();
    assert!(wrong().contains("0000: is not what the plan says of run 0"), "{}", wrong());
    let refused = make(&planned, 0, &mut |_| panic!("it must be looked at first")).unwrap_err();
    assert!(refused.to_string().contains("is not what the plan says"), "{refused}");
    for stranger in ["0002", "more"] {
        fs::rename(place("0000"), place(stranger)).unwrap();
        assert!(wrong().contains("is no run of this plan"), "{}", wrong());
        fs::rename(place(stranger), place("0000")).unwrap();
    }
    fs::rename(place("0000"), place("0001")).unwrap();
    planned.gather().unwrap();
}

/// The same made-up runs, by one launcher and by three that share a plan: the same tables to the
/// letter.
#[test]
fn planned_sweep_reports_what_a_local_one_does() {
    let (_folder, planned) = planned(4);
    let local = tempfile::tempdir().unwrap();
    let mut sweep = planned.sweep.clone();
    let mut maker = |settings: &Settings| Ok(made(settings, "a"));
    measure(&mut sweep, local.path(), &mut maker, &mut SweepProgress::new(false, 0)).unwrap();
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let planned = &planned;
            scope.spawn(move || {
                let turns = planned.turns.iter().enumerate();
                for (number, _) in turns.filter(|(_, turn)| **turn % 3 == worker) {
                    planned.one(number, &mut |settings| Ok(made(settings, "a"))).unwrap();
                }
            });
        }
    });
    let joined = planned.gather().unwrap().0;
    let message = |sweep| sweep::report(&ExperimentRuns::new(sweep)).terminal(false);
    assert_eq!(message(&joined), message(&sweep));
}
