//! `compare`: whether B is slower than A.

mod report;

pub use report::{measured_report, report};

use super::runs::ExperimentRuns;
use super::{Answer, Endpoint, Experiment, KindEntry, sweep};
use crate::stats::{
    ComparisonLine, Percentile, PlacementRuns, RunOutline, compare_figure, correct_secondary, pair_runs,
};
use record::document::answer_json;
use serde::{Deserialize, Serialize};
use verdict::summary::Measure;

/// The entry of `launcher compare` in the table of experiment kinds: title, kind of rows, and
/// functions that compute report, JSON and fitness. The command compares settings A and B.
pub const KIND: KindEntry = KindEntry {
    title: "Compare",
    has_pairs: true,
    has_verdicts: true,
    has_sides: true,
    answer: |experiment, folder| {
        let runs = ExperimentRuns::new(experiment);
        // Without a pair there is nothing to compare.
        if runs.points.iter().any(|point| point.runs.is_empty()) {
            return sweep::answer(experiment, folder);
        }
        let found = Comparisons::from_runs(&runs)?;
        let json = found.json().map_err(|error| error.to_string())?;
        Ok(Answer { report: measured_report(&runs, &found), json })
    },
    headlines: |experiment| {
        let found = Comparisons::from_runs(&ExperimentRuns::new(experiment)).unwrap_or_default();
        let of_endpoint = |one: Comparison| {
            one.lines.into_iter().filter(move |line| one.endpoint.is_of(line)).collect::<Vec<_>>()
        };
        found.comparisons.into_iter().flat_map(of_endpoint).collect()
    },
    ..sweep::RUNS
};

/// The answer of `launcher compare`: all comparisons of settings A and B.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparisons {
    /// The comparison of each setting that both sides have.
    pub comparisons: Vec<Comparison>,
    /// Notes on settings that were left out.
    pub notes: Vec<String>,
}

impl Comparisons {
    /// Compares sides A and B of an experiment that was measured for this comparison; an error
    /// unless there are exactly two.
    pub fn from_runs(record: &ExperimentRuns) -> Result<Self, String> {
        let [a, b] = &record.points[..] else { return Err("this comparison has not two sides".into()) };
        let [a, b] = [a, b].map(|point| {
            let name = point.name.split_once(": ").map_or(point.name.as_str(), |(_, words)| words);
            (name, point.outlines())
        });
        let comparison = Comparison::new((a.0, &a.1), (b.0, &b.1), &record.endpoint);
        Ok(Self { comparisons: vec![comparison], notes: sweep::notes(record) })
    }

    /// Compares the pairs of settings that were chosen after an experiment's measurement; `None` if
    /// none were chosen.
    pub fn of_settings(experiment: &Experiment) -> Option<Self> {
        let compared = experiment.compared.as_ref()?;
        let record = ExperimentRuns::new(experiment);
        let point = |name: &String| record.points.iter().find(|point| point.name == *name);
        let comparison = |[a, b]: &[String; 2]| {
            let (left, right) = (point(a)?.outlines(), point(b)?.outlines());
            Some(Comparison::new((a, &left), (b, &right), &record.endpoint))
        };
        let comparisons = compared.pairs.iter().filter_map(comparison).collect();
        Some(Self { comparisons, notes: compared.notes.clone() })
    }

    /// Returns the comparisons as a JSON document, the output of `--json`.
    pub fn json(&self) -> serde_json::Result<Vec<u8>> {
        answer_json("bulkhead.compare/2", self)
    }
}

/// The comparison of setting B with setting A: one line for each measured duration and percentile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Description of setting A.
    pub a: String,
    /// Description of setting B.
    pub b: String,
    /// The declared figures and their equivalence margin.
    #[serde(default = "Endpoint::legacy")]
    pub endpoint: Endpoint,
    /// Number of pairs of runs that were kept and compared.
    pub pairs: usize,
    /// Reasons that weaken the comparison.
    pub caveats: Vec<String>,
    /// The number of runs in each core placement, if the machine moved its cores between the runs.
    #[serde(default)]
    pub placed: Vec<PlacementRuns>,
    /// The comparison of every figure; the declared ones first.
    pub lines: Vec<ComparisonLine>,
}

impl Comparison {
    /// Compares the runs of settings A and B in the endpoint (declared latency figures), in the
    /// other end-to-end latencies, and in each stage.
    pub fn new(
        (a, a_runs): (&str, &[RunOutline]),
        (b, b_runs): (&str, &[RunOutline]),
        endpoint: &Endpoint,
    ) -> Self {
        let endpoint = endpoint.for_runs(a_runs.iter().chain(b_runs));
        let pairing = pair_runs(a_runs, b_runs).with_margin(endpoint.margin);
        let mut measures = vec![endpoint.measure()];
        let others = [Measure::RtVenueFromDue, Measure::WithoutSteal, Measure::RtVenue, Measure::StallFree]
            .into_iter();
        measures.extend(others.chain(Measure::stages()).filter(|measure| *measure != endpoint.measure()));
        let knows_steal = a_runs.iter().chain(b_runs).any(|run| run.measure(Measure::WithoutSteal).count > 0);
        measures.retain(|measure| knows_steal || *measure != Measure::WithoutSteal);
        let each =
            measures.into_iter().flat_map(|measure| Percentile::ALL.map(|percentile| (measure, percentile)));
        let mut lines: Vec<ComparisonLine> =
            each.map(|(measure, percentile)| compare_figure(&pairing, measure, percentile)).collect();
        correct_secondary(lines.iter_mut().map(|line| {
            let is_declared = endpoint.is_of(line);
            (line, is_declared)
        }));
        Self {
            a: a.to_owned(),
            b: b.to_owned(),
            pairs: pairing.a.len(),
            placed: pairing.runs_by_placement(),
            lines,
            caveats: pairing.caveats,
            endpoint,
        }
    }
}
