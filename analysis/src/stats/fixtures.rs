//! Synthetic run outlines for tests.

use super::RunOutline;
use crate::document::Document;
use crate::experiment::SweepRecord;
use crate::summary::Distribution;
use std::path::Path;

/// Returns the document in its golden file.
///
/// # Panics
/// The golden file cannot be read.
pub fn golden<D: Document>() -> D {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats/golden");
    D::read(&folder).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns a synthetic outline of a run with this median rt_venue, and twice the median as p99.
pub fn run(hash: usize, ns: f64) -> RunOutline {
    let figures = Distribution {
        count: 100_000,
        p50_ns: Some(ns as u64),
        p99_ns: Some(2 * ns as u64),
        ..Distribution::default()
    };
    let stage = Distribution { mean_ns: Some(ns), ..figures };
    let measures =
        [("rt_venue", figures), ("rt_venue_from_due", figures), ("submit", stage), ("completion", stage)];
    RunOutline {
        run: format!("run-{hash}-{ns}"),
        work_done_ns: None,
        pss_bytes: None,
        schedule_hash: format!("{hash:016x}"),
        measures: measures.map(|(name, figures)| (name.to_owned(), figures)).into(),
        ..golden::<SweepRecord>().points[0].runs[0].outline.clone()
    }
}
