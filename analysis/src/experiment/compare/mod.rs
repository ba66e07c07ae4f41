//! `compare.json`: the comparison of B with A.

mod report;

pub use report::{measured_report, report};

use crate::document::Document;
use crate::stats::{ComparisonLine, Percentile, PlacementRuns, RunOutline, compare_figure, pair_runs};
use crate::summary::Measure;
use serde::{Deserialize, Serialize};

/// The document of `launcher compare`: all comparisons of settings A and B.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparisons {
    /// Each setting that both sides have.
    pub comparisons: Vec<Comparison>,
    /// Notes on settings that were left out.
    pub notes: Vec<String>,
}

impl Document for Comparisons {
    const FILE: &'static str = "compare.json";
    const NAME: &'static str = "bulkhead.compare";
    const VERSION: u32 = 2;
    const ABSENT: &'static str = "nothing was compared in this folder";
    const REMEDY: &'static str = "launcher compare makes it again";

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}

/// The comparison of one setting (B) with another one (A), measure by measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Description of A.
    pub a: String,
    /// Description of B.
    pub b: String,
    /// Pairs of runs that were compared.
    pub pairs: usize,
    /// Reasons that weaken the comparison.
    pub caveats: Vec<String>,
    /// The core placements, if the machine moved its cores between the runs.
    #[serde(default)]
    pub placed: Vec<PlacementRuns>,
    /// Every figure; `rt_venue` first.
    pub lines: Vec<ComparisonLine>,
}

impl Comparison {
    /// Compares the runs of two settings: `rt_venue`, the time from due, and each stage. rt_venue
    /// is compared with and without the machine's stalls.
    pub fn new((a, a_runs): (&str, &[RunOutline]), (b, b_runs): (&str, &[RunOutline])) -> Self {
        let pairing = pair_runs(a_runs, b_runs);
        let measures = [Measure::RtVenue, Measure::StallFree, Measure::RtVenueFromDue];
        let measures = measures.into_iter().chain(Measure::stages());
        let each = measures.flat_map(|measure| Percentile::ALL.map(|percentile| (measure, percentile)));
        Self {
            a: a.to_owned(),
            b: b.to_owned(),
            pairs: pairing.a.len(),
            placed: pairing.runs_by_placement(),
            lines: each.map(|(measure, percentile)| compare_figure(&pairing, measure, percentile)).collect(),
            caveats: pairing.caveats,
        }
    }
}
