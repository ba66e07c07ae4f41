//! Searches the highest rate that a technique sustains: bisection over the offered rate, in a
//! bounded number of steps.
//!
//! A run holds its rate if `rt_venue` from due keeps its p99.9 under the bound and at least 99 % of
//! the offered rate was sent. A rate is held if most of its runs hold it, of three unless
//! `--repeats` sets another number: one stall of the machine decides nothing. Of runs whose
//! verdicts agree the third is not made.
//!
//! First the rate is doubled until it is not held (or quartered until it is), then the gap between
//! the highest held and the lowest not held is halved on a logarithmic scale until it is within 5
//! %. What was tried is the whole state, so a search can be resumed.

use super::flags::orders_at;
use super::measure::{MeasureEnd, RunMaker, measure_one};
use super::progress::SweepProgress;
use crate::config::Settings;
use analysis::document::Document;
use analysis::experiment::{RateSearch, RateStep, SweepRecord, SweepState};
use analysis::report::units::{duration, duration_or_dash, plain};
use analysis::report::width;
use analysis::stats::{Percentile, RunOutline, median};
use analysis::summary::Measure;
use analysis::units::{Count, Nanos};
use anyhow::Result;
use std::path::Path;

/// The gap that ends the bisection: highest held to lowest not held.
const CLOSE_ENOUGH: f64 = 1.05;
const MIN_SENT_SHARE: f64 = 0.99;
/// Orders that every try has at least: enough for a p99.9.
const MIN_ORDERS: f64 = 11_000.0;
/// The longest window of a try, in nanoseconds; with [`MIN_ORDERS`] it makes the lowest rate
/// that can be tried.
const MAX_WINDOW_NS: u64 = 60_000_000_000;
const MIN_RATE_PER_S: f64 = 200.0;
const MAX_RATE_PER_S: f64 = 50_000_000.0;

#[derive(Clone, Debug, PartialEq)]
enum NextStep {
    Try(f64),
    Done(Option<f64>, String),
}

/// What to try next for a point.
fn next_step(search: &RateSearch, first: f64, most_steps: u32) -> NextStep {
    let held = |step: &&RateStep| step.held;
    let best = search.steps.iter().filter(held).map(|step| step.rate_per_s).reduce(f64::max);
    // Noise may fail a rate below one that was held; what counts is the first failure above.
    let failed = search.steps.iter().filter(|step| !step.held).map(|step| step.rate_per_s);
    let failed = failed.filter(|rate| best.is_none_or(|best| *rate > best)).reduce(f64::min);
    let out_of_steps = search.steps.len() >= most_steps as usize;
    match (best, failed) {
        (None, None) => NextStep::Try(first.clamp(MIN_RATE_PER_S, MAX_RATE_PER_S)),
        (None, Some(failed)) if failed <= MIN_RATE_PER_S || out_of_steps => {
            NextStep::Done(None, format!("even the lowest rate tried, {}/s, is not held", plain(failed)))
        }
        (None, Some(failed)) => NextStep::Try((failed / 4.0).max(MIN_RATE_PER_S)),
        (Some(best), None) if best >= MAX_RATE_PER_S => {
            NextStep::Done(Some(best), "the highest rate tried".into())
        }
        (Some(best), Some(failed)) if failed / best <= CLOSE_ENOUGH => {
            NextStep::Done(Some(best), format!("{}/s is not held any more", plain(failed)))
        }
        (Some(best), _) if out_of_steps => {
            NextStep::Done(Some(best), format!("after all {most_steps} steps"))
        }
        (Some(best), None) => NextStep::Try((best * 2.0).min(MAX_RATE_PER_S)),
        (Some(best), Some(failed)) => NextStep::Try((best * failed).sqrt()),
    }
}

