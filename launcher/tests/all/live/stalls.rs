//! Real stalls in real runs: the engine is stopped for 4 ms at a time, and the figures without the
//! machine's stalls are what they are without that.

use crate::common::{Launcher, Running, skip};
use analysis::document::Document;
use analysis::stats::median;
use analysis::summary::Summary;
use analysis::tail::{Cause, Tail};
use std::os::fd::AsFd;
use std::process::{Command, ExitStatus};
use std::thread::sleep;
use std::time::Duration;
use system::process;

/// A second of orders that the machine carries with ease.
const LOAD: &str =
    "--strategies 1 --venues 1 --orders 10000 --window 1s --delay fixed:200us --threading shared --idle spin";
/// Stops in a run, and the time from one to the next: 8 % of the orders are sent into one.
const STOPS: usize = 12;
const EVERY: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_millis(4);
/// Runs of each kind: an odd number, so that the middle one is one of them.
const REPEATS: usize = 3;

/// Stops the engine again and again, until there is none any more; how often that was.
fn stop(running: &Running) -> usize {
    let pid = running.process("engine");
    let Ok(engine) = process::pidfd_open(pid) else { return 0 };
    let stopped = || {
        sleep(EVERY);
        process::stop(engine.as_fd()).ok()?;
        sleep(LONG);
        // It is stopped, so it is still there.
        Command::new("kill").args(["-CONT", &pid.to_string()]).status().ok().filter(ExitStatus::success)
    };
    (0..STOPS).map_while(|_| stopped()).count()
}

/// The middle of the runs' figures; `None`: one of them has too few orders for it.
fn middle(of: &[Summary], figure: impl Fn(&Summary) -> Option<f64>) -> Option<f64> {
    median(&of.iter().map(figure).collect::<Option<Vec<f64>>>()?)
}

#[test]
fn stops_of_the_engine_are_seen_and_taken_out() {
    let (mut quiet, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        for stops in [false, true] {
            let launcher = Launcher::new();
            let running = launcher.start(LOAD);
            let stops = if stops { stop(&running) } else { 0 };
            running.end().succeeds();
            let folder = launcher.folder();
            let summary = Summary::read(&folder).unwrap();
            assert!(summary.valid, "{:?}", summary.violations);
            if stops > 0 {
                found(&Tail::read(&folder).unwrap(), stops);
            }
            if stops > 0 { &mut stopped } else { &mut quiet }.push(summary);
        }
    }
    let raw = |run: &Summary| run.rt_venue.p99_ns.map(|ns| ns as f64);
    let free = |run: &Summary| run.stall_free.as_ref()?.rt_venue.p99_ns.map(|ns| ns as f64);
    let taken_out = |run: &Summary| Some(run.stall_free.map_or(1.0, |free| free.excluded_share));
    let out = middle(&quiet, taken_out).unwrap();
    let (Some(undisturbed), Some(rest)) = (middle(&quiet, free), middle(&stopped, free)) else {
        return skip(&format!(
            "stops of the engine: {:.0} % of the orders were touched by stalls of this machine",
            out * 100.0
        ));
    };
    if out > 0.25 || stopped.len() < REPEATS {
        return skip("stops of the engine: this machine is too busy");
    }
    // The stops are in the raw figure, or the test would show nothing.
    let seen = middle(&stopped, raw).unwrap() / rest;
    assert!(seen > 10.0, "raw p99 is only {seen} times the one without stalls");
    // As in a run without stops: a wide bound, since others may be at work on this machine; the raw
    // figure is far beyond it.
    let kept = rest / undisturbed;
    assert!((0.2..5.0).contains(&kept), "p99 without stalls is {kept} times that without stops");
    let more = middle(&stopped, taken_out).unwrap() - out;
    assert!(more > 0.02, "{more}");
}

/// The stops are in the log of the engine, and the slowest orders are explained by them.
fn found(tail: &Tail, stops: usize) {
    let engine = tail.noise.threads.iter().find(|thread| thread.thread.starts_with("engine")).unwrap();
    let long = engine.slices.iter().filter(|slice| slice.longest_ns >= LONG.as_nanos() as u64).count();
    // Two may fall into one slice.
    assert!(long >= stops / 2, "{long} of {stops} stops are in the log");
    let slowest = &tail.slowest[0];
    let of = |cause| slowest.causes_ns.get(cause);
    assert!((of(Cause::Machine) + of(Cause::Backlog)) * 2 > slowest.causes_ns.total(), "{slowest:?}");
}
