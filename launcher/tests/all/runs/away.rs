//! When threads were away, from their logs: gaps, and sleeps beside them.

use super::figures;
use super::fixture::{Fixture, START, Shape};
use super::merging::run;
use protocol::gaps::PARTS;
use protocol::stamps::{Gap, Record, StampLog, Switches};
use protocol::status::LOG_OFFSET;
use shm::memory::Region;
use shm::sync::Ordering;

#[test]
fn gaps_and_sleeps_of_a_thread_are_read() {
    let mut fixture = Fixture::new(Shape::default());
    let gap = Gap { ended: START + 9_000, ticks: 7_000, switches: Switches(Switches::INVOLUNTARY) };
    let segment = Region::heap(LOG_OFFSET + 8).words();
    let mut log = StampLog::new(&segment).keeping(9);
    log.append_gap(gap);
    for ended in [START + 9_500, START + 9_900] {
        log.offer_sleep(ended, 400, &[3; PARTS]);
    }
    let orchestrator = fixture.thread("orchestrator");
    // No more than the plan has room for.
    fixture.record.plan.threads[orchestrator].sleep_records = 1;
    for record in (0..3).rev() {
        let [key, value] = [0, 1].map(|word| segment[LOG_OFFSET + 2 * record + word].load(Ordering::Relaxed));
        fixture.logs[orchestrator].insert(9, Record::from_words(key, value).unwrap());
    }
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert_eq!(merged.threads[orchestrator].gaps, [gap]);
    let slept = Gap { ended: START + 9_500, ticks: 400, switches: Switches(0) };
    assert_eq!(merged.threads[orchestrator].sleeps, [slept]);
    assert_eq!(merged.measured().count(), 40);
    let summary = figures::summary(&fixture);
    assert_eq!(
        (summary.processes[orchestrator].gaps, summary.processes[orchestrator].gaps_preempted),
        (1, 1)
    );
    assert_eq!(summary.processes[orchestrator].sleeps, 1);
}
