//! Analysis of recorded runs: merge, figures, verdicts, statistics and reports. Starts no process
//! and sends no signal.
#![forbid(unsafe_code)]

mod cause;
mod chart;
pub mod evaluation;
pub mod experiment;
pub mod fitness;
mod grouping;
pub mod hlog;
pub mod html;
pub mod inspect;
pub mod merge;
mod radix_select;
pub mod report;
pub mod spacing;
pub mod stats;
pub mod summary;
pub mod table;
pub mod tail;
pub mod timeline;

/// Returns what a file of the tests holds: an answer, or a document of an earlier version.
#[cfg(test)]
pub(crate) fn fixture<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats").join(file);
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}
