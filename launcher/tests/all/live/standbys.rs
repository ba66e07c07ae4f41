//! Standbys of engine and exchange: a role restarts from its standby. `syscalls::recovery` kills
//! them during their promotion.

use super::journal_recovery::assert_settled;
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
    let running = start_run(&launcher, "--orders 60k --window 60s");
    let mut active = running.process("engine");
    for kills in 0..2 {
        let standby = await_standby(&running, "engine", active);
        std::thread::sleep(Duration::from_millis(250 + 30 * kills));
        signal(active, "KILL");
        wait_until("the role serves again", || has_role_threads(standby));
        active = standby;
    }
    let restarts = end_and_list_restarts(&launcher, running);
    assert_eq!(restarts.len(), 2, "{restarts:#?}");
    for restart in &restarts {
        let replays_less = number(&restart["again"]) < number(&restart["records"]);
        assert!(restart["role"] == "engine" && replays_less, "{restart:#}");
    }
}

/// A killed standby causes no restart of its role; another standby is started.
#[test]
fn killed_standby_is_replaced_silently() {
    let launcher = Launcher::new();
    let running = start_run(&launcher, "--orders 60k --window 60s");
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
    let running = start_run(&launcher, "--orders 60k --window 60s");
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
