//! Complete live runs: every isolation level, threading and idle strategy conserves its orders.

use crate::common::{Launcher, SHORT, assert_exists, assert_no_allocations, list, number, output, string};
use serde_json::Value;
use std::collections::BTreeSet;

/// Makes a run that a loaded 2-core machine can keep up with: 2,000 orders of two strategies at two
/// venues.
fn run_short(more: &str) -> Value {
    let delay = if more.contains("--delay") { "" } else { "--delay uniform:1ms..20ms" };
    let summary = Launcher::new()
        .summary(&format!("--strategies 2 --venues 2 --orders 2000 --window 200ms {delay} {more}"));
    let orders = &summary["orders"];
    let counts = ["scheduled", "sent", "returned", "lost"].map(|count| number(&orders[count]));
    assert_eq!(counts, [2000, 2000, 2000, 0], "{orders}");
    // Orders of the warm-up are in no figure. Under closed-loop pacing orders have no due times.
    let is_closed = more.contains("stress");
    let warm_up = summary["warm_up"]["orders"].as_u64().unwrap_or(0);
    let counted = 2000 - warm_up;
    assert!(if is_closed { warm_up == 0 } else { (100..=300).contains(&warm_up) }, "{warm_up} of 2000");
    for stage in [
        "submit",
        "orch_pre_dispatch",
        "dispatch",
        "venue_service",
        "completion",
        "orch_post_process",
        "return",
    ] {
        assert_eq!(summary["stages"][stage]["count"], counted, "{stage}");
    }
    for total_stage in ["round_trip", "rt_venue", "gateway_lateness"] {
        assert_eq!(summary[total_stage]["count"], counted, "{total_stage}");
    }
    assert_no_allocations(&summary);
    for (role, counters) in [
        ("strategy-", ["sent", "returned"]),
        ("orchestrator", ["dispatched", "settled"]),
        ("gateway-", ["received", "completed"]),
    ] {
        for counter in counters {
            assert_eq!(sum_counter(&summary, role, counter), 2000, "{role} {counter}");
        }
    }
    let due = if is_closed { 0 } else { counted };
    for from_due in ["rt_venue_from_due", "slip"] {
        assert_eq!(summary[from_due]["count"], due, "{from_due}");
    }
    summary
}

/// Returns the sum of a counter over all agents whose role begins with `role`.
fn sum_counter(summary: &Value, role: &str, counter: &str) -> u64 {
    let agents = list(&summary["processes"]).iter().flat_map(|thread| list(&thread["agents"]));
    let of_role = agents.filter(|agent| string(&agent["role"]).starts_with(role));
    of_role.map(|agent| number(&agent["counters"][counter])).sum()
}

/// Returns the number of processes of a run's threads.
fn count_processes(summary: &Value) -> usize {
    list(&summary["processes"]).iter().map(|thread| number(&thread["pid"])).collect::<BTreeSet<_>>().len()
}

/// Two strategies and the engine are three processes, or one.
#[test]
fn run_completes_with_every_level_idle_strategy_and_arrivals() {
    let mut hashes = Vec::new();
    for (isolation, idle, arrivals, seed) in [
        ("thread", "spin", "uniform", 7),
        ("thread", "park", "poisson", 7),
        ("process", "spin", "uniform", 7),
        ("process", "yield", "poisson", 8),
        ("process", "backoff", "pareto", 7),
        ("process", "park", "stress", 7),
        ("process", "auto", "uniform", 8),
    ] {
        let flags = format!("--isolation {isolation} --idle {idle} --arrivals {arrivals} --seed {seed}");
        let summary = run_short(&flags);
        assert_eq!(
            (&summary["isolation"], &summary["input"]["arrivals"]),
            (&isolation.into(), &arrivals.into())
        );
        assert_eq!(count_processes(&summary), if isolation == "thread" { 1 } else { 3 }, "{flags}");
        hashes.push((arrivals, seed, summary["input"]["hash"].to_string()));
    }
    // Schedules are equal at every level and differ for each seed and kind of arrivals.
    let schedules: BTreeSet<_> = hashes.iter().collect();
    let distinct: BTreeSet<_> = hashes.iter().map(|(.., hash)| hash).collect();
    assert_eq!((schedules.len(), distinct.len()), (6, 6), "{hashes:?}");
}

#[test]
fn small_rings_apply_backpressure_and_lose_nothing() {
    let summary = run_short("--arrivals stress --capacity 2 --delay fixed:10us --work 20us");
    assert!(number(&summary["orders"]["full"]) > 0, "{}", summary["orders"]);
    assert!(summary["work"]["achieved_ns"].as_f64() > Some(0.0), "{}", summary["work"]);
    assert_eq!(summary["work"]["requested_ns"], 20_000);
}

#[test]
fn open_orders_are_limited_on_request() {
    let summary = run_short("--arrivals stress --max-open 3 --delay fixed:10us --idle park");
    let in_flight = number(&summary["in_flight"]["max"]);
    assert!(in_flight <= 6, "two strategies of three: {in_flight}");
    assert_eq!(summary["orders"]["rejected"], 0, "strategies keep to the limit by themselves");
}

fn assert_fits_eighty_columns(text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= 80), "fits 80 columns:\n{text}");
}

#[test]
fn finished_run_can_be_reported_inspected_and_repeated() {
    let launcher = Launcher::new();
    let result = launcher.result(&format!("{SHORT} --seed 99 --idle yield"));
    assert_eq!(result.stderr, "", "no progress bar");
    let stdout = result.succeeds();
    assert!(!stdout.contains('\u{1b}'), "no colors");
    assert_fits_eighty_columns(&stdout);
    let summary = launcher.newest_summary();
    let folder = launcher.folder();
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
    let config = launcher.read("config.yaml");
    let folder = folder.display();
    let reported_again = output(&format!("report {folder} --json")).json();
    assert_eq!(reported_again, summary, "merging again gives the same");
    let report = output(&format!("report {folder}")).succeeds();
    assert_fits_eighty_columns(&report);
    assert!(report.contains("rt_venue"));

    let path = output(&format!("inspect {folder} --order 1/17")).stdout;
    assert!(path.contains("order 1/17 of run "), "one level needs no name: {path}");
    for point in ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "due", "release"] {
        assert!(path.contains(point), "{point} is missing:\n{path}");
    }
    let first_rows = output(&format!("inspect {folder}/engine.stamps --head 5 --csv")).stdout;
    assert_eq!(first_rows.lines().count(), 6, "{first_rows}");
    let second = launcher.summary(&format!("--config {folder}/config.yaml"));
    assert_eq!(second["input"], summary["input"]);
    assert_eq!((launcher.folders().len(), launcher.read("config.yaml")), (2, config));
}

#[test]
fn run_completes_with_gateways_in_own_processes() {
    for (flags, processes) in [
        ("--process gateways --technique array-queue --idle park", 4),
        ("--process each-gateway --isolation sandbox --allow-weaker-sandbox --idle park", 5),
    ] {
        assert_eq!(count_processes(&run_short(flags)), processes, "{flags}");
    }
}
