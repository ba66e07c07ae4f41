//! `max-rate`: the highest rate within a latency bound. A row is a rate that was tried.
//!
//! The bounded latency is `rt_venue` from due: an order's round trip without the time at the venue,
//! counted from when the order was due.
//!
//! First the rate is doubled until it is not held (or quartered until it is), then the gap between
//! the highest held and the lowest not held is halved on a logarithmic scale until it is within 5
//! %. The rows are the whole state, so a search can be resumed.

use super::runs::{ExperimentRuns, Point};
use super::sweep::{self, notes, report_frame};
use super::{ALL, Answer, Experiment, ExperimentReport, Figures, KindEntry, PAGE, ReportSection, Row};
use crate::chart::xy_plot::{self, PlotSeries, line_class};
use crate::stats::{Percentile, Spread};
use maud::Markup;
use record::document::Document;
use record::fitness::Fitness;
use record::numbers::{duration, duration_or_dash, plain};
use serde::{Deserialize, Serialize};
use verdict::chart::axis;
use verdict::table::Grid;

/// The entry of `launcher sweep --find-max-rate` in the table of experiment kinds: title, kind of
/// rows, and functions that compute report, JSON and fitness. The command searches for the highest
/// order rate.
pub const KIND: KindEntry = KindEntry {
    title: "Search for the highest rate",
    is_search: true,
    fitness: |_| {
        let why = "a search keeps no verdicts of its runs: measure the rate that it found with launcher run";
        Fitness::new(vec![why.into()])
    },
    check: |experiment| RateSearch::all(experiment).map(drop),
    answer: |experiment, _| {
        let (limits, points) = (SearchLimits::from_experiment(experiment)?, RateSearch::all(experiment)?);
        let (sweep, search) = (ExperimentRuns::new(experiment), Search { limits, points });
        let report = ExperimentReport {
            name: "sweep",
            answer: answer(&sweep, &search),
            notes: notes(&sweep),
            sections: vec![section(&sweep, &search)],
            ..report_frame(&sweep)
        };
        Ok(Answer { report, json: experiment.json().map_err(|error| error.to_string())? })
    },
    ..sweep::RUNS
};

/// The ratio at which a rate search ends: the lowest rate that exceeded the latency bound to the
/// highest rate within it.
pub const CLOSE_ENOUGH: f64 = 1.05;
/// The lowest rate that a rate search tries, in orders a second.
pub const MIN_RATE_PER_S: f64 = 200.0;
/// The highest rate that a rate search tries, in orders a second.
pub const MAX_RATE_PER_S: f64 = 50_000_000.0;

/// The settings of a rate search: the latency bound, the first rate in orders a second, and the
/// maximum number of tried rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchLimits {
    /// The bound on a percentile of `rt_venue` from due, in nanoseconds.
    pub bound_ns: u64,
    /// The bounded percentile of `rt_venue` from due.
    #[serde(default = "usual_percentile", skip_serializing_if = "is_usual")]
    pub percentile: Percentile,
    /// Maximum number of rates tried for each setting.
    pub max_steps: u32,
    /// The rate tried first, in orders a second.
    pub first_per_s: f64,
    /// The limit on open orders, if the user set one.
    #[serde(default)]
    pub max_open: Option<String>,
}

const fn usual_percentile() -> Percentile {
    Percentile::P999
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_usual(percentile: &Percentile) -> bool {
    *percentile == usual_percentile()
}

impl SearchLimits {
    /// The name of the rate search's settings among the figures of an experiment.
    pub const NAME: &'static str = "search";

    /// Reads the settings of the rate search from an experiment.
    pub fn from_experiment(experiment: &Experiment) -> Result<Self, String> {
        let limits = experiment.figures.part(Self::NAME).map_err(|error| error.to_string())?;
        limits.ok_or_else(|| "no limits of the search".into())
    }
}

/// A search with its conditions and the tried rates.
struct Search {
    limits: SearchLimits,
    /// One for each combination of settings, in the order of the experiment's points.
    points: Vec<RateSearch>,
}

/// The search for the highest order rate within a latency bound, with one combination of settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateSearch {
    /// The name of the setting.
    pub name: String,
    /// The tried rates, in order.
    pub steps: Vec<RateStep>,
    /// The highest rate within the bound so far, in orders a second; `None` if there is none.
    pub highest_per_s: Option<f64>,
    /// Reason for the end of the search, in words; empty during the search.
    pub ended: String,
}

