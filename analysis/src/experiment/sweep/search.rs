//! Results of a search for the highest rate within a latency bound: the tried rates.

use super::{SweepPoint, SweepRecord};
use crate::chart::axis;
use crate::chart::xy_plot::{self, PlotSeries, line_class};
use crate::experiment::{ALL, PAGE, ReportSection};
use crate::fitness::Fitness;
use crate::numbers::{duration, duration_or_dash, plain};
use crate::stats::Spread;
use crate::table::Grid;
use maud::Markup;
use serde::{Deserialize, Serialize};

/// The searches for the highest order rate that meets a latency bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// The bound on rt_venue from due, p99.9, in nanoseconds.
    pub bound_ns: u64,
    /// Most rates tried for each point.
    #[serde(rename = "most_steps")]
    pub max_steps: u32,
    /// The rate tried first.
    pub first_per_s: f64,
    /// The searches, one for each point.
    pub points: Vec<RateSearch>,
}

/// The search for the highest order rate with one combination of settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateSearch {
    /// The tried rates, in order.
    pub steps: Vec<RateStep>,
    /// The highest rate that was held; null during the search, or if there is none.
    pub highest_per_s: Option<f64>,
    /// Reason for the end of the search, in words; empty during the search.
    pub ended: String,
}

/// An order rate that a search tried, with its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateStep {
    /// The requested rate.
    pub rate_per_s: f64,
    /// The achieved rate in orders per second, median over the runs.
    pub achieved_per_s: Option<f64>,
    /// rt_venue from due, p99.9, in nanoseconds, median over the runs.
    pub p999_ns: Option<u64>,
    /// Whether the rate was held: most of its runs did.
    pub held: bool,
    /// Number of runs that held the rate; 0: an older launcher did not save it.
    #[serde(default)]
    pub runs_held: u32,
    /// Reason why the first run that failed did not hold the rate; empty: all did.
    pub why: String,
    /// Folders of the rate's runs: as many as it took until most agreed.
    pub folders: Vec<String>,
}

impl SearchRecord {
    /// Returns that the latencies may not be quoted: a search saves no verdicts.
    pub fn fitness(&self) -> Fitness {
        let why = "a search keeps no verdicts of its runs: measure the rate that it found with launcher run";
        Fitness::new(vec![why.into()])
    }

    /// Returns the folders of the runs of all tried rates.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.points.iter().flat_map(|search| &search.steps).flat_map(|step| &step.folders).map(String::as_str)
    }
}

pub(super) fn section(sweep: &SweepRecord, search: &SearchRecord) -> ReportSection {
    let points: Vec<(&str, &RateSearch)> =
        sweep.points.iter().map(|point| point.name.as_str()).zip(&search.points).collect();
    let best = |search: &RateSearch| {
        search.steps.iter().find(|step| Some(step.rate_per_s) == search.highest_per_s).cloned()
    };
    let title = format!(
        "highest orders/s: rt_venue from due p99.9 ≤ {}, ≥ 99% sent, in most runs",
        duration(search.bound_ns)
    );
    let held = |step: &RateStep| format!("{} of {}", step.runs_held, step.folders.len());
    let mut highest = Grid::from_rows(
        "max_rate",
        title,
        1,
        &[
            ("setting", &|(name, _): &(&str, &RateSearch)| (*name).to_owned()),
            ("highest", &|(_, search)| search.highest_per_s.map_or_else(|| "none".into(), plain)),
            ("p99.9", &|(_, search)| duration_or_dash(best(search).and_then(|step| step.p999_ns))),
            ("runs", &|(_, search)| best(search).map_or_else(|| "–".into(), |step| held(&step))),
            ("steps", &|(_, search)| search.steps.len().to_string()),
        ],
        &points,
    );
    let ended = points.iter().filter(|(_, search)| !search.ended.is_empty());
    highest.notes = ended.map(|(name, search)| format!("{name}: {}", search.ended)).collect();
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
            ("p99.9 from due", &|(_, step)| duration_or_dash(step.p999_ns)),
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
    fn refused_per_s(&self) -> Option<f64> {
        let failed = self.steps.iter().filter(|step| !step.held).map(|step| step.rate_per_s);
        failed.filter(|rate| self.highest_per_s.is_none_or(|held| *rate > held)).reduce(f64::min)
    }
}

