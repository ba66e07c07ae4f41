//! Whole live runs: every isolation level, threading and idle strategy conserves its orders.

use crate::common::{Launcher, assert_exists, command, output, text};
use serde_json::Value;

/// A short run that a loaded 2-core machine carries: 2,000 orders of two strategies at two venues.
const SHORT: &[&str] = &["--strategies", "2", "--venues", "2", "--orders", "2000", "--window", "200ms"];

fn short(more: &[&str]) -> Value {
    let launcher = Launcher::new();
    let mut flags: Vec<&str> = SHORT.iter().chain(more).copied().collect();
    if !more.contains(&"--delay") {
        flags.extend(["--delay", "uniform:1ms..20ms"]);
    }
    let summary = launcher.summary(&flags);
    let orders = &summary["orders"];
    assert_eq!((orders["scheduled"].as_u64(), orders["sent"].as_u64()), (Some(2000), Some(2000)), "{orders}");
    assert_eq!((orders["returned"].as_u64(), orders["lost"].as_u64()), (Some(2000), Some(0)), "{orders}");
    for stage in [
        "submit",
        "orch_pre_dispatch",
        "dispatch",
        "venue_service",
        "completion",
        "orch_post_process",
        "return",
    ] {
        assert_eq!(summary["stages"][stage]["count"], 2000, "{stage}");
    }
    for whole in ["round_trip", "rt_venue", "gateway_lateness"] {
        assert_eq!(summary[whole]["count"], 2000, "{whole}");
    }
    for thread in summary["processes"].as_array().unwrap() {
        assert_eq!(thread["allocations"], 0, "no heap allocation after the barrier: {thread}");
    }
    for (role, counters) in [
        ("strategy-", ["sent", "returned"]),
        ("orchestrator", ["dispatched", "settled"]),
        ("gateway-", ["received", "completed"]),
    ] {
        for counter in counters {
            assert_eq!(counted(&summary, role, counter), 2000, "{role} {counter}");
        }
    }
    // Under closed pacing nothing is due.
    let due = if more.contains(&"stress") { 0 } else { 2000 };
    for from_due in ["rt_venue_from_due", "slip"] {
        assert_eq!(summary[from_due]["count"], due, "{from_due}");
    }
    summary
}

/// The sum of a counter over all agents whose role begins so, on whatever threads they run.
fn counted(summary: &Value, role: &str, counter: &str) -> u64 {
    let threads = summary["processes"].as_array().unwrap().iter();
    let agents = threads.flat_map(|thread| thread["agents"].as_array().unwrap());
    let of_role = agents.filter(|agent| agent["role"].as_str().unwrap().starts_with(role));
    of_role.map(|agent| agent["counters"][counter].as_u64().unwrap()).sum()
}

#[test]
fn every_idle_strategy_carries_a_run_of_processes() {
    for idle in ["spin", "yield", "backoff", "park", "auto"] {
        let summary = short(&["--idle", idle]);
        assert_eq!(summary["isolation"], "process");
        let processes = summary["processes"].as_array().unwrap();
        let mut pids: Vec<u64> = processes.iter().map(|p| p["pid"].as_u64().unwrap()).collect();
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), 3, "two strategies and the engine are three processes: {processes:?}");
    }
}

#[test]
fn spinning_and_parked_threads_carry_a_run() {
    for idle in ["spin", "park"] {
        let summary = short(&["--isolation", "thread", "--idle", idle]);
        let processes = summary["processes"].as_array().unwrap();
        assert!(processes.windows(2).all(|pair| pair[0]["pid"] == pair[1]["pid"]), "{processes:?}");
    }
}

#[test]
fn the_schedule_is_the_same_for_every_isolation_level() {
    let hash = |isolation, seed| short(&["--isolation", isolation, "--seed", seed])["input"]["hash"].clone();
    let threads = hash("thread", "7");
    assert_eq!(threads, hash("process", "7"));
    assert_ne!(threads, hash("process", "8"));
}

#[test]
fn every_kind_of_arrivals_is_carried() {
    for arrivals in ["uniform", "poisson", "pareto", "stress"] {
        let summary = short(&["--arrivals", arrivals, "--delay", "fixed:1ms"]);
        assert_eq!(summary["input"]["arrivals"], arrivals);
    }
}

#[test]
fn small_rings_push_back_and_lose_nothing() {
    let summary = short(&["--arrivals", "stress", "--capacity", "2", "--delay", "fixed:10us"]);
    assert!(summary["orders"]["full"].as_u64().unwrap() > 0, "{}", summary["orders"]);
}

#[test]
fn open_orders_are_limited_on_request() {
    let summary = short(&["--arrivals", "stress", "--max-open", "3", "--delay", "fixed:10us"]);
    let in_flight = summary["in_flight"]["max"].as_u64().unwrap();
    assert!(in_flight <= 6, "two strategies of three: {in_flight}");
    assert_eq!(summary["orders"]["rejected"], 0, "strategies keep to the limit by themselves");
}