/// A step of a rate search: an order rate that was tried, with its result, as the figures of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// The requested rate, in orders a second.
    pub rate_per_s: f64,
    /// The achieved rate in orders per second, median over the runs.
    pub achieved_per_s: Option<f64>,
    /// p99.9 of `rt_venue` from due, in nanoseconds, median over the runs.
    pub p999_ns: Option<u64>,
    /// p99 of `rt_venue` from due in nanoseconds, if that is bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// Whether the rate stayed within the bound in most of its runs.
    pub held: bool,
    /// Number of runs that stayed within the bound; 0: an older launcher did not save it.
    #[serde(default)]
    pub runs_held: u32,
    /// Reason why the first failed run exceeded the bound; empty: none did.
    pub why: String,
    /// Folders of the rate's runs: as many as it took until most agreed.
    pub folders: Vec<String>,
}

impl RateStep {
    /// Returns the latency at the percentile that the search bounds, as measured at this order
    /// rate, in nanoseconds.
    pub const fn bounded_ns(&self, limits: &SearchLimits) -> Option<u64> {
        match limits.percentile {
            Percentile::P99 => self.p99_ns,
            _ => self.p999_ns,
        }
    }
}

/// The next action of a rate search at one combination of settings: try a rate, or end with the
/// highest one found.
#[derive(Clone, Debug, PartialEq)]
pub enum NextStep {
    /// Try another rate, in orders a second.
    Try(f64),
    /// End with the highest rate within the bound, for a reason.
    Done(Option<f64>, String),
}

/// Where a bisection begins, how it moves, and what ends it.
#[derive(Clone, Copy, Debug)]
pub(in crate::experiment) struct BisectionBounds {
    /// The first value to try, with the lowest and the highest one.
    pub first: f64,
    pub min: f64,
    pub max: f64,
    /// Factor from one value to the next while every try succeeded, and divisor while none did.
    pub up: f64,
    pub down: f64,
    /// Ratio of the lowest failed to the highest successful value that ends the search.
    pub close_enough: f64,
    pub max_steps: u32,
}

/// What a bisection does after some steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::experiment) enum Bisection {
    Try(f64),
    /// Nothing held, down to this value.
    NoneHeld(f64),
    /// The highest value held.
    AllHeld(f64),
    /// The highest value that held, and one that is not much higher and failed.
    Found(f64, f64),
    /// All steps are made; the highest value that held.
    OutOfSteps(f64),
}

/// Bisects on a logarithmic scale between values that held and values that failed.
pub(in crate::experiment) fn bisect(tried: &[(f64, bool)], bounds: &BisectionBounds) -> Bisection {
    let of = |wanted: bool| tried.iter().filter(move |(_, held)| *held == wanted).map(|(value, _)| *value);
    let best = of(true).reduce(f64::max);
    // Noise may fail a value below one that was held; what counts is the first failure above.
    let failed = of(false).filter(|value| best.is_none_or(|best| *value > best)).reduce(f64::min);
    let out_of_steps = tried.len() >= bounds.max_steps as usize;
    match (best, failed) {
        (None, None) => Bisection::Try(bounds.first.clamp(bounds.min, bounds.max)),
        (None, Some(failed)) if failed <= bounds.min || out_of_steps => Bisection::NoneHeld(failed),
        (None, Some(failed)) => Bisection::Try((failed / bounds.down).max(bounds.min)),
        (Some(best), None) if best >= bounds.max => Bisection::AllHeld(best),
        (Some(best), Some(failed)) if failed / best <= bounds.close_enough => Bisection::Found(best, failed),
        (Some(best), _) if out_of_steps => Bisection::OutOfSteps(best),
        (Some(best), None) => Bisection::Try((best * bounds.up).min(bounds.max)),
        (Some(best), Some(failed)) => Bisection::Try((best * failed).sqrt()),
    }
}

