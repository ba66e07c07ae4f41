//! Strategies that cannot be brought back: they are given up and named, and the run goes on without
//! them.

use super::contained::{CONTAINER, unsupported};
use super::programs::{Program, with_broken};
use crate::common::{Launcher, assert_nothing_left, family, signal, text, wait_until};
use serde_json::Value;
use std::time::{Duration, Instant};

const RESTART: [&str; 2] = ["--on-death", "restart"];

/// The only incident after which a strategy was given up.
fn given_up(summary: &Value) -> &Value {
    let incidents = summary["incidents"].as_array().unwrap();
    let found: Vec<&Value> = incidents.iter().filter(|one| one["stayed_down"].is_object()).collect();
    assert_eq!(found.len(), 1, "{incidents:#?}");
    assert_eq!(found[0]["strategy"], 1, "{found:#?}");
    found[0]
}

/// Verdict, record and page name it, with these words; what the run said while it went on is
/// `stderr`.
fn is_named(launcher: &Launcher, summary: &Value, stderr: &str, words: &str) {
    let reasons: Vec<&str> =
        summary["reasons"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    let said = "strategy-1 stayed down after 8 restarts: ";
    let is_it = |line: &str| line.contains(said) && line.contains(words);
    assert!(reasons.iter().any(|reason| is_it(reason)), "{reasons:#?}");
    assert!(stderr.lines().any(is_it), "{stderr}");
    let folder = launcher.folders().pop().unwrap();
    let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
    assert!(read("report.html").contains(said));
    let record: Value = serde_json::from_str(&read("run.json")).unwrap();
    given_up(&record);
    let report = crate::common::output(&["report", folder.to_str().unwrap()]);
    let report = text(&report.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(said), "{report}");
}

#[test]
fn a_crash_loop_is_bounded_and_named() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let (launcher, output) = with_broken(&program, "again", &RESTART);
    let stderr = text(&output.stderr);
    let summary: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    assert_eq!((&summary["outcome"]["ended"], &summary["valid"]), (&"complete".into(), &true.into()));
    // The first one had traded, so that its death counts for nothing.
    assert_eq!(summary["incidents"].as_array().unwrap().len(), 1 + 9, "{stderr}");
    let last = given_up(&summary);
    assert!(last["cause"].as_str().unwrap().contains("exit 7"), "{last:#}");
    is_named(&launcher, &summary, &stderr, "exit 7");
    let player = &summary["plan"]["workload"]["trading"]["orders"][0];
    let sent = summary["orders"]["sent"].as_u64().unwrap();
    assert!(sent >= player.as_u64().unwrap(), "the other one has sent all of its orders: {sent}");
}

#[test]
fn a_strategy_whose_program_is_gone_ends_nothing() {
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let launcher = Launcher::new();
    let kinds = format!("player,{}", program.exec(""));
    let flags = ["--strategies", "2", "--strategy", &kinds, "--orders", "8000", "--idle", "park", "--json"];
    let load = ["--venues", "1", "--window", "2s", "--delay", "fixed:1ms"];
    let running = launcher.start(&[&load[..], &flags, &RESTART].concat());
    let pid = running.pid();
    std::fs::remove_file(program.path()).unwrap();
    wait_until("it is killed", || {
        program.processes().into_iter().for_each(|pid| signal(pid, "KILL"));
        program.processes().is_empty()
    });
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    assert_nothing_left(pid);
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&summary["outcome"]["ended"], &summary["valid"]), (&"complete".into(), &true.into()));
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    is_named(&launcher, &summary, &stderr, "cannot be started");
    assert!(stderr.contains("No such file"), "{stderr}");
}

/// The container shim is killed during container creation, each time.
#[test]
fn failed_container_affects_only_its_strategy() {
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let flags =
        ["--strategies", "2", "--venues", "1", "--orders", "60k", "--window", "60s", "--idle", "park"];
    let running = launcher.start(&[CONTAINER, &flags, &RESTART].concat());
    let pid = running.pid();
    let makers = || {
        let all = family(pid).into_iter().filter(|(_, line)| line.contains("role --contain strategy-1 "));
        all.map(|(maker, _)| maker)
    };
    // Until there was none for longer than the longest pause.
    let (mut last, mut killed) = (Instant::now(), 0);
    while last.elapsed() < Duration::from_secs(3) && !running.has_ended() && killed < 1000 {
        for maker in makers() {
            let is_gone = std::fs::read(format!("/proc/{maker}/cmdline")).is_ok_and(|line| line.is_empty());
            if !is_gone
                && std::process::Command::new("kill").args(["-9", &maker.to_string()]).status().is_ok()
            {
                (last, killed) = (Instant::now(), killed + 1);
            }
        }
    }
    assert!(!running.has_ended(), "{:?}", running.end());
    let folder = launcher.folders().pop().unwrap();
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    let last = given_up(&summary);
    assert!(last["stayed_down"]["restarts"] == 8 && killed > 8, "{last:#}");
    let incidents = summary["incidents"].as_array().unwrap();
    let is_unmade = |one: &&Value| one["cause"].as_str().unwrap().contains("container could not be made");
    assert!(incidents.iter().filter(is_unmade).count() > 0, "{incidents:#?}");
    assert!(folder.join("strategy-0.stamps").exists());
}
