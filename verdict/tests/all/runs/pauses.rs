//! Gaps and sleeps of threads, read from their logs.

use crate::common::{run, summary};
use crate::fixture::{Fixture, START, Shape};
use protocol::gaps::LEVELS;
use protocol::stamps::{Gap, KernelEvents, Record, StampLog};
use protocol::status::LOG_OFFSET;
use shm::memory::Region;
use shm::sync::Ordering;

pub(super) fn written<const N: usize>(write: impl FnOnce(&mut StampLog)) -> [Record; N] {
    let segment = Region::heap(LOG_OFFSET + 2 * N + 2).words();
    write(&mut StampLog::new(&segment).with_sleep_records(9));
    std::array::from_fn(|record| {
        let [key, value] = [0, 1].map(|word| segment[LOG_OFFSET + 2 * record + word].load(Ordering::Relaxed));
        Record::from_words(key, value).unwrap()
    })
}

#[test]
fn thread_gaps_and_sleeps_are_read() {
    let mut fixture = Fixture::new(Shape::PLAIN);
    let gap = Gap { ended: START + 9_000, ticks: 7_000, events: KernelEvents(KernelEvents::INVOLUNTARY) };
    let records: [Record; 3] = written(|log| {
        log.append_gap(gap);
        for ended in [START + 9_500, START + 9_900] {
            log.offer_sleep(ended, 400, &[3; LEVELS]);
        }
    });
    let orchestrator = fixture.thread("orchestrator");
    // At most the capacity of the plan.
    fixture.record.plan.threads[orchestrator].sleep_records = 1;
    fixture.logs[orchestrator].splice(9..9, records);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert_eq!(merged.threads[orchestrator].gaps, [gap]);
    let slept = Gap { ended: START + 9_500, ticks: 400, events: KernelEvents(0) };
    assert_eq!(merged.threads[orchestrator].sleeps, [slept]);
    assert_eq!(merged.measured().count(), 40);
    let thread = &summary(&fixture).processes[orchestrator];
    assert_eq!((thread.gaps, thread.gaps_preempted, thread.sleeps), (1, 1, 1));
}