/// Searches the highest rate for each combination of settings, step by step in turns. So all meet
/// equal conditions of the machine.
pub fn search(
    record: &mut SweepRecord,
    folder: &Path,
    make: &mut RunMaker<'_>,
    bar: &mut SweepProgress,
    say: bool,
) -> Result<MeasureEnd> {
    let points = record.points.len();
    for point in (0..points).cycle() {
        let Some(search) = record.search.clone() else { break };
        if search.points.iter().all(|point| !point.ended.is_empty()) {
            break;
        }
        let RateSearch { ended, steps, .. } = &search.points[point];
        if !ended.is_empty() {
            continue;
        }
        match next_step(&search.points[point], search.first_per_s, search.max_steps) {
            NextStep::Done(highest, why) => update(record, point, |search| {
                (search.highest_per_s, search.ended) = (highest, why);
            }),
            NextStep::Try(rate) => {
                let name = format!("{} at {}/s", record.points[point].name, plain(rate));
                let left = (search.max_steps as usize).saturating_sub(steps.len()) * points;
                bar.begin(&name, steps.len(), left);
                let Some(step) = attempt(record, folder, point, rate, make)? else {
                    return Ok(MeasureEnd::Interrupted);
                };
                bar.end();
                if say {
                    bar.print_line(&describe_step(&record.points[point].name, &step, search.bound_ns));
                }
                update(record, point, |search| search.steps.push(step));
            }
        }
        record.save(folder)?;
    }
    record.state = SweepState::Complete;
    record.save(folder)?;
    Ok(MeasureEnd::Complete)
}

fn update(record: &mut SweepRecord, point: usize, change: impl FnOnce(&mut RateSearch)) {
    if let Some(search) = record.search.as_mut().and_then(|search| search.points.get_mut(point)) {
        change(search);
    }
}

fn describe_step(name: &str, step: &RateStep, bound_ns: u64) -> String {
    let what = if step.held { "held" } else { "not held" };
    let line = format!(
        "{name}: {}/s {what}: p99.9 {}, bound {}, {} of {} runs",
        plain(step.rate_per_s),
        duration_or_dash(step.p999_ns),
        duration(bound_ns),
        step.runs_held,
        step.folders.len(),
    );
    let why = if step.why.is_empty() { String::new() } else { format!("({})", step.why) };
    // A text that is too long for a terminal continues on a line of its own.
    let is_long = line.chars().count() + 1 + why.chars().count() > width();
    format!("{line}{}{why}", if is_long { "\n  " } else { " " }).trim_end().to_owned()
}

/// Tries one rate: makes runs until it is decided.
fn attempt(
    record: &mut SweepRecord,
    folder: &Path,
    point: usize,
    rate: f64,
    make: &mut RunMaker<'_>,
) -> Result<Option<RateStep>> {
    let (base, point) =
        (Settings::from_texts(&record.base)?, Settings::from_texts(&record.points[point].settings)?);
    let window_ns =
        point.window.unwrap_or_default().0.max((MIN_ORDERS / rate * 1e9) as u64).min(MAX_WINDOW_NS);
    let settings = Settings {
        window: Some(Nanos(window_ns)),
        orders: Some(orders_at(rate, window_ns)),
        // Unless the user set it, what this rate keeps open: the limit must not be what holds the
        // sender back.
        max_open: base.max_open,
        out: Some(folder.to_owned()),
        ..point
    };
    let bound_ns = record.search.as_ref().map_or(0, |search| search.bound_ns);
    let (mut runs, mut losses, mut folders) = (Vec::new(), Vec::new(), Vec::new());
    let held = loop {
        if let Some(held) = majority(&losses, record.repeats) {
            break held;
        }
        let seed = Some(Count(record.seed_of(runs.len() as u32)));
        let settings = Settings { seed, ..settings.clone() };
        let Some((name, outline)) = measure_one(record, folder, &settings, make)? else { return Ok(None) };
        losses.push(loss(&outline, bound_ns));
        runs.push(outline);
        folders.push(name);
    };
    let middle =
        |of: &dyn Fn(&RunOutline) -> Option<f64>| median(&runs.iter().map(of).collect::<Option<Vec<_>>>()?);
    Ok(Some(RateStep {
        rate_per_s: rate,
        achieved_per_s: middle(&|run| run.achieved_per_s),
        p999_ns: middle(&|run| Some(p999_ns(run)? as f64)).map(|ns| ns as u64),
        held,
        runs_held: losses.iter().filter(|loss| loss.is_none()).count() as u32,
        // Of the first run that was lost, also where most were not.
        why: losses.into_iter().flatten().next().unwrap_or_default(),
        folders,
    }))
}

