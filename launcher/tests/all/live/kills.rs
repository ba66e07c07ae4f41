//! Exchanges and the engine killed by SIGKILL under load, again and again, at whatever instruction they are: the merge is the ledger over
//! all processes. Each order is sent once, at its exchange once and answered once, or its strategy died.

use super::comebacks::{BASE, comebacks};
use crate::common::{Launcher, Running, newest, signal, slow, wait_until};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Deaths that are wanted of each role.
fn wanted() -> usize {
    if slow() { 1000 } else { 60 }
}

/// A run's folder, and the run under load.
fn loaded(orders: &str) -> (Launcher, Running) {
    let launcher = Launcher::new();
    let how = ["--journal", "process", "--liveness", "2s", "--strategies", "2", "--json"];
    let running = launcher.start(&[&BASE[..], &how, &["--orders", orders, "--window", "12s"]].concat());
    (launcher, running)
}

/// What came of such a run; nothing may be missing in it.
fn account(running: Running) -> Value {
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}");
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary["valid"], true, "{summary:#}");
    let count = |key: &str| summary["orders"][key].as_u64().unwrap();
    let settled: u64 = ["returned", "cancelled", "orphaned", "lost"].map(count).iter().sum();
    assert_eq!(count("sent"), settled, "{}", summary["orders"]);
    assert_eq!(count("duplicated"), 0, "{}", summary["orders"]);
    assert!(summary["containment"].is_null() || summary["containment"]["lost_of_survivors"] == 0);
    let died = comebacks(&summary);
    assert!(died.iter().all(|one| one["in_flight"] == one["answered"]), "{died:#?}");
    summary
}

/// One run, in which the exchange is killed so often at most, each time a while after it has come back; how often that was.
fn kills_exchange(at_most: usize) -> usize {
    let (_launcher, running) = loaded("60k");
    let (mut living, mut kills) = (running.process("exchange-0"), 0);
    let until = Instant::now() + Duration::from_secs(9);
    while kills < at_most && Instant::now() < until {
        // Started when the last one was back.
        let spare = || newest(running.pid(), "spare:exchange-0", living);
        wait_until("there is a spare", || spare().is_some());
        let Some(next) = spare() else { continue };
        std::thread::sleep(Duration::from_millis(5 + 37 * kills as u64 % 90));
        signal(living, "KILL");
        (living, kills) = (next, kills + 1);
    }
    let summary = account(running);
    assert_eq!(comebacks(&summary).len(), kills);
    assert_eq!(summary["orders"]["sent"], summary["orders"]["returned"]);
    kills
}

/// One run, in which the engine is killed so often at most, in its duty cycles or on its way back, now and then with a strategy or the
/// exchange; how often that was.
fn kills_engine(at_most: usize) -> usize {
    let (_launcher, running) = loaded("12k");
    let (mut living, mut kills) = (running.process("engine"), 0);
    let until = Instant::now() + Duration::from_secs(9);
    while kills < at_most && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(3 + 37 * kills as u64 % 90));
        let with = match kills % 16 {
            5 => Some("exchange-0"),
            11 => Some("strategy-1"),
            _ => None,
        };
        let with = with.and_then(|role| newest(running.pid(), role, 0));
        signal(living, "KILL");
        kills += 1;
        if let Some(with) = with {
            // It may have been about to end.
            drop(std::process::Command::new("kill").args(["-KILL", &with.to_string()]).output());
        }
        wait_until("it is started again", || newest(running.pid(), "engine", living).is_some());
        living = newest(running.pid(), "engine", living).unwrap_or(living);
    }
    let summary = account(running);
    let engines = comebacks(&summary).iter().filter(|one| one["role"] == "engine").count();
    // Who was killed on its way back came back once for all of these deaths.
    assert!(engines <= kills && 3 * engines >= kills, "{engines} comebacks, {kills} kills");
    kills
}

/// Kills in runs of their own until there were as many as wanted.
fn until_enough(role: &str, run: impl Fn(usize) -> usize) {
    let (mut kills, mut runs) = (0, 0);
    while kills < wanted() {
        let here = run(wanted() - kills);
        assert!(here > 0, "nobody was killed");
        (kills, runs) = (kills + here, runs + 1);
    }
    println!("{role}: {kills} kills in {runs} runs, nothing lost, nothing twice");
}

#[test]
fn every_order_is_answered_once_however_often_an_exchange_is_killed() {
    until_enough("exchange", kills_exchange);
}

#[test]
fn every_order_is_answered_once_however_often_the_engine_is_killed() {
    until_enough("engine", kills_engine);
}
