//! Operators change strategies while processes of the run are killed at random moments: the engine,
//! an exchange, the strategy that is changed, or another one. Nothing is lost or doubled, and the
//! slot can be used again.

use super::kills::try_kill;
use super::replacements::{ChangingRun, incidents_at_end};
use crate::common::{Launcher, newest_process, output, serving_process, slow, wait_until};
use std::time::Duration;

const FLAGS: &str = "--on-death restart --venue book --exchange process --journal process --strategy crosser --isolation process";
const VICTIMS: [&str; 4] = ["engine", "exchange-0", "strategy-2", "strategy-1"];
/// Commands that change strategy 2, in the order in which they are given.
const CHANGES: [&str; 3] = [
    "replace RUN 2 --open-orders cancel --within 100s",
    "retire RUN 2 --open-orders drain --within 200ms",
    "add RUN 2 --strategy crosser",
];

/// Rounds of all changes with each victim: 17 of them make more than 200 kills.
fn rounds() -> u64 {
    if slow() { 17 } else { 1 }
}

/// Kills the process that serves a role now, unless there is none at the moment, or the change has
/// ended it first.
fn kill(launcher: u32, role: &str) {
    let victim = match role.starts_with("strategy") {
        true => newest_process(launcher, role, 0),
        false => serving_process(launcher, role, &[]),
    };
    victim.map(try_kill);
}

#[test]
fn deaths_during_changes_lose_nothing() {
    for round in 0..rounds() {
        let launcher = Launcher::new();
        let run = ChangingRun::start(&launcher, FLAGS);
        let pid = run.running.pid();
        for (turn, victim) in VICTIMS.into_iter().enumerate() {
            for (place, change) in CHANGES.into_iter().enumerate() {
                let command = change.replace("RUN", &run.run);
                let changing = std::thread::spawn(move || output(&command));
                // From before the engine sees the command until after the successor runs.
                let moment = (7 * turn as u64 + 5 * place as u64 + 11 * round) % 60;
                std::thread::sleep(Duration::from_millis(moment));
                kill(pid, victim);
                let result = changing.join().unwrap();
                // Its strategy may have been killed first: the command then finds it up or down.
                let is_known = matches!(result.code, Some(0..=2));
                assert!(is_known, "{change}, {victim} after {moment} ms: {result:?}");
                let is_strategy = victim == "strategy-2";
                assert!(result.code == Some(0) || is_strategy || place > 0, "{change}, {victim}: {result:?}");
            }
            // The slot is as usable as before, whatever has happened in it.
            let name = &run.run;
            let is_up =
                || output(&format!("replace {name} 2 --open-orders cancel --within 100s")).code == Some(0);
            let is_added = || output(&format!("add {name} 2 --strategy crosser")).code == Some(0);
            wait_until("strategy 2 trades again", || is_up() || is_added());
        }
        let incidents = incidents_at_end(&launcher, run.running);
        assert!(incidents.len() >= 2 * VICTIMS.len(), "{incidents:?}");
    }
}

#[test]
fn launcher_killed_during_change_leaves_nothing() {
    for (change, wait_ms) in CHANGES.into_iter().take(2).flat_map(|change| [(change, 1), (change, 12)]) {
        let launcher = Launcher::new();
        ChangingRun::start(&launcher, FLAGS).kill_launcher_during(change, wait_ms);
    }
}
