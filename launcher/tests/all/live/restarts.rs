//! Strategies that cannot be restarted are given up and named, and the run continues without them.

use super::contained::CONTAINER;
use super::programs::Program;
use crate::common::{Launcher, document, list, output, proc, run_processes, signal, string, wait_until};
use serde_json::Value;

const RESTART: &str = "--on-death restart";

/// Returns the only incident after which a strategy was given up.
fn sole_abandoned_incident(summary: &Value) -> &Value {
    let incidents = list(&summary["incidents"]).iter();
    let abandoned: Vec<&Value> = incidents.filter(|one| one["stayed_down"].is_object()).collect();
    assert!(abandoned.len() == 1 && abandoned[0]["strategy"] == 1, "{:#}", summary["incidents"]);
    abandoned[0]
}

/// Checks that verdict, record, page and `stderr` name the strategy and the reason.
fn assert_named(launcher: &Launcher, summary: &Value, stderr: &str, expected: &str) {
    let message = "strategy-1 stayed down after 8 restarts: ";
    let names_strategy = |line: &str| line.contains(message) && line.contains(expected);
    assert!(
        list(&summary["reasons"]).iter().any(|reason| names_strategy(string(reason))),
        "{:#}",
        summary["reasons"]
    );
    assert!(stderr.lines().any(names_strategy), "{stderr}");
    let folder = launcher.folder();
    assert!(launcher.read("report.html").contains(message));
    sole_abandoned_incident(&document(&folder, "run.json"));
    let report = output(&format!("report {}", folder.display())).stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(message), "{report}");
}

#[test]
fn strategy_with_deleted_program_affects_only_itself() {
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let launcher = Launcher::new();
    let load = "--venues 1 --window 2s --delay fixed:1ms --orders 8000 --idle park --json";
    let running = launcher.start(&format!("{load} {} {RESTART}", program.with_player("")));
    std::fs::remove_file(program.path()).unwrap();
    wait_until("the program is killed", || {
        program.processes().into_iter().for_each(|pid| signal(pid, "KILL"));
        program.processes().is_empty()
    });
    let result = running.end();
    let summary = result.json();
    assert_eq!((&summary["outcome"]["ended"], &summary["valid"]), (&"complete".into(), &true.into()));
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    assert_named(&launcher, &summary, &result.stderr, "cannot be started");
    assert!(result.code == Some(0) && result.stderr.contains("No such file"), "{}", result.stderr);
}

/// The container shim is killed during container creation, each time.
#[test]
fn failed_container_affects_only_its_strategy() {
    let Some(launcher) = Launcher::contained() else { return };
    let load = "--strategies 2 --venues 1 --orders 60k --window 60s --idle park";
    let mut running = launcher.start(&format!("{CONTAINER} {load} {RESTART}"));
    let (pid, mut killed) = (running.pid(), 0);
    running.repeat_until_printed("strategy-1 stayed down after 8 restarts", || {
        let is_shim = |(_, line): &(u32, String)| line.contains("role --contain strategy-1 ");
        for (shim, _) in run_processes(pid).into_iter().filter(is_shim) {
            // Not `signal`, which fails if the process has exited.
            let kill = || std::process::Command::new("kill").args(["-9", &shim.to_string()]).status();
            if !proc(shim, "cmdline").is_empty() && kill().is_ok() {
                killed += 1;
            }
        }
    });
    assert!(!running.has_ended(), "{:?}", running.end());
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    let last = sole_abandoned_incident(&summary);
    assert!(last["stayed_down"]["restarts"] == 8 && killed > 8, "{last:#}");
    let is_creation_failure = |one: &Value| string(&one["cause"]).contains("container could not be made");
    assert!(list(&summary["incidents"]).iter().any(is_creation_failure), "{:#}", summary["incidents"]);
    assert!(launcher.folder().join("strategy-0.stamps").exists());
}
