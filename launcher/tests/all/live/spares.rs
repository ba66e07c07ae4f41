//! Standbys of engine and exchange: a role restarts from its standby, or without one from snapshots
//! and the rest of the log.

use super::comebacks::{BASE, assert_settled, flip_bit, snapshots};
use crate::common::{
    Launcher, Running, in_place, is_back, list, newest, number, signal, wait_for, wait_until,
};
use serde_json::Value;
use std::time::Duration;

/// A run of [`BASE`] with a journal that is ended long before its orders are.
fn started(launcher: &Launcher, load: &str) -> Running {
    launcher.start(&format!("{BASE} --journal process --liveness 1s --strategies 2 {load}"))
}

/// Waits for a process that was started as the spare of that one, and is not this one.
fn await_spare(running: &Running, name: &str, but: u32) -> u32 {
    wait_for("there is a spare", || newest(running.pid(), &format!("spare:{name}"), but))
}

/// Ends the run, in which all orders came back; who died.
fn ended(launcher: &Launcher, running: Running) -> Vec<Value> {
    let summary = launcher.interrupted(running);
    assert_settled(&summary);
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"]);
    list(&summary["comebacks"]).to_vec()
}

/// Each carries out again what its spare had not got to.
#[test]
fn engine_restarts_repeatedly_from_standby() {
    let launcher = Launcher::new();
    let running = started(&launcher, "--orders 400k --window 40s");
    let mut living = running.process("engine");
    for kills in 0..3 {
        let spare = await_spare(&running, "engine", living);
        std::thread::sleep(Duration::from_millis(250 + 30 * kills));
        signal(living, "KILL");
        wait_until("it is back", || is_back(spare));
        living = spare;
    }
    let died = ended(&launcher, running);
    assert_eq!(died.len(), 3, "{died:#?}");
    for one in &died {
        let is_less = number(&one["again"]) < number(&one["records"]);
        assert!(one["role"] == "engine" && is_less, "{one:#}");
    }
}

/// Nobody needs it: another one is started.
#[test]
fn killed_standby_is_replaced_silently() {
    let launcher = Launcher::new();
    let running = started(&launcher, "--orders 200k --window 40s");
    for name in ["engine", "exchange-0"] {
        let spare = await_spare(&running, name, 0);
        signal(spare, "KILL");
        await_spare(&running, name, spare);
    }
    assert_eq!(ended(&launcher, running), Vec::<Value>::new());
}

/// It is promoted and does not answer: a process is started in its place, before the run counts as
/// stall.
#[test]
fn stopped_standby_falls_back_to_cold_start() {
    let launcher = Launcher::new();
    let running = started(&launcher, "--orders 400k --window 40s");
    for name in ["engine", "exchange-0"] {
        let living = running.process(name);
        let spare = await_spare(&running, name, living);
        signal(spare, "STOP");
        signal(living, "KILL");
        wait_until("another one is back", || {
            assert!(!running.has_ended(), "the run has ended");
            in_place(running.pid(), name, &[living, spare]).is_some()
        });
    }
    let died = ended(&launcher, running);
    assert_eq!(died.len(), 2, "{died:#?}");
    assert!(died.iter().all(|one| one["detect_to_recovery_ns"].is_u64()), "{died:#?}");
}

/// The spare is on its way to be the engine, or just is; so is the next one, which was started
/// during that.
#[test]
fn an_engine_may_be_killed_while_it_comes_back() {
    let launcher = Launcher::new();
    let running = started(&launcher, "--orders 400k --window 30s");
    for name in ["engine", "exchange-0"] {
        let living = running.process(name);
        let spare = await_spare(&running, name, living);
        std::thread::sleep(Duration::from_millis(300));
        signal(living, "KILL");
        std::thread::sleep(Duration::from_millis(6));
        signal(spare, "KILL");
        wait_for("it is back", || in_place(running.pid(), name, &[living, spare]));
        std::thread::sleep(Duration::from_millis(300));
    }
    let died = ended(&launcher, running);
    assert!((2..=4).contains(&died.len()), "{died:#?}");
}

/// The engine and its standby are killed when there are two snapshots, of which the newer one is
/// damaged.
#[test]
fn engine_without_spare_comes_back_from_newest_whole_snapshot() {
    let launcher = Launcher::new();
    let running = started(&launcher, "--orders 600k --window 24s");
    let folder = launcher.folder().join("journal-engine");
    wait_until("snapshots are there", || snapshots(&folder).len() >= 2);
    let living = running.process("engine");
    // Stopped, so that no further one is written.
    signal(living, "STOP");
    signal(await_spare(&running, "engine", living), "KILL");
    flip_bit(&snapshots(&folder).pop().unwrap(), |len| len / 2);
    signal(living, "KILL");
    wait_for("it is back", || in_place(running.pid(), "engine", &[living]));
    let died = ended(&launcher, running);
    let [one] = &died[..] else { panic!("{died:#?}") };
    assert!(number(&one["again"]) < number(&one["records"]), "{one:#}");
}
