//! Planned sweeps with made-up runs: made by several at once, doubled, foreign, changed; and gathered as if one
//! launcher had made them.

use super::join::{gather, join};
use super::make::{Done, one, runs};
use super::{of, places};
use crate::config::{Common, Settings};
use crate::experiments::axes::{Axis, read_values};
use crate::experiments::documents;
use crate::experiments::flags::Asked;
use crate::experiments::measure::{Made, Maker, measure};
use crate::experiments::points;
use crate::experiments::progress::Bar;
use crate::experiments::record::new_record;
use crate::experiments::sweep;
use crate::experiments::sweep::Chosen;
use crate::host::fake;
use crate::runtime::run::Interrupted;
use analysis::document::Document;
use analysis::experiment::{RunResult, SweepPlan, SweepRecord};
use analysis::record::Outcome;
use analysis::stats::fixtures;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A sweep of two levels, so many times.
fn record(repeats: u64) -> SweepRecord {
    let machine = fake::plain(2).machine();
    let axes = vec![read_values(Axis::Isolation, "thread,process").unwrap()];
    let mut asked = Asked { axes, ..Asked::default() };
    asked.base.repeats = Some(analysis::units::Count(repeats));
    let layout = points::lay_out(&asked, &machine).unwrap();
    new_record("sweep", &asked, layout, 5, machine, &Common::default()).unwrap()
}

pub(super) fn plan(repeats: u64) -> SweepPlan {
    of(record(repeats))
}

