//! Analysis of experiments, which are many recorded runs: statistics, answers, reports and pages.
//! Starts no process and sends no signal.
#![forbid(unsafe_code)]

pub mod chart;
pub mod experiment;
mod grouping;
pub mod html;
pub mod stats;

/// Returns what a file of the tests holds: an answer, or a document of an earlier version.
#[cfg(test)]
pub(crate) fn fixture<T: serde::de::DeserializeOwned>(file: &str) -> T {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats").join(file);
    serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap()
}