/// The result of a search in one sentence. A setting holds the highest rate only if every other one
/// was refused a rate that is not above it.
pub(super) fn answer(sweep: &SweepRecord, search: &SearchRecord) -> String {
    let bound = format!("orders/s with rt_venue from due p99.9 ≤ {}", duration(search.bound_ns));
    let points = || sweep.points.iter().zip(&search.points);
    let name = |point: &SweepPoint| point.name_without(&sweep.axes, None);
    let held = points().filter_map(|(point, found)| Some((point, found.highest_per_s?)));
    let Some((best, rate)) = held.max_by(|a, b| a.1.total_cmp(&b.1)) else {
        let bound = duration(search.bound_ns);
        return format!("no setting holds any tried rate with rt_venue from due p99.9 ≤ {bound}");
    };
    let may_hold = |found: &RateSearch| found.refused_per_s().is_none_or(|refused| refused > rate);
    let rival = points().find(|(point, found)| !std::ptr::eq(*point, best) && may_hold(found));
    match rival {
        _ if search.points.len() == 1 => format!("{} holds {} {bound}", name(best), plain(rate)),
        None => format!("{} holds the highest rate: {} {bound}", name(best), plain(rate)),
        Some((rival, _)) => format!(
            "no setting holds the highest rate: {} holds {} {bound}, and {} was refused no rate up to it",
            name(best),
            plain(rate),
            name(rival)
        ),
    }
}

/// p99.9 over the rate, and the bound across it.
fn chart(sweep: &SweepRecord, search: &SearchRecord) -> Option<Markup> {
    let exactly = |value: f64| Spread { median: value, low: value, high: value };
    let point_of = |step: &RateStep| Some((step.rate_per_s, exactly(step.p999_ns? as f64)));
    let line = |(number, (point, tried)): (usize, (&SweepPoint, &RateSearch))| {
        let mut points: Vec<(f64, Spread)> = tried.steps.iter().filter_map(point_of).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        PlotSeries { name: point.name_without(&sweep.axes, None), class: line_class(number), points }
    };
    let tried = sweep.points.iter().zip(&search.points).enumerate();
    let mut series: Vec<PlotSeries> = tried.map(line).collect();
    let rates = series.iter().flat_map(|series| &series.points).map(|point| point.0);
    if let Some(rates) = Spread::from_values(rates).filter(|rates| rates.low < rates.high) {
        let points = [rates.low, rates.high].map(|rate| (rate, exactly(search.bound_ns as f64))).to_vec();
        series.push(PlotSeries { name: "bound".into(), class: "c7 dots", points });
    }
    xy_plot::draw(
        "search",
        "p99.9 of rt_venue from due at every rate that was tried",
        ("offered rate (orders/s)", axis::NUMBER),
        ("rt_venue from due, p99.9", axis::DURATION),
        &series,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::golden;

    fn search(highest: f64, refused: f64) -> RateSearch {
        let step = |rate_per_s, held| RateStep {
            rate_per_s,
            achieved_per_s: None,
            p999_ns: None,
            held,
            runs_held: 0,
            why: String::new(),
            folders: Vec::new(),
        };
        let steps = vec![step(highest, true), step(refused, false)];
        RateSearch { steps, highest_per_s: Some(highest), ended: String::new() }
    }

    #[test]
    fn rates_within_one_step_are_not_ranked() {
        let mut sweep: SweepRecord = golden();
        let point = |name: &str| SweepPoint { name: name.into(), ..sweep.points[0].clone() };
        (sweep.points, sweep.axes) = (vec![point("A"), point("B")], Vec::new());
        let of = |b: RateSearch| {
            let points = vec![search(20_000.0, 21_000.0), b];
            answer(&sweep, &SearchRecord { bound_ns: 100_000, max_steps: 9, first_per_s: 1.0, points })
        };
        assert!(of(search(15_000.0, 16_000.0)).starts_with("A holds the highest rate: 20,000 orders/s"));
        let near = of(search(19_500.0, 20_400.0));
        assert!(near.starts_with("no setting holds the highest rate: A holds 20,000"), "{near}");
    }
}
