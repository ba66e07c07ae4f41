//! Formats of all files that are read back: keys, versions, damage.

mod documents;
mod histograms;
mod method;
mod saved;
mod surveys;

use analysis::experiment::Experiment;
use record::document::Document;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Returns the path of the golden file: one document of each kind with a value in every key.
pub fn golden_file<D: Document>() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats/golden").join(D::FILE)
}

/// Returns an experiment that an earlier build has saved.
pub fn saved_experiment(name: &str) -> Experiment {
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats/saved");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(saved.join(format!("{name}.json")), folder.path().join(Experiment::FILE)).unwrap();
    Experiment::read(folder.path()).unwrap()
}

/// Returns what a document of commit 2889d4c1 holds.
pub fn before<T: DeserializeOwned>(file: &str) -> T {
    serde_json::from_slice(&std::fs::read(before_file(file)).unwrap()).unwrap()
}

/// Returns the path of a document of commit 2889d4c1.
fn before_file(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats/before").join(file)
}

pub fn golden<D: Document>() -> D {
    D::read(golden_file::<D>().parent().unwrap()).unwrap()
}
