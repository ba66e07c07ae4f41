//! `launcher bill --find-capacity LIMIT`: the highest rate of each level whose p99 from due stays
//! below the limit.
//!
//! After the runs of the bill, one search tries all levels in turn: an experiment of its own, of
//! the kind that `sweep --find-max-rate` makes, in the folder `capacity`. Its runs have one level
//! each, also where the bill's levels take turns: an overloaded level must not leak into the next
//! one's turn.

use super::busy::Load;
use super::launch::{expected_time, measure_missing};
use super::measure::MeasureEnd;
use super::progress::Pace;
use super::publish;
use analysis::experiment::isolation_cost::Capacity;
use analysis::experiment::{Axis, Experiment, Kind, SearchLimits, Setting};
use analysis::stats::Percentile;
use anyhow::{Context, Error, Result};
use indicatif::HumanDuration;
use planner::config::{Settings, UsageError};
use protocol::plan::{Isolation, IsolationLevels, Technique};
use record::document::Document;
use record::numbers::{counted, duration};
use record::units::{Count, Nanos};
use std::path::Path;

/// The folder of the search, in the bill's.
const FOLDER: &str = "capacity";
/// The longest window of a try, unless that of the bill is shorter: two thousand orders and more.
const WINDOW: Nanos = Nanos(2_000_000_000);
/// Maximum number of rates tried for each level.
const MAX_STEPS: u32 = 10;
/// Number of runs of which most decide on a rate.
const RUNS: u32 = 3;

/// Adds a search for each isolation level's highest order rate to a bill's plan; `bound` limits the
/// p99 latency from the due time.
pub fn plan(record: &mut Experiment, bound: Nanos) -> Result<()> {
    if bound.0 == 0 {
        let why = "nothing is as fast as that; give a limit, for example 2ms";
        return Err(UsageError(format!("--find-capacity 0ns: {why}")).into());
    }
    let limits = SearchLimits {
        bound_ns: bound.0,
        percentile: Percentile::P99,
        max_steps: MAX_STEPS,
        first_per_s: first_rate(record)?,
        max_open: None,
    };
    record.figures.insert(Capacity::NAME, &Capacity { limits, levels: Vec::new() });
    Ok(())
}

/// Returns the rate of a bill's runs, which the search tries first.
fn first_rate(record: &Experiment) -> Result<f64> {
    let first = record.rows.first().context("no runs are planned")?;
    let settings = Settings::from_texts(&record.settings_of(first))?;
    match (settings.orders, settings.window) {
        (Some(Count(orders)), Some(Nanos(window))) if window > 0 && settings.schedule.is_none() => {
            Ok(orders as f64 / (window as f64 / 1e9))
        }
        _ => Err(UsageError(
            "--find-capacity needs drawn arrivals with a rate: no --schedule, no stress".into(),
        )
        .into()),
    }
}

/// Returns the settings of a search: each level of the technique of the bill's answer alone, the
/// threads once more where the bill has an A/A test.
fn settings(record: &Experiment) -> Result<Vec<Setting>> {
    let texts = |setting: &Setting| {
        let mut all = record.base.clone();
        all.extend(setting.settings.clone());
        all
    };
    let key = Axis::Technique.key();
    let technique = |setting: &Setting| texts(setting).get(&key).and_then(|name| Technique::from_name(name));
    let all = record.settings();
    let has_default = all.iter().any(|setting| technique(setting) == Some(Technique::default()));
    let wanted = if has_default { Some(Technique::default()) } else { all.first().and_then(technique) };
    let mut found: Vec<Setting> = Vec::new();
    for setting in all.iter().filter(|setting| technique(setting) == wanted) {
        let own = Settings::from_texts(&texts(setting))?;
        let levels = own.isolation.unwrap_or(IsolationLevels::uniform(Isolation::Process));
        let count = levels.as_slice().len() as u64;
        for (level, again) in levels.places().filter(|(_, again)| *again < 2) {
            let strategies = own.strategies.map(|Count(all)| Count((all / count).max(1)));
            let alone = Settings {
                isolation: Some(level.into()),
                strategies,
                crossover: None,
                window: own.window.map(|window| window.min(WINDOW)),
                ..own.clone()
            };
            let is_aa_test = setting.is_aa_test || again > 0;
            let mut values = setting.values.clone();
            values.remove(&Axis::Technique);
            values.insert(Axis::Isolation, level.to_string());
            let name: Vec<String> = values.iter().map(|(axis, value)| format!("{axis}={value}")).collect();
            let name = format!("{}{}", name.join(" "), if is_aa_test { " A/A" } else { "" });
            if found.iter().all(|other| other.name != name) {
                found.push(Setting { name, values, is_aa_test, settings: alone.to_texts() });
            }
        }
    }
    Ok(found)
}

/// Returns the search of a bill, with nothing tried; `None` for a bill without one.
pub(super) fn search_of(record: &Experiment) -> Result<Option<Experiment>> {
    let Some(Capacity { limits, .. }) = Capacity::from_bill(record).map_err(Error::msg)? else {
        return Ok(None);
    };
    let mut search = Experiment {
        repeats: RUNS,
        asked_repeats: RUNS,
        seed: record.seed,
        keep_logs: record.keep_logs,
        weaker_sandbox: record.weaker_sandbox,
        start_timeout_ns: record.start_timeout_ns,
        ..Experiment::new(Kind::MaxRate, &record.version, &record.started, &record.machine)
    };
    let settings: Vec<(Setting, u32)> = settings(record)?.into_iter().map(|setting| (setting, 1)).collect();
    search.plan_rows_along(&axes(record), &settings);
    search.figures.insert(SearchLimits::NAME, &limits);
    Ok(Some(search))
}

/// Returns the axes of a search: the conditions of the bill, and the level.
fn axes(record: &Experiment) -> Vec<Axis> {
    let all = record.axes.iter().map(|axis| axis.axis);
    let mut axes: Vec<Axis> = all
        .filter(|axis| ![Axis::Technique, Axis::Isolation].contains(axis))
        .chain([Axis::Isolation])
        .collect();
    axes.sort();
    axes
}

/// Returns the announcement of a bill's search for the highest order rates, before its first run;
/// `None` for a bill without one.
pub fn announcement(record: &Experiment) -> Option<String> {
    let search = search_of(record).ok()??;
    let limits = SearchLimits::from_experiment(&search).ok()?;
    let (rates, time) = expected_time(&search, &search.machine)?;
    Some(format!(
        "then capacity (p99 ≤ {}): up to {} of {RUNS} runs, about {}",
        duration(limits.bound_ns),
        counted(rates.into(), "rate"),
        HumanDuration(time)
    ))
}

/// Begins or continues a bill's search for the highest order rate of each level, and adds the
/// result to the bill.
pub fn measure(record: &mut Experiment, folder: &Path, quiet: bool) -> Result<MeasureEnd> {
    let Some(planned) = search_of(record)? else { return Ok(MeasureEnd::Complete) };
    let place = folder.join(FOLDER);
    let mut search = if Experiment::is_in(&place) {
        Experiment::read(&place)?
    } else {
        std::fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
        planned
    };
    search.set_launcher();
    search.save(&place)?;
    let slowdown = Load::sample(search.machine.cores_online).map_or(1.0, Load::slowdown);
    let ended = measure_missing(&mut search, &place, quiet, &mut Pace::default(), slowdown)?;
    record.figures.insert(Capacity::NAME, &Capacity::from_search(&search).map_err(Error::msg)?);
    publish::save(&search.answer(&place)?, &search, &place)?;
    Ok(ended)
}
