//! The lab with real processes: conservation at every level, deaths that are named, and nothing
//! left behind.

use crate::common::{Running, command, entries, family, list, newest, number, output, signal, wait_for};
use serde_json::json;
use std::path::Path;

/// Starts `launcher lab` with its results in that folder.
fn lab(out: &Path, flags: &str) -> Running {
    Running::spawn(&mut command(&format!("lab --out {} {flags}", out.display())))
}

#[test]
fn lab_events_arrive_once_for_every_wait() {
    let out = tempfile::tempdir().unwrap();
    let grid = "--technique array-queue,pipe,std-mpsc --isolation thread,process,sandbox --wait busy,park --producers 2 \
                --consumers 1,2 --producer fast --consumer fast --events 501 --runs 1 --capacity 100 --json";
    let result = lab(out.path(), grid).end();
    let lab = result.json();
    result.succeeds();
    let cells = list(&lab["cells"]);
    // Two techniques at three levels, and the crate at thread; each parked and busy, with one
    // consumer and two.
    assert_eq!(cells.len(), (2 * 3 + 1) * 2 * 2);
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

/// A lab whose one run lasts until it is ended, and its process of that name.
fn long(out: &Path, technique: &str, role: &str) -> (Running, u32) {
    let running = lab(
        out,
        &format!(
            "--technique {technique} --wait park --producer slow --consumer fast --slow sleep:1ms --events 100k --runs 1"
        ),
    );
    let pid = running.pid();
    // Both are there, and have begun.
    let process =
        wait_for("the run has its processes", || newest(pid, role, 0).filter(|_| family(pid).len() == 2));
    (running, process)
}

#[test]
fn a_killed_end_is_named_and_leaves_nothing() {
    for (technique, role) in [("pipe", "lab-consumer-0"), ("array-queue", "lab-producer-0")] {
        let out = tempfile::tempdir().unwrap();
        let (running, pid) = long(out.path(), technique, role);
        signal(pid, "KILL");
        running.end().fails(1, &[&format!("{role}: signal 9 (SIGKILL)")]);
    }
}

#[test]
fn interrupted_lab_resumes_and_killed_lab_cleans_up() {
    let out = tempfile::tempdir().unwrap();
    let (running, _) = long(out.path(), "unix-seqpacket", "lab-producer-0");
    running.interrupt().fails(130, &["launcher lab --resume"]);
    let folder = entries(out.path()).remove(0);
    let resume = format!("lab --resume {}", folder.display());
    output(&format!("{resume} --runs 2")).fails(2, &[]);
    // What is missing is made: of a lab that asks for little.
    let path = folder.join("experiment.json");
    let less = std::fs::read_to_string(&path).unwrap().replace("\"events\": 100000", "\"events\": 20");
    std::fs::write(&path, less).unwrap();
    let resumed = output(&format!("{resume} --json"));
    assert_eq!(resumed.json()["cells"][0]["made"][0]["taken"], 20);
    resumed.succeeds();

    let (running, _) = long(out.path(), "array-queue", "lab-consumer-0");
    signal(running.pid(), "KILL");
    running.end();
}
