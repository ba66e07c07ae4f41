//! Runs the missing runs of a lab, in turns, and saves them.

use super::side_by_side;
use crate::benchmark::{Benchmark, BenchmarkRun, EndResults};
use crate::measure::{MeasureEnd, discard_unstarted};
use crate::progress::SweepProgress;
use ::record::screen::program;
use analysis::experiment::{
    Experiment, Lab, LabCell, LabLatency, LabRun, SideCost, SleepSample, Speed, Wait, histogram,
};
use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use planner::host::signals::{Signals, is_end_requested};
use protocol::benchmark::queue_results::{latencies, problems, shares};
use protocol::labels::{ConsumerCounter, ProducerCounter};
use protocol::plan::{EndWaiting, EventCost, Plan, QueueWork, Workload};
use protocol::status::StatusField;
use record::benchmark::Interruption;
use record::document::Document;
use record::run::RunOutcome;
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

/// The number of a run, and the index of its cell.
pub(super) type RunOfCell = (u32, usize);

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

/// Returns the cores of consumers and of producers. Consumers get them from the last core down,
/// producers the remaining ones, or all.
pub(super) fn cores_of(cores: &[u32], producers: u16, consumers: u16) -> Vec<Option<u32>> {
    let of = |index: usize| cores.get(index).copied();
    let left = cores.len().saturating_sub(consumers.into());
    let for_producers = if left == 0 { cores.len() } else { left }.max(1);
    let makers = (0..usize::from(producers)).map(|index| of(index % for_producers));
    let takers =
        (0..usize::from(consumers)).map(|index| of(cores.len().wrapping_sub(1 + index % cores.len().max(1))));
    makers.chain(takers).collect()
}

