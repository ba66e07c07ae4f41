//! The lab with real processes: conservation at every level, deaths that are named, and nothing
//! left behind.

use crate::common::{Running, assert_nothing_left, command, family, signal, text, wait_for};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// `launcher lab` with its results in that folder.
fn lab(out: &Path, flags: &str) -> Command {
    let mut command = command(&["lab", "--out", out.to_str().unwrap()]);
    command.args(flags.split_whitespace());
    command
}

#[test]
fn lab_events_arrive_once_for_every_wait() {
    let out = tempfile::tempdir().unwrap();
    let grid = "--technique array-queue,pipe,std-mpsc --isolation thread,process,sandbox --wait busy,park --producers 2 \
                --consumers 1,2 --producer fast --consumer fast --events 501 --runs 1 --capacity 100 --json";
    let child = lab(out.path(), grid).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lab: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = lab["cells"].as_array().unwrap();
    // Two techniques at three levels, and the crate at thread; each parked and busy, with one
    // consumer and two.
    assert_eq!(cells.len(), (2 * 3 + 1) * 2 * 2);
    assert_eq!(lab["capacity"], 128);
    for cell in cells {
        let run = &cell["made"][0];
        assert_eq!(run["problems"], Value::Array(Vec::new()), "{cell:#}");
        assert_eq!(run["taken"], 501 * cell["consumers"].as_u64().unwrap(), "{cell:#}");
        assert!(run["consumer"]["cpu_ns"].as_u64().unwrap() > 0, "{cell:#}");
        let shares: f64 = run["shares"].as_array().unwrap().iter().map(|share| share.as_f64().unwrap()).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{cell:#}");
    }
    assert_nothing_left(pid);
    let folder = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    for file in ["lab.json", "lab.md", "cells.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let left: Vec<_> = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".stderr")), "{left:?}");
}

/// A lab whose one run lasts until it is ended, and its process of that name.
fn long(out: &Path, technique: &str, role: &str) -> (Running, u32) {
    let flags = format!(
        "--technique {technique} --wait park --producer slow --consumer fast --slow sleep:1ms --events 100k --runs 1"
    );
    let child = lab(out, &flags).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = Running { child };
    let named =
        || family(running.pid()).into_iter().find(|(_, line)| line.contains(&format!("role {role} ")));
    // Both are there, and have begun.
    let (pid, _) =
        wait_for("the run has its processes", || named().filter(|_| family(running.pid()).len() == 2));
    (running, pid)
}

#[test]
fn a_killed_end_is_named_and_leaves_nothing() {
    for (technique, role) in [("pipe", "lab-consumer-0"), ("array-queue", "lab-producer-0")] {
        let out = tempfile::tempdir().unwrap();
        let (running, pid) = long(out.path(), technique, role);
        let launcher = running.pid();
        signal(pid, "KILL");
        let (code, _, stderr) = running.end();
        assert_eq!(code, Some(1), "{stderr}");
        let said = format!("{role}: signal 9 (SIGKILL)");
        assert!(stderr.contains(&said), "{stderr}");
        assert_nothing_left(launcher);
    }
}

#[test]
fn interrupted_lab_resumes_and_killed_lab_cleans_up() {
    let out = tempfile::tempdir().unwrap();
    let (running, _) = long(out.path(), "unix-seqpacket", "lab-producer-0");
    let launcher = running.pid();
    signal(launcher, "INT");
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert!(stderr.contains("launcher lab --resume"), "{stderr}");
    assert_nothing_left(launcher);
    let folder = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    let resume = |flags: &[&str]| {
        command(&["lab", "--resume", folder.to_str().unwrap()]).args(flags).output().unwrap()
    };
    let refused = resume(&["--runs", "2"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    // What is missing is made: of a lab that asks for little.
    let path = folder.join("lab.json");
    let less = std::fs::read_to_string(&path).unwrap().replace("\"events\": 100000", "\"events\": 20");
    std::fs::write(&path, less).unwrap();
    let resumed = resume(&["--json"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    let lab: Value = serde_json::from_slice(&resumed.stdout).unwrap();
    assert_eq!(lab["cells"][0]["made"][0]["taken"], 20);

    let (mut running, _) = long(out.path(), "array-queue", "lab-consumer-0");
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    assert_nothing_left(running.pid());
}
