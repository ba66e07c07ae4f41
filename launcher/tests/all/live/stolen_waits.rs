//! Hostile strategies that trade and attack what other processes wait for: locks of journals,
//! leases on files, and futex wake-ups. The others must neither lose orders nor be blamed.

use super::contained::CONTAINER;
use super::programs::Program;
use crate::common::{CommandResult, Launcher, Running, list, number, skip, string};
use serde_json::Value;

const SANDBOX: &str = "--isolation sandbox";
const PROCESS: &str = "--isolation process";

/// Engine and exchange have journals and are both killed.
const JOURNALED: &str = "--venue book --venues 1 --exchange process --journal process --on-death restart \
                         --orders 2400 --window 1500ms --idle park --liveness 5s \
                         --fault 'kill:engine@400ms;kill:exchange@800ms' --strict-faults";

/// Makes a run with a player and the hostile program. Its working directory is the folder of the
/// results, which a container shows except for the run's own.
fn run_thief(program: &Program, attack: &str, flags: &str) -> (Launcher, CommandResult) {
    let launcher = Launcher::new();
    let out = launcher.out.path().canonicalize().unwrap();
    let arguments = if ["locks", "files", "takes"].contains(&attack) {
        format!("{attack} {}", out.display())
    } else {
        attack.into()
    };
    let kinds = program.with_player(&arguments);
    let mut command = launcher.run(&format!("{kinds} {flags} --json"));
    let result = Running::spawn(command.current_dir(&out)).end();
    (launcher, result)
}

/// Returns what the hostile program printed; the file is removed if it is empty.
fn thief_stderr(launcher: &Launcher) -> String {
    std::fs::read_to_string(launcher.folder().join("strategy-1.stderr")).unwrap_or_default()
}

/// Returns the lines in which the hostile program reports success.
fn stolen_items(launcher: &Launcher) -> String {
    thief_stderr(launcher).lines().filter(|line| line.starts_with("got:")).collect::<Vec<_>>().join("\n")
}

/// Checks that a run is valid, and that no strategy lost an order or has an incident.
fn assert_unharmed(context: &str, result: &CommandResult) -> Value {
    assert_eq!(result.code, Some(0), "{context}: {}", result.all_output());
    let summary = result.json();
    assert_eq!(summary["valid"], true, "{context}: {}", summary["reasons"]);
    assert_eq!(summary["orders"]["lost"], 0, "{context}: {}", summary["orders"]);
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"], "{context}");
    let incidents = summary["incidents"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(incidents, [Value::Null; 0], "{context}");
    summary
}

/// The kernel releases a lock with its last holder; the launcher holds each journal's lock during
/// the whole run.
#[test]
fn journal_locks_survive_deaths_of_their_writers() {
    let Some(program) = Program::compile("tests/c/thief.c") else { return };
    let levels = [(PROCESS, "locks"), (CONTAINER, "locks"), (CONTAINER, "files")];
    let has_containers = Launcher::contained().is_some();
    for (level, attack) in levels.into_iter().filter(|(level, _)| has_containers || *level != CONTAINER) {
        let (launcher, result) = run_thief(&program, attack, &format!("{level} {JOURNALED}"));
        let summary = assert_unharmed(&format!("{attack}: {level}"), &result);
        assert_eq!(list(&summary["comebacks"]).len(), 2, "{level}: {}", summary["comebacks"]);
        assert_eq!(stolen_items(&launcher), "", "{attack}: {level}");
    }
}

/// At `process` a program can release a lock through a copy of the launcher's descriptor and take
/// it. No successor needs the lock, and the program is named.
#[test]
fn foreign_holder_of_journal_lock_is_named() {
    let Some(program) = Program::compile("tests/c/thief.c") else { return };
    // The launcher looks each 500 ms, later on a busy machine, and names who holds the lock then.
    let journaled = JOURNALED.replace("--window 1500ms", "--window 5s");
    let (launcher, result) = run_thief(&program, "takes", &format!("{PROCESS} {journaled}"));
    if thief_stderr(&launcher).contains("refused") {
        return skip("a process may not take descriptors of another one here");
    }
    let summary = assert_unharmed("takes", &result);
    assert_eq!(list(&summary["comebacks"]).len(), 2, "{}", summary["comebacks"]);
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("(program) has taken the lock of the journal of"), "{reasons}");
}

/// Futex waiters are moved to another word by one system call, for which a read-only mapping
/// suffices.
#[test]
fn futex_waiters_cannot_be_requeued_by_other_processes() {
    let levels = [(Launcher::sandboxed().is_some(), SANDBOX), (Launcher::contained().is_some(), CONTAINER)];
    for (_, level) in levels.into_iter().filter(|(is_available, _)| *is_available) {
        let summary = Launcher::new().summary(&format!(
            "{level} --strategies 3 --orders 3000 --window 1s --idle park --delay uniform:1ms..20ms \
             --on-death restart --liveness 2s --fault requeue:strategy-1@200ms --strict-faults"
        ));
        let [incident] = list(&summary["incidents"]) else { panic!("{level}: {:#}", summary["incidents"]) };
        assert_eq!(string(&incident["cause"]), "exit 41", "{level}: the program could move waiters");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{level}");
    }
}

/// The program uses every futex call that moves waiters, and endless wake-ups, after which threads
/// check their condition and sleep again.
#[test]
fn strategy_stealing_wake_ups_harms_nobody() {
    let Some(program) = Program::compile("tests/c/thief.c") else { return };
    let levels = [(PROCESS, "wakes"), (CONTAINER, "wakes"), (CONTAINER, "moves")];
    let has_containers = Launcher::contained().is_some();
    for (level, attack) in levels.into_iter().filter(|(level, _)| has_containers || *level != CONTAINER) {
        let flags = "--orders 2000 --window 1s --delay uniform:1ms..5ms --venues 1 --idle park --liveness 5s";
        let (launcher, result) = run_thief(&program, attack, &format!("{level} {flags}"));
        let summary = assert_unharmed(&format!("{attack}: {level}"), &result);
        assert!(number(&summary["orders"]["sent"]) > 0);
        assert_eq!(stolen_items(&launcher), "", "{attack}: {level}");
    }
}
