//! Formats of all files that are read back: keys, versions, damage.

mod documents;
mod histograms;
mod surveys;

use analysis::document::Document;
use std::path::{Path, PathBuf};

/// Returns the path of the golden file: one document of each kind with a value in every key.
pub fn golden_file<D: Document>() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats/golden").join(D::FILE)
}

pub fn golden<D: Document>() -> D {
    D::read(golden_file::<D>().parent().unwrap()).unwrap()
}