/// Returns the next action of a rate search after these tried rates.
pub fn next_step(steps: &[RateStep], limits: &SearchLimits) -> NextStep {
    let tried: Vec<(f64, bool)> = steps.iter().map(|step| (step.rate_per_s, step.held)).collect();
    let bounds = BisectionBounds {
        first: limits.first_per_s,
        min: MIN_RATE_PER_S,
        max: MAX_RATE_PER_S,
        up: 2.0,
        down: 4.0,
        close_enough: CLOSE_ENOUGH,
        max_steps: limits.max_steps,
    };
    match bisect(&tried, &bounds) {
        Bisection::Try(rate) => NextStep::Try(rate),
        Bisection::NoneHeld(failed) => {
            NextStep::Done(None, format!("even the lowest rate tried, {}/s, is not held", plain(failed)))
        }
        Bisection::AllHeld(best) => NextStep::Done(Some(best), "the highest rate tried".into()),
        Bisection::Found(best, failed) => {
            NextStep::Done(Some(best), format!("{}/s is not held any more", plain(failed)))
        }
        Bisection::OutOfSteps(best) => {
            NextStep::Done(Some(best), format!("after all {} steps", limits.max_steps))
        }
    }
}

impl Experiment {
    /// Records an order rate that a search tried for a setting, in a planned row of that setting or
    /// in a new one.
    pub fn add_step(&mut self, setting: &str, step: &RateStep) {
        let Some(first) = self.rows.iter().find(|row| row.setting.name == setting).cloned() else { return };
        let (folder, figures) =
            (step.folders.first().cloned().unwrap_or_default(), Figures::from_record(step));
        match self.rows.iter_mut().find(|row| row.setting.name == setting && !row.is_made()) {
            Some(row) => (row.folder, row.figures) = (folder, figures),
            None => self.rows.push(Row { folder, figures, ..first }),
        }
    }
}

impl RateSearch {
    /// Returns the rate search of every setting of the experiment, with the rates tried so far.
    pub fn all(experiment: &Experiment) -> Result<Vec<Self>, String> {
        let limits = SearchLimits::from_experiment(experiment)?;
        let search = |setting: super::Setting| {
            let rows = experiment.made().filter(|row| row.setting.name == setting.name);
            let steps: Result<Vec<RateStep>, _> = rows.map(|row| row.figures.record()).collect();
            let steps = steps.map_err(|error| format!("{}: {error}", setting.name))?;
            let (highest_per_s, ended) = match next_step(&steps, &limits) {
                NextStep::Try(_) => (highest_held(&steps), String::new()),
                NextStep::Done(highest, why) => (highest, why),
            };
            Ok(Self { name: setting.name, steps, highest_per_s, ended })
        };
        experiment.settings().into_iter().map(search).collect()
    }
}

/// Returns the highest rate that was held so far.
fn highest_held(steps: &[RateStep]) -> Option<f64> {
    steps.iter().filter(|step| step.held).map(|step| step.rate_per_s).reduce(f64::max)
}

