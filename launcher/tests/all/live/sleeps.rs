//! Threads that sleep by their own idle strategy in real runs: the time that orders wait for them
//! has its own cause.

use super::programs::{BOOK, Program};
use crate::common::{Launcher, number};
use merge::tail::{Cause, Tail};
use merge::{self, MergedRun};
use protocol::index::StrategyIndex;
use protocol::plan::{Idle, Role};
use protocol::stamps::{Gap, Point};
use protocol::wire::OrderId;
use record::document::Document;
use record::run::RunRecord;

/// The stamps that delimit rt_venue.
const ENDS: [Point; 4] = [Point::StrategySend, Point::GatewayRecv, Point::GatewayDone, Point::StrategyRecv];

fn merged(launcher: &Launcher) -> (RunRecord, MergedRun) {
    let folder = launcher.folder();
    let record = RunRecord::read(&folder).unwrap();
    let merged = merge::merge(folder.as_path(), &record, |_, _| ()).unwrap();
    assert_eq!(merged.violations, []);
    (record, merged)
}

/// Checks that the causes of each of the worst orders sum to its time in the engine.
fn assert_causes_add_up(record: &RunRecord, merged: &MergedRun, tail: &Tail) {
    for order in &tail.worst {
        let id: OrderId = order.order.parse().unwrap();
        let row = merged.measured().find(|(other, _)| *other == id).map(|(_, row)| *row).unwrap();
        let [t1, t4, t5, t8] = ENDS.map(|point| row.at(point).unwrap());
        let expected = ((t8 - t1 - (t5 - t4)) as f64 * record.clock.ns_per_tick) as u64;
        let causes: u64 = order.stages.iter().map(|(.., causes)| causes.total()).sum();
        // Each part is rounded to a nanosecond.
        let parts = order.stages.iter().flat_map(|(.., causes)| causes.nonzero()).count() as u64 + 2;
        assert!(causes.abs_diff(expected) <= parts, "{}: {causes} of {expected} ns", order.order);
    }
}

#[test]
fn wait_for_descheduled_thread_is_attributed() {
    // One core for all threads: each runs only after another one gave it up.
    let core = *system::pin::allowed_cores().last().unwrap();
    for idle in ["park", "yield", "backoff"] {
        let launcher = Launcher::new();
        let summary = launcher.summary(&format!(
            "--strategies 2 --venues 1 --threading shared --cores {core} --orders 3000 --window 500ms --idle {idle}"
        ));
        let (record, merged) = merged(&launcher);
        for (thread, log) in record.plan.threads.iter().zip(&merged.threads) {
            assert!(log.sleeps.len() as u64 <= thread.sleep_records, "{idle}: {}", log.name);
            assert!(!log.sleeps.is_empty(), "{idle}: {} never slept", log.name);
            // Sleeps and gaps of a thread do not overlap.
            let mut times: Vec<_> = log.sleeps.iter().chain(&log.gaps).collect();
            times.sort_by_key(|gap| gap.ended);
            let is_disjoint = |pair: &[&Gap]| pair[0].ended <= pair[1].ended - pair[1].ticks;
            assert!(times.windows(2).all(is_disjoint), "{idle}: {}", log.name);
        }
        let tail = Tail::read(&launcher.folder()).unwrap();
        assert_causes_add_up(&record, &merged, &tail);
        let slowest = &tail.slowest[0];
        assert!(slowest.causes_ns.get(Cause::WakeUp) > 0, "{idle}: {slowest:?}");
        assert!(tail.noise.threads.iter().all(|thread| thread.sleeps > 0 && thread.sleeps_ns > 0));
        assert!(number(&summary["processes"][0]["sleeps"]) > 0, "{idle}");
    }
}

#[test]
fn spinning_threads_record_no_sleeps() {
    let launcher = Launcher::new();
    launcher.summary("--strategies 1 --venues 1 --threading shared --idle spin --orders 5000 --window 500ms");
    let (record, merged) = merged(&launcher);
    assert!(record.plan.threads.iter().all(|thread| (thread.idle, thread.sleep_records) == (Idle::Spin, 0)));
    assert!(merged.threads.iter().all(|log| log.sleeps.is_empty()));
    let tail = Tail::read(&launcher.folder()).unwrap();
    assert_causes_add_up(&record, &merged, &tail);
    assert!(tail.slowest.iter().all(|share| share.causes_ns.get(Cause::WakeUp) == 0));
    assert!(tail.noise.threads.iter().all(|thread| thread.sleeps == 0));
}

/// The C library runs the same loop, one poll at a time.
#[test]
fn c_program_records_its_sleeps() {
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let launcher = Launcher::new();
    launcher.summary(&format!("{BOOK} {} --orders 2000 --idle park", program.with_player("")));
    let (record, merged) = merged(&launcher);
    let thread = record.plan.thread_of(Role::Strategy(StrategyIndex(1))).unwrap();
    assert!(!merged.threads[thread].sleeps.is_empty(), "it parks until each report");
}
