//! The flags of `open`.

use clap::Args;
use std::path::PathBuf;

/// The flags of `open`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct OpenFlags {
    /// Folder of a run, of an experiment or of many runs; or latest, the newest below runs
    #[arg(value_name = "FOLDER", default_value = "runs")]
    pub folder: PathBuf,
}
