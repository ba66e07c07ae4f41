//! Standbys of engine and exchange: a role restarts from its standby, or without one from snapshots
//! and the rest of the log.

use super::comebacks::BASE;
use crate::common::{Launcher, Running, family, in_place, is_back, signal, wait_for, wait_until};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run of [`BASE`] with a journal that is ended long before its orders are.
const JOURNAL: [&str; 6] = ["--journal", "process", "--liveness", "1s", "--strategies", "2"];

fn started(launcher: &Launcher, orders: &str, window: &str) -> Running {
    launcher.start(&[&BASE[..], &JOURNAL, &["--orders", orders, "--window", window]].concat())
}

/// The newest process that was started as the spare of that one, and is none of these.
fn spare_of(running: &Running, name: &str, but: &[u32]) -> Option<u32> {
    let role = format!("role spare:{name} ");
    let all = family(running.pid()).into_iter();
    all.filter(|(pid, line)| line.contains(&role) && !but.contains(pid)).map(|(pid, _)| pid).max()
}

fn await_spare(running: &Running, name: &str, but: &[u32]) -> u32 {
    wait_for("there is a spare", || spare_of(running, name, but))
}

/// Ends the run, in which all orders came back; who died.
fn ended(launcher: &Launcher, running: Running) -> Vec<Value> {
    let summary = launcher.interrupted(running);
    let died = summary["comebacks"].as_array().cloned().unwrap_or_default();
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"], "{died:#?}");
    assert!(died.iter().all(|one| one["in_flight"] == one["answered"]), "{died:#?}");
    died
}

fn count(one: &Value, key: &str) -> u64 {
    one[key].as_u64().unwrap()
}

/// Each carries out again what its spare had not got to.
#[test]
fn engine_restarts_repeatedly_from_standby() {
    let launcher = Launcher::new();
    let running = started(&launcher, "400k", "40s");
    let mut living = vec![running.process("engine")];
    for kills in 0..3 {
        let spare = await_spare(&running, "engine", &living);
        std::thread::sleep(Duration::from_millis(250 + 30 * kills));
        signal(*living.last().unwrap(), "KILL");
        wait_until("it is back", || is_back(spare));
        living.push(spare);
    }
    let died = ended(&launcher, running);
    assert_eq!(died.len(), 3, "{died:#?}");
    for one in &died {
        assert!(one["role"] == "engine" && count(one, "again") < count(one, "records"), "{one:#}");
    }
}

/// Nobody needs it: another one is started.
#[test]
fn killed_standby_is_replaced_silently() {
    let launcher = Launcher::new();
    let running = started(&launcher, "200k", "40s");
    for name in ["engine", "exchange-0"] {
        let spare = await_spare(&running, name, &[]);
        signal(spare, "KILL");
        await_spare(&running, name, &[spare]);
    }
    assert_eq!(ended(&launcher, running), Vec::<Value>::new());
}

/// It is promoted and does not answer: a process is started in its place, before the run counts as
/// stall.
#[test]
fn stopped_standby_falls_back_to_cold_start() {
    let launcher = Launcher::new();
    let running = started(&launcher, "400k", "40s");
    for name in ["engine", "exchange-0"] {
        let living = running.process(name);
        let spare = await_spare(&running, name, &[living]);
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
    let running = started(&launcher, "400k", "30s");
    for name in ["engine", "exchange-0"] {
        let living = running.process(name);
        let spare = await_spare(&running, name, &[living]);
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

fn snapshots(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let is_one = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("snapshot-");
    let mut all: Vec<_> = files.filter(is_one).collect();
    all.sort();
    all
}

/// The engine and its standby are killed when there are two snapshots, of which the newer one is
/// damaged.
#[test]
fn engine_without_spare_comes_back_from_newest_whole_snapshot() {
    let launcher = Launcher::new();
    let running = started(&launcher, "600k", "24s");
    let folder = launcher.folders()[0].join("journal-engine");
    wait_until("snapshots are there", || snapshots(&folder).len() >= 2);
    let living = running.process("engine");
    // Stopped, so that no further one is written.
    signal(living, "STOP");
    signal(await_spare(&running, "engine", &[living]), "KILL");
    let newest = snapshots(&folder).pop().unwrap();
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(newest, bytes).unwrap();
    signal(living, "KILL");
    wait_for("it is back", || in_place(running.pid(), "engine", &[living]));
    let died = ended(&launcher, running);
    assert!(died.len() == 1 && count(&died[0], "again") < count(&died[0], "records"), "{died:#?}");
}
