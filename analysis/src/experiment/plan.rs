//! `plan.json`: a sweep that is planned on one host and executed on several.

use super::sweep::SweepRecord;
use crate::document::Document;
use serde::{Deserialize, Serialize};

/// A planned sweep: the list of runs that several hosts share. Its runs follow from it: each point
/// and repeat, in the order in which one host would make them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The sweep to measure, without any measurement.
    pub sweep: SweepRecord,
}

impl Document for SweepPlan {
    const FILE: &'static str = "plan.json";
    const NAME: &'static str = "bulkhead.sweep-plan";
    const VERSION: u32 = 2;
    const ABSENT: &'static str = "not the folder of a planned sweep (launcher sweep --plan FOLDER makes one)";
    const REMEDY: &'static str = "fetch it from a copy, or plan again in a new folder";
    const SYNCED: bool = true;

    fn from_json(value: serde_json::Value) -> serde_json::Result<Self> {
        serde_json::from_value(value)
    }
}
