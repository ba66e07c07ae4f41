//! What a page needs of `sweep.json`, read leniently: fields that this page does not show may come and go.

use crate::host::Machine;
use crate::summary::{Distribution, Measure};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Its name in a sweep's folder.
pub const SWEEP_FILE: &str = "sweep.json";
/// The version that this page reads.
pub const SWEEP_SCHEMA: &str = "bulkhead.sweep/1";

/// A sweep as far as it has come.
#[derive(Clone, Debug, Deserialize)]
pub struct Sweep {
    /// bulkhead's version.
    pub version: String,
    /// When it began, UTC.
    pub started: String,
    /// `sweep`, `bill`, …
    #[serde(default)]
    pub kind: String,
    /// `running`, `interrupted` or `complete`.
    #[serde(default)]
    pub state: String,
    /// Where it was measured.
    pub machine: Machine,
    /// What varies, in the order of the tables.
    pub axes: Vec<Axis>,
    /// Runs of each point.
    pub repeats: u32,
    /// What was left out or settled on the way.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Every combination.
    pub points: Vec<Point>,
    /// The search for the highest rate, if this is one.
    #[serde(default)]
    pub search: Option<Search>,
}

/// A search over all points.
#[derive(Clone, Debug, Deserialize)]
pub struct Search {
    /// The bound on rt_venue from due, p99.9, in nanoseconds.
    pub bound_ns: u64,
    /// One for each point.
    pub points: Vec<Searched>,
}

/// The search for one point.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Searched {
    /// What was tried, in order.
    pub steps: Vec<Step>,
    /// The highest rate that was held.
    pub highest_per_s: Option<f64>,
    /// How it ended, in words.
    pub ended: String,
}

/// One rate that was tried.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The rate asked for.
    pub rate_per_s: f64,
    /// What was sent of it.
    pub achieved_per_s: Option<f64>,
    /// rt_venue from due, p99.9.
    pub p999_ns: Option<u64>,
    /// Whether it was held.
    pub held: bool,
    /// If not, why.
    pub why: String,
}

/// Something that varies.
#[derive(Clone, Debug, Deserialize)]
pub struct Axis {
    /// Its name.
    pub axis: String,
    /// Its values.
    pub values: Vec<String>,
}

/// One combination.
#[derive(Clone, Debug, Deserialize)]
pub struct Point {
    /// Unique, for people.
    pub name: String,
    /// The value on each axis.
    pub values: BTreeMap<String, String>,
    /// What has been measured.
    pub runs: Vec<Entry>,
}

/// One run of a point.
#[derive(Clone, Debug, Deserialize)]
pub struct Entry {
    /// Its figures.
    pub outline: Outline,
}

/// A run's figures.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Outline {
    /// Strategies.
    pub strategies: u16,
    /// Extra work asked for, in nanoseconds an order.
    pub work_ns: u64,
    /// Whether every order was sent and came back.
    pub complete: bool,
    /// Whether every check held.
    pub valid: bool,
    /// Whether the latencies may be quoted.
    pub fit_for_latency: bool,
    /// If not, why.
    pub reasons: Vec<String>,
    /// Orders a second in the schedule.
    pub offered_per_s: Option<f64>,
    /// Orders a second sent.
    pub achieved_per_s: Option<f64>,
    /// The orchestrator's share of busy time.
    pub utilisation: Option<f64>,
    /// Orders that came back.
    pub returned: u64,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// From the first spawn to the start, in nanoseconds.
    pub startup_ns: u64,
    /// Proportional memory in bytes.
    pub pss_bytes: Option<u64>,
    /// Page faults.
    pub page_faults: u64,
    /// Context switches.
    pub context_switches: u64,
    /// Every measure by its name.
    pub measures: BTreeMap<String, Distribution>,
}

impl Outline {
    /// A measure's distribution.
    pub fn measure(&self, measure: Measure) -> Distribution {
        self.measures.get(measure.name()).copied().unwrap_or_default()
    }

    /// Whether its figures count at all.
    pub const fn is_sound(&self) -> bool {
        self.complete && self.valid
    }

    /// CPU seconds for a million orders.
    pub fn cpu_s_per_million(&self) -> Option<f64> {
        (self.returned > 0).then(|| self.cpu_ns as f64 / 1e3 / self.returned as f64)
    }
}

/// A figure over the repeats of a point: the median and the outermost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The median.
    pub median: f64,
    /// The least.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

impl Spread {
    /// Of values; nothing of none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, low, high })
    }
}

impl Point {
    /// The sound runs.
    pub fn sound(&self) -> impl Iterator<Item = &Outline> {
        self.runs.iter().map(|run| &run.outline).filter(|outline| outline.is_sound())
    }

    /// A figure over the sound repeats; nothing unless every one of them has it.
    pub fn spread(&self, of: impl Fn(&Outline) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.sound().map(of).collect::<Option<_>>()?;
        Spread::of(values)
    }

    /// Its name by the axes other than one.
    pub fn name_without(&self, axes: &[Axis], left_out: &str) -> String {
        let others = axes.iter().filter(|axis| axis.axis != left_out && axis.values.len() > 1);
        let names: Vec<String> = others
            .filter_map(|axis| {
                let value = self.values.get(&axis.axis)?;
                // Names speak for themselves; a number needs to say of what.
                let number = value.starts_with(|c: char| c.is_ascii_digit());
                Some(if number { format!("{} {value}", axis.axis) } else { value.clone() })
            })
            .collect();
        if names.is_empty() { "all".into() } else { names.join(", ") }
    }
}

/// A percentile of rt_venue by its name.
pub fn rt_venue(outline: &Outline, percentile: &str) -> Option<f64> {
    let figures = outline.measure(Measure::RtVenue);
    let value = match percentile {
        "p50" => figures.p50_ns,
        "p99" => figures.p99_ns,
        "p99.9" => figures.p999_ns,
        _ => None,
    };
    value.map(|ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_have_a_middle_and_ends() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, low: 1.0, high: 3.0 }));
        assert_eq!(Spread::of([3.0, 1.0]), Some(Spread { median: 2.0, low: 1.0, high: 3.0 }));
    }

    #[test]
    fn a_point_is_named_by_what_varies() {
        let axis = |name: &str, values: &[&str]| Axis {
            axis: name.into(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let axes = [axis("technique", &["a", "b"]), axis("work", &["0ns", "1us"]), axis("idle", &["spin"])];
        let values = [("technique", "b"), ("work", "1us"), ("idle", "spin")];
        let point = Point {
            name: "x".into(),
            values: values.iter().map(|(axis, value)| ((*axis).into(), (*value).into())).collect(),
            runs: Vec::new(),
        };
        assert_eq!(point.name_without(&axes, "work"), "b");
        assert_eq!(point.name_without(&axes, "technique"), "work 1us");
        assert_eq!(point.name_without(&axes, "none"), "b, work 1us");
        assert_eq!(point.name_without(&axes[1..], "work"), "all");
    }
}
