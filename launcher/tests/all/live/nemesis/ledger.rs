//! The ledger: strategies are killed and restarted under load, one every 8 ms, and every message is
//! accounted for.
//!
//! The merge of each run is the ledger: every order of every incarnation has stamps, so a lost,
//! duplicated, reordered or invented order is a violation. An incarnation may lose one order, which
//! it was pushing when it was killed. The test also observes that descriptors, memory and segments
//! do not grow. Two runs; `BULKHEAD_SLOW=1`: ten thousand kills, with each technique.

use crate::common::{Launcher, list, number, proc, segments, slow};
use serde_json::Value;
use std::fs;

/// The techniques that cross processes, used in turn.
const TECHNIQUES: [&str; 6] = ["spsc-mux", "array-queue", "linked", "channel", "pipe", "unix-seqpacket"];

/// One run: 0.8 seconds of load with a kill every 8 ms.
const FLAGS: &str = "--strategies 4 --venues 2 --orders 6400 --window 800ms --delay uniform:1ms..20ms \
                     --on-death restart --fault 'kill:any@200ms every 8ms' --json";

/// Open descriptors of a process, and its private memory in KiB.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessResources {
    descriptors: usize,
    own_kb: u64,
}

fn resources_of(pid: u32) -> Option<ProcessResources> {
    let status = proc(pid, "status");
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    let own_kb = anonymous.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(ProcessResources { descriptors: fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count(), own_kb })
}

/// Makes one run, watches launcher and engine, and returns its summary.
fn run(technique: &str, isolation: &str, seed: u64) -> Value {
    let launcher = Launcher::new();
    let idle = if slow() && seed % 2 == 1 { "auto" } else { "park" };
    let flags = format!("--technique {technique} --isolation {isolation} --seed {seed} --idle {idle}");
    let running = launcher.start(&format!("{FLAGS} {flags}"));
    let (pid, engine) = (running.pid(), running.process("engine"));
    let (mut samples_of_both, mut segment_counts) = (Vec::new(), Vec::new());
    while let (Some(launcher), Some(engine)) = (resources_of(pid), resources_of(engine)) {
        samples_of_both.push((launcher, engine));
        segment_counts.push(segments(pid).len());
        std::thread::sleep(std::time::Duration::from_millis(25));
        if launcher.descriptors == 0 || engine.descriptors == 0 {
            break;
        }
    }
    let result = running.end();
    assert_eq!(result.code, Some(0), "{technique}, {isolation}: {}", result.all_output());
    let assert_flat =
        |what: &str, measure: &dyn Fn(&(ProcessResources, ProcessResources)) -> u64, slack: u64| {
            // The first and last samples are from the start and the end of the run.
            let samples: Vec<u64> = samples_of_both.iter().map(measure).collect();
            let middle = &samples[samples.len() / 5..samples.len() * 4 / 5];
            let Some((first, rest)) = middle.split_first() else { return };
            let max = rest.iter().max().unwrap_or(first);
            assert!(*max <= first + slack, "{technique}: {what} grew from {first} to {max}: {samples:?}");
        };
    // A restart briefly needs a few descriptors.
    assert_flat("the launcher's descriptors", &|(launcher, _)| launcher.descriptors as u64, 8);
    assert_flat("the engine's descriptors", &|(_, engine)| engine.descriptors as u64, 5);
    assert_flat("the launcher's memory (KiB)", &|(launcher, _)| launcher.own_kb, 4096);
    assert_flat("the engine's memory (KiB)", &|(_, engine)| engine.own_kb, 1024);
    let middle = &segment_counts[segment_counts.len() / 5..segment_counts.len() * 4 / 5];
    assert!(
        middle.iter().all(|count| Some(count) == middle.first()),
        "segments come and go: {segment_counts:?}"
    );
    result.json()
}

/// Checks a run's summary. Returns the number of kills and of orders lost with them.
fn check(summary: &Value, what: &str) -> (u64, u64) {
    assert_eq!(summary["outcome"]["ended"], "complete", "{what}");
    assert_eq!(summary["valid"], true, "{what}: {:#}", summary["violations"]);
    let orders = &summary["orders"];
    let count = |key: &str| number(&orders[key]);
    assert_eq!(count("duplicated"), 0, "{what}");
    let accounted: u64 = ["returned", "rejected", "cancelled", "orphaned", "lost"].map(count).iter().sum();
    assert_eq!(count("sent"), accounted, "{what}: each order is one of these");
    let incidents = list(&summary["incidents"]);
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{what}");
    for incident in incidents {
        let lost = number(&incident["orders"]["lost"]);
        assert!(lost <= 1, "{what}: its unfinished order only: {incident:#}");
        assert!(!incident["detect_to_repair_ns"].is_null(), "{what}: repaired: {incident:#}");
    }
    (incidents.len() as u64, count("lost"))
}

#[test]
fn killed_strategies_lose_only_unfinished_orders() {
    // A sandbox with a technique in memory, and processes with one of the kernel.
    let (first, least_runs, required_kills) = if slow() { (0, 6, 10_000) } else { (3, 2, 40) };
    let (mut kills, mut lost, mut sent, mut runs) = (0, 0, 0, first);
    while kills < required_kills || runs < first + least_runs {
        assert!(runs < required_kills / 10 + 6, "{kills} kills in {runs} runs: they are too rare");
        let technique = TECHNIQUES[runs as usize % TECHNIQUES.len()];
        // Every fourth run in the sandbox.
        let isolation = if runs % 4 == 3 { "sandbox" } else { "process" };
        let summary = run(technique, isolation, runs);
        let kills_and_losses = check(&summary, &format!("{technique} under {isolation}, seed {runs}"));
        kills += kills_and_losses.0;
        lost += kills_and_losses.1;
        sent += number(&summary["orders"]["sent"]);
        runs += 1;
    }
    println!(
        "{kills} kills in {} runs: {sent} orders sent, {lost} unfinished ones lost with their strategy, 0 of survivors, \
         0 doubled, 0 overtaken",
        runs - first
    );
}
