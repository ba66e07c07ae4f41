//! Measures the parameters of a lab's runs, and how long short sleeps take on this machine.

use super::maker::{cell_of, groups};
use analysis::experiment::{Experiment, LabCell, LabPlan, SleepSample, Speed};
use anyhow::Result;
use planner::host::signals::is_end_requested;
use protocol::plan::EventCost;
use std::time::{Duration, Instant};
use system::process;

/// What starting and ending the processes of a run takes, about.
const START_NS: u64 = 12_000_000;
/// What an end that is fast does for an event, about.
const FAST_NS: u64 = 300;

const SLEEP_SAMPLES: u32 = 40;
const SLEEP: Duration = Duration::from_millis(1);
/// The default timer slack of Linux.
const DEFAULT_SLACK_NS: u64 = 50_000;

/// Estimates how long a run of the queue benchmark takes, in nanoseconds.
fn estimate(plan: &LabPlan, cell: &LabCell, slow: EventCost) -> u64 {
    let late = match slow {
        EventCost::Sleep(_) => 60_000,
        EventCost::Work(_) => FAST_NS,
    };
    let each = |speed: Speed| if speed == Speed::Slow { slow.ns() + late } else { FAST_NS };
    let events = plan.events_of(cell);
    let makers = events.div_ceil(cell.producers.into()).saturating_mul(each(cell.producer));
    let takers = if cell.consumers == 0 { 0 } else { events.saturating_mul(each(cell.consumer)) };
    START_NS.saturating_add(makers.max(takers))
}

/// Estimates how long the missing runs take, in nanoseconds: those side by side, and each of the
/// others.
pub(super) fn estimate_all(
    record: &Experiment,
    plan: &LabPlan,
    slow: EventCost,
    missing: Vec<usize>,
) -> Result<u64> {
    let mut all = 0u64;
    for (width, rows) in groups(record, plan, missing) {
        let each = rows.iter().map(|at| Ok(estimate(plan, &cell_of(record, *at)?, slow)));
        let total = each.sum::<Result<u64>>()?;
        all = all.saturating_add(total / width.max(1) as u64);
    }
    Ok(all)
}

/// The median time of a sleep of a millisecond with that timer slack, on a thread of its own.
fn median_sleep(slack_ns: u64) -> Option<u64> {
    let sample = move || {
        process::set_timer_slack(slack_ns);
        let mut times: Vec<u64> = (0..SLEEP_SAMPLES)
            .take_while(|_| !is_end_requested())
            .map(|_| {
                let begin = Instant::now();
                std::thread::sleep(SLEEP);
                begin.elapsed().as_nanos() as u64
            })
            .collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    };
    std::thread::spawn(sample).join().ok()?
}

/// Measures how long short sleeps take with and without timer slack, in a little more than 80 ms;
/// each may take a time slice on a busy machine. Returns `None` if a termination signal came.
pub(super) fn sample_sleep() -> Option<SleepSample> {
    let (default_ns, precise_ns) = (median_sleep(DEFAULT_SLACK_NS)?, median_sleep(1)?);
    (!is_end_requested()).then_some(SleepSample { default_ns, precise_ns, samples: SLEEP_SAMPLES })
}
