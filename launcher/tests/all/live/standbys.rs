//! Standbys of engine and exchange: a role restarts from its standby, or without one from snapshots
//! and the rest of the log.

use super::journal_recovery::{assert_settled, flip_bit, snapshots};
use crate::common::{
    Launcher, RECOVERABLE, Running, has_role_threads, list, newest_process, number, serving_process, signal,
    wait_for, wait_until,
};
use serde_json::Value;
use std::time::Duration;

/// Starts a run of [`RECOVERABLE`] with a journal, which is ended long before its orders run out.
fn start_run(launcher: &Launcher, load: &str) -> Running {
    launcher.start(&format!("{RECOVERABLE} --journal process --liveness 1s --strategies 2 {load}"))
}

/// Waits for a standby of a role whose pid is not `except`. Returns its pid.
fn await_standby(running: &Running, name: &str, except: u32) -> u32 {
    wait_for("a standby exists", || newest_process(running.pid(), &format!("spare:{name}"), except))
}

/// Interrupts the run and checks that all orders were returned. Returns the restarts.
fn end_and_list_restarts(launcher: &Launcher, running: Running) -> Vec<Value> {
    let summary = launcher.interrupted(running);
    assert_settled(&summary);
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"]);
    list(&summary["comebacks"]).to_vec()
}

/// Each standby replays only the records that it had not yet followed.
#[test]
fn engine_restarts_repeatedly_from_standby() {
    let launcher = Launcher::new();
    let running = start_run(&launcher, "--orders 400k --window 40s");
    let mut active = running.process("engine");
    for kills in 0..3 {
        let standby = await_standby(&running, "engine", active);
        std::thread::sleep(Duration::from_millis(250 + 30 * kills));
        signal(active, "KILL");
        wait_until("the role serves again", || has_role_threads(standby));
        active = standby;
    }
    let restarts = end_and_list_restarts(&launcher, running);
    assert_eq!(restarts.len(), 3, "{restarts:#?}");
    for restart in &restarts {
        let replays_less = number(&restart["again"]) < number(&restart["records"]);
        assert!(restart["role"] == "engine" && replays_less, "{restart:#}");
    }
}

/// A killed standby causes no restart of its role; another standby is started.
#[test]
fn killed_standby_is_replaced_silently() {
    let launcher = Launcher::new();
    let running = start_run(&launcher, "--orders 200k --window 40s");
    for name in ["engine", "exchange-0"] {
        let standby = await_standby(&running, name, 0);
        signal(standby, "KILL");
        await_standby(&running, name, standby);
    }
    assert_eq!(end_and_list_restarts(&launcher, running), Vec::<Value>::new());
}

/// The promoted standby does not respond, so a cold start replaces it before the stall timeout.
#[test]
fn stopped_standby_falls_back_to_cold_start() {
    let launcher = Launcher::new();
    let running = start_run(&launcher, "--orders 400k --window 40s");
    for name in ["engine", "exchange-0"] {
        let active = running.process(name);
        let standby = await_standby(&running, name, active);
        signal(standby, "STOP");
        signal(active, "KILL");
        wait_until("a cold-started process serves", || {
            assert!(!running.has_ended(), "the run has ended");
            serving_process(running.pid(), name, &[active, standby]).is_some()
        });
    }
    let restarts = end_and_list_restarts(&launcher, running);
    assert_eq!(restarts.len(), 2, "{restarts:#?}");
    assert!(restarts.iter().all(|restart| restart["detect_to_recovery_ns"].is_u64()), "{restarts:#?}");
}

/// The standby is killed during or just after its promotion; its successor has already been
/// started.
#[test]
fn role_killed_during_promotion_recovers() {
    let launcher = Launcher::new();
    let running = start_run(&launcher, "--orders 400k --window 30s");
    for name in ["engine", "exchange-0"] {
        let active = running.process(name);
        let standby = await_standby(&running, name, active);
        std::thread::sleep(Duration::from_millis(300));
        signal(active, "KILL");
        std::thread::sleep(Duration::from_millis(6));
        signal(standby, "KILL");
        wait_for("the role serves again", || serving_process(running.pid(), name, &[active, standby]));
        std::thread::sleep(Duration::from_millis(300));
    }
    let restarts = end_and_list_restarts(&launcher, running);
    assert!((2..=4).contains(&restarts.len()), "{restarts:#?}");
}

/// The engine and its standby are killed when there are two snapshots, of which the newer is
/// damaged.
#[test]
fn engine_without_standby_recovers_from_newest_intact_snapshot() {
    let launcher = Launcher::new();
    let running = start_run(&launcher, "--orders 600k --window 24s");
    let folder = launcher.folder().join("journal-engine");
    wait_until("two snapshots exist", || snapshots(&folder).len() >= 2);
    let active = running.process("engine");
    // Stopped, so that it writes no further snapshot.
    signal(active, "STOP");
    signal(await_standby(&running, "engine", active), "KILL");
    flip_bit(&snapshots(&folder).pop().unwrap(), |len| len / 2);
    signal(active, "KILL");
    wait_for("the role serves again", || serving_process(running.pid(), "engine", &[active]));
    let restarts = end_and_list_restarts(&launcher, running);
    let [restart] = &restarts[..] else { panic!("{restarts:#?}") };
    assert!(number(&restart["again"]) < number(&restart["records"]), "{restart:#}");
}
