//! Exchanges and the engine are killed repeatedly under load, at arbitrary instructions. The merge
//! of all logs checks that each order was sent once, reached its exchange once and was answered
//! once, unless its strategy died.

use super::journal_recovery::assert_settled;
use super::watching::watch_once;
use crate::common::{
    Launcher, RECOVERABLE, list, newest_process, serving_process, slow, wait_for, wait_until,
};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use system::process;

/// Returns the number of kills of each role.
fn required_kills() -> usize {
    if slow() { 1000 } else { 12 }
}

/// Kills a process. Returns `false` if it had exited.
pub(super) fn try_kill(pid: u32) -> bool {
    process::pidfd_open(pid).is_ok_and(|pidfd| process::kill(pidfd.as_fd()).is_ok())
}

/// Makes one run in which a role is killed up to `max_kills` times, while it serves or just after a
/// restart, sometimes together with another process. Returns the number of kills.
fn kill_repeatedly(role: &str, orders: &str, with: [&str; 2], max_kills: usize) -> usize {
    let launcher = Launcher::new();
    let flags = "--journal process --liveness 2s --strategies 2 --window 300s";
    let running = launcher.start(&format!("{RECOVERABLE} {flags} --orders {orders}"));
    let (pid, mut kill_count, mut killed) = (running.pid(), 0, Vec::new());
    // The run is interrupted long before its orders run out.
    let deadline = Instant::now() + Duration::from_secs(9);
    while kill_count < max_kills && Instant::now() < deadline {
        wait_for("the role serves again", || serving_process(pid, role, &killed));
        std::thread::sleep(Duration::from_millis(3 + 37 * kill_count as u64 % 90));
        let with = match kill_count % 16 {
            5 => Some(with[0]),
            11 => Some(with[1]),
            _ => None,
        };
        let with = with.and_then(|role| newest_process(pid, role, 0));
        // Looked up again: the process seen before may have been killed.
        let Some(victim) = serving_process(pid, role, &killed).filter(|victim| try_kill(*victim)) else {
            continue;
        };
        kill_count += 1;
        killed.push(victim);
        // The process may already have exited.
        with.map(try_kill);
        // Every fourth time its successor is killed as well, during its recovery.
        if kill_count % 4 == 0
            && let Some(next) = newest_process(pid, role, victim)
        {
            try_kill(next);
            killed.push(next);
        }
    }
    wait_for("the role serves again", || serving_process(pid, role, &killed));
    // What waits in rings when the run is interrupted would be lost.
    let folder = launcher.folder().display().to_string();
    wait_until("what waited during the recovery is served", || {
        list(&watch_once(&folder)["rings"]).iter().all(|ring| ring["fill"].as_u64() < Some(64))
    });
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{summary:#}");
    assert_settled(&summary);
    let restarts = list(&summary["comebacks"]).iter().filter(|restart| restart["role"] == *role).count();
    // Kills during a recovery count as one restart.
    assert!(
        restarts <= 2 * kill_count && 2 * restarts >= kill_count,
        "{restarts} restarts, {kill_count} kills"
    );
    kill_count
}

/// Makes runs until there were enough kills.
fn repeat_until_enough(role: &str, run: impl Fn(usize) -> usize) {
    let (mut kill_count, mut runs) = (0, 0);
    while kill_count < required_kills() {
        let kills_in_run = run(required_kills() - kill_count);
        assert!(kills_in_run > 0, "no process was killed");
        (kill_count, runs) = (kill_count + kills_in_run, runs + 1);
    }
    println!("{role}: {kill_count} kills in {runs} runs, nothing lost, nothing twice");
}

#[test]
fn orders_answered_once_for_any_exchange_kills() {
    repeat_until_enough("exchange", |max_kills| {
        let orders = if slow() { "1M" } else { "200k" };
        kill_repeatedly("exchange-0", orders, ["spare:exchange-0", "strategy-1"], max_kills)
    });
}

#[test]
fn orders_answered_once_for_any_engine_kills() {
    repeat_until_enough("engine", |max_kills| {
        kill_repeatedly("engine", "200k", ["exchange-0", "strategy-1"], max_kills)
    });
}
