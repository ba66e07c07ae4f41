//! Runs the missing runs of a lab, in turns, and saves them.

use super::cell_run::{RunOfCell, add_run, plan_of};
use super::side_by_side;
use crate::benchmark::Benchmark;
use crate::measure::{MeasureEnd, discard_unstarted};
use crate::progress::SweepProgress;
use ::record::screen::program;
use analysis::experiment::{Experiment, Lab, LabCell, SleepSample, Speed};
use anyhow::{Context, Result};
use planner::host::signals::{Signals, is_end_requested};
use protocol::plan::EventCost;
use record::benchmark::Interruption;
use record::document::Document;
use std::path::Path;
use std::time::{Duration, Instant};
use system::process;

/// The maximum time between two saves.
const SAVE_INTERVAL: Duration = Duration::from_secs(2);
/// What starting and ending the processes of a run takes, about.
const START_NS: u64 = 12_000_000;
/// What an end that is fast does for an event, about.
const FAST_NS: u64 = 300;

const SLEEP_SAMPLES: u32 = 40;
const SLEEP: Duration = Duration::from_millis(1);
/// The default timer slack of Linux.
const DEFAULT_SLACK_NS: u64 = 50_000;

/// Returns every missing run with its combination of settings, in the order of execution. Each run
/// number begins with another cell, so that none always comes first.
pub(super) fn order(lab: &Lab) -> Vec<RunOfCell> {
    let cells = lab.cells.len();
    let turn = |number: u32| (0..cells).map(move |place| (number, (place + number as usize) % cells));
    let is_missing = |(number, cell): &RunOfCell| {
        let cell = &lab.cells[*cell];
        *number < lab.runs_of(cell) && !cell.has_valid_run(*number)
    };
    (0..lab.max_runs()).flat_map(turn).filter(is_missing).collect()
}

/// Estimates how long a run of the queue benchmark takes, in nanoseconds.
pub(super) fn estimate(lab: &Lab, cell: &LabCell, slow: EventCost) -> u64 {
    let late = match slow {
        EventCost::Sleep(_) => 60_000,
        EventCost::Work(_) => FAST_NS,
    };
    let each = |speed: Speed| if speed == Speed::Slow { slow.ns() + late } else { FAST_NS };
    let events = lab.events_of(cell);
    let makers = events.div_ceil(cell.producers.into()).saturating_mul(each(cell.producer));
    let takers = if cell.consumers == 0 { 0 } else { events.saturating_mul(each(cell.consumer)) };
    START_NS.saturating_add(makers.max(takers))
}

/// Estimates how long all runs take, in nanoseconds: those side by side, and each of the others.
pub(super) fn estimate_all(lab: &Lab, slow: EventCost) -> u64 {
    let total = |runs: &[RunOfCell]| {
        let each = runs.iter().map(|(_, cell)| estimate(lab, &lab.cells[*cell], slow));
        each.fold(0, u64::saturating_add)
    };
    let (together, alone) = side_by_side::split(lab, order(lab));
    let width = side_by_side::width(lab, together.len()).max(1) as u64;
    (total(&together) / width).saturating_add(total(&alone))
}

/// Makes the missing runs of a queue benchmark, and saves regularly. A run that failed is kept with
/// the reason, and is made again by the next call.
pub(super) fn measure(
    lab: &mut Lab,
    folder: &Path,
    signals: &Signals,
    bar: &mut SweepProgress,
) -> Result<MeasureEnd> {
    let ended = make_run(lab, folder, signals, bar);
    if ended.is_err() && lab.progress().0 == 0 && discard_unstarted(folder, Experiment::FILE) {
        return ended;
    }
    // Whatever stopped it: what was finished is kept.
    let saved = lab.save(folder);
    let ended = ended.with_context(|| {
        format!(
            "the lab stopped; what was finished is saved: {} resume {} goes on",
            program(),
            folder.display()
        )
    })?;
    saved?;
    Ok(ended)
}

fn make_run(lab: &mut Lab, folder: &Path, signals: &Signals, bar: &mut SweepProgress) -> Result<MeasureEnd> {
    let slow = super::flags::parse_slow(&lab.slow)?;
    if lab.sleep.is_none() {
        lab.sleep = sample_sleep();
    }
    let (together, todo) = side_by_side::split(lab, order(lab));
    let mut saved = Instant::now();
    let mut save_sometimes = |lab: &Lab| -> Result<()> {
        if saved.elapsed() > SAVE_INTERVAL {
            lab.save(folder)?;
            saved = Instant::now();
        }
        Ok(())
    };
    let made = side_by_side::make_runs(lab, folder, &together, signals, bar, &mut save_sometimes)?;
    if let MeasureEnd::Interrupted = made {
        return Ok(MeasureEnd::Interrupted);
    }
    let mut benchmark = Benchmark::start(signals, folder, Interruption::Discard)?;
    let (_, all) = lab.progress();
    for (done, run) in todo.iter().copied().enumerate() {
        let left = todo.len() - done;
        let name = lab.cells[run.1].name();
        bar.begin(&name, all - left, left);
        let (plan, work) = plan_of(lab, run, slow, &lab.cores);
        let Some(made) = benchmark.run(plan, &[]).with_context(|| name.clone())? else {
            return Ok(MeasureEnd::Interrupted);
        };
        bar.end();
        add_run(lab, run, &work, &made, 0)?;
        save_sometimes(lab)?;
    }
    Ok(MeasureEnd::Complete)
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
fn sample_sleep() -> Option<SleepSample> {
    let (default_ns, precise_ns) = (median_sleep(DEFAULT_SLACK_NS)?, median_sleep(1)?);
    (!is_end_requested()).then_some(SleepSample { default_ns, precise_ns, samples: SLEEP_SAMPLES })
}

#[cfg(test)]
mod tests {
    use super::super::LabFlags;
    use super::*;
    use analysis::experiment::LabRun;
    use record::units::Count;

    #[test]
    fn rounds_cover_every_cell_and_rotate_the_first() {
        let machine = planner::host::Machine { cores_allowed: vec![0, 1], ..Default::default() };
        let flags = LabFlags { runs: Some(Count(3)), ..LabFlags::default() };
        let mut lab = flags.lab(machine).unwrap();
        let cells = lab.cells.len();
        let all = order(&lab);
        assert_eq!([all[0], all[cells], all[2 * cells]], [(0, 0), (1, 1), (2, 2)]);
        let every = (0..3).flat_map(|number| (0..cells).map(move |cell| (number, cell)));
        let mut sorted = all.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(every));
        let made = |number: u32, problems| LabRun { number, problems, ..LabRun::default() };
        let none = analysis::experiment::histogram();
        lab.cells[5].add_run(made(1, Vec::new()), &none).unwrap();
        lab.cells[6].add_run(made(1, vec!["lost".into()]), &none).unwrap();
        let rest = order(&lab);
        assert_eq!(rest.len(), all.len() - 1, "what is done is not made again, what failed is");
        assert!(!rest.contains(&(1, 5)) && rest.contains(&(1, 6)));
    }
}
