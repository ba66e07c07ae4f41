//! A series of trials that kill the launcher at every n-th stop, until it exits before the stop.

use super::tracer::{StopAction, trace};
use super::trial::{CountedStops, Trial};
use std::io::Write as _;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Instant;

/// Number of concurrent trials; a launcher sleeps for most of its start.
const AT_A_TIME: usize = 3;
/// Trials between two complete runs as the next start.
const RUN_NEXT: usize = 25;
/// Number of failures after which the series stops.
const ENOUGH: usize = 5;

#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub isolation: &'static str,
    /// `true` if the run is interrupted before the launcher is killed.
    pub interrupted: bool,
    pub counted: CountedStops,
    pub step: usize,
}

#[derive(Default)]
struct SeriesResult {
    next: usize,
    /// Number of stops of a complete run, once a trial ended before its stop.
    stops: Option<usize>,
    killed: usize,
    failures: Vec<String>,
}

/// Makes the trials and prints how many there were.
pub fn series(series: &Series) {
    if let Err(errno) = trace("true", &[], Stdio::inherit(), "/".as_ref(), |_| StopAction::Go) {
        print_past_harness(&format!("SKIPPED {series:?}: ptrace is not permitted here ({errno})"));
        return;
    }
    let began = Instant::now();
    let scratch = tempfile::tempdir().unwrap();
    let result = Mutex::new(SeriesResult::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                let next_trial = || next(series, &mut result.lock().unwrap());
                while let Some(trial) = next_trial() {
                    let ended = trial.make(scratch.path());
                    record_outcome(&mut result.lock().unwrap(), &trial, ended);
                }
            });
        }
    });
    let result = result.into_inner().unwrap();
    assert!(result.failures.is_empty(), "{}", result.failures.join("\n\n"));
    print_past_harness(&format!(
        "{series:?}: {} stops, {} trials in {} s, 0 leftovers",
        result.stops.unwrap_or(0),
        result.killed,
        began.elapsed().as_secs()
    ));
}

fn next(series: &Series, result: &mut SeriesResult) -> Option<Trial> {
    let number = 1 + result.next * series.step;
    if result.stops.is_some_and(|stops| number > stops) || result.failures.len() >= ENOUGH {
        return None;
    }
    result.next += 1;
    let Series { isolation, interrupted, counted, .. } = *series;
    Some(Trial { isolation, interrupted, counted, number, run_next: result.next.is_multiple_of(RUN_NEXT) })
}

fn record_outcome(result: &mut SeriesResult, trial: &Trial, ended: Result<bool, String>) {
    match ended {
        Ok(true) => result.killed += 1,
        Ok(false) => {
            result.stops = Some(result.stops.map_or(trial.number - 1, |stops| stops.min(trial.number - 1)));
        }
        Err(failure) => result.failures.push(failure),
    }
}

/// Prints past the test harness, which shows the output of failing tests only.
fn print_past_harness(line: &str) {
    let _ = writeln!(std::io::stderr(), "syscalls: {line}");
}