fn section(sweep: &ExperimentRuns, search: &Search) -> ReportSection {
    let points: Vec<(&str, &RateSearch)> =
        sweep.points.iter().map(|point| point.name.as_str()).zip(&search.points).collect();
    let best = |search: &RateSearch| {
        search.steps.iter().find(|step| Some(step.rate_per_s) == search.highest_per_s).cloned()
    };
    let limits = &search.limits;
    let bounded = format!("{} from due", limits.percentile.name());
    let title = format!(
        "highest orders/s: rt_venue from due {} ≤ {}, ≥ 99% sent, in most runs",
        search.limits.percentile.name(),
        duration(search.limits.bound_ns)
    );
    let held = |step: &RateStep| format!("{} of {}", step.runs_held, step.folders.len());
    let mut highest = Grid::from_rows(
        "max_rate",
        title,
        1,
        &[
            ("setting", &|(name, _): &(&str, &RateSearch)| (*name).to_owned()),
            ("highest", &|(_, search)| search.highest_per_s.map_or_else(|| "none".into(), plain)),
            (limits.percentile.name(), &|(_, search)| {
                duration_or_dash(best(search).and_then(|step| step.bounded_ns(limits)))
            }),
            ("runs", &|(_, search)| best(search).map_or_else(|| "–".into(), |step| held(&step))),
            ("steps", &|(_, search)| search.steps.len().to_string()),
        ],
        &points,
    );
    let ended = |search: &RateSearch| match search.ended.as_str() {
        "" => "as far as the search came".to_owned(),
        why => why.to_owned(),
    };
    highest.notes = points.iter().map(|(name, search)| format!("{name}: {}", ended(search))).collect();
    let steps: Vec<(&str, &RateStep)> =
        points.iter().flat_map(|(name, search)| search.steps.iter().map(move |step| (*name, step))).collect();
    let tried = Grid::from_rows(
        "tried",
        "Every rate that was tried",
        1,
        &[
            ("setting", &|(name, _): &(&str, &RateStep)| (*name).to_owned()),
            ("rate tried", &|(_, step)| format!("{}/s", plain(step.rate_per_s))),
            ("sent", &|(_, step)| {
                step.achieved_per_s.map_or_else(|| "–".into(), |rate| format!("{}/s", plain(rate)))
            }),
            (&bounded, &|(_, step)| duration_or_dash(step.bounded_ns(limits))),
            ("held", &|(_, step)| if step.held { "yes".into() } else { "no".into() }),
            ("runs", &|(_, step)| held(step)),
            ("why not", &|(_, step)| step.why.clone()),
        ],
        &steps,
    );
    ReportSection::new("highest", "The highest rate held")
        .charts(chart(sweep, search))
        .tables(ALL, [highest])
        .tables(PAGE, [tried])
}

impl RateSearch {
    /// Returns the lowest rate above the highest held one that was tried and not held.
    pub(super) fn lowest_failed_per_s(&self) -> Option<f64> {
        let failed = self.steps.iter().filter(|step| !step.held).map(|step| step.rate_per_s);
        failed.filter(|rate| self.highest_per_s.is_none_or(|held| *rate > held)).reduce(f64::min)
    }
}

/// Returns the result of a search in one sentence. A setting is called the best only if every other
/// one failed to hold a rate that is not above the best one's.
fn answer(sweep: &ExperimentRuns, search: &Search) -> String {
    let limits = &search.limits;
    let bound = format!(
        "orders/s with rt_venue from due {} ≤ {}",
        limits.percentile.name(),
        duration(limits.bound_ns)
    );
    let points = || sweep.points.iter().zip(&search.points);
    let name = |point: &Point| point.name_without(&sweep.axes, None);
    let held = points().filter_map(|(point, found)| Some((point, found.highest_per_s?)));
    let Some((best, rate)) = held.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        let (percentile, bound) = (limits.percentile.name(), duration(limits.bound_ns));
        return format!("no setting holds any tried rate with rt_venue from due {percentile} ≤ {bound}");
    };
    let may_hold = |found: &RateSearch| found.lowest_failed_per_s().is_none_or(|failed| failed > rate);
    let rival = points().find(|(point, found)| !std::ptr::eq(*point, best) && may_hold(found));
    match rival {
        _ if search.points.len() == 1 => format!("{} holds {} {bound}", name(best), plain(rate)),
        None => format!("{} holds the highest rate: {} {bound}", name(best), plain(rate)),
        Some((rival, _)) => format!(
            "no setting holds the highest rate: {} holds {} {bound}, and {} has not failed at any rate up to it",
            name(best),
            plain(rate),
            name(rival)
        ),
    }
}

