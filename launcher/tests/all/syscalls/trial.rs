//! One trial: a launcher is killed at one stop, its processes exit, the next start cleans up, and
//! the run's folder is consistent.

use super::tracer::{Stop, StopAction, TraceEnd, trace};
use crate::common::{entries, output, proc, run_processes, segments, split_arguments};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time within which all processes of a killed launcher must have exited.
const BOUND: Duration = Duration::from_secs(30);

const TINY: &str = "--orders 20 --window 5ms";

/// A run that lasts until it is interrupted.
const ENDLESS: &str = "--orders 60000 --window 60s";

const SMALL: &str = "--strategies 1 --venues 1 --delay fixed:1ms --idle yield --threading shared";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedStops {
    /// All but `sched_yield`, whose number varies: two threads yield to each other while the core
    /// round trip is measured.
    All,
    /// Stops at calls that change state.
    Changes,
}

#[derive(Clone, Copy, Debug)]
pub struct Trial {
    pub isolation: &'static str,
    /// Interrupt the run while it plays, and count from there.
    pub interrupted: bool,
    pub counted: CountedStops,
    /// The number of the stop, from 1.
    pub number: usize,
    /// The next start is a run, not `launcher clean`.
    pub run_next: bool,
}

impl Trial {
    /// Makes the trial in a new folder below `scratch`. Returns `false` if the launcher ended
    /// before the stop came.
    pub fn make(&self, scratch: &Path) -> Result<bool, String> {
        let folder = tempfile::tempdir_in(scratch).unwrap();
        let out = folder.path().join("runs");
        let errors = folder.path().join("stderr");
        let (mut counting, mut has_begun, mut count, mut last) = (!self.interrupted, false, 0, String::new());
        let decide = |stop: &Stop| {
            last.clone_from(&stop.description);
            if !counting {
                // The record is written when the barrier has opened; then the launcher sleeps while
                // the run plays.
                has_begun |= stop.description.starts_with("after") && stop.description.ends_with("run.json");
                counting = has_begun && stop.description == "before poll";
                return if counting { StopAction::Interrupt } else { StopAction::Go };
            }
            let counts = match self.counted {
                CountedStops::All => !stop.description.ends_with("sched_yield"),
                CountedStops::Changes => stop.changes_state,
            };
            count += usize::from(counts);
            if counts && count == self.number { StopAction::Kill } else { StopAction::Go }
        };
        let arguments = self.arguments(&out);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let stderr = File::create(&errors).unwrap();
        let traced = trace(env!("CARGO_BIN_EXE_launcher"), &arguments, stderr, &out, decide).unwrap();
        let stderr_text = std::fs::read_to_string(&errors).unwrap();
        let (result, stop) = match traced.end {
            TraceEnd::KilledAt(stop) => {
                (self.check_after_kill(traced.pid, &traced.children, &out).map(|()| true), stop.description)
            }
            TraceEnd::Itself(code) => (self.check_complete(code, &out).map(|()| false), "the end".into()),
            TraceEnd::Signal(signal) => (Err(format!("died of {signal}")), last),
        };
        result.map_err(|problem| {
            format!("{} stop {}, {stop}: {problem}\n{stderr_text}", self.isolation, self.number)
        })
    }

    fn arguments(&self, out: &Path) -> Vec<String> {
        let run = if self.interrupted { ENDLESS } else { TINY };
        split_arguments(&format!("run --isolation {} --out {} {SMALL} {run}", self.isolation, out.display()))
    }

    /// Checks a launcher that was not killed: its run must be complete.
    fn check_complete(&self, code: i32, out: &Path) -> Result<(), String> {
        let expected = if self.interrupted { 130 } else { 0 };
        let folder = folders(out).pop().filter(|_| code == expected);
        let folder = folder.ok_or_else(|| format!("exit code {code}"))?;
        let summary = std::fs::read(folder.join("summary.json")).map_err(|error| error.to_string())?;
        let summary: Value = serde_json::from_slice(&summary).map_err(|error| error.to_string())?;
        if summary["valid"] == true { Ok(()) } else { Err(format!("not valid: {summary:#}")) }
    }

    /// Checks the state after a launcher was killed.
    fn check_after_kill(&self, pid: u32, children: &[u32], out: &Path) -> Result<(), String> {
        within_bound(|| {
            let alive: Vec<u32> = children.iter().copied().filter(|child| is_alive(*child)).collect();
            let run_processes_left = run_processes(pid);
            (!alive.is_empty() || !run_processes_left.is_empty())
                .then(|| format!("processes are left: {alive:?} {run_processes_left:?}"))
        })?;
        let next = if self.run_next {
            output(&format!("run --out {} {SMALL} {TINY}", out.with_file_name("next").display()))
        } else {
            output("clean")
        };
        if next.code != Some(0) {
            return Err(format!("the next start fails: {}", next.all_output()));
        }
        let leaked = segments(pid);
        if !leaked.is_empty() {
            return Err(format!("the next start leaves {leaked:?}"));
        }
        folders(out).iter().try_for_each(|folder| check_report(folder))
    }
}

/// Checks that `report` merges a folder with a record, a run that began, and refuses one without.
fn check_report(folder: &Path) -> Result<(), String> {
    let began = folder.join("run.json").exists();
    let result = output(&format!("report {} --json", folder.display()));
    let summary: Option<Value> = serde_json::from_str(&result.stdout).ok();
    let merged = summary.is_some_and(|summary| summary["schema"].is_string());
    let is_plain_error = result.stderr.starts_with("error: ");
    match (result.code, merged) {
        (Some(0 | 1), true) if began => Ok(()),
        (Some(2), false) if !began && is_plain_error => Ok(()),
        _ => Err(format!("{:?}: {result:?}", entries(folder))),
    }
}

/// Returns the paths in a folder; none if it does not exist.
fn folders(out: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(out).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Returns `true` if a process runs; a zombie does not.
fn is_alive(pid: u32) -> bool {
    let stat = proc(pid, "stat");
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

/// Waits until `problem_if_any` returns `None`, or returns the problem after [`BOUND`].
fn within_bound(problem_if_any: impl Fn() -> Option<String>) -> Result<(), String> {
    let started = Instant::now();
    while let Some(problem) = problem_if_any() {
        if started.elapsed() > BOUND {
            return Err(problem);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
