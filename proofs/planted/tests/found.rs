//! Planted costs are found by real runs and bills as what they are, at their level and nowhere
//! else. Counts and verdicts only: no time is asserted.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Orders of a run: half of them of each of two strategies.
const ORDERS: u64 = 1000;

/// Runs the launcher with a planted cost; returns its JSON and its folder.
fn planted(cost: &str, words: &str) -> (Value, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_planted"));
    command.args(words.split_whitespace()).arg("--json").arg("--out").arg(out.path());
    let output = command.env("PLANTED", cost).stdin(Stdio::null()).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{cost}: {message}{}", String::from_utf8_lossy(&output.stdout));
    (serde_json::from_slice(&output.stdout).unwrap(), out)
}

/// Runs a strategy of each level side by side.
fn mixed_run(cost: &str) -> (Value, tempfile::TempDir) {
    let load = format!("--venues 1 --orders {ORDERS} --window 500ms --delay 1ms --idle park");
    planted(cost, &format!("run --isolation thread+process --strategies 2 {load}"))
}

fn row<'a>(rows: &'a Value, key: &str, name: &str) -> &'a Value {
    let found = rows.as_array().unwrap().iter().find(|row| row[key] == name);
    found.unwrap_or_else(|| panic!("no {name}: {rows:#}"))
}

/// Returns the mean of an event of the strategies of a level.
fn events(summary: &Value, level: &str, event: &str) -> u64 {
    row(&summary["costs"], "isolation", level)[event].as_f64().unwrap() as u64
}

const LEVELS: [(&str, &str); 2] = [("thread", "process"), ("process", "thread")];

#[test]
fn planted_faults_are_counted_at_their_level() {
    for (level, other) in LEVELS {
        let (summary, _) = mixed_run(&format!("fault-at-{level}"));
        let faults = |level| events(&summary, level, "minor_faults");
        assert!(faults(level) >= ORDERS / 2, "one for each order: {:#}", summary["costs"]);
        assert!(faults(other) < ORDERS / 10, "{:#}", summary["costs"]);
    }
    let (summary, _) = mixed_run("");
    assert!(["thread", "process"].iter().all(|level| events(&summary, level, "minor_faults") < ORDERS / 10));
}

#[test]
fn planted_switches_are_counted_at_their_level() {
    for (level, other) in LEVELS {
        let (summary, _) = mixed_run(&format!("switch-at-{level}"));
        let switches = |level| events(&summary, level, "voluntary_switches");
        // A parked strategy switches by itself as well, at most twice an order.
        assert!(switches(level) >= ORDERS / 2, "one for each order: {:#}", summary["costs"]);
        assert!(switches(level) > switches(other), "{:#}", summary["costs"]);
    }
}

/// Returns gaps and sum of a class of a strategy's gaps.
fn gaps(folder: &Path, strategy: &str, class: &str) -> (u64, u64) {
    let run = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let tail: Value = serde_json::from_slice(&std::fs::read(run.join("tail.json")).unwrap()).unwrap();
    let classes = &row(&tail["noise"]["threads"], "thread", strategy)["classes"];
    let of_class = classes.as_array().and_then(|all| all.iter().find(|one| one["class"] == class));
    of_class.map_or((0, 0), |one| (one["gaps"].as_u64().unwrap(), one["ns"].as_u64().unwrap()))
}

#[test]
fn planted_stall_is_no_steal_and_stays_counted() {
    const STALL_NS: u64 = 2_000_000;
    let stalls = ORDERS / 2 / 50;
    for (level, strategy) in [("thread", "strategy-0"), ("process", "strategy-1")] {
        let (summary, out) = mixed_run(&format!("stall-at-{level}"));
        // A stall in which the kernel also ran another thread first is called preempted.
        let (other, preempted) =
            (gaps(out.path(), strategy, "other"), gaps(out.path(), strategy, "preempted"));
        assert!(other.0 + preempted.0 >= stalls, "{other:?} {preempted:?}");
        assert!(other.1 + preempted.1 >= stalls * STALL_NS, "{other:?} {preempted:?}");
        // Raw and without steal: the stalled orders are in both.
        let measures = &row(&summary["levels"], "level", level)["measures"];
        for measure in ["rt_venue_from_due", "rt_venue_from_due_without_steal"] {
            assert!(measures[measure]["max_ns"].as_u64().unwrap() >= STALL_NS, "{measure}: {measures:#}");
        }
    }
}

#[test]
fn planted_time_is_slower_at_its_level_only() {
    for (level, verdict) in [("process", "slower"), ("thread", "faster")] {
        let words = "bill --isolation thread+process --strategies 2 --technique spsc-mux --venues 1 \
                     --orders 1000 --window 300ms --delay 1ms --idle park --repeats 8";
        // A quarter of the time between two orders: far beyond the noise of a busy machine.
        let (bill, _) = planted(&format!("spend-150000-at-{level}"), words);
        let line = &row(&bill["rows"], "isolation", "process")["adds"][0]["line"];
        assert_eq!(line["verdict"], verdict, "{line:#}");
    }
}

#[test]
fn unknown_cost_is_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_planted"));
    let output = command.arg("doctor").env("PLANTED", "spend-x-at-thread").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unknown cost"));
}

#[test]
fn neighbor_without_times_is_refused() {
    for words in [&[][..], &["runs", "map-storm", "20", "10ms"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_neighbor")).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
    }
}
