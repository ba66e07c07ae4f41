//! Histories of threads of this process; none of them is killed.

use crate::history::Call;
use crate::plan::Plan;
use crate::record::{FINISHED, REFUSED, Record};
use crate::worker::{DRAIN, wait_until, work};

/// Makes the history of a plan.
///
/// # Panics
/// If a worker cannot attach its end, or does not finish.
pub fn run(record: &Record, plan: &Plan) -> Vec<Call> {
    record.clear();
    std::thread::scope(|scope| {
        for job in &plan.jobs {
            scope.spawn(move || work(record, job));
            // One after the other: a sender's producer is the first free one.
            assert!(wait_until(|| record.state(job.worker) != 0), "{job:?} does not attach");
            assert_ne!(record.state(job.worker), REFUSED, "{job:?}");
        }
        record.set_phase(1);
        for job in plan.finishing() {
            assert!(wait_until(|| record.state(job.worker) == FINISHED), "{job:?} hangs");
        }
        record.set_phase(DRAIN);
    });
    plan.jobs.iter().flat_map(|job| record.calls(job.worker, None)).collect()
}