#[test]
fn the_recorded_flow_is_replayed_whole() {
    let launcher = Launcher::new();
    let flow = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/coinbase-2016-03-12/flow.csv");
    let summary = launcher.summary(&[
        "--schedule",
        flow,
        "--speed",
        "100",
        "--strategies",
        "3",
        "--delay",
        "fixed:1ms",
    ]);
    assert_eq!(summary["orders"]["returned"], 1912 + 1888, "every new order and every cancel");
}

#[test]
fn the_work_is_done_and_its_cost_reported() {
    let summary = short(&["--work", "20us"]);
    let achieved = summary["work"]["achieved_ns"].as_f64().unwrap();
    assert!(achieved > 0.0);
    assert_eq!(summary["work"]["requested_ns"], 20_000);
}

#[test]
fn the_saved_configuration_gives_the_same_run_again() {
    let launcher = Launcher::new();
    let flags: Vec<&str> = SHORT.iter().chain(&["--seed", "99", "--idle", "yield"]).copied().collect();
    let first = launcher.summary(&flags);
    let config = launcher.folders()[0].join("config.yaml");
    let second = launcher.summary(&["--config", config.to_str().unwrap()]);
    assert_eq!(first["input"], second["input"]);
    assert_eq!(launcher.folders().len(), 2);
    let saved = |i: usize| std::fs::read_to_string(launcher.folders()[i].join("config.yaml")).unwrap();
    assert_eq!(saved(0), saved(1));
}

#[test]
fn finished_run_can_be_reported_and_inspected() {
    let launcher = Launcher::new();
    let summary = launcher.summary(SHORT);
    let folder = &launcher.folders()[0];
    for file in [
        "run.json",
        "config.yaml",
        "summary.json",
        "histograms.hlog",
        "stages.csv",
        "stages.md",
        "engine.stamps",
        "strategy-1.stamps",
    ] {
        assert_exists(&folder.join(file));
    }
    let folder = folder.to_str().unwrap();
    let again = output(&["report", folder, "--json"]);
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again, summary, "merging again gives the same");
    let report = text(&output(&["report", folder]).stdout);
    assert!(report.lines().all(|line| line.chars().count() <= 80), "fits 80 columns:\n{report}");
    assert!(report.contains("rt_venue"));

    let path = text(&output(&["inspect", folder, "--order", "1/17"]).stdout);
    for point in ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "due", "release"] {
        assert!(path.contains(point), "{point} is missing:\n{path}");
    }
    let head = text(&output(&["inspect", &format!("{folder}/engine.stamps"), "--head", "5", "--csv"]).stdout);
    assert_eq!(head.lines().count(), 6, "{head}");
}

#[test]
fn gateways_in_processes_of_their_own_carry_a_run() {
    for (flags, processes) in [
        (&["--process", "gateways"][..], 4),
        (&["--process", "each-gateway", "--technique", "array-queue", "--idle", "park"], 5),
        (&["--process", "each-gateway", "--isolation", "sandbox", "--allow-weaker-sandbox"], 5),
    ] {
        let launcher = Launcher::new();
        let summary = launcher.summary(&[SHORT, flags].concat());
        assert_eq!(summary["orders"]["returned"], 2000, "{flags:?}");
        let pids: std::collections::HashSet<_> =
            summary["processes"].as_array().unwrap().iter().map(|thread| thread["pid"].as_u64()).collect();
        assert_eq!(pids.len(), processes, "{flags:?}");
    }
}

#[test]
fn two_runs_at_once_do_not_meet() {
    let (a, b) = (Launcher::new(), Launcher::new());
    let flags: Vec<&str> = SHORT.iter().chain(&["--idle", "park", "--json"]).copied().collect();
    let spawn =
        |launcher: &Launcher| launcher.run(&flags).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let (first, second) = (spawn(&a), spawn(&b));
    for child in [first, second] {
        let output = child.wait_with_output().unwrap();
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&summary["valid"], &summary["orders"]["returned"]), (&true.into(), &2000.into()));
    }
}

#[test]
fn only_result_is_printed_without_terminal() {
    let launcher = Launcher::new();
    let output = launcher.run(SHORT).output().unwrap();
    assert!(output.status.success());
    assert_eq!(text(&output.stderr), "", "no progress bar");
    let stdout = text(&output.stdout);
    assert!(!stdout.contains('\u{1b}'), "no colours");
    assert!(stdout.lines().all(|line| line.chars().count() <= 80), "fits 80 columns:\n{stdout}");
}

#[test]
fn repeats_are_runs_of_their_own() {
    let launcher = Launcher::new();
    let flags: Vec<&str> = SHORT.iter().chain(&["--repeats", "2"]).copied().collect();
    assert!(launcher.run(&flags).output().unwrap().status.success());
    assert_eq!(launcher.folders().len(), 2);
}

#[test]
fn inspect_stops_quietly_when_its_reader_does() {
    let launcher = Launcher::new();
    launcher.summary(SHORT);
    let log = launcher.folders()[0].join("engine.stamps");
    let mut child = command(&["inspect", log.to_str().unwrap()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(text(&output.stderr), "");
    assert!(output.status.success());
}
