//! Planned sweeps with real runs: planned, made by several launchers, one of them killed in the
//! middle, and gathered.

use super::{done, json, refused};
use crate::common::{command, family, signal, text, wait_until};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs that take a moment each.
const TINY: &[&str] =
    &["--strategies", "1", "--venues", "1", "--orders", "500", "--delay", "fixed:1ms", "--idle", "yield"];

fn sweep(words: &[&str], folder: &Path) -> Command {
    let mut command = command(&["sweep"]);
    command.args(words).arg(folder);
    command
}

fn plan(folder: &Path, window: &str, repeats: &str) -> String {
    let mut command =
        sweep(&["--isolation", "thread,process", "--repeats", repeats, "--window", window], folder);
    command.arg("--plan").args(TINY);
    done(&mut command)
}

#[test]
fn planned_sweep_on_two_hosts_compares_within_each() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("sweep");
    let said = plan(&folder, "50ms", "2");
    let turn = |turn| format!("sweep --run turn:{turn} {}", folder.canonicalize().unwrap().display());
    let commands: Vec<&str> = said.lines().collect();
    assert!(
        commands.len() == 2 && commands[0].ends_with(&turn(0)) && commands[1].ends_with(&turn(1)),
        "{said}"
    );
    let missing =
        refused(&mut sweep(&["--join"], &folder), 1, &["4 runs are missing", "run 3 (", "--run all"]);
    assert!(text(&missing.stdout).contains("0 of 4 runs are done"), "{}", text(&missing.stdout));
    for (words, host) in commands.iter().zip(["near", "far"]) {
        // As a scheduler runs it: by a shell, from anywhere.
        let mut command = Command::new("sh");
        command.args(["-c", words]).current_dir("/").env("BULKHEAD_HOST", host);
        let said = done(&mut command);
        assert_eq!(said.matches(&format!("made on {host}")).count(), 2, "{said}");
    }
    let said = done(&mut sweep(&["--run", "all"], &folder));
    assert_eq!(said.matches("had been made on").count(), 4, "{said}");
    let said = done(&mut sweep(&["--join"], &folder));
    for word in ["rt_venue p50", "rt_venue p50 by host", "near (2 runs", "far (2 runs"] {
        assert!(said.contains(word), "{word}:\n{said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 80), "fits 80 columns:\n{said}");
    let record = json(&folder.join("sweep.json"));
    assert_eq!(record["state"], "complete");
    for file in ["sweep.md", "runs.csv", "by_host.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    assert!(!folder.join("making").exists());
    let path = folder.to_str().unwrap();
    let compare =
        command(&["compare", path, "--a", "isolation=thread", "--b", "isolation=process"]).output().unwrap();
    let said = text(&compare.stdout);
    // Which pairs are left on a busy machine, whose cores move, nobody knows: how hosts are
    // compared, tests of made-up runs show.
    let names_both = said.contains("isolation=thread") && said.contains("isolation=process");
    let why_not = text(&compare.stderr);
    let too_few = !compare.status.success() && why_not.contains("too few repeats");
    assert!((compare.status.success() && names_both) || too_few, "{said}{why_not}");
    refused(&mut command(&["sweep", "--resume", path]), 2, &["a planned sweep", "--run all"]);
    let said = done(&mut command(&["delete", path]));
    assert!(said.contains("deleted") && !folder.exists(), "{said}");
}

#[test]
fn killed_sweep_worker_is_replaced() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("sweep");
    plan(&folder, "1s", "1");
    let mut child =
        sweep(&["--run", "all"], &folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let results = || std::fs::read_dir(folder.join("runs")).into_iter().flatten().count();
    wait_until("a run is made", || results() == 1);
    wait_until("another is in the making", || family(child.id()).len() > 1);
    signal(child.id(), "KILL");
    child.wait().unwrap();
    wait_until("all processes are gone", || family(child.id()).is_empty());
    assert_eq!(results(), 1, "in the middle");
    let output = sweep(&["--run", "all"], &folder).output().unwrap();
    let (said, beside) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{beside}");
    assert!(said.contains("had been made on") && said.contains(": made on"), "{said}");
    done(&mut sweep(&["--join"], &folder));
}

#[test]
fn impossible_sweep_plan_is_refused_first() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("sweep");
    refused(&mut sweep(&["--run", "0"], &folder), 2, &["not the folder of a planned sweep", "--plan FOLDER"]);
    refused(&mut sweep(&[], &folder), 2, &["--plan, --run K or --join"]);
    refused(&mut sweep(&["--plan"], &folder), 2, &["nothing to sweep over"]);
    refused(
        &mut sweep(&["--plan", "--isolation", "thread,process", "--out", "x"], &folder),
        2,
        &["--out with --plan"],
    );
    refused(&mut sweep(&["--join", "--seed", "4"], &folder), 2, &["--seed with a planned sweep"]);
    refused(&mut sweep(&["--run", "3-1"], &folder), 2, &["give a run's number"]);
    refused(&mut command(&["sweep", "--join"]), 2, &["FOLDER"]);
    assert!(!folder.exists(), "nothing was begun");
    plan(&folder, "50ms", "1");
    refused(&mut sweep(&["--plan", "--isolation", "thread,process"], &folder), 2, &["holds a plan"]);
    refused(&mut sweep(&["--run", "2"], &folder), 2, &["2 runs in 1 turns"]);
    // Of another version of bulkhead.
    let path = folder.join("plan.json");
    let other =
        std::fs::read_to_string(&path).unwrap().replace("bulkhead.sweep-plan/2", "bulkhead.sweep-plan/3");
    std::fs::write(&path, other).unwrap();
    refused(
        &mut sweep(&["--join"], &folder),
        1,
        &["bulkhead.sweep-plan/3", "use the launcher that wrote it"],
    );
}
