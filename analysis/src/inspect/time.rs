//! Converts ticks to time by the calibration in `run.json`, if there is one.

use crate::document::Document;
use crate::record::RunRecord;
use crate::report::units::duration;
use crate::summary::ns_per_tick;
use shm::memory::header::run_hash;
use std::path::Path;

/// Turns ticks of one run into times since its start.
#[derive(Clone, Debug)]
pub(super) struct LogTimebase {
    ns_per_tick: f64,
    start_ticks: u64,
    /// What the run's logs carry in their headers.
    pub run_hash: u64,
    /// The names of the plan's threads.
    pub threads: Vec<String>,
}

impl LogTimebase {
    /// Of a run.
    pub fn of(record: &RunRecord) -> Self {
        Self {
            ns_per_tick: ns_per_tick(record),
            start_ticks: record.clock.start_ticks,
            run_hash: run_hash(&record.plan.run),
            threads: record.plan.threads.iter().map(|thread| thread.name.clone()).collect(),
        }
    }

    /// Of the run in whose folder a log lies; `None` without a record that can be read.
    pub fn beside(log: &Path) -> Option<Self> {
        let folder = log.parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        RunRecord::read(folder).ok().map(|record| Self::of(&record))
    }

    /// Seconds since the start of the schedule, negative before it.
    pub fn seconds(&self, ticks: u64) -> f64 {
        self.between_ns(self.start_ticks, ticks) / 1e9
    }

    /// Nanoseconds from one tick to another, negative if they go back.
    pub fn between_ns(&self, from: u64, to: u64) -> f64 {
        let size = from.abs_diff(to) as f64 * self.ns_per_tick;
        if to < from { -size } else { size }
    }
}

/// A duration that may be negative: `-50 ns`.
pub(super) fn signed(ns: f64) -> String {
    let size = duration(ns.abs().round() as u64);
    if ns <= -0.5 { format!("-{size}") } else { size }
}
