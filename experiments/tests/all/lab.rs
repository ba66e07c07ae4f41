//! The lab with real processes: conservation at every level, named deaths, and complete clean-up.

use crate::common::{
    Launcher, Running, assert_nothing_left, command, entries, list, makers, newest_process, number, output,
    run_processes, signal, wait_for,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Starts `launcher lab` with its results in that folder.
fn lab(out: &Path, flags: &str) -> Running {
    Running::spawn(&mut command(&format!("lab --out {} {flags}", out.display()))).with_maker()
}

#[test]
fn lab_events_arrive_once_for_every_wait() {
    let out = tempfile::tempdir().unwrap();
    let grid = "--technique array-queue,pipe,std-mpsc --isolation thread,sandbox --wait busy,park --producers 2 \
                --consumers 2 --producer fast --consumer fast --events 501 --runs 1 --capacity 100 --json";
    let result = lab(out.path(), grid).end();
    let lab = result.json();
    result.succeeds();
    let cells = list(&lab["cells"]);
    // Two techniques at two levels, and the crate at thread; each parked and busy.
    assert_eq!(cells.len(), (2 * 2 + 1) * 2);
    assert_eq!(lab["capacity"], 128);
    for cell in cells {
        let run = &cell["made"][0];
        assert_eq!(run["problems"], json!([]), "{cell:#}");
        assert_eq!(run["taken"], 501 * number(&cell["consumers"]), "{cell:#}");
        assert!(number(&run["consumer"]["cpu_ns"]) > 0, "{cell:#}");
        let shares: f64 = list(&run["shares"]).iter().map(|share| share.as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{cell:#}");
    }
    let folder = entries(out.path()).remove(0);
    for file in ["experiment.json", "rows.csv", "lab.md", "cells.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let left = entries(&folder);
    assert!(!left.iter().any(|path| path.to_string_lossy().ends_with(".stderr")), "{left:?}");
}

/// A lab whose producers sleep, with two runs of each way of waiting.
const SLEEPERS: &str = "--technique crossbeam-array-queue,array-queue --isolation thread --wait busy,poll --producer slow \
                        --consumer fast --slow sleep:1ms --runs 2 --capacity 100 --json";

#[test]
fn only_cells_that_sleep_are_side_by_side() {
    let out = tempfile::tempdir().unwrap();
    let result = lab(out.path(), &format!("{SLEEPERS} --events 60")).end();
    let lab = result.json();
    result.succeeds();
    for cell in list(&lab["cells"]) {
        let made = list(&cell["made"]);
        assert_eq!(made.len(), 2, "{cell:#}");
        for run in made {
            assert_eq!((number(&run["taken"]), &run["problems"]), (60, &json!([])), "{cell:#}");
            let expected = if cell["wait"] == "poll" { json!(4) } else { Value::Null };
            assert_eq!(run["side_by_side"], expected, "{cell:#}");
        }
        let capacity = if cell["technique"] == "array-queue" { 128 } else { 100 };
        assert_eq!(cell["capacity"], capacity, "{cell:#}");
    }
    let figures = list(&lab["figures"]);
    assert_eq!(figures.len(), 4);
    assert!(figures.iter().all(|cell| cell["mean_ns"].as_f64() > Some(0.0)), "{figures:#?}");
}

#[test]
fn interrupted_side_by_side_runs_are_resumed() {
    let out = tempfile::tempdir().unwrap();
    let running =
        lab(out.path(), &format!("{SLEEPERS} --events 100000").replace("--wait busy,poll", "--wait park"));
    let makers = wait_for("four runs", || {
        let makers = makers(running.pid());
        (makers.len() == 4 && makers.iter().all(|maker| run_processes(*maker).len() > 1)).then_some(makers)
    });
    running.interrupt().fails(130, &["launcher resume"]);
    makers.into_iter().for_each(assert_nothing_left);
    let folder = entries(out.path()).remove(0);
    output(&format!("lab --resume {} --runs 2", folder.display())).fails(2, &[]);
    // The missing runs are made, here with fewer events.
    let path = folder.join("experiment.json");
    let smaller = std::fs::read_to_string(&path).unwrap().replace("\"events\": 100000", "\"events\": 20");
    std::fs::write(&path, smaller).unwrap();
    let result = output(&format!("resume {} --json", folder.display()));
    let cells = result.json();
    let made: Vec<u64> = list(&cells["cells"])
        .iter()
        .flat_map(|cell| list(&cell["made"]))
        .map(|run| number(&run["taken"]))
        .collect();
    assert_eq!(made, [20; 4]);
    result.succeeds();
}

/// The folder of the newest run of an experiment in that folder.
fn newest_run(out: &Path) -> PathBuf {
    let experiment = entries(out).pop().unwrap();
    entries(&experiment.join("runs")).pop().unwrap()
}

#[test]
fn lab_run_keeps_record_that_inspect_reads() {
    let out = tempfile::tempdir().unwrap();
    let flags = "--technique linked --wait park --producer fast --consumer fast --events 400 --runs 1";
    lab(out.path(), flags).end().succeeds();
    let run = newest_run(out.path());
    let record: Value = serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap();
    assert_eq!(record["outcome"]["ended"], "complete");
    assert_eq!(record["plan"]["workload"]["queue"]["events"], json!([400]));
    assert!(record["version"].is_string() && record["machine"]["kernel"].is_string());
    let inspected = output(&format!("inspect {} --json", run.display()));
    let threads: Vec<_> = list(&inspected.json()["logs"])
        .iter()
        .map(|log| (log["thread"].clone(), log["state"].clone()))
        .collect();
    let done = |name: &str| (json!(name), json!("done"));
    assert_eq!(threads, [done("producer-0"), done("consumer-0")]);
    let log = output(&format!("inspect {}", run.join("consumer-0.stamps").display()));
    assert!(log.stdout.contains("taken") && log.stdout.contains("400 events"), "{}", log.stdout);
    // It has no orders to report.
    for command in ["report", "inspect --worst 3", "export --csv orders.csv"] {
        output(&format!("{command} {}", run.display())).fails(2, &["sends no orders; launcher inspect"]);
    }
}

#[test]
fn contained_lab_delivers_every_event() {
    if Launcher::contained().is_none() {
        return;
    }
    let out = tempfile::tempdir().unwrap();
    let grid = "--technique array-queue,pipe --isolation container --wait park --producers 2 \
                --producer fast --consumer fast --events 300 --runs 1 --json";
    let result = lab(out.path(), grid).end();
    let cells = result.json();
    result.succeeds();
    let cells = list(&cells["cells"]);
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(
            (&cell["made"][0]["problems"], &cell["made"][0]["taken"]),
            (&json!([]), &json!(300)),
            "{cell:#}"
        );
    }
    let refused = "lab --technique unix-seqpacket --isolation container";
    output(refused).fails(2, &["Use another --technique"]);
}

/// A lab whose one run lasts until it is ended, and its process of that name.
fn start_endless_lab(out: &Path, technique: &str, role: &str) -> (Running, u32) {
    let running = lab(
        out,
        &format!(
            "--technique {technique} --wait park --producer slow --consumer fast --slow sleep:1ms --events 100k --runs 1"
        ),
    );
    let pid = running.maker();
    // Both are there, and the reaper.
    let process = wait_for("the run has its processes", || {
        newest_process(pid, role, 0).filter(|_| run_processes(pid).len() == 3)
    });
    (running, process)
}

#[test]
fn killed_lab_process_is_named_and_leaves_nothing() {
    let out = tempfile::tempdir().unwrap();
    let (running, pid) = start_endless_lab(out.path(), "pipe", "lab-consumer-0");
    signal(pid, "KILL");
    running.end().fails(1, &["lab-consumer-0: signal 9 (SIGKILL)"]);
}

/// The reaper saves what the ends had counted.
#[test]
fn killed_lab_cleans_up() {
    let out = tempfile::tempdir().unwrap();
    let (running, _) = start_endless_lab(out.path(), "unix-seqpacket", "lab-producer-0");
    wait_for("the run has begun", || newest_run(out.path()).join("run.json").exists().then_some(()));
    signal(running.pid(), "KILL");
    running.end();
    let run = newest_run(out.path());
    output(&format!("inspect {}", run.display())).succeeds();
}

#[test]
fn killed_maker_of_runs_is_named_and_finished_runs_stay() {
    let out = tempfile::tempdir().unwrap();
    // The slow cell is the second: its producer does nothing else.
    let flags = "--technique array-queue --wait park --producer fast,slow --consumer fast --slow sleep:1ms \
                 --events 20k --runs 1";
    let running = lab(out.path(), flags);
    let maker = running.maker();
    let second = || entries(&entries(out.path()).pop()?.join("runs")).get(1).cloned();
    wait_for("the second run has begun", || {
        let is_begun =
            entries(out.path()).pop()?.join("runs").exists() && second()?.join("run.json").exists();
        (is_begun && newest_process(maker, "lab-producer-0", 0).is_some()).then_some(())
    });
    signal(maker, "KILL");
    let named = format!("launcher benchmark (pid {maker}), which makes the runs, ended: signal: 9 (SIGKILL)");
    running.end().fails(1, &[&named, "what was finished is saved", "launcher resume"]);
    let folder = entries(out.path()).remove(0);
    let lab: Value = serde_json::from_slice(&std::fs::read(folder.join("experiment.json")).unwrap()).unwrap();
    let taken: Vec<&Value> = list(&lab["rows"])
        .iter()
        .map(|row| &row["figures"]["taken"])
        .filter(|taken| !taken.is_null())
        .collect();
    assert_eq!(taken, [20_000], "{lab:#}");
}
