//! Planned sweeps with real runs: planned, made by several launchers, one of them killed in the
//! middle, and gathered.

use crate::common::{
    CommandResult, Running, busy_maker, command, document, entries, output, output_of, wait_until,
};
use std::path::Path;
use std::process::Command;

/// Runs that take a moment each.
const TINY: &str = "--strategies 1 --venues 1 --orders 500 --delay fixed:1ms --idle park";

/// `launcher sweep` with these words, of that folder.
fn sweep(arguments: &str, folder: &Path) -> CommandResult {
    output(&format!("sweep {arguments} {}", folder.display()))
}

fn plan(folder: &Path, window: &str, repeats: u32) -> String {
    let how = format!("--isolation thread,process --repeats {repeats} --window {window} {TINY} --plan");
    sweep(&how, folder).succeeds()
}

#[test]
fn planned_sweep_on_two_hosts_compares_within_each() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("sweep");
    let message = plan(&folder, "50ms", 2);
    let turn = |turn| format!("sweep --run turn:{turn} {}", folder.canonicalize().unwrap().display());
    let commands: Vec<&str> = message.lines().collect();
    let are_turns = commands.iter().enumerate().all(|(place, line)| line.ends_with(&turn(place)));
    assert!(commands.len() == 2 && are_turns, "{message}");
    let missing =
        sweep("--report full --join", &folder).fails(1, &["4 runs missing", "run 3 (", "--run all"]);
    assert!(missing.stdout.contains("0 of 4 runs are done"), "{missing:?}");
    for (arguments, host) in commands.iter().zip(["near", "far"]) {
        // As a scheduler runs it: by a shell, from anywhere.
        let mut command = Command::new("sh");
        command.args(["-c", arguments]).current_dir("/").env("BULKHEAD_HOST", host);
        let message = output_of(&mut command).succeeds();
        assert_eq!(message.matches(&format!("made on {host}")).count(), 2, "{message}");
    }
    let message = sweep("--run all", &folder).succeeds();
    assert_eq!(message.matches("had been made on").count(), 4, "{message}");
    let message = sweep("--report full --join", &folder).succeeds();
    for word in ["rt_venue p50", "rt_venue p50 by host", "near (2 runs", "far (2 runs"] {
        assert!(message.contains(word), "{word}:\n{message}");
    }
    assert!(message.lines().all(|line| line.chars().count() <= 80), "fits 80 columns:\n{message}");
    assert_eq!(document(&folder, "experiment.json")["state"], "complete");
    for file in ["sweep.md", "rows.csv", "by_host.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    assert!(!folder.join("making").exists());
    let path = folder.display();
    let compare = output(&format!("compare {path} --a isolation=thread --b isolation=process --report full"));
    // Which pairs are left on a busy machine, whose cores move, nobody knows: how hosts are
    // compared, tests of made-up runs show.
    let names_both =
        compare.stdout.contains("isolation=thread") && compare.stdout.contains("isolation=process");
    let too_few = compare.code != Some(0) && compare.stderr.contains("too few repeats");
    assert!(compare.code == Some(0) && names_both || too_few, "{compare:?}");
    output(&format!("sweep --resume {path}")).fails(2, &["a planned sweep", "--run all"]);
    let message = output(&format!("delete {path}")).succeeds();
    assert!(message.contains("deleted") && !folder.exists(), "{message}");
}

#[test]
fn killed_sweep_worker_is_replaced() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("sweep");
    plan(&folder, "1s", 1);
    let mut running = Running::spawn(&mut command(&format!("sweep --run all {}", folder.display())));
    let pid = running.pid();
    let results = || std::fs::read_dir(folder.join("runs")).into_iter().flatten().count();
    wait_until("a run is made", || results() == 1);
    wait_until("another is in the making", || busy_maker(pid).is_some());
    running.kill();
    running.end();
    assert_eq!(results(), 1, "in the middle");
    let message = sweep("--run all", &folder).succeeds();
    assert!(message.contains("had been made on") && message.contains(": made on"), "{message}");
    sweep("--join", &folder).succeeds();
    // A run's folder in another's place.
    let runs = entries(&folder.join("runs"));
    let kept = folder.join("runs/kept");
    for (from, to) in [(&runs[0], &kept), (&runs[1], &runs[0]), (&kept, &runs[1])] {
        std::fs::rename(from, to).unwrap();
    }
    sweep("--join", &folder).fails(1, &["runs/0000", "is not what the plan says of run 0"]);
}

#[test]
fn impossible_sweep_plan_is_refused_first() {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().join("sweep");
    for (arguments, wanted) in [
        ("--run 0", ["not the folder of an experiment"; 2]),
        ("", ["--plan, --run K or --join"; 2]),
        ("--plan", ["nothing to sweep over"; 2]),
        ("--plan --isolation thread,process --out x", ["--out with --plan"; 2]),
        ("--join --seed 4", ["--seed with a planned sweep"; 2]),
        ("--run 3-1", ["give a run's number"; 2]),
    ] {
        sweep(arguments, &folder).fails(2, &wanted);
    }
    output("sweep --join").fails(2, &["FOLDER"]);
    assert!(!folder.exists(), "nothing was begun");
    plan(&folder, "50ms", 1);
    sweep("--plan --isolation thread,process", &folder).fails(2, &["holds a plan"]);
    sweep("--run 2", &folder).fails(2, &["2 runs in 1 turns"]);
    // Of another version of bulkhead.
    let path = folder.join("experiment.json");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("bulkhead.experiment/1", "bulkhead.experiment/3")).unwrap();
    sweep("--join", &folder).fails(1, &["bulkhead.experiment/3", "use the launcher that wrote it"]);
}
