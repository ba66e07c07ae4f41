//! The gaps and sleeps of each thread, as logged.

use protocol::gaps::{MAX_GAPS, MAX_SLEEPS};
use protocol::plan::{Plan, ThreadPlan};
use protocol::stamps::{Gap, Point, Record};

/// The gaps and sleeps that one thread logged, in log order.
#[derive(Debug)]
pub(super) struct ThreadGaps {
    pub gaps: Vec<Gap>,
    pub sleeps: Vec<Gap>,
    max_sleeps: u64,
}

impl ThreadGaps {
    /// Creates empty lists of gaps and sleeps for each thread of a plan.
    pub fn for_plan(plan: &Plan) -> Vec<Self> {
        let of = |thread: &ThreadPlan| Self {
            gaps: Vec::new(),
            sleeps: Vec::new(),
            max_sleeps: thread.sleep_records.min(MAX_SLEEPS),
        };
        plan.threads.iter().map(of).collect()
    }

    /// Adds a logged gap or sleep, up to the capacity of the plan.
    pub fn record(&mut self, record: &Record) {
        let (all, max) = match record.point {
            Point::Gap => (&mut self.gaps, MAX_GAPS),
            _ => (&mut self.sleeps, self.max_sleeps),
        };
        if (all.len() as u64) < max {
            all.extend(Gap::from_record(record));
        }
    }
}
