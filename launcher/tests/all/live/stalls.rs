//! Real stalls in real runs: the engine is stopped for 4 ms at a time, and the stall-free figures
//! equal those of runs without stops.

use crate::common::{Launcher, Running, skip};
use merge::tail::{Cause, Tail};
use record::document::Document;
use record::spread::median;
use std::os::fd::AsFd;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::Duration;
use system::process;
use verdict::summary::Summary;

/// Half a second of orders at a rate that the machine easily sustains.
const LOAD: &str = "--strategies 1 --venues 1 --orders 5000 --window 500ms --delay fixed:200us --threading shared --idle spin";
/// Stops in a run, and the time between them: 8 % of the orders are sent during a stop.
const STOPS: usize = 6;
const EVERY: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_millis(4);
/// Runs of each kind: an odd number, so that the median is one of them.
const REPEATS: usize = 3;

/// Stops the engine repeatedly until it exits. Returns the number of stops.
fn stop_repeatedly(running: &Running) -> usize {
    let pid = running.process("engine");
    let Ok(engine) = process::pidfd_open(pid) else { return 0 };
    let stopped = || {
        sleep(EVERY);
        process::stop(engine.as_fd()).ok()?;
        sleep(LONG);
        // The process is stopped, so its pid is still valid.
        Command::new("kill").args(["-CONT", &pid.to_string()]).status().ok().filter(ExitStatus::success)
    };
    (0..STOPS).map_while(|_| stopped()).count()
}

/// Returns the median of a figure over runs; `None` if one of them has too few orders for it.
fn median_figure(runs: &[Summary], figure: impl Fn(&Summary) -> Option<f64>) -> Option<f64> {
    median(&runs.iter().map(figure).collect::<Option<Vec<f64>>>()?)
}

#[test]
fn engine_stops_are_logged_and_excluded_from_figures() {
    let (mut quiet, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        for stops in [false, true] {
            let launcher = Launcher::new();
            let running = launcher.start(LOAD);
            let stops = if stops { stop_repeatedly(&running) } else { 0 };
            running.end().succeeds();
            let folder = launcher.folder();
            let summary = Summary::read(&folder).unwrap();
            assert!(summary.valid, "{:?}", summary.violations);
            if stops > 0 {
                assert_stops_logged(&Tail::read(&folder).unwrap(), stops);
            }
            if stops > 0 { &mut stopped } else { &mut quiet }.push(summary);
        }
    }
    let raw_p99 = |run: &Summary| run.rt_venue.p99_ns.map(|ns| ns as f64);
    let stall_free_p99 = |run: &Summary| run.stall_free.as_ref()?.rt_venue.p99_ns.map(|ns| ns as f64);
    let excluded_share = |run: &Summary| Some(run.stall_free.map_or(1.0, |figures| figures.excluded_share));
    let quiet_share = median_figure(&quiet, excluded_share).unwrap();
    let (Some(undisturbed), Some(stopped_p99)) =
        (median_figure(&quiet, stall_free_p99), median_figure(&stopped, stall_free_p99))
    else {
        return skip(&format!(
            "stops of the engine: {:.0} % of the orders were touched by stalls of this machine",
            quiet_share * 100.0
        ));
    };
    if quiet_share > 0.25 || stopped.len() < REPEATS {
        return skip("stops of the engine: this machine is too busy");
    }
    // The raw figure must show the stops, or the test would prove nothing.
    let slowdown = median_figure(&stopped, raw_p99).unwrap() / stopped_p99;
    assert!(slowdown > 10.0, "raw p99 is only {slowdown} times the one without stalls");
    // Similar to a run without stops. The bound is wide, since the machine may be busy; the raw
    // figure is far outside it.
    let ratio = stopped_p99 / undisturbed;
    assert!((0.2..5.0).contains(&ratio), "p99 without stalls is {ratio} times that without stops");
    let extra_share = median_figure(&stopped, excluded_share).unwrap() - quiet_share;
    assert!(extra_share > 0.02, "{extra_share}");
}

/// Checks that the engine's log has the stops, and that they explain the slowest orders.
fn assert_stops_logged(tail: &Tail, stops: usize) {
    let engine = tail.noise.threads.iter().find(|thread| thread.thread.starts_with("engine")).unwrap();
    let long_gaps = engine.slices.iter().filter(|slice| slice.longest_ns >= LONG.as_nanos() as u64).count();
    // Two stops may fall into one slice.
    assert!(long_gaps >= stops / 2, "{long_gaps} of {stops} stops are in the log");
    let slowest = &tail.slowest[0];
    let causes_ns = |cause| slowest.causes_ns.get(cause);
    assert!(
        (causes_ns(Cause::Machine) + causes_ns(Cause::Backlog)) * 2 > slowest.causes_ns.total(),
        "{slowest:?}"
    );
}
