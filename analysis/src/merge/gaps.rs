//! When each thread was away, as its log says.

use protocol::gaps::{MAX_GAPS, MAX_SLEEPS};
use protocol::plan::{Plan, ThreadPlan};
use protocol::stamps::{Gap, Point, Record};

/// The gaps and the sleeps of a thread, in the order of its log.
#[derive(Debug)]
pub(super) struct ThreadGaps {
    pub gaps: Vec<Gap>,
    pub sleeps: Vec<Gap>,
    most_sleeps: u64,
}

impl ThreadGaps {
    /// Nothing yet of each thread of a plan.
    pub fn of(plan: &Plan) -> Vec<Self> {
        let of = |thread: &ThreadPlan| Self {
            gaps: Vec::new(),
            sleeps: Vec::new(),
            most_sleeps: thread.sleep_records.min(MAX_SLEEPS),
        };
        plan.threads.iter().map(of).collect()
    }

    /// Takes a record of [`Point::Gap`] or [`Point::Slept`]; none more than there is room for.
    pub fn take(&mut self, record: &Record) {
        let (all, most) = match record.point {
            Point::Gap => (&mut self.gaps, MAX_GAPS),
            _ => (&mut self.sleeps, self.most_sleeps),
        };
        if (all.len() as u64) < most {
            all.extend(Gap::from_record(record));
        }
    }
}
