//! Statistics of repeated runs: medians and spread, ratios with intervals, and verdicts.
//!
//! A run is one sample. However many orders it has, they share one start, one placement in memory
//! and one state of the machine; so all statistics here count runs, never orders.

mod evidence;
mod family;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod interval;
mod margin;
mod outline;
mod pairing;
pub mod placement;
mod queueing;
pub(crate) mod seeded_rng;
mod shift;
mod slope;
#[cfg(test)]
pub(crate) mod synthetic;
mod verdict;

pub use ::verdict::chart::{Spread, median};
pub use evidence::{Evidence, MAX_HALF_WIDTH, Ranking, rank};
pub use family::{correct_family, correct_secondary, holm};
pub use interval::{
    Difference, Equivalence, HostDifference, MIN_PAIRS, MIN_PAIRS_FOR_FLIPS, Method, RESOLUTION, difference,
    format_ratio,
};
pub use margin::Margin;
pub use outline::{MachineKey, OpenOrdersCheck, Percentile, RunOutline, is_oversubscribed, values};
pub use pairing::{MIN_KEPT_SHARE, PlacementRuns, RunPairing, kept_pairs_decide, pair_runs};
pub use queueing::{QueueModel, service_ns};
pub use shift::{Estimate, Sample};
pub use slope::slope;
pub use verdict::{ComparisonLine, Verdict, compare_figure};