/// Whether most of `repeats` runs hold their rate. `None`: the missing runs decide.
fn majority(losses: &[Option<String>], repeats: u32) -> Option<bool> {
    let most = repeats as usize / 2 + 1;
    let held = losses.iter().filter(|loss| loss.is_none()).count();
    let can_be_lost = (repeats as usize).saturating_sub(most);
    if held >= most {
        return Some(true);
    }
    (losses.len() - held > can_be_lost).then_some(false)
}

fn p999_ns(run: &RunOutline) -> Option<u64> {
    Percentile::P999.get(&run.measure(Measure::RtVenueFromDue))
}

/// Why a run does not hold its rate; `None`: it does.
fn loss(run: &RunOutline, bound_ns: u64) -> Option<String> {
    let share = run.achieved_per_s.zip(run.offered_per_s).map(|(achieved, offered)| achieved / offered);
    if !run.is_sound() {
        let why = run.reasons.first().map_or("no reason given", String::as_str);
        return Some(format!("the run failed: {why}"));
    }
    if share.is_none_or(|share| share < MIN_SENT_SHARE) {
        return Some(format!("only {:.1}% was sent", share.unwrap_or(0.0) * 100.0));
    }
    match p999_ns(run) {
        None => Some("too few orders for a p99.9".into()),
        Some(ns) => (ns > bound_ns).then(|| format!("p99.9 {}", duration(ns))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Searches on a machine that holds everything up to `limit`.
    fn found(limit: f64, first: f64, most_steps: u32) -> (Option<f64>, String, Vec<f64>) {
        let mut search = RateSearch::default();
        loop {
            match next_step(&search, first, most_steps) {
                NextStep::Done(highest, why) => {
                    return (highest, why, search.steps.iter().map(|step| step.rate_per_s).collect());
                }
                NextStep::Try(rate_per_s) => search.steps.push(RateStep {
                    rate_per_s,
                    achieved_per_s: None,
                    p999_ns: None,
                    held: rate_per_s <= limit,
                    runs_held: 1,
                    why: String::new(),
                    folders: Vec::new(),
                }),
            }
        }
    }

    #[test]
    fn rate_is_doubled_halved_or_quartered() {
        let (highest, why, tried) = found(100_000.0, 20_000.0, 12);
        assert!((95_000.0..=100_000.0).contains(&highest.unwrap()), "{highest:?} {why} {tried:?}");
        assert_eq!(tried[..4], [20_000.0, 40_000.0, 80_000.0, 160_000.0]);
        let (highest, why, tried) = found(0.0, 20_000.0, 12);
        assert_eq!(highest, None);
        assert!(why.contains("even the lowest rate tried, 200/s, is not held"), "{why}");
        assert_eq!(tried, [20_000.0, 5_000.0, 1_250.0, 312.5, 200.0]);
        let (_, why, _) = found(0.0, 20_000.0, 2);
        assert!(why.contains("5,000/s"), "{why}");
    }

    #[test]
    fn majority_decides_with_as_few_runs_as_possible() {
        for (held, repeats, wanted) in [
            (&[][..], 3, None),
            (&[true], 3, None),
            (&[true, true], 3, Some(true)),
            (&[false, false], 3, Some(false)),
            (&[false, true], 3, None),
            (&[false, true, true], 3, Some(true)),
            (&[true, false, false], 3, Some(false)),
            (&[true], 1, Some(true)),
            (&[false], 1, Some(false)),
            (&[false], 2, Some(false)),
            (&[true, true], 2, Some(true)),
        ] {
            let losses: Vec<_> = held.iter().map(|held| (!held).then(String::new)).collect();
            assert_eq!(majority(&losses, repeats), wanted, "{held:?} of {repeats}");
        }
    }

    proptest! {
        #[test]
        fn steps_are_bounded_and_the_answer_was_held(
            limit in 1.0f64..1e8, first in 1.0f64..1e8, most_steps in 1u32..64,
        ) {
            let (highest, _, tried) = found(limit, first, most_steps);
            prop_assert!(tried.len() <= most_steps as usize);
            if let Some(highest) = highest {
                prop_assert!(highest <= limit && tried.contains(&highest));
            }
            if most_steps >= 40 && (MIN_RATE_PER_S..MAX_RATE_PER_S).contains(&limit) {
                prop_assert!(highest.unwrap() * CLOSE_ENOUGH >= limit, "{:?} for {}", highest, limit);
            }
        }
    }
}
