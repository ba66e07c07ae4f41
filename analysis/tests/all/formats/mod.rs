//! Every file that is read back: its keys, its versions, damage.

mod documents;
mod histograms;

use analysis::document::Document;
use std::path::{Path, PathBuf};

/// One document of each kind with a value in every key.
pub fn golden_file<D: Document>() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/formats/golden").join(D::FILE)
}

/// The document in the golden file.
pub fn golden<D: Document>() -> D {
    D::read(golden_file::<D>().parent().unwrap()).unwrap()
}
