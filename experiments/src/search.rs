//! Searches the highest rate that a technique sustains: bisection over the offered rate, in a
//! bounded number of steps.
//!
//! A run holds its rate if `rt_venue` from due keeps its p99.9, or the percentile that was asked
//! for, under the bound and at least 99 % of the offered rate was sent. A rate is held if most of
//! its runs hold it, of three unless `--repeats` sets another number: one stall of the machine
//! decides nothing. Of runs whose verdicts agree the third is not made.
//!
//! What is tried next is [`next_step`]'s answer to the rows so far, so a search can be resumed.

use super::flags::orders_at;
use super::measure::{MeasureEnd, RunMaker, end_measuring, make_run, resume_hint, settings_of};
use super::progress::SweepProgress;
use ::record::screen::width;
use analysis::experiment::search::next_step;
use analysis::experiment::{Experiment, NextStep, RateSearch, RateStep, SearchLimits};
use analysis::stats::{Percentile, RunOutline, median};
use anyhow::{Context, Error, Result};
use planner::config::Settings;
use record::document::Document;
use record::units::{Count, Nanos};
use std::path::Path;
use verdict::report::units::{duration, duration_or_dash, plain};
use verdict::summary::Measure;

const MIN_SENT_SHARE: f64 = 0.99;
/// The longest window of a try, in nanoseconds; with [`min_orders`] it makes the lowest rate
/// that can be tried.
const MAX_WINDOW_NS: u64 = 60_000_000_000;

/// Returns the number of orders that every try has at least: enough for its percentile.
const fn min_orders(percentile: Percentile) -> f64 {
    match percentile {
        Percentile::P999 => 11_000.0,
        _ => 2_200.0,
    }
}

/// Searches the highest order rate for each combination of an experiment's settings, one tried rate
/// of each in turn. So all meet equal conditions of the machine.
pub fn search(
    record: &mut Experiment,
    folder: &Path,
    make: &mut RunMaker<'_>,
    bar: &mut SweepProgress,
    say: bool,
) -> Result<MeasureEnd> {
    let ended = search_rates(record, folder, make, bar, say);
    let hint = Some(resume_hint(record.kind, folder));
    end_measuring(record, folder, ended, hint)
}

fn search_rates(
    record: &mut Experiment,
    folder: &Path,
    make: &mut RunMaker<'_>,
    bar: &mut SweepProgress,
    say: bool,
) -> Result<MeasureEnd> {
    let limits = SearchLimits::from_experiment(record).map_err(Error::msg)?;
    let points = record.settings().len();
    for point in (0..points).cycle() {
        let searches = RateSearch::all(record).map_err(Error::msg)?;
        if searches.iter().all(|search| !search.ended.is_empty()) {
            break;
        }
        let RateSearch { name, steps, .. } = &searches[point];
        let NextStep::Try(rate) = next_step(steps, &limits) else { continue };
        let left = (limits.max_steps as usize).saturating_sub(steps.len()) * points;
        bar.begin(&format!("{name} at {}/s", plain(rate)), steps.len(), left);
        let Some(step) = attempt(record, folder, name, rate, make)? else {
            return Ok(MeasureEnd::Interrupted);
        };
        bar.end();
        if say {
            bar.print_line(&describe_step(name, &step, &limits));
        }
        record.add_step(name, &step);
        record.save(folder)?;
    }
    Ok(MeasureEnd::Complete)
}

fn describe_step(name: &str, step: &RateStep, limits: &SearchLimits) -> String {
    let what = if step.held { "held" } else { "not held" };
    let line = format!(
        "{name}: {}/s {what}: {} {}, bound {}, {} of {} runs",
        plain(step.rate_per_s),
        limits.percentile.name(),
        duration_or_dash(step.bounded_ns(limits)),
        duration(limits.bound_ns),
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
    record: &Experiment,
    folder: &Path,
    name: &str,
    rate: f64,
    make: &mut RunMaker<'_>,
) -> Result<Option<RateStep>> {
    let limits = SearchLimits::from_experiment(record).map_err(Error::msg)?;
    let row = record.rows.iter().find(|row| row.setting.name == name);
    let point = row.map_or_else(|| Ok(Settings::default()), |row| settings_of(record, row))?;
    let mut limit = Settings::default();
    // It was read when it was given.
    let _ = limits.max_open.as_ref().and_then(|text| limit.set("max_open", text));
    let window_ns = point
        .window
        .unwrap_or_default()
        .0
        .max((min_orders(limits.percentile) / rate * 1e9) as u64)
        .min(MAX_WINDOW_NS);
    let settings = Settings {
        window: Some(Nanos(window_ns)),
        orders: Some(orders_at(rate, window_ns)),
        // Unless the user set it, what this rate keeps open: the limit must not be what holds the
        // sender back.
        max_open: limit.max_open,
        out: Some(folder.to_owned()),
        ..point
    };
    let (mut runs, mut losses, mut folders) = (Vec::new(), Vec::new(), Vec::new());
    let held = loop {
        if let Some(held) = majority(&losses, record.repeats) {
            break held;
        }
        let seed = Some(Count(record.seed.wrapping_add(runs.len() as u64)));
        let settings = Settings { seed, ..settings.clone() };
        let Some((name, made)) = make_run(record, &settings, make)? else { return Ok(None) };
        let outline = made.outline.context("a run of a search has no figures")?;
        losses.push(loss(&outline, &limits));
        runs.push(outline);
        folders.push(name);
    };
    let middle =
        |of: &dyn Fn(&RunOutline) -> Option<f64>| median(&runs.iter().map(of).collect::<Option<Vec<_>>>()?);
    let of_percentile =
        |percentile| middle(&|run| Some(from_due(run, percentile)? as f64)).map(|ns| ns as u64);
    Ok(Some(RateStep {
        rate_per_s: rate,
        achieved_per_s: middle(&|run| run.achieved_per_s),
        p999_ns: of_percentile(Percentile::P999),
        p99_ns: of_percentile(Percentile::P99).filter(|_| limits.percentile == Percentile::P99),
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

fn from_due(run: &RunOutline, percentile: Percentile) -> Option<u64> {
    percentile.get(&run.measure(Measure::RtVenueFromDue))
}

/// Why a run does not hold its rate; `None`: it does.
fn loss(run: &RunOutline, limits: &SearchLimits) -> Option<String> {
    let share = run.achieved_per_s.zip(run.offered_per_s).map(|(achieved, offered)| achieved / offered);
    if !run.is_usable() {
        let why = run.reasons.first().map_or("no reason given", String::as_str);
        return Some(format!("the run failed: {why}"));
    }
    if share.is_none_or(|share| share < MIN_SENT_SHARE) {
        return Some(format!("only {:.1}% was sent", share.unwrap_or(0.0) * 100.0));
    }
    let percentile = limits.percentile.name();
    match from_due(run, limits.percentile) {
        None => Some(format!("too few orders for a {percentile}")),
        Some(ns) => (ns > limits.bound_ns).then(|| format!("{percentile} {}", duration(ns))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
