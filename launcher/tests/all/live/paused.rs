//! A machine that stands still in the middle of a run, as a virtual one does that is paused:
//! everybody at once, the launcher as well.

use crate::common::{Launcher, Running, family, number, signal};
use std::time::Duration;

/// Longer than a drain waits for the last reports: the longest delay, and the grace of five
/// seconds.
const PAUSE: Duration = Duration::from_millis(7_500);

/// Everybody stops, the launcher first, so that it sees nobody else stand still; and goes on, the
/// launcher last.
fn pause(running: &Running) {
    let roles: Vec<u32> = family(running.pid()).into_iter().map(|(pid, _)| pid).collect();
    signal(running.pid(), "STOP");
    roles.iter().for_each(|pid| signal(*pid, "STOP"));
    std::thread::sleep(PAUSE);
    roles.iter().for_each(|pid| signal(*pid, "CONT"));
    signal(running.pid(), "CONT");
}

#[test]
fn a_pause_in_the_drain_loses_no_order() {
    let launcher = Launcher::new();
    let running = launcher
        .start("--strategies 2 --venues 1 --orders 60k --window 60s --idle park --delay fixed:1500ms");
    // Orders are at the venue, and will be there for a while.
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
