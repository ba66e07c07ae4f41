//! Exchanges and the engine killed by SIGKILL under load, again and again, at whatever instruction
//! they are: the merge is the ledger over all processes. Each order is sent once, at its exchange
//! once and answered once, or its strategy died.

use super::comebacks::{BASE, assert_settled};
use crate::common::{Launcher, in_place, list, newest, slow, wait_for};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use system::process;

/// Deaths that are wanted of each role.
fn wanted() -> usize {
    if slow() { 1000 } else { 12 }
}

/// Kills a process; `false`: it was gone.
fn is_killed(pid: u32) -> bool {
    process::pidfd_open(pid).is_ok_and(|pidfd| process::kill(pidfd.as_fd()).is_ok())
}

/// One run, in which that role is killed up to a number of times, in its duty cycles or just after
/// a death, now and then with somebody else; how often that was.
fn kills(role: &str, orders: &str, with: [&str; 2], at_most: usize) -> usize {
    let launcher = Launcher::new();
    let how = "--journal process --liveness 2s --strategies 2 --window 18s";
    let running = launcher.start(&format!("{BASE} {how} --orders {orders}"));
    let (pid, mut kills, mut killed) = (running.pid(), 0, Vec::new());
    // Ended long before its orders are.
    let until = Instant::now() + Duration::from_secs(9);
    while kills < at_most && Instant::now() < until {
        wait_for("it is back", || in_place(pid, role, &killed));
        std::thread::sleep(Duration::from_millis(3 + 37 * kills as u64 % 90));
        let with = match kills % 16 {
            5 => Some(with[0]),
            11 => Some(with[1]),
            _ => None,
        };
        let with = with.and_then(|role| newest(pid, role, 0));
        // Not the one that was seen before: a fault may have come in between.
        let Some(living) = in_place(pid, role, &killed).filter(|living| is_killed(*living)) else { continue };
        kills += 1;
        killed.push(living);
        // It may have been about to end.
        with.map(is_killed);
        // Every fourth time its successor dies as well, wherever that is by now.
        if kills % 4 == 0
            && let Some(next) = newest(pid, role, living)
        {
            is_killed(next);
            killed.push(next);
        }
    }
    wait_for("it is back", || in_place(pid, role, &killed));
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{summary:#}");
    assert_settled(&summary);
    let died = list(&summary["comebacks"]).iter().filter(|one| one["role"] == *role).count();
    // Who was killed on its way back came back once for all of these deaths.
    assert!(died <= 2 * kills && 2 * died >= kills, "{died} comebacks, {kills} kills");
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
fn orders_answered_once_for_any_exchange_kills() {
    until_enough("exchange", |most| kills("exchange-0", "60k", ["spare:exchange-0", "strategy-1"], most));
}

#[test]
fn orders_answered_once_for_any_engine_kills() {
    until_enough("engine", |most| kills("engine", "12k", ["exchange-0", "strategy-1"], most));
}
