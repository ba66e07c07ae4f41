//! Strategies that share a process: their deaths, restarts and limits.

use super::replacements::ChangingRun;
use crate::common::{
    LONG, Launcher, SHORT, concurrently, document, list, newest_process, number, output, proc, signal,
    string, wait_until,
};
use serde_json::Value;

/// Returns which strategies died, in order.
fn victims(summary: &Value) -> Vec<u64> {
    let mut victims: Vec<u64> =
        list(&summary["incidents"]).iter().map(|incident| number(&incident["strategy"])).collect();
    victims.sort_unstable();
    victims
}

/// Returns the names of a process's threads.
fn threads(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks.map(|task| proc(pid, &format!("task/{}/comm", task.unwrap().file_name().display()))).collect()
}

#[test]
fn group_trades_in_one_process_with_thread_each() {
    let launcher = Launcher::new();
    let flags = LONG.replace("--strategies 2", "--strategies 5");
    let running = launcher.start(&format!("{flags} --isolation process*2"));
    let names: Vec<String> =
        threads(running.process("group-1")).iter().map(|it| it.trim().to_owned()).collect();
    assert!(["strategy-2", "strategy-3"].iter().all(|name| names.iter().any(|it| it == name)), "{names:?}");
    running.process("strategy-4");
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
    assert_eq!(summary["isolation"], "process*2");
}

/// Each level that can have groups: all orders come back.
#[test]
fn groups_complete_at_each_level() {
    let flags = SHORT.replace("--strategies 2", "--strategies 4");
    let launchers = [
        ("process*4", Some(Launcher::new())),
        ("thread+process*2", Some(Launcher::new())),
        ("sandbox*2", Launcher::sandboxed()),
        ("container*2", Launcher::contained()),
    ];
    for (isolation, launcher) in launchers {
        let Some(launcher) = launcher else { continue };
        let summary = launcher.summary(&format!("{flags} --isolation {isolation}"));
        assert_eq!(summary["orders"]["returned"], 2_000, "{isolation}");
    }
}

#[test]
fn killed_group_is_restarted_whole_and_others_trade_on() {
    let launcher = Launcher::new();
    let flags = LONG.replace("--strategies 2", "--strategies 4");
    let running = launcher.start(&format!("{flags} --isolation process*2 --on-death restart"));
    let (victim, other) = (running.process("group-0"), running.process("group-1"));
    signal(victim, "KILL");
    wait_until("it is restarted", || newest_process(running.pid(), "group-0", victim).is_some());
    assert_eq!(running.process("group-1"), other);
    wait_until("both of its strategies run", || {
        let found = newest_process(running.pid(), "group-0", victim).map(threads).unwrap_or_default();
        ["strategy-0", "strategy-1"].iter().all(|name| found.iter().any(|thread| thread.trim() == *name))
    });
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
    assert_eq!((victims(&summary), &summary["containment"]["lost_of_survivors"]), (vec![0, 1], &0.into()));
    for incident in list(&summary["incidents"]) {
        assert_eq!(incident["group"], serde_json::json!([0, 1]), "{incident:#}");
        assert_eq!(incident["cause"], "signal 9 (SIGKILL)");
        assert!(incident["repair_to_restart_ns"].is_u64(), "{incident:#}");
    }
    let shown = launcher.read("stages.md");
    assert!(shown.contains("0, 1 shared a process, and died together"), "{shown}");
}

/// What one strategy does to itself ends its group, and nothing else: also a panic and a hang.
#[test]
fn fault_of_one_strategy_takes_its_group() {
    const LOAD: &str = "--strategies 4 --venues 2 --orders 4000 --window 1s --delay uniform:1ms..5ms --idle park \
                        --isolation process*2 --on-death restart";
    let faults =
        [("segv", "SIGSEGV"), ("panic", "exit 101"), ("hang", "hangs: no duty cycle"), ("exit", "exit 3")];
    concurrently(2, &faults, |(fault, cause)| {
        let launcher = Launcher::new();
        // The backtrace of a panic takes its time.
        let liveness = if *fault == "hang" { "300ms" } else { "10s" };
        let summary =
            launcher.summary(&format!("{LOAD} --liveness {liveness} --fault {fault}:strategy-3@300ms"));
        assert_eq!(victims(&summary), [2, 3], "{fault}: {:#}", summary["incidents"]);
        let causes: Vec<&str> =
            list(&summary["incidents"]).iter().map(|incident| string(&incident["cause"])).collect();
        assert!(causes.iter().all(|found| found.contains(cause)), "{fault}: {causes:?}");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{fault}");
        assert_eq!(summary["containment"]["restarted"], 2, "{fault}: {:#}", summary["incidents"]);
        let record = document(&launcher.folder(), "run.json");
        assert!(list(&record["exits"]).iter().all(|exit| exit["how"] == "exit 0"), "{:#}", record["exits"]);
    });
}

#[test]
fn strategy_of_group_is_not_ended_or_added_alone() {
    let launcher = Launcher::new();
    let more = "--isolation process*2 --on-death restart --spare-strategies 1";
    let run = ChangingRun::start(&launcher, more);
    for command in ["retire", "replace"] {
        let refused = output(&format!("{command} {} 1", run.run));
        refused
            .fails(2, &["strategy-1 shares its process", "strategy-0 to strategy-1", "--isolation process"]);
    }
    let refused = output(&format!("add {} 1 --strategy player", run.run));
    refused.fails(2, &["strategy-1 shares its process", "--spare-strategies"]);
    run.json("add", "--strategy player");
    run.wait_for_order(4);
    assert!(run.has_process("strategy-4"), "a spare strategy has a process of its own");
    let summary = launcher.interrupted(run.running);
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
}