/// A run that was made up: its folder exists, without a summary.
fn made(settings: &Settings, host: &str) -> Made {
    let (seed, isolation) = (settings.seed.unwrap().0, settings.isolation.unwrap());
    let folder = settings.out.as_ref().unwrap().join(format!("{seed}-{isolation}"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("engine.stamps"), "x").unwrap();
    let by = if isolation.name() == "process" { 300.0 } else { 0.0 };
    let mut outline = fixtures::run(seed as usize, 1_000.0 + by + seed as f64);
    (outline.isolation, outline.run) = (isolation, format!("{seed}-{isolation}-{host}"));
    outline.machine.hostname = host.into();
    Made { folder, outcome: Outcome::Complete, outline }
}

fn make(plan: &SweepPlan, folder: &Path, index: u32, maker: &mut Maker<'_>) -> (Result<Done>, Vec<String>) {
    let mut said = Vec::new();
    let planned = &plan.runs[index as usize];
    let done = one(plan, folder, planned, "a", maker, &mut |text| said.push(text.to_owned()));
    (done, said)
}

fn make_all(plan: &SweepPlan, folder: &Path, host: &str) {
    for planned in &plan.runs {
        one(plan, folder, planned, host, &mut |settings| Ok(made(settings, host)), &mut |_| ()).unwrap();
    }
}

/// What a join finds wrong. The made-up runs have no summary, which is looked at after all that is told here.
fn wrong(plan: &SweepPlan, folder: &Path) -> String {
    format!("{:#}", join(plan, folder).err().expect("refused"))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn planned(repeats: u64) -> (TempDir, PathBuf, SweepPlan) {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(repeats);
    plan.save(folder.path()).unwrap();
    let path = folder.path().to_owned();
    (folder, path, plan)
}

#[test]
fn a_plan_lists_every_run_with_all_its_settings_and_keeps_the_alternation() {
    let (_folder, path, plan) = planned(3);
    let read = SweepPlan::read(&path).unwrap();
    assert_eq!(read, plan);
    let levels: Vec<&str> = plan.runs.iter().map(|run| run.settings["isolation"].as_str()).collect();
    assert_eq!(levels, ["thread", "process", "process", "thread", "thread", "process"]);
    let seeds: Vec<&str> = plan.runs.iter().map(|run| run.settings["seed"].as_str()).collect();
    assert_eq!(seeds, ["1", "1", "2", "2", "3", "3"]);
    assert_eq!(plan.runs.iter().map(|run| run.turn).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    for planned in &plan.runs {
        let settings = Settings::from_texts(&planned.settings).unwrap();
        assert!(settings.orders.is_some() && settings.technique.is_some(), "complete: {settings:?}");
    }
    // By hand: another load in one run.
    let text = fs::read_to_string(path.join(SweepPlan::FILE)).unwrap();
    let changed = text.replacen("\"repeat\": 2", "\"repeat\": 1", 1);
    assert_ne!(text, changed);
    fs::write(path.join(SweepPlan::FILE), changed).unwrap();
    assert!(SweepPlan::read(&path).unwrap_err().to_string().contains("changed after it was made"));
}

#[test]
fn runs_are_chosen_and_those_that_there_are_not_are_said() {
    let plan = plan(3);
    let indexes =
        |chosen| runs(&plan, chosen).map(|runs| runs.iter().map(|run| run.index).collect::<Vec<_>>());
    assert_eq!(indexes(Chosen::Runs(2, 3)).unwrap(), [2, 3]);
    assert_eq!(indexes(Chosen::Turn(2)).unwrap(), [4, 5]);
    assert_eq!(indexes(Chosen::All).unwrap(), [0, 1, 2, 3, 4, 5]);
    for none in [Chosen::Runs(5, 6), Chosen::Runs(6, 6), Chosen::Turn(3)] {
        assert!(indexes(none).unwrap_err().to_string().contains("6 runs in 3 turns"), "{none:?}");
    }
}

#[test]
fn a_run_is_made_once_and_its_logs_go() {
    let (_folder, path, plan) = planned(1);
    let (done, said) = make(&plan, &path, 0, &mut |settings| Ok(made(settings, "a")));
    assert!(matches!(done.unwrap(), Done::Made(_)) && said.is_empty(), "{said:?}");
    let files: Vec<_> =
        fs::read_dir(places::run(&path, 0)).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(files, [RunResult::FILE]);
    let (done, _) = make(&plan, &path, 0, &mut |_| panic!("it is made"));
    assert_eq!(done.unwrap().result().host, "a");
    assert_eq!(
        fs::read_dir(path.join(places::MAKING)).unwrap().count(),
        0,
        "nothing is in the making any more"
    );
}

#[test]
fn run_that_two_launchers_make_counts_once() {
    let (_folder, path, plan) = planned(1);
    // While the first one makes its run, another one is faster.
    let mut slow = |settings: &Settings| -> Result<Made> {
        make(&plan, &path, 0, &mut |settings| Ok(made(settings, "fast"))).0.unwrap();
        Ok(made(settings, "slow"))
    };
    let (done, said) = make(&plan, &path, 0, &mut slow);
    assert!(done.unwrap().result().run.outline.run.ends_with("fast"));
    assert!(said[0].contains("counts for nothing"), "{said:?}");
    assert_eq!(fs::read_dir(path.join(places::MAKING)).unwrap().count(), 0);
}

#[test]
fn an_interrupted_run_leaves_nothing_and_a_failed_one_is_made_anew() {
    let (_folder, path, plan) = planned(1);
    let (done, _) = make(&plan, &path, 0, &mut |_| Err(Interrupted.into()));
    assert!(done.unwrap_err().is::<Interrupted>());
    assert!(!places::run(&path, 0).exists());
    assert_eq!(
        fs::read_dir(path.join(places::MAKING)).map_or(0, Iterator::count),
        0,
        "nothing is left of it"
    );
    let mut failing = |settings: &Settings| {
        let mut made = made(settings, "a");
        made.outline.complete = false;
        Ok(made)
    };
    let (done, _) = make(&plan, &path, 0, &mut failing);
    assert!(!done.unwrap().result().run.outline.complete && places::run(&path, 0).exists());
    let (done, _) = make(&plan, &path, 0, &mut |settings| Ok(made(settings, "a")));
    assert!(done.unwrap().result().run.outline.complete);
}

#[test]
fn what_does_not_belong_to_a_plan_is_refused_and_named() {
    let (_folder, path, plan) = planned(1);
    make_all(&plan, &path, "a");
    let place = |index| places::run(&path, index);
    let (kept, away) = (path.join("kept"), path.join("away"));
    fs::rename(place(1), &kept).unwrap();
    // Doubled: one run's result in another's place.
    copy(&place(0), &place(1));
    assert!(wrong(&plan, &path).contains("0001: is the result of run 0: a copy"), "{}", wrong(&plan, &path));
    fs::remove_dir_all(place(1)).unwrap();
    // Of another plan.
    let (_other, other, foreign) = planned(2);
    make_all(&foreign, &other, "a");
    copy(&places::run(&other, 1), &place(1));
    assert!(wrong(&plan, &path).contains("0001: is of another plan"), "{}", wrong(&plan, &path));
    let refused = make(&plan, &path, 1, &mut |_| panic!("it must be looked at first")).0.unwrap_err();
    assert!(refused.to_string().contains("is of another plan"), "{refused}");
    fs::remove_dir_all(place(1)).unwrap();
    fs::rename(&kept, place(1)).unwrap();
    // Changed by hand: a better figure.
    let file = place(1).join(RunResult::FILE);
    let text = fs::read_to_string(&file).unwrap();
    let better = text.replacen("\"p50_ns\": 1301", "\"p50_ns\": 901", 1);
    assert_ne!(text, better, "{text}");
    fs::write(&file, better).unwrap();
    assert!(wrong(&plan, &path).contains("changed after it was made"), "{}", wrong(&plan, &path));
    fs::write(&file, &text[..text.len() / 2]).unwrap();
    assert!(wrong(&plan, &path).contains("cut short"), "{}", wrong(&plan, &path));
    fs::write(&file, text).unwrap();
    // Something that the plan never had.
    fs::rename(&file, place(1).join("aside")).unwrap();
    assert!(wrong(&plan, &path).contains("not the result of a run"), "{}", wrong(&plan, &path));
    fs::rename(place(1).join("aside"), &file).unwrap();
    for stranger in ["0002", "more"] {
        let stranger = path.join(places::RUNS).join(stranger);
        fs::create_dir(&stranger).unwrap();
        assert!(wrong(&plan, &path).contains("is no run of this plan"), "{}", wrong(&plan, &path));
        fs::rename(&stranger, &away).unwrap();
        fs::remove_dir(&away).unwrap();
    }
    assert!(wrong(&plan, &path).contains("summary.json"), "all of that is mended: {}", wrong(&plan, &path));
}

#[test]
fn a_run_s_id_is_its_host_s() {
    for (second, is_copy) in [("a", true), ("b", false)] {
        let (_folder, path, plan) = planned(1);
        for (planned, host) in plan.runs.iter().zip(["a", second]) {
            let mut twin = |settings: &Settings| {
                let mut made = made(settings, host);
                made.outline.run = "same".into();
                Ok(made)
            };
            one(&plan, &path, planned, host, &mut twin, &mut |_| ()).unwrap();
        }
        let gathered =
            gather(&plan, &path).map(|joined| joined.missing.len()).map_err(|error| error.to_string());
        if is_copy {
            assert!(gathered.unwrap_err().contains("0001: is the same run as 0000: a copy"));
        } else {
            assert_eq!(gathered, Ok(0));
        }
    }
}

#[test]
fn missing_runs_are_named() {
    let (_folder, path, plan) = planned(1);
    make(&plan, &path, 1, &mut |settings| Ok(made(settings, "a"))).0.unwrap();
    let joined = gather(&plan, &path).unwrap();
    assert_eq!(joined.missing, ["run 0 (isolation=thread, repeat 0)"]);
}

/// The same made-up runs, by one launcher and by three that share a plan: the same tables to the letter.
#[test]
fn a_planned_sweep_reports_what_a_local_one_does() {
    let local = tempfile::tempdir().unwrap();
    let mut sweep = record(4);
    let mut maker = |settings: &Settings| Ok(made(settings, "a"));
    measure(&mut sweep, local.path(), &mut maker, &mut Bar::new(false, 0)).unwrap();
    let (_folder, path, plan) = planned(4);
    std::thread::scope(|scope| {
        for worker in 0..3 {
            let (path, plan) = (&path, &plan);
            scope.spawn(move || {
                for planned in plan.runs.iter().filter(|run| run.turn % 3 == worker) {
                    one(plan, path, planned, "a", &mut |settings| Ok(made(settings, "a")), &mut |_| ())
                        .unwrap();
                }
            });
        }
    });
    let mut joined = gather(&plan, &path).unwrap().record;
    for (ours, theirs) in joined.points.iter().zip(&sweep.points) {
        let outlines = |point: &analysis::experiment::SweepPoint| {
            let runs = point.runs.clone();
            runs.into_iter().map(|run| (run.repeat, run.seed, run.outline)).collect::<Vec<_>>()
        };
        assert_eq!(outlines(ours), outlines(theirs));
    }
    let shown = |record: &SweepRecord| -> Vec<String> {
        let shown = sweep::documents(record).unwrap();
        let grids = shown.narrow.iter().map(|grid| grid.terminal(false));
        grids.chain(documents::notes(record)).collect()
    };
    joined.started.clone_from(&sweep.started);
    assert_eq!(shown(&joined), shown(&sweep));
}

#[test]
fn several_hosts_have_a_table_and_a_note_of_their_own() {
    let (_folder, path, plan) = planned(4);
    for planned in &plan.runs {
        let host = if planned.turn % 2 == 0 { "near" } else { "far" };
        one(&plan, &path, planned, host, &mut |settings| Ok(made(settings, host)), &mut |_| ()).unwrap();
    }
    let joined = gather(&plan, &path).unwrap().record;
    let notes = documents::notes(&joined).join("\n");
    assert!(notes.contains("measured on 2 hosts: near (4 runs, a processor), far (4 runs"), "{notes}");
    let shown = sweep::documents(&joined).unwrap();
    let by_host = shown.narrow.iter().find(|grid| grid.name == "by_host").expect("a table of hosts");
    assert_eq!(by_host.head, ["isolation", "runs", "near", "runs", "far"]);
    assert_eq!(by_host.rows[0].cells[1], "2");
}
