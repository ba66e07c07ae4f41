//! Commands end within the bounds of `docs/src/running.md` after a signal, even with unresponsive
//! processes.

use super::programs::Program;
use crate::common::{Launcher, Running, command, document, entries, newest_process, proc, signal, wait_for};
use std::time::{Duration, Instant};

/// Bound after the signal that discards a run.
const AT_ONCE: Duration = Duration::from_secs(10);
/// Bound after the signal that drains a run, without its longest delay and its merge.
const DRAINED: Duration = Duration::from_secs(30);

/// Sends a signal and checks that the command ends within `bound`. Returns the exit code.
#[track_caller]
fn ends_within(bound: Duration, running: Running, name: &str) -> Option<i32> {
    let sent = Instant::now();
    signal(running.pid(), name);
    let result = running.end();
    assert!(sent.elapsed() < bound, "{name}: {:?}: {}", sent.elapsed(), result.all_output());
    result.code
}

/// The run has a stopped process, which reads no report and does not exit. The launcher would kill
/// it only after the end of the test.
#[test]
fn interrupted_experiment_waits_for_no_report() {
    let load = "--strategies 2 --venues 1 --orders 600 --window 30s --idle park --liveness 60s";
    for (experiment, name, code) in [
        ("contain --technique spsc-mux --isolation process", "INT", 130),
        ("compare --a technique=spsc-mux --b technique=array-queue --isolation process", "TERM", 143),
    ] {
        let out = tempfile::tempdir().unwrap();
        let stop = "--fault stop:strategy-1@100ms --on-death restart";
        let line = format!("{experiment} {load} {stop} --out {}", out.path().display());
        let running = Running::spawn(&mut command(&line));
        let victim = wait_for("strategy 1 runs", || newest_process(running.pid(), "strategy-1", 0));
        wait_for("it is stopped", || proc(victim, "stat").contains(") T ").then_some(()));
        assert_eq!(ends_within(AT_ONCE, running, name), Some(code), "{experiment}");
        let folder = entries(out.path()).remove(0);
        assert_eq!(document(&folder, "experiment.json")["state"], "interrupted", "{experiment}");
        assert!(!entries(&folder).iter().any(|path| path.is_dir()), "the run is discarded: {experiment}");
    }
}

#[test]
fn spinning_program_delays_end_by_bounded_time() {
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let flags = format!("{} --orders 60000 --window 60s --idle park", program.with_player("spins"));
    // One signal drains the run; a second one discards it.
    for (signals, bound) in [(1, DRAINED), (2, AT_ONCE)] {
        let launcher = Launcher::new();
        let running = launcher.start(&flags);
        for _ in 1..signals {
            signal(running.pid(), "INT");
            // Two signals at once could be delivered as one.
            std::thread::sleep(Duration::from_millis(200));
        }
        assert_eq!(ends_within(bound, running, "INT"), Some(130), "{signals} signals");
        let summary = launcher.newest_summary();
        assert_eq!(summary["outcome"]["ended"], "interrupted");
        assert!(summary["orders"]["sent"].as_u64() > Some(0), "what was measured is kept");
    }
}
