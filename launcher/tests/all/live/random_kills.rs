//! Any process of a run killed at any time, the launcher and its reaper included: the run ends, its
//! files can be read, and nothing is left.
//!
//! The victim, the time and the run's settings follow from a number, which a failure names.
//! `BULKHEAD_SLOW=1` kills 200 times.

use crate::common::{
    Launcher, Running, assert_nothing_left, document, family, signal, slow, text, wait_until,
};
use std::os::fd::AsFd;
use std::time::Duration;
use system::process;

/// Kills that are wanted.
fn wanted() -> u64 {
    if slow() { 200 } else { 8 }
}

/// SplitMix64 (Steele, Lea, Flood 2014): a number drawn from a seed.
fn draw(seed: u64, index: u64) -> u64 {
    let mut z =
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(index.wrapping_mul(0xbf58_476d_1ce4_e5b9));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The settings of the run with that number.
fn settings(seed: u64) -> Vec<&'static str> {
    const RUNS: [&[&str]; 5] = [
        &["--isolation", "process", "--on-death", "restart"],
        &["--isolation", "sandbox", "--on-death", "restart"],
        &["--isolation", "process", "--on-death", "continue", "--technique", "array-queue"],
        &["--isolation", "thread"],
        &["--on-death", "restart", "--venue", "book", "--exchange", "process", "--journal", "process"],
    ];
    let load = ["--strategies", "2", "--venues", "1", "--orders", "30k", "--window", "30s", "--idle", "park"];
    [RUNS[(draw(seed, 0) % RUNS.len() as u64) as usize], &load].concat()
}

/// Kills one process of the run, or the launcher. Returns the victim's role, or `None` if it had
/// ended before.
fn kill_any(running: &Running, seed: u64) -> Option<String> {
    let mut victims = family(running.pid());
    victims.sort();
    victims.push((running.pid(), "role launcher ".into()));
    let (pid, command) = &victims[(draw(seed, 1) % victims.len() as u64) as usize];
    let role = command.split("role ").nth(1)?.split(' ').next()?.to_owned();
    let pidfd = process::pidfd_open(*pid).ok()?;
    process::kill(pidfd.as_fd()).ok().map(|()| role)
}

/// A run from which one process is killed. Returns the victim's role.
fn killed(seed: u64) -> Option<String> {
    let launcher = Launcher::new();
    let settings = settings(seed);
    let running = launcher.start(&settings);
    let pid = running.pid();
    std::thread::sleep(Duration::from_millis(draw(seed, 2) % 400));
    let victim = kill_any(&running, seed)?;
    // Long enough for a restart, or for the run to end.
    std::thread::sleep(Duration::from_millis(100 + draw(seed, 3) % 300));
    if victim != "launcher" && !running.has_ended() {
        signal(pid, "INT");
    }
    let (code, stdout, stderr) = running.end();
    let context = format!("seed {seed}, {settings:?}, killed {victim}, exit code {code:?}: {stdout}{stderr}");
    let is_expected = match victim.as_str() {
        "launcher" => code.is_none(),
        _ => matches!(code, Some(1 | 130)),
    };
    assert!(is_expected && !stderr.contains("panicked"), "{context}");
    assert_nothing_left(pid);
    let folder = launcher.folders().pop().expect("the run had begun");
    if victim == "launcher" {
        wait_until("the reaper has saved the logs", || folder.join("run.json").exists());
        let report = crate::common::output(&["report", folder.to_str().unwrap()]);
        let said = text(&report.stderr);
        assert!(
            matches!(report.status.code(), Some(0 | 1)) && !said.contains("panicked"),
            "{context}: {said}"
        );
    }
    assert!(folder.join("summary.json").exists(), "{context}");
    let summary = document(&folder, "summary.json");
    assert_eq!(summary["orders"]["duplicated"], 0, "{context}");
    let containment = &summary["containment"];
    assert!(containment.is_null() || containment["lost_of_survivors"] == 0, "{context}: {containment}");
    Some(victim)
}

#[test]
fn randomly_killed_process_leaves_readable_run_and_nothing_else() {
    let (mut kills, mut seed) = (std::collections::BTreeMap::<String, u64>::new(), 0);
    while kills.values().sum::<u64>() < wanted() {
        if let Some(victim) = killed(seed) {
            *kills.entry(victim).or_default() += 1;
        }
        seed += 1;
        assert!(seed < 2 * wanted() + 20, "the victims have ended before they could be killed");
    }
    println!("{} kills: {kills:?}", kills.values().sum::<u64>());
}
