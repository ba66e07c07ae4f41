//! Statistics of repeated runs as numbers: estimates with intervals, margins, slopes, and the
//! formulas of queues.
//!
//! A crate of its own since its tests draw thousands of experiments: it is optimised in tests,
//! which the rest of the analysis need not be.
#![forbid(unsafe_code)]

mod interval;
mod margin;
mod queueing;
pub mod seeded_rng;
mod shared_core;
mod shift;
mod slope;
mod student;
#[cfg(any(test, feature = "fixtures"))]
pub mod synthetic;
mod verdict;

pub use interval::{
    Difference, Equivalence, HostDifference, MIN_PAIRS, MIN_PAIRS_FOR_FLIPS, Method, RESOLUTION, difference,
    format_ratio,
};
pub use margin::Margin;
pub use queueing::{QueueModel, service_ns};
pub use shared_core::{CoreCell, CorePrediction, MAX_UTILIZATION, MIN_CELLS, SharedCoreModel};
pub use shift::{Estimate, Sample};
pub use slope::slope;
pub use student::{Confidence, mean_difference, mean_interval};
pub use verdict::Verdict;
