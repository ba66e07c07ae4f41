//! A series of trials: the launcher killed at every n-th stop, until it ends before the stop comes.

use super::tracer::{StopAction, trace};
use super::trial::{CountedStops, Trial};
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Instant;

/// Trials that run at a time: a launcher sleeps for most of its start.
const AT_A_TIME: usize = 3;
/// Trials between two starts of a complete run.
const RUN_NEXT: usize = 25;
/// Number of failures after which the series stops.
const ENOUGH: usize = 5;

#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub isolation: &'static str,
    /// Interrupted before it is killed.
    pub interrupted: bool,
    pub counted: CountedStops,
    pub step: usize,
}

#[derive(Default)]
struct SeriesResult {
    next: usize,
    /// The least number of a stop that did not come.
    stops: Option<usize>,
    killed: usize,
    failures: Vec<String>,
}

/// Makes the trials and prints how many there were.
pub fn series(series: &Series) {
    if let Err(errno) = trace("true", &[], Stdio::inherit(), "/".as_ref(), |_| StopAction::Go) {
        say(&format!("SKIPPED {series:?}: ptrace is not permitted here ({errno})"));
        return;
    }
    let began = Instant::now();
    let scratch = tempfile::tempdir().unwrap();
    let done = Mutex::new(SeriesResult::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let take = || next(series, &mut done.lock().unwrap());
                while let Some(trial) = take() {
                    let ended = trial.make(scratch.path());
                    take_note(&mut done.lock().unwrap(), &trial, ended);
                }
            });
        }
    });
    let done = done.into_inner().unwrap();
    assert!(done.failures.is_empty(), "{}", done.failures.join("\n\n"));
    say(&format!(
        "{series:?}: {} stops, {} trials in {} s, 0 leftovers",
        done.stops.unwrap_or(0),
        done.killed,
        began.elapsed().as_secs()
    ));
}

fn next(series: &Series, done: &mut SeriesResult) -> Option<Trial> {
    let number = 1 + done.next * series.step;
    if done.stops.is_some_and(|stops| number > stops) || done.failures.len() >= ENOUGH {
        return None;
    }
    done.next += 1;
    let Series { isolation, interrupted, counted, .. } = *series;
    Some(Trial { isolation, interrupted, counted, number, run_next: done.next.is_multiple_of(RUN_NEXT) })
}

fn take_note(done: &mut SeriesResult, trial: &Trial, ended: Result<bool, String>) {
    match ended {
        Ok(true) => done.killed += 1,
        Ok(false) => {
            done.stops = Some(done.stops.map_or(trial.number - 1, |stops| stops.min(trial.number - 1)));
        }
        Err(what) => done.failures.push(what),
    }
}

/// Past the test harness, which shows what a test prints only if it fails.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "syscalls: {line}");
}
