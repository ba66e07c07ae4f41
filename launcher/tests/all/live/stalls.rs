//! Real stalls in real runs: the engine is stopped for 4 ms at a time, and the figures without the machine's stalls are what they are
//! without that.

use crate::common::{Launcher, Running};
use analysis::document::Document;
use analysis::stats::median;
use analysis::summary::Summary;
use analysis::tail::Tail;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

/// A second of orders that the machine carries with ease.
const LOAD: &[&str] = &[
    "--strategies",
    "1",
    "--venues",
    "1",
    "--orders",
    "10000",
    "--window",
    "1s",
    "--delay",
    "fixed:200us",
    "--threading",
    "shared",
    "--idle",
    "spin",
    "--json",
];
/// Stops in a run, and the time from one to the next: 8 % of the orders are sent into one.
const STOPS: usize = 12;
const EVERY: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_millis(4);
/// Runs of each kind: an odd number, so that the middle one is one of them.
const REPEATS: usize = 3;

fn stop(running: &Running) {
    let engine = Pid::from_raw(running.process("engine") as i32);
    for _ in 0..STOPS {
        sleep(EVERY);
        kill(engine, Signal::SIGSTOP).unwrap();
        sleep(LONG);
        kill(engine, Signal::SIGCONT).unwrap();
    }
}

/// The middle of the runs' figures.
fn middle(of: &[Summary], figure: fn(&Summary) -> Option<u64>) -> f64 {
    let values: Vec<f64> = of.iter().map(|run| figure(run).expect("orders enough") as f64).collect();
    median(&values).unwrap()
}

#[test]
fn stops_of_the_engine_are_seen_and_taken_out() {
    let (mut quiet, mut stopped) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        for stops in [false, true] {
            let launcher = Launcher::new();
            let running = launcher.start(LOAD);
            if stops {
                stop(&running);
            }
            let (code, stdout, stderr) = running.end();
            assert_eq!(code, Some(0), "{stdout}{stderr}");
            let folder: &Path = &launcher.folders()[0];
            let summary = Summary::read(folder).unwrap();
            assert!(summary.valid, "{:?}", summary.violations);
            if stops {
                found(&Tail::read(folder).unwrap());
            }
            if stops { &mut stopped } else { &mut quiet }.push(summary);
        }
    }
    let raw = |run: &Summary| run.rt_venue.p99_ns;
    let free = |run: &Summary| run.stall_free.as_ref()?.rt_venue.p99_ns;
    let taken_out = |runs: &[Summary]| {
        median(&runs.iter().map(|run| run.stall_free.map_or(1.0, |free| free.taken_out)).collect::<Vec<_>>())
            .unwrap()
    };
    // The stops are in the raw figure, or the test would show nothing.
    let seen = middle(&stopped, raw) / middle(&stopped, free);
    assert!(seen > 10.0, "raw p99 is only {seen} times the one without stalls");
    // As in a run without stops: a wide bound, since others may be at work on this machine; the raw figure is far beyond it.
    let kept = middle(&stopped, free) / middle(&quiet, free);
    assert!(
        (0.2..5.0).contains(&kept),
        "p99 without stalls is {kept} times that of runs that nobody stopped"
    );
    assert!(taken_out(&stopped) > 0.02, "{}", taken_out(&stopped));
}

/// The stops are in the log of the engine, and the slowest orders are explained by them.
fn found(tail: &Tail) {
    let engine = tail.noise.threads.iter().find(|thread| thread.thread.starts_with("engine")).unwrap();
    let long = engine.slices.iter().filter(|slice| slice.longest_ns >= LONG.as_nanos() as u64).count();
    // Two may fall into one slice.
    assert!(long >= STOPS / 2, "{long} of {STOPS} stops are in the log");
    let slowest = &tail.slowest[0];
    let [machine, _, backlog, ..] = slowest.causes_ns;
    let whole: u64 = slowest.causes_ns.iter().sum();
    assert!((machine + backlog) * 2 > whole, "{slowest:?}");
}
