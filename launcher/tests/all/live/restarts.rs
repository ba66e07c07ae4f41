//! Strategies that cannot be brought back: they are given up and named, and the run goes on without
//! them.

use super::contained::CONTAINER;
use super::programs::{Program, with_broken};
use crate::common::{Launcher, document, family, list, output, proc, signal, string, wait_until};
use serde_json::Value;
use std::time::{Duration, Instant};

const RESTART: &str = "--on-death restart";

/// The only incident after which a strategy was given up.
fn given_up(summary: &Value) -> &Value {
    let incidents = list(&summary["incidents"]).iter();
    let found: Vec<&Value> = incidents.filter(|one| one["stayed_down"].is_object()).collect();
    assert!(found.len() == 1 && found[0]["strategy"] == 1, "{:#}", summary["incidents"]);
    found[0]
}

/// Verdict, record and page name it, with these words; what the run said while it went on is
/// `stderr`.
fn is_named(launcher: &Launcher, summary: &Value, stderr: &str, words: &str) {
    let said = "strategy-1 stayed down after 8 restarts: ";
    let is_it = |line: &str| line.contains(said) && line.contains(words);
    assert!(list(&summary["reasons"]).iter().any(|reason| is_it(string(reason))), "{:#}", summary["reasons"]);
    assert!(stderr.lines().any(is_it), "{stderr}");
    let folder = launcher.folder();
    assert!(launcher.read("report.html").contains(said));
    given_up(&document(&folder, "run.json"));
    let report = output(&format!("report {}", folder.display())).stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(said), "{report}");
}

#[test]
fn a_crash_loop_is_bounded_and_named() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let (launcher, result) = with_broken(&program, "again", RESTART);
    let summary = result.json();
    assert_eq!((&summary["outcome"]["ended"], &summary["valid"]), (&"complete".into(), &true.into()));
    // The first one had traded, so that its death counts for nothing.
    assert_eq!(list(&summary["incidents"]).len(), 1 + 9, "{}", result.stderr);
    let last = given_up(&summary);
    assert!(string(&last["cause"]).contains("exit 7"), "{last:#}");
    is_named(&launcher, &summary, &result.stderr, "exit 7");
    let player = &summary["plan"]["workload"]["trading"]["orders"][0];
    let sent = summary["orders"]["sent"].as_u64();
    assert!(sent >= player.as_u64(), "the other one has sent all of its orders: {sent:?}");
}

#[test]
fn a_strategy_whose_program_is_gone_ends_nothing() {
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let launcher = Launcher::new();
    let load = "--venues 1 --window 2s --delay fixed:1ms --orders 8000 --idle park --json";
    let running = launcher.start(&format!("{load} {} {RESTART}", program.with_player("")));
    std::fs::remove_file(program.path()).unwrap();
    wait_until("it is killed", || {
        program.processes().into_iter().for_each(|pid| signal(pid, "KILL"));
        program.processes().is_empty()
    });
    let result = running.end();
    let summary = result.json();
    assert_eq!((&summary["outcome"]["ended"], &summary["valid"]), (&"complete".into(), &true.into()));
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    is_named(&launcher, &summary, &result.stderr, "cannot be started");
    assert!(result.code == Some(0) && result.stderr.contains("No such file"), "{}", result.stderr);
}

/// The container shim is killed during container creation, each time.
#[test]
fn failed_container_affects_only_its_strategy() {
    let Some(launcher) = Launcher::contained() else { return };
    let load = "--strategies 2 --venues 1 --orders 60k --window 60s --idle park";
    let running = launcher.start(&format!("{CONTAINER} {load} {RESTART}"));
    let pid = running.pid();
    // Until there was none for longer than the longest pause.
    let (mut last, mut killed) = (Instant::now(), 0);
    while last.elapsed() < Duration::from_secs(3) && !running.has_ended() && killed < 1000 {
        let is_maker = |(_, line): &(u32, String)| line.contains("role --contain strategy-1 ");
        for (maker, _) in family(pid).into_iter().filter(is_maker) {
            // Not `signal`: it may be gone by now.
            let kill = || std::process::Command::new("kill").args(["-9", &maker.to_string()]).status();
            if !proc(maker, "cmdline").is_empty() && kill().is_ok() {
                (last, killed) = (Instant::now(), killed + 1);
            }
        }
    }
    assert!(!running.has_ended(), "{:?}", running.end());
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    let last = given_up(&summary);
    assert!(last["stayed_down"]["restarts"] == 8 && killed > 8, "{last:#}");
    let is_unmade = |one: &Value| string(&one["cause"]).contains("container could not be made");
    assert!(list(&summary["incidents"]).iter().any(is_unmade), "{:#}", summary["incidents"]);
    assert!(launcher.folder().join("strategy-0.stamps").exists());
}
