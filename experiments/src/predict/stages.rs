//! Plans the runs of a prediction in stages: each stage follows from what the earlier ones
//! measured.

use super::say;
use crate::points::{check, new_point};
use analysis::experiment::predict::{CorePrediction, EXTRAPOLATED, SharedCoreModel, fit};
use analysis::experiment::{
    Axis, Experiment, Kind, MeasuredCell, PredictPart, PredictQuestion, Row, Setting,
};
use anyhow::{Context, Result, anyhow};
use planner::config::{Choice, DelayRange, Settings, UsageError};
use protocol::plan::{Idle, Isolation, IsolationLevel, IsolationLevels, Technique};
use record::numbers::duration;
use record::units::{Bytes, Count, Nanos};
use shm::random::SplitMix64;

/// Strategies of the pilot run, and its rate.
const PILOT: (u32, f64) = (4, 10_000.0);
/// Numbers of strategies of the calibration.
const FITTED: [u32; 3] = [2, 4, 16];
/// Its rates, as shares of what the pilot run says that a core carries. It says too little: an
/// order takes less at a higher rate.
const FITTED_SHARES: [f64; 3] = [0.4, 0.9, 1.5];
/// Numbers of strategies of a grid.
const GRID: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// The rates of a grid, as shares of the rate at which the formula has the core full of threads.
const GRID_SHARES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.85];
/// One cell of this many is left out of the fit.
const LEFT_OUT: usize = 3;
/// The turn of a level.
const EPOCH: Nanos = Nanos(50_000_000);
/// The window of a calibration's run, with enough turns for an interval.
const SHORT: Nanos = Nanos(4_000_000_000);
/// The window of a run that is predicted, or of a grid.
const LONG: Nanos = Nanos(8_000_000_000);
/// Runs of each level with a core each.
const REPEATS: u32 = 3;
/// The delay at the venues: reports of one turn seldom wake a strategy in the next.
const DELAY: DelayRange = DelayRange { min_ns: 500_000, max_ns: 2_000_000 };
/// The window in which a ceiling is measured, and the rate that is offered a core: more than it
/// can carry.
const OVERLOAD: (Nanos, f64) = (Nanos(1_000_000_000), 1_000_000.0);

/// Plans the first run, which says how much a core carries, about.
pub(super) fn plan_pilot(record: &mut Experiment, level: IsolationLevel, set: Bytes) -> Result<()> {
    let base = Settings {
        technique: Some(Technique::default()),
        isolation: Some(levels(level, 2)?),
        crossover: Some(EPOCH),
        idle: Some(Choice::Fixed(Idle::Park)),
        delay: Some(DELAY),
        working_set: Some(set),
        ..Settings::default()
    };
    let (strategies, rate_per_s) = PILOT;
    let cell = PredictQuestion { strategies, cores: 1, rate_per_s };
    let setting = setting(record, &base, PredictPart::Pilot, cell, SHORT)?;
    record.plan_rows(&[setting]);
    // Runs of one level, which show its ceiling, have no turns.
    if let Some(epoch) = record.base.remove("crossover") {
        record.rows.iter_mut().for_each(|row| {
            row.setting.settings.insert("crossover".into(), epoch.clone());
        });
    }
    Ok(())
}

/// Plans runs of threads and of a level, alternated: the asked strategies spin on a core each.
pub(super) fn plan_core_each(record: &mut Experiment, level: IsolationLevel, set: Bytes) -> Result<()> {
    let asked = PredictQuestion::of_experiment(record).context("nothing is asked")?;
    let plan = |isolation: IsolationLevel| -> Result<Setting> {
        let base = Settings {
            technique: Some(Technique::default()),
            isolation: Some(isolation.into()),
            idle: Some(Choice::Fixed(Idle::Spin)),
            delay: Some(DELAY),
            working_set: Some(set),
            ..Settings::default()
        };
        let mut setting = setting(
            record,
            &base,
            PredictPart::Asked,
            PredictQuestion { cores: asked.strategies, ..asked },
            SHORT,
        )?;
        setting.name = format!("{}, {isolation}", setting.name);
        setting.values.insert(Axis::Isolation, isolation.to_string());
        Ok(setting)
    };
    let settings = [plan(Isolation::Thread.into())?, plan(level)?];
    record.repeats = REPEATS;
    record.asked_repeats = REPEATS;
    record.plan_rows(&settings);
    Ok(())
}

/// Returns levels with several groups of threads, and one other level.
fn levels(level: IsolationLevel, threads: usize) -> Result<IsolationLevels> {
    let all = [vec![Isolation::Thread.into(); threads], vec![level]].concat();
    IsolationLevels::new(&all).map_err(anyhow::Error::from)
}

