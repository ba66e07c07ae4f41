//! Statistics of repeated runs: medians and spread, ratios with intervals, and verdicts.
//!
//! A run is one sample. However many orders it has, they share one start, one placement in memory
//! and one state of the machine; so all statistics here count runs, never orders.

mod evidence;
mod family;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod level_usage;
mod outline;
mod pairing;
pub mod placement;
mod verdict;

pub use evidence::{Evidence, MAX_HALF_WIDTH, Ranking, rank};
pub use family::{correct_family, correct_secondary, holm};
pub use level_usage::{LevelUsage, StrategyUsage};
pub use outline::{MachineKey, OpenOrdersCheck, Percentile, RunOutline, is_oversubscribed, values};
pub use pairing::{MIN_KEPT_SHARE, PlacementRuns, RunPairing, kept_pairs_decide, pair_runs};
pub use record::spread::{Spread, median};
pub use statistics::{
    Confidence, Difference, Equivalence, Estimate, HostDifference, MIN_PAIRS, MIN_PAIRS_FOR_FLIPS, Margin,
    Method, QueueModel, RESOLUTION, Sample, Verdict, difference, format_ratio, mean_difference,
    mean_interval, service_ns, slope,
};
pub use verdict::{ComparisonLine, compare_figure};
