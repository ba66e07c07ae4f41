//! Runs the missing runs of a lab, in turns, and saves them.

use super::work::LabWork;
use crate::experiments::bench::{self, BenchClock, BenchOutcome, BenchPlan};
use crate::experiments::measure::MeasureEnd;
use crate::experiments::progress::SweepProgress;
use crate::output::program;
use crate::runtime::signals::Signals;
use analysis::experiment::{Lab, LabCell, LabLatency, LabRun, SideCost, SleepSample, Speed, histogram};
use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use roles::bench::account::{AccountView, Field};
use roles::bench::queues::ledger::{LabField, get, latencies, problems, shares};
use roles::bench::queues::waiting::Slow;
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
pub(super) fn order(lab: &Lab) -> Vec<(u32, usize)> {
    let cells = lab.cells.len();
    let turn = |number: u32| (0..cells).map(move |place| (number, (place + number as usize) % cells));
    (0..lab.runs).flat_map(turn).filter(|(number, cell)| !lab.cells[*cell].has_sound_run(*number)).collect()
}

/// Estimates how long a run of the queue benchmark takes, in nanoseconds.
pub(super) fn estimate(lab: &Lab, cell: &LabCell, slow: Slow) -> u64 {
    let late = match slow {
        Slow::Sleep(_) => 60_000,
        Slow::Work(_) => FAST_NS,
    };
    let each = |speed: Speed| if speed == Speed::Slow { slow.ns() + late } else { FAST_NS };
    let makers = lab.events.div_ceil(cell.producers.into()).saturating_mul(each(cell.producer));
    let takers = if cell.consumers == 0 { 0 } else { lab.events.saturating_mul(each(cell.consumer)) };
    START_NS.saturating_add(makers.max(takers))
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

fn plan_of(lab: &Lab, cell: &LabCell, number: u32, slow: Slow, clock: &BenchClock) -> BenchPlan<LabWork> {
    let (producers, events) = (u64::from(cell.producers), lab.events);
    let work = LabWork {
        technique: cell.technique,
        capacity: lab.capacity,
        events: (0..producers)
            .map(|index| events / producers + u64::from(index < events % producers))
            .collect(),
        consumers: cell.consumers,
        producer: cell.producer,
        consumer: cell.consumer,
        slow,
        jitter: lab.jitter,
        wait: cell.wait,
        poll_ns: lab.poll_ns,
        seed: lab.seed.wrapping_add(number.into()),
    };
    let cores = cores_of(&lab.cores, cell.producers, cell.consumers);
    let plan = BenchPlan::new(clock, cell.isolation, cores, work);
    BenchPlan { weaker_sandbox: lab.weaker_sandbox, slack_ns: lab.slack_ns, ..plan }
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
    // Whatever stopped it: what was finished is kept.
    let saved = lab.save(folder);
    let ended = ended.with_context(|| {
        format!(
            "the lab stopped; what was finished is saved: {} lab --resume {} goes on",
            program(),
            folder.display()
        )
    })?;
    saved?;
    Ok(ended)
}

fn make_run(lab: &mut Lab, folder: &Path, signals: &Signals, bar: &mut SweepProgress) -> Result<MeasureEnd> {
    let slow = super::flags::parse_slow(&lab.slow)?;
    let clock = BenchClock::start(&lab.machine);
    if lab.sleep.is_none() {
        lab.sleep = sample_sleep();
        lab.clock_read_ns = system::clock::read_cost_ns(&clock.source);
    }
    let todo = order(lab);
    let all = lab.cells.len() * lab.runs as usize;
    let mut saved = Instant::now();
    for (done, (number, index)) in todo.iter().copied().enumerate() {
        let left = todo.len() - done;
        let name = lab.cells[index].name();
        bar.begin(&name, all - left, left);
        let mut plan = plan_of(lab, &lab.cells[index], number, slow, &clock);
        let outcome = bench::run(&mut plan, folder, signals).with_context(|| name.clone())?;
        if outcome.interrupted {
            return Ok(MeasureEnd::Interrupted);
        }
        bar.end();
        let (run, latencies) = run_of(number, &plan, &outcome);
        lab.cells[index].add_run(run, &latencies).map_err(|why| anyhow!("{name}: {why}"))?;
        if saved.elapsed() > SAVE_INTERVAL {
            lab.save(folder)?;
            saved = Instant::now();
        }
    }
    Ok(MeasureEnd::Complete)
}

/// The median time of a sleep of a millisecond with that timer slack, on a thread of its own.
fn median_sleep(slack_ns: u64) -> Option<u64> {
    let sample = move || {
        process::set_timer_slack(slack_ns);
        let mut times: Vec<u64> = (0..SLEEP_SAMPLES)
            .map(|_| {
                let begin = Instant::now();
                std::thread::sleep(SLEEP);
                begin.elapsed().as_nanos() as u64
            })
            .collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    std::thread::spawn(sample).join().ok()
}

/// Measures how long short sleeps take with and without timer slack, in a little more than 80 ms.
fn sample_sleep() -> Option<SleepSample> {
    let (default_ns, precise_ns) = (median_sleep(DEFAULT_SLACK_NS)?, median_sleep(1)?);
    Some(SleepSample { default_ns, precise_ns, samples: SLEEP_SAMPLES })
}

fn run_of(number: u32, plan: &BenchPlan<LabWork>, outcome: &BenchOutcome) -> (LabRun, Histogram<u64>) {
    let work = &plan.work;
    let ns = |ticks: u64| (ticks as f64 * plan.ns_per_tick) as u64;
    let accounts = outcome.segments.accounts();
    let (producers, consumers) = accounts.split_at(work.producers());
    let cost = |account: &AccountView| SideCost {
        cpu_ns: account.get(Field::Cpu),
        voluntary: account.get(Field::Voluntary),
        involuntary: account.get(Field::Involuntary),
        polls: get(account, LabField::Looks),
        wakes: get(account, LabField::Wakes),
    };
    let side = |accounts: &[AccountView]| accounts.iter().map(cost).fold(SideCost::default(), SideCost::plus);
    let deaths = outcome.deaths.iter();
    let deaths = deaths.map(|death| format!("{}: {}", death.process, death.how));
    let mut found: Vec<String> = deaths.chain(outcome.problem.clone()).collect();
    if found.is_empty() {
        let pushed = producers.iter().map(|account| account.get(Field::Count)).sum();
        let sum = producers.iter().fold(0u64, |sum, account| sum.wrapping_add(get(account, LabField::Sum)));
        if pushed != work.total() {
            found.push(format!("{pushed} events pushed of {}", work.total()));
        }
        for (index, account) in consumers.iter().enumerate() {
            found.extend(problems(&format!("consumer-{index}"), account, pushed, sum));
        }
    }
    let mut histogram = histogram();
    for ticks in consumers.iter().flat_map(latencies) {
        // It grows with its values: none is refused.
        let _ = histogram.record(ns(ticks).max(1));
    }
    let begin = producers.iter().map(|account| account.get(Field::Begin)).min().unwrap_or(0);
    let end = accounts.iter().map(|account| account.get(Field::End)).max().unwrap_or(0);
    let halves = consumers.first().map_or_else(Vec::new, |account| shares(account, work.producers() as u16));
    let half: u64 = halves.iter().sum();
    let longest = producers.iter().map(|account| ns(get(account, LabField::LongestWait)));
    let run = LabRun {
        number,
        run_ns: ns(end.saturating_sub(begin)),
        taken: consumers.iter().map(|account| account.get(Field::Count)).sum(),
        latency: LabLatency::from_histogram(&histogram),
        producer: side(producers),
        consumer: side(consumers),
        histogram: String::new(),
        shares: halves.iter().map(|share| *share as f64 / half.max(1) as f64).collect(),
        longest_wait_ns: longest.collect(),
        problems: found,
    };
    (run, histogram)
}

#[cfg(test)]
mod tests {
    use super::super::LabFlags;
    use super::*;
    use analysis::units::Count;

    #[test]
    fn rounds_cover_every_cell_and_rotate_the_first() {
        let machine = crate::host::Machine { cores_allowed: vec![0, 1], ..Default::default() };
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
