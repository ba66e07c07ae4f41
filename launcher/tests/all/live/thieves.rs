//! Hostile strategies that trade and reach for what other processes of their run wait for: the
//! locks of journals, leases on files, and wake-ups. Nothing of it may harm or blame the others.

use super::contained::CONTAINER;
use super::programs::Program;
use crate::common::{CommandResult, Launcher, Running, list, number, skip, string};
use serde_json::Value;

const SANDBOX: &str = "--isolation sandbox";
const PROCESS: &str = "--isolation process";

/// An engine that recovers from its journal, and its exchange. Both are killed.
const JOURNALED: &str = "--venue book --venues 1 --exchange process --journal process --on-death restart \
                         --orders 2400 --window 1500ms --idle park --liveness 5s \
                         --fault 'kill:engine@400ms;kill:exchange@800ms' --strict-faults";

/// A run with a player and that thief at a level. It is made in the folder of its results, which a
/// container shows, except that of the run itself.
fn stolen(program: &Program, act: &str, flags: &str) -> (Launcher, CommandResult) {
    let launcher = Launcher::new();
    let out = launcher.out.path().canonicalize().unwrap();
    let words = if ["locks", "files", "takes"].contains(&act) {
        format!("{act} {}", out.display())
    } else {
        act.into()
    };
    let kinds = program.with_player(&words);
    let mut command = launcher.run(&format!("{kinds} {flags} --json"));
    let result = Running::spawn(command.current_dir(&out)).end();
    (launcher, result)
}

/// What the thief prints; a file that stays empty is removed.
fn said(launcher: &Launcher) -> String {
    std::fs::read_to_string(launcher.folder().join("strategy-1.stderr")).unwrap_or_default()
}

/// What the thief says that it got.
fn loot(launcher: &Launcher) -> String {
    said(launcher).lines().filter(|line| line.starts_with("got:")).collect::<Vec<_>>().join("\n")
}

/// Checks that a run is valid, and that no strategy lost an order or was blamed.
fn assert_unharmed(what: &str, result: &CommandResult) -> Value {
    assert_eq!(result.code, Some(0), "{what}: {}", result.said());
    let summary = result.json();
    assert_eq!(summary["valid"], true, "{what}: {}", summary["reasons"]);
    assert_eq!(summary["orders"]["lost"], 0, "{what}: {}", summary["orders"]);
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"], "{what}");
    let incidents = summary["incidents"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(incidents, [Value::Null; 0], "{what}");
    summary
}

/// The kernel hands a lock over when its last holder is gone: that of a journal is never gone while
/// the run lasts.
#[test]
fn journal_locks_survive_the_deaths_of_their_writers() {
    let Some(program) = Program::compile("tests/c/thief.c") else { return };
    let levels = [(PROCESS, "locks"), (CONTAINER, "locks"), (CONTAINER, "files")];
    let there = Launcher::contained().is_some();
    for (level, act) in levels.into_iter().filter(|(level, _)| there || *level != CONTAINER) {
        let (launcher, result) = stolen(&program, act, &format!("{level} {JOURNALED}"));
        let summary = assert_unharmed(&format!("{act}: {level}"), &result);
        assert_eq!(list(&summary["comebacks"]).len(), 2, "{level}: {}", summary["comebacks"]);
        assert_eq!(loot(&launcher), "", "{act}: {level}");
    }
}

/// At `process` it can release a lock through the launcher's own descriptor and take it. No
/// successor asks for it, and the thief is named.
#[test]
fn foreign_holder_of_journal_lock_is_named() {
    let Some(program) = Program::compile("tests/c/thief.c") else { return };
    let (launcher, result) = stolen(&program, "takes", &format!("{PROCESS} {JOURNALED}"));
    if said(&launcher).contains("refused") {
        return skip("a process may not take descriptors of another one here");
    }
    let summary = assert_unharmed("takes", &result);
    assert_eq!(list(&summary["comebacks"]).len(), 2, "{}", summary["comebacks"]);
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("(program) has taken the lock of the journal of"), "{reasons}");
}

/// The waiters of a word are moved by one system call, for which a read-only mapping is enough.
#[test]
fn waiters_cannot_be_moved_out_of_reach() {
    let levels = [(Launcher::sandboxed().is_some(), SANDBOX), (Launcher::contained().is_some(), CONTAINER)];
    for (_, level) in levels.into_iter().filter(|(is_there, _)| *is_there) {
        let summary = Launcher::new().summary(&format!(
            "{level} --strategies 3 --orders 3000 --window 1s --idle park --delay uniform:1ms..20ms \
             --on-death restart --liveness 2s --fault requeue:strategy-1@200ms --strict-faults"
        ));
        let [incident] = list(&summary["incidents"]) else { panic!("{level}: {:#}", summary["incidents"]) };
        assert_eq!(string(&incident["cause"]), "exit 41", "{level}: it got what it reached for");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{level}");
    }
}

/// By every call that moves waiters, while others trade; and wake-ups without end, which find
/// threads that look again and sleep on.
#[test]
fn thief_of_wake_ups_harms_nobody() {
    let Some(program) = Program::compile("tests/c/thief.c") else { return };
    let levels = [(PROCESS, "wakes"), (CONTAINER, "wakes"), (CONTAINER, "moves")];
    let there = Launcher::contained().is_some();
    for (level, act) in levels.into_iter().filter(|(level, _)| there || *level != CONTAINER) {
        let flags = "--orders 2000 --window 1s --delay uniform:1ms..5ms --venues 1 --idle park --liveness 5s";
        let (launcher, result) = stolen(&program, act, &format!("{level} {flags}"));
        let summary = assert_unharmed(&format!("{act}: {level}"), &result);
        assert!(number(&summary["orders"]["sent"]) > 0);
        assert_eq!(loot(&launcher), "", "{act}: {level}");
    }
}
