//! Converts ticks to times with the calibration in `run.json`, if it exists.

use crate::report::units::duration;
use crate::summary::ns_per_tick;
use record::document::Document;
use record::run::RunRecord;
use shm::memory::header::run_hash;
use std::path::Path;

/// A converter from the ticks of one run to times since its start.
#[derive(Clone, Debug)]
pub(super) struct LogTimebase {
    ns_per_tick: f64,
    start_ticks: u64,
    /// Hash of the run's id, as in the headers of its logs.
    pub run_hash: u64,
    pub threads: Vec<String>,
}

impl LogTimebase {
    /// Creates a converter from the ticks in a run's logs to seconds, with the clock's calibration
    /// in the run's saved `record`.
    pub fn new(record: &RunRecord) -> Self {
        Self {
            ns_per_tick: ns_per_tick(record),
            start_ticks: record.clock.start_ticks,
            run_hash: run_hash(&record.plan.run),
            threads: record.plan.threads.iter().map(|thread| thread.name.clone()).collect(),
        }
    }

    /// Creates a converter from ticks to seconds for the run whose folder contains `log`; `None`
    /// without a readable record.
    pub fn for_log(log: &Path) -> Option<Self> {
        let folder = log.parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        RunRecord::read(folder).ok().map(|record| Self::new(&record))
    }

    /// Converts a tick of the run's clock to seconds since the start of the schedule, negative
    /// before it.
    pub fn seconds(&self, ticks: u64) -> f64 {
        self.between_ns(self.start_ticks, ticks) / 1e9
    }

    /// Returns the nanoseconds between two ticks of the run's clock, negative if `to` is earlier.
    pub fn between_ns(&self, from: u64, to: u64) -> f64 {
        let size = from.abs_diff(to) as f64 * self.ns_per_tick;
        if to < from { -size } else { size }
    }
}

/// Formats a duration that may be negative: `-50 ns`.
pub(super) fn signed(ns: f64) -> String {
    let size = duration(ns.abs().round() as u64);
    if ns <= -0.5 { format!("-{size}") } else { size }
}
