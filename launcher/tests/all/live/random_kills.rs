//! Any process of a run is killed at any time, the launcher and its reaper included: the run ends,
//! its files can be read, and no process or segment remains.
//!
//! The victim, the time and the run's settings follow from a seed, which a failure names.
//! `BULKHEAD_SLOW=1` kills 200 times.

use crate::common::{Launcher, Random, Running, output, run_processes, signal, slow, wait_until};
use std::os::fd::AsFd;
use std::time::Duration;
use system::process;

/// Returns the number of kills.
fn required_kills() -> u64 {
    if slow() { 200 } else { 8 }
}

/// Draws the settings of a run.
fn settings(random: &mut Random) -> String {
    const RUNS: [&str; 5] = [
        "--isolation process --on-death restart",
        "--isolation sandbox --on-death restart",
        "--isolation process --on-death continue --technique array-queue",
        "--isolation thread",
        "--on-death restart --venue book --exchange process --journal process",
    ];
    let isolation_flags = random.choose(&RUNS);
    format!("{isolation_flags} --strategies 2 --venues 1 --orders 30k --window 30s --idle park")
}

/// Kills one process of the run, or the launcher. Returns the victim's role, or `None` if it had
/// ended before.
fn kill_any(running: &Running, random: &mut Random) -> Option<String> {
    let mut victims = run_processes(running.pid());
    victims.sort();
    victims.push((running.pid(), "role launcher ".into()));
    let (pid, command) = random.choose(&victims);
    let role = command.split("role ").nth(1)?.split(' ').next()?.to_owned();
    let pidfd = process::pidfd_open(*pid).ok()?;
    process::kill(pidfd.as_fd()).ok().map(|()| role)
}

/// Makes a run and kills one of its processes. Returns the victim's role.
fn killed(seed: u64) -> Option<String> {
    let launcher = Launcher::new();
    let mut random = Random(seed);
    let settings = settings(&mut random);
    let running = launcher.start(&settings);
    let pid = running.pid();
    std::thread::sleep(Duration::from_millis(random.next() % 400));
    let victim = kill_any(&running, &mut random)?;
    // Long enough for a restart, or for the run to end.
    std::thread::sleep(Duration::from_millis(100 + random.next() % 300));
    if victim != "launcher" && !running.has_ended() {
        signal(pid, "INT");
    }
    let result = running.end();
    let context = format!("seed {seed}, {settings}, killed {victim}: {result:?}");
    let is_expected = match victim.as_str() {
        "launcher" => result.code.is_none(),
        _ => matches!(result.code, Some(1 | 130)),
    };
    assert!(is_expected && !result.stderr.contains("panicked"), "{context}");
    let folder = launcher.folders().pop().expect("the run had begun");
    if victim == "launcher" {
        wait_until("the reaper has saved the logs", || folder.join("run.json").exists());
        let report = output(&format!("report {}", folder.display()));
        let is_merged = matches!(report.code, Some(0 | 1)) && !report.stderr.contains("panicked");
        assert!(is_merged, "{context}: {report:?}");
    }
    let summary = launcher.newest_summary();
    assert_eq!(summary["orders"]["duplicated"], 0, "{context}");
    let containment = &summary["containment"];
    assert!(containment.is_null() || containment["lost_of_survivors"] == 0, "{context}: {containment}");
    Some(victim)
}

#[test]
fn randomly_killed_process_leaves_readable_run_and_nothing_else() {
    let (mut kills, mut seed) = (std::collections::BTreeMap::<String, u64>::new(), 0);
    while kills.values().sum::<u64>() < required_kills() {
        if let Some(victim) = killed(seed) {
            *kills.entry(victim).or_default() += 1;
        }
        seed += 1;
        assert!(seed < 2 * required_kills() + 20, "the victims have ended before they could be killed");
    }
    println!("{} kills: {kills:?}", kills.values().sum::<u64>());
}