/// Returns the setting of a run with this number of strategies of each level.
fn setting(
    record: &Experiment,
    base: &Settings,
    part: PredictPart,
    cell: PredictQuestion,
    window: Nanos,
) -> Result<Setting> {
    let places = base.isolation.map_or(1, |levels| levels.as_slice().len() as u64);
    let orders = (cell.rate_per_s * window.0 as f64 / 1e9).round().max(1.0);
    let settings = Settings {
        strategies: Some(Count(u64::from(cell.strategies) * places)),
        strategy_cores: Some(Count(cell.cores.into())),
        orders: Some(Count(orders as u64)),
        window: Some(window),
        ..base.clone()
    };
    let resolved = check(&settings, &record.machine, record.weaker_sandbox)?;
    let values = [
        (Axis::Part, part.name().to_owned()),
        (Axis::Strategies, cell.strategies.to_string()),
        (Axis::StrategyCores, cell.cores.to_string()),
        (Axis::Rate, format!("{:.0}", cell.rate_per_s)),
    ];
    Ok(new_point(format!("{part}: {}", cell.name()), values.into(), resolved))
}

/// Plans the next runs of a prediction whose planned ones are made. Returns `false` if there are
/// none, and for other kinds of experiments.
pub(crate) fn plan_next(record: &mut Experiment, is_quiet: bool) -> Result<bool> {
    if record.kind != Kind::Predict {
        return Ok(false);
    }
    let has = |part| record.rows.iter().any(|row| PredictPart::of(row) == Some(part));
    if !has(PredictPart::Pilot) {
        // A core each: all runs were planned at once.
        return Ok(false);
    }
    let cells = MeasuredCell::all(record);
    let is_grid = record.figures.has("grid");
    let settings = if !has(PredictPart::Fitted) {
        calibration(record, &cells)?
    } else if is_grid && !has(PredictPart::HeldOut) {
        grid(record, &model(&cells)?)?
    } else if let Some(asked) = PredictQuestion::of_experiment(record).filter(|_| !has(PredictPart::Asked)) {
        predict(record, &asked, &model(&cells)?, is_quiet)?
    } else {
        return Ok(false);
    };
    let first = record.rows.len() as u64;
    let row = |(at, setting): (u64, Setting)| Row {
        setting,
        seed: record.seed.wrapping_add(first + at),
        ..Row::default()
    };
    let rows: Vec<Row> = (0..).zip(settings).map(row).collect();
    record.rows.extend(rows);
    Ok(true)
}

fn model(cells: &[MeasuredCell]) -> Result<SharedCoreModel> {
    let fitted: Vec<MeasuredCell> = cells.iter().filter(|cell| cell.part.is_fitted()).cloned().collect();
    let usable = fitted.iter().filter(|cell| cell.is_usable).count();
    fit(&fitted).ok_or_else(|| {
        let all = fitted.len();
        anyhow!("only {usable} of {all} runs of the calibration count, too few for a model: measure on a calmer machine (--recalibrate)")
    })
}

/// Returns the settings that all runs of a prediction share.
fn base_of(record: &Experiment) -> Result<Settings> {
    let row = record.rows.first().context("no run is planned")?;
    let settings = Settings::from_texts(&record.settings_of(row))?;
    // What follows from the number of orders and strategies is chosen again.
    let kept = Settings {
        technique: settings.technique,
        isolation: settings.isolation,
        crossover: settings.crossover,
        idle: settings.idle,
        delay: settings.delay,
        working_set: settings.working_set,
        ..Settings::default()
    };
    Ok(kept)
}

fn calibration(record: &Experiment, cells: &[MeasuredCell]) -> Result<Vec<Setting>> {
    let pilot = cells.first().context("the first run has no latencies of both levels: see its report")?;
    let full_per_s = 1e9 / pilot.cell.cpu_ns[0];
    let base = base_of(record)?;
    let cells = FITTED_SHARES.iter().flat_map(|share| FITTED.map(|strategies| (strategies, *share)));
    let plan = |(strategies, share): (u32, f64)| {
        let cell = PredictQuestion { strategies, cores: 1, rate_per_s: (share * full_per_s).round() };
        setting(record, &base, PredictPart::Fitted, cell, SHORT)
    };
    cells.map(plan).collect()
}

/// Returns the cells of a grid: each rate with each number of strategies.
fn grid(record: &Experiment, model: &SharedCoreModel) -> Result<Vec<Setting>> {
    let base = base_of(record)?;
    let cells = GRID_SHARES.iter().flat_map(|share| GRID.map(|strategies| (strategies, *share)));
    let parts = draw_parts(GRID.len() * GRID_SHARES.len(), record.seed);
    let plan = |((strategies, share), part): ((u32, f64), PredictPart)| {
        let [thread, _] = model.predict(f64::from(strategies), 1.0, 0.0);
        let full_per_s = thread.full_per_s.min(EXTRAPOLATED * model.max_rate_per_s);
        let cell = PredictQuestion { strategies, cores: 1, rate_per_s: (share * full_per_s).round() };
        setting(record, &base, part, cell, LONG)
    };
    cells.zip(parts).map(plan).collect()
}

