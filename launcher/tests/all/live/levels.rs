//! Strategies of one run at several isolation levels.

use crate::common::{LONG, Launcher, list, newest_process, number, output, signal, string, wait_until};
use serde_json::Value;

const LOAD: &str = "--venues 1 --orders 4000 --window 500ms --delay 1ms --idle park";

/// Returns the level of each strategy, and the number of orders that it sent.
fn strategies(summary: &Value) -> Vec<(&str, u64)> {
    let level_of = |row: &'_ Value| row["level"].as_str().map(str::to_owned);
    assert!(list(&summary["strategies"]).iter().all(|row| level_of(row).is_some()), "{summary:#}");
    list(&summary["strategies"]).iter().map(|row| (string(&row["level"]), number(&row["sent"]))).collect()
}

#[test]
fn levels_are_assigned_to_strategies_in_turn() {
    let launcher = Launcher::new();
    let printed = launcher.result(&format!("{LOAD} --strategies 4 --isolation thread,process")).succeeds();
    assert!(printed.contains("thread+process") && printed.contains("by isolation level"), "{printed}");
    let summary = launcher.newest_summary();
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
    let levels: Vec<&str> = strategies(&summary).into_iter().map(|(level, _)| level).collect();
    assert_eq!(levels, ["thread", "process", "thread", "process"]);
    let of_level = |level: &str| -> u64 {
        strategies(&summary).iter().filter(|(own, _)| *own == level).map(|(_, sent)| sent).sum()
    };
    let measured = list(&summary["levels"]);
    let names: Vec<&str> = measured.iter().map(|row| string(&row["level"])).collect();
    assert_eq!(names, ["thread", "process"]);
    for row in measured {
        // The warm-up is not measured.
        let count = number(&row["measures"]["rt_venue_from_due"]["count"]);
        assert!(count > 0 && count <= of_level(string(&row["level"])), "{row:#}");
    }
    let counts = measured.iter().map(|row| number(&row["measures"]["rt_venue"]["count"])).sum::<u64>();
    assert_eq!(counts, number(&summary["rt_venue"]["count"]), "each order has one level");
    assert_inspect_names_levels(&launcher);
}

fn assert_inspect_names_levels(launcher: &Launcher) {
    let folder = launcher.folder();
    let inspected = |flags: &str| output(&format!("inspect {} {flags}", folder.display())).succeeds();
    for (order, level) in [("0/7", "thread"), ("1/7", "process")] {
        let shown = inspected(&format!("--order {order}"));
        assert!(shown.contains(&format!("order {order} ({level}) of run ")), "{shown}");
    }
    let worst = inspected("--worst 3");
    let orders: Vec<&str> = worst.lines().filter(|line| line.contains(", sent at ")).collect();
    let is_named = |line: &&str| line.contains(" (thread), ") || line.contains(" (process), ");
    assert!(orders.len() == 3 && orders.iter().all(is_named), "{worst}");
}

/// A strategy of the level `thread` is a thread of the engine, which survives the death of one of
/// the level `process`.
#[test]
fn death_of_a_process_leaves_strategies_of_other_levels() {
    let launcher = Launcher::new();
    let running = launcher.start(&format!("{LONG} --isolation thread,process --on-death restart"));
    let engine = running.process("engine");
    let threads = std::fs::read_dir(format!("/proc/{engine}/task")).unwrap().map(|task| {
        std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default().trim().to_owned()
    });
    let threads: Vec<String> = threads.collect();
    assert!(threads.iter().any(|name| name == "strategy-0"), "{threads:?}");
    let victim = running.process("strategy-1");
    assert_ne!(victim, engine);
    signal(victim, "KILL");
    wait_until("it is restarted", || newest_process(running.pid(), "strategy-1", victim).is_some());
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
    let [incident] = list(&summary["incidents"]) else { panic!("{:#}", summary["incidents"]) };
    assert!(incident["strategy"] == 1 && incident["repair_to_restart_ns"].is_u64(), "{incident:#}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
}

#[test]
fn unknown_level_is_refused() {
    let launcher = Launcher::new();
    let result = launcher.result(&format!("{LOAD} --isolation thread,jail"));
    result.fails(2, &["\"jail\" is unknown", "thread, keys, process, container, sandbox"]);
}