/// Draws the bounded percentile over the rate, and the bound as a horizontal line.
fn chart(sweep: &ExperimentRuns, search: &Search) -> Option<Markup> {
    let exactly = |value: f64| Spread { median: value, low: value, high: value };
    let point_of =
        |step: &RateStep| Some((step.rate_per_s, exactly(step.bounded_ns(&search.limits)? as f64)));
    let line = |(number, (point, tried)): (usize, (&Point, &RateSearch))| {
        let mut points: Vec<(f64, Spread)> = tried.steps.iter().filter_map(point_of).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        PlotSeries { name: point.name_without(&sweep.axes, None), class: line_class(number), points }
    };
    let tried = sweep.points.iter().zip(&search.points).enumerate();
    let mut series: Vec<PlotSeries> = tried.map(line).collect();
    let rates = series.iter().flat_map(|series| &series.points).map(|point| point.0);
    if let Some(rates) = Spread::from_values(rates).filter(|rates| rates.low < rates.high) {
        let points =
            [rates.low, rates.high].map(|rate| (rate, exactly(search.limits.bound_ns as f64))).to_vec();
        series.push(PlotSeries { name: "bound".into(), class: "c7 dots", points });
    }
    let percentile = search.limits.percentile.name();
    xy_plot::draw(
        "search",
        &format!("{percentile} of rt_venue from due at every rate that was tried"),
        ("offered rate (orders/s)", axis::NUMBER),
        (&format!("rt_venue from due, {percentile}"), axis::DURATION),
        &series,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use proptest::prelude::*;

    fn step(rate_per_s: f64, held: bool) -> RateStep {
        RateStep {
            rate_per_s,
            achieved_per_s: None,
            p999_ns: None,
            p99_ns: None,
            held,
            runs_held: 0,
            why: String::new(),
            folders: Vec::new(),
        }
    }

    fn limits(first_per_s: f64, max_steps: u32) -> SearchLimits {
        SearchLimits {
            bound_ns: 100_000,
            percentile: Percentile::P999,
            max_steps,
            first_per_s,
            max_open: None,
        }
    }

    /// Searches on a machine that holds everything up to `limit`.
    fn found(limit: f64, first: f64, max_steps: u32) -> (Option<f64>, String, Vec<f64>) {
        let mut steps: Vec<RateStep> = Vec::new();
        loop {
            match next_step(&steps, &limits(first, max_steps)) {
                NextStep::Done(highest, why) => {
                    return (highest, why, steps.iter().map(|step| step.rate_per_s).collect());
                }
                NextStep::Try(rate) => steps.push(step(rate, rate <= limit)),
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
    fn rates_within_one_step_are_not_ranked() {
        let point = |name: &str| Point {
            name: name.into(),
            values: Default::default(),
            is_aa_test: false,
            settings: Default::default(),
            runs: Vec::new(),
        };
        let experiment = Experiment { axes: Vec::new(), ..fixture("golden/experiment.json") };
        let sweep = ExperimentRuns { experiment, points: vec![point("A"), point("B")] };
        let search = |highest: f64, failed: f64| RateSearch {
            steps: vec![step(highest, true), step(failed, false)],
            highest_per_s: Some(highest),
            ..RateSearch::default()
        };
        let answer_with = |b: RateSearch| {
            let points = vec![search(20_000.0, 21_000.0), b];
            answer(&sweep, &Search { limits: limits(1.0, 9), points })
        };
        assert!(
            answer_with(search(15_000.0, 16_000.0)).starts_with("A holds the highest rate: 20,000 orders/s")
        );
        let near = answer_with(search(19_500.0, 20_400.0));
        assert!(near.starts_with("no setting holds the highest rate: A holds 20,000"), "{near}");
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
