//! `bill.json`: the cost of each isolation level with each technique.

mod headline;
mod report;

pub(super) use headline::{answer, headline_technique};
pub use report::report;

use crate::document::Document;
use crate::stats::ComparisonLine;
use protocol::plan::{Isolation, Technique};
use serde::{Deserialize, Serialize};

/// The document of `launcher bill`: the cost of each isolation level with each technique.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// Rows by isolation level, then by technique.
    pub rows: Vec<BillRow>,
    /// The measuring conditions in one line; empty if they are not known.
    #[serde(default)]
    pub conditions: String,
    /// Remarks on the row. One line each.
    pub notes: Vec<String>,
}

impl Document for Bill {
    const FILE: &'static str = "bill.json";
    const NAME: &'static str = "bulkhead.bill";
    const VERSION: u32 = 2;
    const ABSENT: &'static str = "not the folder of a bill, or it is not complete";
    const REMEDY: &'static str = "launcher bill FOLDER makes it again";

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}

/// The cost of one isolation level with one technique: medians over repeated runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BillRow {
    /// The isolation level.
    pub isolation: Isolation,
    /// The technique.
    pub technique: Technique,
    /// Further settings that distinguish the row: `process gateways`, `stamps ends`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// Number of complete and valid runs.
    pub runs: usize,
    /// rt_venue, median.
    pub p50_ns: Option<f64>,
    /// rt_venue, p99.
    pub p99_ns: Option<f64>,
    /// rt_venue, p99.9.
    pub p999_ns: Option<f64>,
    /// p99 of rt_venue of the orders that no stall of the machine affected.
    #[serde(default)]
    pub stall_free_p99_ns: Option<f64>,
    /// p99.9 of rt_venue of the orders that no stall of the machine affected.
    #[serde(default)]
    pub stall_free_p999_ns: Option<f64>,
    /// The share of the orders that are not in the two stall-free latencies.
    #[serde(default)]
    pub taken_out: Option<f64>,
    /// The row with which this one is compared; null if this is a reference itself.
    pub reference: Option<Reference>,
    /// rt_venue against the reference at p50, p99 and p99.9, then the same without the machine's
    /// stalls; empty for a reference.
    pub differences: Vec<ComparisonLine>,
    /// The rt_venue p50 that the level adds to the technique in threads: over all runs, and by core
    /// placement if the machine moved its cores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub adds: Vec<LevelCost>,
    /// Reasons that weaken the comparison.
    pub caveats: Vec<String>,
    /// CPU seconds for a million orders, all threads together: spinning is not free.
    pub cpu_s_per_million: Option<f64>,
    /// Time from the first spawn of a process to the start of trading, in nanoseconds.
    pub startup_ns: Option<f64>,
    /// Proportional memory of all processes in the middle of the run, in bytes.
    pub pss_bytes: Option<f64>,
    /// Page faults of all threads.
    pub page_faults: Option<f64>,
    /// Context switches of all threads.
    pub context_switches: Option<f64>,
    /// What the level contains if a strategy fails; null until containment is measured.
    #[serde(default)]
    pub contains: Option<String>,
}

/// The cost that an isolation level adds to a technique in threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelCost {
    /// The core-to-core floor of the runs; null: of all runs.
    pub floor_ns: Option<f64>,
    /// Against the same technique under threads.
    pub line: ComparisonLine,
}

/// The isolation level and technique with which a row of a bill is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The isolation level of the reference.
    pub isolation: Isolation,
    /// The technique of the reference.
    pub technique: Technique,
}

impl BillRow {
    /// Returns the isolation level, with the other settings that distinguish the row.
    pub fn level(&self) -> String {
        match self.variant.as_str() {
            "" => self.isolation.to_string(),
            variant => format!("{} ({variant})", self.isolation),
        }
    }
}
