//! A machine that stands still in the middle of a run, as a virtual one does that is paused:
//! everybody at once, the launcher as well.

use crate::common::{Launcher, Running, assert_nothing_left, family, signal};
use serde_json::Value;
use std::time::Duration;

/// Longer than a drain waits for the last reports: the longest delay, and the grace of five
/// seconds.
const PAUSE: Duration = Duration::from_millis(7_500);

impl Running {
    /// Everybody stops, the launcher first, so that it sees nobody else stand still; and goes on,
    /// the launcher last.
    fn is_paused(&self) {
        let roles: Vec<u32> = family(self.pid()).into_iter().map(|(pid, _)| pid).collect();
        signal(self.pid(), "STOP");
        roles.iter().for_each(|pid| signal(*pid, "STOP"));
        std::thread::sleep(PAUSE);
        roles.iter().for_each(|pid| signal(*pid, "CONT"));
        signal(self.pid(), "CONT");
    }
}

#[test]
fn a_pause_in_the_drain_loses_no_order() {
    let launcher = Launcher::new();
    let flags =
        ["--strategies", "2", "--venues", "1", "--orders", "60k", "--window", "60s", "--idle", "park"];
    let running = launcher.start(&[&flags[..], &["--delay", "fixed:1500ms"]].concat());
    let pid = running.pid();
    // Orders are at the venue, and will be there for a while.
    std::thread::sleep(Duration::from_millis(300));
    signal(pid, "INT");
    std::thread::sleep(Duration::from_millis(300));
    running.is_paused();
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}\n{stdout}");
    assert_nothing_left(pid);
    let summary = launcher.newest_summary();
    let orders = &summary["orders"];
    assert!(orders["sent"].as_u64() > Some(0), "{orders}");
    assert_eq!((&orders["lost"], &orders["returned"]), (&Value::from(0), &orders["sent"]), "{orders}");
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
}
