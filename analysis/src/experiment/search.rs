//! What a search for the highest rate has tried.

use serde::{Deserialize, Serialize};

/// A search over all points of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// The bound on rt_venue from due, p99.9, in nanoseconds.
    pub bound_ns: u64,
    /// Most rates tried for each point.
    pub most_steps: u32,
    /// The rate tried first.
    pub first_per_s: f64,
    /// One for each point.
    pub points: Vec<Search>,
}

/// The search for one point.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// What was tried, in order.
    pub steps: Vec<SearchStep>,
    /// The highest rate that was held; null while it is searched for, or if there is none.
    pub highest_per_s: Option<f64>,
    /// How it ended, in words; empty while it is searched for.
    pub ended: String,
}

/// One rate that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchStep {
    /// The rate asked for.
    pub rate_per_s: f64,
    /// What was sent of it, median over the runs.
    pub achieved_per_s: Option<f64>,
    /// rt_venue from due, p99.9, in nanoseconds, median over the runs.
    pub p999_ns: Option<u64>,
    /// Whether it was held: most of its runs did.
    pub held: bool,
    /// How many of its runs held it; 0: an older launcher did not save it.
    #[serde(default)]
    pub runs_held: u32,
    /// Why the first of its runs that did not hold it did not; empty: all did.
    pub why: String,
    /// The folders of its runs: as many as it took until most agreed.
    pub folders: Vec<String>,
}

impl SearchRecord {
    /// The folders of all tries.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.points.iter().flat_map(|search| &search.steps).flat_map(|step| &step.folders).map(String::as_str)
    }
}
