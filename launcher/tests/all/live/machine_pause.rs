//! A machine that pauses during a run, as a paused virtual machine does: all processes stop, the
//! launcher included.

use crate::common::{Launcher, Running, number, run_processes, signal};
use std::time::Duration;

/// Longer than a drain waits for the last reports: the longest delay plus the grace period of five
/// seconds.
const PAUSE: Duration = Duration::from_millis(7_500);

/// Stops all processes for [`PAUSE`]. The launcher stops first and continues last, so that it never
/// observes a stopped role.
fn pause(running: &Running) {
    let roles: Vec<u32> = run_processes(running.pid()).into_iter().map(|(pid, _)| pid).collect();
    signal(running.pid(), "STOP");
    roles.iter().for_each(|pid| signal(*pid, "STOP"));
    std::thread::sleep(PAUSE);
    roles.iter().for_each(|pid| signal(*pid, "CONT"));
    signal(running.pid(), "CONT");
}

#[test]
fn machine_pause_during_drain_loses_no_order() {
    let launcher = Launcher::new();
    let running = launcher
        .start("--strategies 2 --venues 1 --orders 60k --window 60s --idle park --delay fixed:1500ms");
    // Orders are at the venue, for 1.5 seconds each.
    std::thread::sleep(Duration::from_millis(300));
    signal(running.pid(), "INT");
    std::thread::sleep(Duration::from_millis(300));
    pause(&running);
    running.end().fails(130, &[]);
    let summary = launcher.newest_summary();
    let orders = &summary["orders"];
    assert!(number(&orders["sent"]) > 0, "{orders}");
    assert_eq!((&orders["lost"], &orders["returned"]), (&0.into(), &orders["sent"]), "{orders}");
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
}