/// Returns the plan of a run whose ends are pinned to `cores`.
pub(super) fn plan_of(
    lab: &Lab,
    (number, cell): RunOfCell,
    slow: EventCost,
    cores: &[u32],
) -> (Plan, QueueWork) {
    let cell = &lab.cells[cell];

    let (producers, events) = (u64::from(cell.producers), lab.events_of(cell));
    let cost = |speed| (speed == Speed::Slow).then_some(slow);
    let work = QueueWork {
        capacity: lab.slots_of(cell),
        events: (0..producers)
            .map(|index| events / producers + u64::from(index < events % producers))
            .collect(),
        consumers: cell.consumers,
        producer_cost: cost(cell.producer),
        consumer_cost: cost(cell.consumer),
        jitter: lab.jitter,
        waiting: match cell.wait {
            Wait::Busy => EndWaiting::Spin,
            Wait::Yield => EndWaiting::Yield,
            Wait::Poll => EndWaiting::Sleep(lab.poll_ns),
            Wait::Park => EndWaiting::Park,
        },
        slack_ns: lab.slack_ns,
        seed: lab.seed.wrapping_add(number.into()),
    };
    let cores = cores_of(cores, cell.producers, cell.consumers);
    let plan = Plan::for_benchmark(Workload::Queue(work.clone()), cell.technique, cell.isolation, &cores);
    (Plan { weaker_sandbox: lab.weaker_sandbox, ..plan }, work)
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

/// Adds a run that was made to its cell. `side_by_side` runs were made at the same time; 0: it was
/// made alone.
pub(super) fn add_run(
    lab: &mut Lab,
    (number, cell): RunOfCell,
    work: &QueueWork,
    made: &BenchmarkRun,
    side_by_side: u32,
) -> Result<()> {
    if lab.clock_read_ns == 0.0 {
        lab.clock_read_ns = made.clock.read_ns;
    }
    let (run, latencies) = run_of(number, work, made);
    let (run, cell) = (LabRun { side_by_side, ..run }, &mut lab.cells[cell]);
    cell.add_run(run, &latencies).map_err(|why| anyhow!("{}: {why}", cell.name()))
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

fn run_of(number: u32, work: &QueueWork, made: &BenchmarkRun) -> (LabRun, Histogram<u64>) {
    let ns = |ticks: u64| (ticks as f64 * made.plan.ns_per_tick) as u64;
    let (producers, consumers) = made.ends.split_at(work.producers());
    let side = |ends: &[EndResults], polls: &dyn Fn(&EndResults) -> (u64, u64)| {
        let cost = |end: &EndResults| SideCost {
            cpu_ns: end.get(StatusField::CpuNs),
            voluntary: end.get(StatusField::VoluntarySwitches),
            involuntary: end.get(StatusField::InvoluntarySwitches),
            polls: polls(end).0,
            wakes: polls(end).1,
        };
        ends.iter().map(cost).fold(SideCost::default(), SideCost::plus)
    };
    let sent = |end: &EndResults, counter: ProducerCounter| end.counters.get(counter);
    let taken = |end: &EndResults, counter: ConsumerCounter| end.counters.get(counter);
    let mut found = Vec::new();
    if let RunOutcome::Failed { process, what, .. } = &made.outcome {
        found.push(format!("{process}: {what}"));
    } else {
        let pushed =
            producers.iter().map(|end| sent(end, ProducerCounter::Sent)).fold(0, u64::saturating_add);
        let sums = producers.iter().map(|end| sent(end, ProducerCounter::Checksum));
        let sum = sums.fold(0, u64::wrapping_add);
        if pushed != work.total_events() {
            found.push(format!("{pushed} events pushed of {}", work.total_events()));
        }
        found.extend(consumers.iter().flat_map(|end| problems(&end.counters, pushed, sum)));
    }
    let mut histogram = histogram();
    for end in consumers {
        let words = end.words.iter();
        for ticks in words.flat_map(|words| latencies(words, taken(end, ConsumerCounter::Taken))) {
            // It grows with its values: none is refused.
            let _ = histogram.record(ns(ticks).max(1));
        }
    }
    let begin = producers.iter().map(|end| end.get(StatusField::StartedTicks)).min().unwrap_or(0);
    let end = made.ends.iter().map(|end| end.get(StatusField::EndedTicks)).max().unwrap_or(0);
    let first = consumers.first().and_then(|end| end.words.as_ref());
    let halves = first.map_or_else(Vec::new, |words| shares(words, work.producers()));
    let half = halves.iter().copied().fold(0, u64::saturating_add);
    let longest = producers.iter().map(|end| ns(sent(end, ProducerCounter::LongestWait)));
    let takers = consumers.iter().map(|end| taken(end, ConsumerCounter::Taken));
    let run = LabRun {
        number,
        run_ns: ns(end.saturating_sub(begin)),
        taken: takers.fold(0, u64::saturating_add),
        latency: LabLatency::from_histogram(&histogram),
        producer: side(producers, &|end| {
            (sent(end, ProducerCounter::Waits), sent(end, ProducerCounter::Wakes))
        }),
        consumer: side(consumers, &|end| {
            (taken(end, ConsumerCounter::Waits), taken(end, ConsumerCounter::Wakes))
        }),
        histogram: String::new(),
        shares: halves.iter().map(|share| *share as f64 / half.max(1) as f64).collect(),
        longest_wait_ns: longest.collect(),
        side_by_side: 0,
        problems: found,
    };
    (run, histogram)
}

#[cfg(test)]
mod tests {
    use super::super::LabFlags;
    use super::*;
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

    #[test]
    fn each_end_has_a_core_consumers_first() {
        let some = |cores: &[u32]| cores.iter().copied().map(Some).collect::<Vec<_>>();
        assert_eq!(cores_of(&[0, 1], 1, 1), some(&[0, 1]));
        assert_eq!(cores_of(&[0, 1], 3, 1), some(&[0, 0, 0, 1]));
        assert_eq!(cores_of(&[0, 1], 1, 3), some(&[0, 1, 0, 1]));
        assert_eq!(cores_of(&[2, 4, 6, 8], 2, 2), some(&[2, 4, 8, 6]));
        assert_eq!(cores_of(&[5], 2, 1), some(&[5, 5, 5]));
        assert_eq!(cores_of(&[0, 1], 2, 0), some(&[0, 1]));
        assert_eq!(cores_of(&[], 1, 1), [None, None]);
    }
}