/// Draws which cells are left out of the fit, before any of them is measured: one of each three in
/// an order that follows from the seed.
fn draw_parts(count: usize, seed: u64) -> Vec<PredictPart> {
    let mut draws = SplitMix64(seed);
    let mut order: Vec<(u64, usize)> = (0..count).map(|at| (draws.draw(), at)).collect();
    order.sort_unstable();
    let mut parts = vec![PredictPart::Fitted; count];
    order.iter().take(count / LEFT_OUT).for_each(|(_, at)| parts[*at] = PredictPart::HeldOut);
    parts
}

/// Predicts what was asked, saves that, and returns the run that will show its error, and those
/// that show the ceiling of each level.
fn predict(
    record: &mut Experiment,
    asked: &PredictQuestion,
    model: &SharedCoreModel,
    is_quiet: bool,
) -> Result<Vec<Setting>> {
    let levels = asked.predict(model);
    let [thread, process] = levels;
    record.figures.insert("predicted", &levels);
    let p50 = |level: &CorePrediction| {
        level.p50_ns.map_or_else(|| "beyond the formula's range".into(), |ns| duration(ns as u64))
    };
    say(
        &format!("predicted: p50 {} as threads, {}; now it is measured", p50(&thread), p50(&process)),
        is_quiet,
    );
    let (setting, cell) = nearest(record, asked)?;
    if cell != *asked {
        record
            .notes
            .push(format!("measured in its place, as the nearest that this machine can: {}", cell.name()));
    }
    let ceilings =
        [Isolation::Thread.into(), level_of(&base_of(record)?)].map(|level| ceiling(record, &cell, level));
    Ok(std::iter::once(setting).chain(ceilings.into_iter().flatten()).collect())
}

/// Returns a run to which more orders are offered than strategies at a level can send.
fn ceiling(record: &Experiment, cell: &PredictQuestion, level: IsolationLevel) -> Result<Setting> {
    let base = Settings { isolation: Some(level.into()), crossover: None, ..base_of(record)? };
    let (window, of_core) = OVERLOAD;
    let cell = PredictQuestion { rate_per_s: of_core * f64::from(cell.cores.min(cell.strategies)), ..*cell };
    let mut setting = setting(record, &base, PredictPart::Ceiling, cell, window)?;
    setting.name = format!("{}, {level}", setting.name);
    setting.values.insert(Axis::Isolation, level.to_string());
    Ok(setting)
}

/// Returns the level that is compared with threads.
fn level_of(base: &Settings) -> IsolationLevel {
    let level = base.isolation.and_then(|levels| levels.distinct().find(|level| *level != Isolation::Thread));
    level.unwrap_or(Isolation::Process.into())
}

/// Returns the run of what was asked, or of the nearest cell that this machine can run.
fn nearest(record: &Experiment, asked: &PredictQuestion) -> Result<(Setting, PredictQuestion)> {
    let base = base_of(record)?;
    let level = level_of(&base);
    let cores = asked.cores.min(asked.strategies).max(1);
    let each = PredictQuestion {
        strategies: asked.strategies.div_ceil(cores),
        cores: 1,
        rate_per_s: (asked.rate_per_s / f64::from(cores)).round(),
    };
    let halves =
        (0..8).map(|halving| PredictQuestion { strategies: (each.strategies >> halving).max(1), ..each });
    let mut refused = None;
    for cell in std::iter::once(*asked).chain(halves) {
        // Two groups of threads are an A/A test; with very many strategies there is no room for it.
        // Strategies are placed in turn: each level is on all cores only if the number of cores has
        // no divisor in common with that of levels.
        let is_spread = |threads: &usize| gcd(cell.cores, *threads as u32 + 1) == 1;
        for threads in [2, 1].into_iter().filter(is_spread) {
            let base = Settings { isolation: Some(levels(level, threads)?), ..base.clone() };
            match setting(record, &base, PredictPart::Asked, cell, LONG) {
                Ok(setting) => return Ok((setting, cell)),
                Err(error) => refused = Some(error),
            }
        }
    }
    Err(refused.unwrap_or_else(|| UsageError("no cell can be measured here".into()).into()))
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_on_all_cores_or_on_one() {
        let spread = |cores| [3, 2].map(|levels| gcd(cores, levels) == 1);
        let found = [1, 2, 3, 4, 6].map(spread);
        assert_eq!(found, [[true, true], [true, false], [false, true], [true, false], [false, false]]);
    }

    #[test]
    fn third_of_cells_is_left_out_by_the_seed() {
        let parts = draw_parts(30, 1);
        assert_eq!(parts.iter().filter(|part| **part == PredictPart::HeldOut).count(), 10);
        assert_eq!(parts, draw_parts(30, 1));
        assert_ne!(parts, draw_parts(30, 2));
        assert!(draw_parts(2, 1).iter().all(|part| *part == PredictPart::Fitted));
    }
}
