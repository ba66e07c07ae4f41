//! The saved results that a page is made from: read, checked for their version, never computed again.

use super::bill::{BILL_FILE, BILL_SCHEMA, Bill};
use super::curve;
use super::run_page::SavedRun;
use crate::experiment::{CONTAIN_FILE, CONTAIN_SCHEMA, Containments};
use crate::experiment::{SWEEP_FILE, SWEEP_SCHEMA, SweepRecord};
use crate::hlog::HLOG_FILE;
use crate::summary::{SUMMARY_FILE, SUMMARY_SCHEMA, Summary};
use crate::timeline::{TIMELINE_FILE, TIMELINE_SCHEMA, Timeline};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::Path;
use thiserror::Error;

/// Results that cannot be read.
#[derive(Debug, Error)]
pub enum LoadError {
    /// No results at all.
    #[error(
        "{folder}: neither summary.json, sweep.json nor contain.json in it: not the folder of a run, a sweep, a bill or a containment table"
    )]
    Nothing {
        /// The folder.
        folder: String,
    },
    /// The operating system refused.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What it said.
        source: io::Error,
    },
    /// Not the JSON that it should be.
    #[error("{file}: {source}")]
    Json {
        /// The file.
        file: String,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Another version's.
    #[error("{file}: schema {found:?}, this build reads {expected:?}: use the launcher that wrote it")]
    Schema {
        /// The file.
        file: String,
        /// What it says it is.
        found: String,
        /// What it would have to be.
        expected: &'static str,
    },
}

/// A run's results. A summary is needed; a chart whose file is missing or damaged says so in its place.
///
/// # Errors
/// [`LoadError`]: the summary cannot be read.
pub fn run(folder: &Path) -> Result<SavedRun, LoadError> {
    let summary: Summary = json(&folder.join(SUMMARY_FILE), SUMMARY_SCHEMA)?;
    let log = std::fs::read(folder.join(HLOG_FILE)).map_err(|error| error.to_string());
    let curves = log.and_then(|bytes| curve::read(&bytes));
    let timeline =
        json::<Timeline>(&folder.join(TIMELINE_FILE), TIMELINE_SCHEMA).map_err(|error| match error {
            LoadError::Io { source, .. } => source.to_string(),
            LoadError::Json { source, .. } => source.to_string(),
            other => other.to_string(),
        });
    Ok(SavedRun { summary, curves, timeline: timeline.and_then(believable) })
}

/// A sweep's results.
///
/// # Errors
/// [`LoadError`]: they cannot be read.
pub fn sweep(folder: &Path) -> Result<SweepRecord, LoadError> {
    json(&folder.join(SWEEP_FILE), SWEEP_SCHEMA)
}

/// The bill made of a sweep, if one was.
///
/// # Errors
/// [`LoadError`]: there is one, and it cannot be read.
pub fn bill(folder: &Path) -> Result<Option<Bill>, LoadError> {
    let path = folder.join(BILL_FILE);
    if path.exists() { json(&path, BILL_SCHEMA).map(Some) } else { Ok(None) }
}

/// A containment table.
///
/// # Errors
/// [`LoadError`]: it cannot be read.
pub fn contain(folder: &Path) -> Result<Containments, LoadError> {
    json(&folder.join(CONTAIN_FILE), CONTAIN_SCHEMA)
}

/// A file that somebody else wrote may hold lists that do not fit each other.
fn believable(timeline: Timeline) -> Result<Timeline, String> {
    let buckets = timeline.count.len();
    let fits = [timeline.p50_ns.len(), timeline.max_ns.len()] == [buckets; 2]
        && timeline.bucket_ns > 0
        && timeline.p99_every > 0
        && timeline.p99_ns.len() == buckets.div_ceil(timeline.p99_every)
        && buckets <= 10_000;
    if fits { Ok(timeline) } else { Err("its lists do not fit each other".into()) }
}

/// Reads a JSON file of that schema. The schema is looked at first: the rest of another version's file need not make
/// sense to this one.
fn json<T: DeserializeOwned>(path: &Path, expected: &'static str) -> Result<T, LoadError> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
    }
    let file = path.display().to_string();
    let text =
        std::fs::read_to_string(path).map_err(|source| LoadError::Io { file: file.clone(), source })?;
    let wrong = |source| LoadError::Json { file: file.clone(), source };
    let Schema { schema } = serde_json::from_str(&text).map_err(wrong)?;
    if schema != expected {
        return Err(LoadError::Schema { file, found: schema, expected });
    }
    serde_json::from_str(&text).map_err(wrong)
}
