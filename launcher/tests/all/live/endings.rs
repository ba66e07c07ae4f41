//! Commands end within the bounds of `docs/src/running.md` after a signal, even with unresponsive
//! processes.

use super::programs::Program;
use crate::common::{
    Launcher, Running, command, concurrently, document, entries, makers, newest_process, proc, run_processes,
    signal, wait_for,
};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bound after the signal that discards a run.
const AT_ONCE: Duration = Duration::from_secs(10);
/// Bound after it with the report, whose computation waits for a core.
const WITH_REPORT: Duration = Duration::from_secs(20);
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
        let victim = wait_for("strategy 1 runs", || {
            makers(running.pid()).into_iter().find_map(|maker| newest_process(maker, "strategy-1", 0))
        });
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

/// A phase of an experiment in which it gets a signal.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Before its first run: clock and cores are measured.
    Preparing,
    /// The first process was started.
    Starting,
    Running,
    /// The processes of the first run have ended: logs, cores, figures.
    Ending,
}

/// Returns the records of runs in the folders below `folder`.
fn run_records(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let own = files.into_iter().filter(|path| path.ends_with("run.json"));
    own.chain(folders.iter().flat_map(|folder| run_records(folder))).collect()
}

fn catches_signals(pid: u32) -> bool {
    let status = proc(pid, "status");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or_default();
    // SIGINT is signal 2.
    u64::from_str_radix(caught.trim(), 16).is_ok_and(|mask| mask & 2 != 0)
}

fn is_reached(phase: Phase, launcher: u32, out: &Path) -> bool {
    let processes =
        || makers(launcher).into_iter().chain([launcher]).flat_map(run_processes).collect::<Vec<_>>();
    let is_role = |(_, line): &(u32, String)| !line.contains(" role reaper ");
    match phase {
        Phase::Preparing => !entries(out).is_empty() && catches_signals(launcher),
        Phase::Starting => !processes().is_empty(),
        Phase::Running => !run_records(out).is_empty(),
        Phase::Ending => !run_records(out).is_empty() && !processes().iter().any(is_role),
    }
}

/// `.ci/steady.sh` does this next to busy loops.
#[test]
fn experiments_end_in_each_phase() {
    const SETTINGS: &str = "--isolation process --strategies 2 --idle park --orders 2000";
    const CONTAIN: &str = "contain --technique spsc-mux,array-queue";
    const COMPARE: &str = "compare --a technique=spsc-mux --b technique=channel --repeats 50";
    const SWEEP: &str = "sweep --technique spsc-mux,channel --repeats 50";
    const FAILING: &str =
        "contain --technique spsc-mux,array-queue,channel,linked --isolation thread --fault segv;kill;abort";
    const LAB: &str = "lab --technique spsc-mux,linked --wait busy --runs 900 --events 200";
    let cases = [
        (CONTAIN, Phase::Preparing, "INT"),
        (CONTAIN, Phase::Running, "TERM"),
        (FAILING, Phase::Ending, "INT"),
        (COMPARE, Phase::Ending, "TERM"),
        (SWEEP, Phase::Starting, "INT"),
        ("survey", Phase::Running, "TERM"),
        (LAB, Phase::Ending, "INT"),
        ("board", Phase::Running, "INT"),
    ];
    concurrently(2, &cases, |(experiment, phase, name)| {
        let is_benchmark = ["survey", "lab", "board"].iter().any(|kind| experiment.starts_with(kind));
        let settings = if is_benchmark || *experiment == FAILING { "" } else { SETTINGS };
        let out = tempfile::tempdir().unwrap();
        let running =
            Running::spawn(&mut command(&format!("{experiment} {settings} --out {}", out.path().display())));
        let is_there = || running.has_ended() || is_reached(*phase, running.pid(), out.path());
        wait_for(experiment, || is_there().then_some(()));
        let code = if *name == "INT" { 130 } else { 143 };
        assert_eq!(ends_within(WITH_REPORT, running, name), Some(code), "{experiment}: {phase:?}");
        if !is_benchmark {
            let folder = entries(out.path()).remove(0);
            assert_eq!(
                document(&folder, "experiment.json")["state"],
                "interrupted",
                "{experiment}: {phase:?}"
            );
        }
    });
}
