//! Live sweeps, comparisons and bills: counts, structure and verdicts, never a latency.

use super::{json, only, refused};
use crate::common::{Running, assert_nothing_left, command, family, signal, text, wait_until};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use tempfile::TempDir;

/// Runs that take a moment each.
const TINY: &str = "--strategies 1 --venues 2 --orders 500 --window 50ms --delay fixed:1ms --idle yield";

/// `launcher` with a folder of its own as `--out`, and these words and more of them.
fn launcher(out: &TempDir, words: &str, more: &str) -> std::process::Command {
    let mut command = command(&words.split_whitespace().chain(more.split_whitespace()).collect::<Vec<_>>());
    command.args(["--out", out.path().to_str().unwrap()]);
    command
}

fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(text(&output.stderr), "", "no progress where there is no terminal");
    text(&output.stdout)
}

/// Finished runs in a sweep's record.
fn runs(sweep: &Value) -> Vec<Value> {
    let points = sweep["points"].as_array().unwrap().iter();
    points.flat_map(|point| point["runs"].as_array().unwrap().clone()).collect()
}

fn narrow(text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 80), "fits 80 columns:\n{text}");
    assert!(!text.contains('\u{1b}'), "no colours");
}

const SWEEP: &str = "sweep --isolation thread,process";

/// Starts an experiment of 2 points × 2 repeats and ends it by a signal while a run after the first
/// `finished` ones goes on.
fn killed(out: &TempDir, name: &str, experiment: &str, finished: usize) -> (PathBuf, Option<i32>) {
    let words = format!("{experiment} --repeats 2 --window 700ms --orders 500 --delay fixed:1ms");
    let mut command = launcher(out, &words, "--venues 2 --strategies 1 --idle yield");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = Running { child };
    let pid = running.pid();
    let measured = || {
        let folder = std::fs::read_dir(out.path()).unwrap().flatten().next().map(|entry| entry.path());
        let text = folder.and_then(|folder| std::fs::read(folder.join("sweep.json")).ok());
        text.and_then(|text| serde_json::from_slice::<Value>(&text).ok())
            .map_or(0, |sweep| runs(&sweep).len())
    };
    wait_until("runs are finished", || measured() >= finished);
    wait_until("another one runs", || family(pid).len() > 1);
    signal(pid, name);
    let (code, ..) = running.end();
    assert_nothing_left(pid);
    let folder = only(out);
    let sweep = json(&folder.join("sweep.json"));
    assert!((1..4).contains(&runs(&sweep).len()), "in the middle");
    (folder, code)
}

/// Resumes and checks that what was finished before was not made again.
fn resumed(folder: &Path) {
    let before = runs(&json(&folder.join("sweep.json")));
    let output = command(&["sweep", "--resume", folder.to_str().unwrap()]).output().unwrap();
    narrow(&ok(&output));
    let sweep = json(&folder.join("sweep.json"));
    let after = runs(&sweep);
    assert_eq!((sweep["state"].as_str(), after.len()), (Some("complete"), 4));
    assert!(before.iter().all(|run| after.contains(run)), "finished runs are kept as they were");
    let named: Vec<&str> = after.iter().map(|run| run["folder"].as_str().unwrap()).collect();
    for entry in std::fs::read_dir(folder).unwrap().flatten().filter(|e| e.path().is_dir()) {
        assert!(named.contains(&entry.file_name().to_str().unwrap()), "{entry:?} is nobody's");
        let logs = std::fs::read_dir(entry.path()).unwrap().flatten();
        let logs = logs.filter(|file| file.path().extension().is_some_and(|e| e == "stamps"));
        assert_eq!(logs.count(), 0, "logs are gone once summed up");
    }
    let hashes = |point: usize| -> Vec<Value> {
        let runs = sweep["points"][point]["runs"].as_array().unwrap();
        runs.iter().map(|run| run["outline"]["schedule_hash"].clone()).collect()
    };
    assert_eq!(hashes(0), hashes(1), "a repeat has one schedule for all");
    assert_ne!(hashes(0)[0], hashes(0)[1], "each repeat has its own");
}

#[test]
fn an_interrupted_sweep_goes_on() {
    let out = tempfile::tempdir().unwrap();
    let (folder, code) = killed(&out, "INT", SWEEP, 1);
    assert_eq!(code, Some(130));
    assert_eq!(json(&folder.join("sweep.json"))["state"], "interrupted");
    resumed(&folder);
}

#[test]
fn interrupted_comparison_compares_its_finished_pairs() {
    let out = tempfile::tempdir().unwrap();
    let (folder, code) = killed(&out, "INT", "compare --a isolation=thread --b isolation=process", 2);
    assert_eq!(code, Some(130));
    let compared = &json(&folder.join("compare.json"))["comparisons"][0];
    assert!((1..=2).contains(&pairs_and_moved(compared)), "{compared:#}");
}

#[test]
fn a_killed_sweep_leaves_nothing_and_goes_on() {
    let out = tempfile::tempdir().unwrap();
    let (folder, code) = killed(&out, "KILL", SWEEP, 1);
    assert_eq!(code, None);
    resumed(&folder);
}

#[test]
fn a_sweep_over_rate_and_work_writes_its_tables() {
    let out = tempfile::tempdir().unwrap();
    let words = "sweep --work 0ns,20us --rate 5k,10k --repeats 1 --window 60ms --delay fixed:1ms";
    let stdout = ok(&launcher(&out, words, "--venues 2 --strategies 1").output().unwrap());
    narrow(&stdout);
    for word in ["rt_venue p50", "too few orders for a p99.9", "5,000/s", "20000 ns"] {
        assert!(stdout.contains(word), "{word}:\n{stdout}");
    }
    let folder = only(&out);
    for file in ["sweep.md", "runs.csv", "rt_venue_p50.csv", "rt_venue_p99.csv", "rt_venue_p999.csv"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    let csv = std::fs::read_to_string(folder.join("runs.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5, "a line for each run:\n{csv}");
    let orders: Vec<u64> = runs(&json(&folder.join("sweep.json")))
        .iter()
        .map(|run| run["outline"]["returned"].as_u64().unwrap())
        .collect();
    assert_eq!(orders, [300, 600, 300, 600]);
    deleted(&folder);
}

#[test]
fn bill_has_comparable_row_for_each_level() {
    let out = tempfile::tempdir().unwrap();
    let words = "bill --technique spsc-mux --isolation thread,process --repeats 5";
    let stdout = ok(&launcher(&out, words, TINY).output().unwrap());
    narrow(&stdout);
    for word in ["isolation", "CPU s/M", "PSS", "switches", "to thread's"] {
        assert!(stdout.contains(word), "{word}:\n{stdout}");
    }
    assert!(stdout.lines().count() <= 60, "fits one screen:\n{stdout}");
    let folder = only(&out);
    let path = folder.to_str().unwrap();
    let bill = json(&folder.join("bill.json"));
    assert_eq!(bill["schema"], "bulkhead.bill/2");
    let rows = bill["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0]["reference"], &rows[0]["runs"]), (&Value::Null, &5.into()));
    assert_eq!(rows[1]["reference"]["isolation"], "thread");
    assert_eq!(
        rows[1]["differences"].as_array().unwrap().len(),
        6,
        "with the machine's stalls and without them"
    );
    for cost in ["cpu_s_per_million", "startup_ns", "page_faults", "context_switches"] {
        assert!(rows[1][cost].is_number(), "{cost}: {}", rows[1]);
    }
    assert!(folder.join("bill.csv").exists() && folder.join("bill.md").exists());
    let again = ok(&command(&["bill", path, "--json"]).output().unwrap());
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), bill, "made again of what was measured");

    let compare = |words: &[&str]| -> Value {
        let words = [&["compare"], words, &["--json"]].concat();
        serde_json::from_str(&ok(&command(&words).output().unwrap())).unwrap()
    };
    let levels = compare(&[path, "--a", "isolation=thread", "--b", "isolation=process"]);
    let found = &levels["comparisons"].as_array().unwrap()[0];
    assert_eq!((levels["comparisons"].as_array().unwrap().len(), pairs_and_moved(found)), (1, 5));
    let lines = found["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 30, "ten measures at three percentiles");
    assert_eq!(lines[0]["measure"], "rt_venue");
    let known = ["faster", "slower", "no-difference-seen", "not-comparable"];
    assert!(lines.iter().all(|line| known.contains(&line["verdict"].as_str().unwrap())));
    assert_eq!((&lines[2]["percentile"], &lines[2]["verdict"]), (&"p99.9".into(), &"not-comparable".into()));
    assert!(!lines[2]["why"].as_array().unwrap().is_empty(), "500 orders have no p99.9");
    refused(&mut command(&["compare", path, path]), 2, &["the same runs", "name two"]);
    narrow(&ok(&command(&["compare", path, "--a", "isolation=thread", "--b", "isolation=process"])
        .output()
        .unwrap()));
    refused(
        &mut command(&["compare", path, "--a", "isolation=thread", "--b", "work=5us"]),
        2,
        &["--b work=5us", "the folder holds 0ns"],
    );
    deleted(&folder);
}

#[test]
fn runs_are_compared_and_unlike_ones_are_not() {
    let out = tempfile::tempdir().unwrap();
    let run = |seed: &str| {
        let said = ok(&launcher(&out, &format!("run --seed {seed}"), TINY).output().unwrap());
        said.lines().find_map(|line| line.strip_prefix("Saved in ")).unwrap().to_owned()
    };
    let (one, other) = (run("1"), run("2"));
    refused(&mut command(&["compare", &one, &one]), 2, &["the same runs", "name two"]);
    refused(&mut command(&["compare", &one, &other]), 2, &["other schedule", "the same --seed"]);
}

/// Deletes an experiment: everything in its folder is known to be bulkhead's.
fn deleted(folder: &Path) {
    let said = ok(&command(&["delete", folder.to_str().unwrap()]).output().unwrap());
    assert!(said.contains("deleted") && !folder.exists(), "{said}");
}

/// The pairs that were compared, and those that were left out because the machine moved its cores
/// during a run.
fn pairs_and_moved(comparison: &Value) -> u64 {
    let caveats = comparison["caveats"].as_array().unwrap().iter().filter_map(Value::as_str);
    let moved = caveats.filter(|caveat| caveat.contains("the core-to-core floor changed during a run"));
    let moved: u64 = moved.map(|caveat| caveat.split(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    comparison["pairs"].as_u64().unwrap() + moved
}

#[test]
fn two_settings_are_measured_on_the_spot_in_alternation() {
    let out = tempfile::tempdir().unwrap();
    let words = "compare --a isolation=thread --b isolation=process --repeats 5 --json";
    let report: Value = serde_json::from_str(&ok(&launcher(&out, words, TINY).output().unwrap())).unwrap();
    let folder = only(&out);
    let sweep = json(&folder.join("sweep.json"));
    // Pairs that dropped out were replaced: three at most.
    let repeats = sweep["repeats"].as_u64().unwrap();
    assert!((5..=8).contains(&repeats), "{repeats} repeats");
    assert_eq!(pairs_and_moved(&report["comparisons"][0]), repeats);
    let begun = |point: usize, repeat: usize| -> String {
        sweep["points"][point]["runs"][repeat]["outline"]["run"].as_str().unwrap().to_owned()
    };
    assert!(begun(0, 0) < begun(1, 0) && begun(0, 1) > begun(1, 1), "each begins in turn");
    for file in ["compare.json", "compare.csv", "compare.md", "runs.csv"] {
        assert!(folder.join(file).exists(), "{file}");
    }
    // Files of the user's stay, and so does the folder that they are in.
    std::fs::write(folder.join("thesis.md"), "mine").unwrap();
    std::fs::create_dir(folder.join("drafts")).unwrap();
    let output = command(&["delete", "--dry-run", folder.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout).lines().count(), 3, "{}", text(&output.stdout));
    let shown = ok(&command(&["compare", folder.to_str().unwrap()]).output().unwrap());
    assert!(shown.contains("B (process)") && shown.contains("A (thread)"), "{shown}");
    let last: Vec<&str> = shown.trim_end().lines().rev().take(1).collect();
    assert!(last[0].starts_with("Saved in "), "{shown}");
    let page = std::fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("<title>Compare</title>") && !page.contains("<td>all</td>"));
}

#[test]
fn max_rate_search_ends_with_result() {
    let out = tempfile::tempdir().unwrap();
    let words = "sweep --find-max-rate --p999 1ns --steps 2 --rate 100k --window 120ms --delay fixed:1ms";
    let stdout = ok(&launcher(&out, words, "--venues 2 --strategies 1").output().unwrap());
    narrow(&stdout);
    assert_eq!(stdout.matches("not held: p99.9").count(), 2, "every step is printed:\n{stdout}");
    assert_eq!(stdout.matches("0 of 2 runs").count(), 2, "the third would decide nothing:\n{stdout}");
    assert!(stdout.contains("even the lowest rate tried"), "{stdout}");
    let sweep = json(&only(&out).join("sweep.json"));
    assert_eq!(sweep["search"]["points"][0]["highest_per_s"], Value::Null);
}

#[test]
fn dry_run_prints_the_runs_and_makes_none() {
    let out = tempfile::tempdir().unwrap();
    let words = "sweep --isolation thread,process --repeats 2 --dry-run";
    let said = ok(&launcher(&out, words, TINY).output().unwrap());
    let names: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("seed"))
        .filter_map(|line| line.split("isolation=").nth(1))
        .collect();
    assert_eq!(names, ["thread", "process", "process", "thread"], "{said}");
    assert!(said.contains("4 runs, about") && said.contains("nothing was measured"), "{said}");
    assert_eq!(std::fs::read_dir(out.path()).unwrap().count(), 0);
}
