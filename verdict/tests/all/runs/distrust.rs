//! A damaged or forged log of a strategy excludes only that strategy from the figures.

use crate::common::{Defect, all_accounted, kinds, run, scribbled, stamp};
use crate::fixture::{Fixture, START, Shape};
use merge::{MergedRun, ViolationKind};
use proptest::prelude::*;
use protocol::plan::Isolation;
use protocol::stamps::{Point, Record};
use protocol::status::{LOG_OFFSET, StatusField, ThreadState};
use protocol::wire::OrderId;
use shm::memory::header::HEADER_WORDS;

const ID: OrderId = OrderId::new(1, 0, 7);

fn honest(isolation: Isolation) -> Fixture {
    let mut fixture = Fixture::new(Shape::PLAIN);
    fixture.record.plan.isolation = isolation.into();
    fixture
}

/// Checks that strategy 1 is distrusted, and that the engine's stamps of its orders and all of
/// strategy 0's remain.
pub(super) fn assert_only_strategy_1_distrusted(merged: &MergedRun, expected: &str) {
    assert_eq!(merged.violations, [], "{expected}");
    assert!(
        merged.threads[1].is_untrusted && !merged.threads[0].is_untrusted,
        "{expected}: {:?}",
        merged.notes
    );
    assert_eq!(merged.threads[1].status.get(StatusField::Pid), 0);
    let [note] = merged.notes.as_slice() else { panic!("one note, got {:?}", merged.notes) };
    assert!(note.starts_with("the log and the counters of strategy-1 are damaged or forged ("), "{note}");
    assert!(note.contains(expected), "{note}");
    assert_eq!((merged.orders.sent, merged.orders.returned), (40, 40), "{expected}");
    all_accounted(&merged.orders);
    assert!(merged.measured().all(|(id, _)| id.strategy().0 == 0) && merged.measured().count() == 20);
}

/// Damage that a single stray store can cause.
#[test]
fn corrupt_strategy_log_does_not_affect_others() {
    let defects: [(&str, Defect); 7] = [
        ("7 records did not fit its log", |f| f.status("strategy-1", StatusField::RecordsDropped, 7)),
        ("strategy 0 order 3: t8 stands in strategy-1.stamps", |f| {
            f.push("strategy-1", stamp(Point::StrategyRecv, OrderId::new(0, 0, 3), 1))
        }),
        ("strategy 1 order 3: t4 stands in strategy-1.stamps", |f| {
            f.push("strategy-1", stamp(Point::GatewayRecv, OrderId::new(1, 0, 3), 1))
        }),
        ("strategy 1 epoch 9 order 3: t1, but by the record its last epoch was 0", |f| {
            f.push("strategy-1", stamp(Point::StrategySend, OrderId::new(1, 9, 3), 1))
        }),
        ("strategy 1 order 20: t1, but the plan has 20 orders", |f| {
            f.push("strategy-1", stamp(Point::StrategySend, OrderId::new(1, 0, 20), 1))
        }),
        ("strategy 1 order 7: t1 twice", |f| f.push("strategy-1", stamp(Point::StrategySend, ID, 1))),
        ("strategy 1 order 7: sent after a later one of its strategy", |f| {
            f.swap(Point::StrategySend, ID, OrderId::new(1, 0, 8))
        }),
    ];
    for isolation in [Isolation::Process, Isolation::Sandbox] {
        for (expected, introduce) in defects {
            let mut fixture = honest(isolation);
            introduce(&mut fixture);
            assert_only_strategy_1_distrusted(&run(&fixture), expected);
        }
        type Scribble = fn(&mut Vec<u8>);
        let scribbles: [(&str, Scribble); 5] = [
            ("strategy-1.stamps", |bytes| bytes[..HEADER_WORDS * 8].fill(0xA5)),
            ("record 9 (at byte", |bytes| bytes[LOG_OFFSET * 8 + 16 * 9 + 7] = 0xF0),
            ("the log ends at record 9, yet", |bytes| bytes[LOG_OFFSET * 8 + 16 * 9..][..16].fill(0)),
            ("ends inside record 5", |bytes| bytes.truncate(LOG_OFFSET * 8 + 16 * 5 + 3)),
            ("ends inside the status block", |bytes| bytes.truncate(HEADER_WORDS * 8 + 5)),
        ];
        for (expected, scribble) in scribbles {
            assert_only_strategy_1_distrusted(
                &scribbled(&honest(isolation), "strategy-1", scribble).unwrap(),
                expected,
            );
        }
    }
}

/// Contradictions with the engine. In a separate process a faulty strategy is as likely as a faulty
/// engine, so the run is invalid. In the sandbox, where strategies may be hostile, a contradiction
/// invalidates nothing.
#[test]
fn contradiction_is_a_violation_outside_the_sandbox() {
    let defects: [(ViolationKind, &str, Defect); 9] = [
        (ViolationKind::TimeOrder, "strategy 1 order 7: t2 before t1", |f| {
            f.set(Point::StrategySend, ID, |t1| t1 + 401)
        }),
        (ViolationKind::ReturnOrder, "reached its strategy in another order", |f| {
            // Two consecutive reports are swapped, with their times.
            let reports = (0..f.logs[1].len()).filter(|at| f.logs[1][*at].point == Point::StrategyRecv);
            let [first, second] = reports.take(2).collect::<Vec<_>>()[..] else { panic!("two reports") };
            let earlier = f.logs[1].remove(first);
            let value = f.logs[1][second - 1].value + 1;
            f.logs[1].insert(second, Record { value, ..earlier });
        }),
        (ViolationKind::Lost, "strategy 1 order 7: sent and never returned", |f| {
            f.remove(Point::StrategyRecv, ID)
        }),
        (ViolationKind::NeverSent, "but its strategy never sent it", |f| {
            f.remove(Point::StrategySend, ID);
            f.counter("strategy-1", "sent", 19);
        }),
        (ViolationKind::MissingPoint, "strategy 1 order 7: has no due", |f| f.remove(Point::Due, ID)),
        (ViolationKind::Counters, "strategy-1: counted 21 orders sent, its log has 20", |f| {
            f.counter("strategy-1", "sent", 21)
        }),
        (ViolationKind::PeerFaults, "strategy-1: was handed 3 messages", |f| {
            f.counter("strategy-1", "protocol-errors", 3)
        }),
        (ViolationKind::Checksum, "submit of strategy-1: what was taken is not what was pushed", |f| {
            f.sums[1][0].1 = 1
        }),
        (ViolationKind::Checksum, "return of strategy-1: a log ends without its checksum", |f| {
            f.sums[1].pop();
        }),
    ];
    for (kind, expected, introduce) in defects {
        let mut fixture = honest(Isolation::Process);
        introduce(&mut fixture);
        let merged = run(&fixture);
        let found = merged.violations.iter().find(|violation| violation.kind == kind);
        assert!(
            found.is_some_and(|found| found.first.contains(expected)),
            "{expected}: {:?}",
            merged.violations
        );
        fixture.record.plan.isolation = Isolation::Sandbox.into();
        assert_only_strategy_1_distrusted(&run(&fixture), expected);
    }
}

#[test]
fn engine_stamps_alone_prove_violations_everywhere() {
    let defects: [(ViolationKind, Defect); 6] = [
        (ViolationKind::TimeOrder, |f| f.set(Point::GatewayDone, ID, |_| 1)),
        (ViolationKind::Lost, |f| f.lose(ID)),
        (ViolationKind::MissingPoint, |f| f.remove(Point::GatewayRecv, ID)),
        (ViolationKind::SubmitOrder, |f| f.swap(Point::OrchRecvSubmit, ID, OrderId::new(1, 0, 8))),
        (ViolationKind::PeerFaults, |f| f.counter("orchestrator", "protocol-errors", 1)),
        (ViolationKind::Checksum, |f| f.sums[3][0].1 = 1),
    ];
    for (kind, introduce) in defects {
        let mut fixture = honest(Isolation::Sandbox);
        introduce(&mut fixture);
        let merged = run(&fixture);
        assert!(kinds(&merged).contains(&kind), "{kind:?}: {:?}", merged.violations);
    }
}

#[test]
fn hidden_strategy_log_hides_no_orders() {
    let mut fixture = Fixture::new(Shape { orders: 6_000, ..Shape::PLAIN });
    fixture.record.plan.isolation = Isolation::Sandbox.into();
    fixture.logs[1].truncate(3);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert_eq!((merged.orders.sent, merged.orders.returned), (12_000, 12_000));
}

/// Reports after the last one that only the strategy logged.
#[test]
fn forged_report_distrusts_its_strategy() {
    for number in [1, 2, 127, 201, 255] {
        let mut fixture = honest(Isolation::Sandbox);
        let value = fixture.logs[1].last().map_or(START, |last| last.value + 1);
        fixture.logs[1].push(Record { point: Point::StrategyRecv, id: ID, detail: number, value });
        let merged = run(&fixture);
        assert_eq!(merged.violations, [], "{number}");
        assert_eq!(merged.orders.further_reports, 0, "{number}");
        // Outside the sandbox the culprit is unknown.
        fixture.record.plan.isolation = Isolation::Process.into();
        assert_ne!(run(&fixture).violations, [], "{number}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Arbitrary writes of a sandboxed strategy into its writable memory.
    #[test]
    fn sandboxed_strategy_cannot_invalidate_a_run(
        bytes in prop::collection::vec((0usize..3_000, any::<u8>()), 0..40),
        records in prop::collection::vec((0usize..60, 1u8..15, 0u16..3, 0u16..2, 0u64..22, any::<(u8, u32)>()), 0..12),
        words in prop::collection::vec((1usize..64, any::<u64>()), 0..6), done: bool,
    ) {
        let mut fixture = honest(Isolation::Sandbox);
        for (index, point, strategy, epoch, sequence, (detail, value)) in records {
            let forged = Record {
                point: Point::from_code(point).unwrap(), id: OrderId::new(strategy, epoch, sequence),
                detail: detail * u8::from(detail > 200), value: START + u64::from(value) % 600_000,
            };
            let index = index.min(fixture.logs[1].len());
            fixture.logs[1].insert(index, forged);
        }
        for (word, value) in words {
            fixture.statuses[1][word] = value;
        }
        if !done {
            fixture.statuses[1][StatusField::State as usize] = ThreadState::Running as u64;
        }
        let merged = scribbled(&fixture, "strategy-1", |log| {
            for (index, byte) in bytes {
                let len = log.len();
                log[index % len] = byte;
            }
        });
        let merged = merged.unwrap();
        prop_assert_eq!(&merged.violations, &[]);
        all_accounted(&merged.orders);
        prop_assert_eq!((merged.orders.sent, merged.orders.duplicated), (40, 0));
        prop_assert_eq!(merged.measured().filter(|(id, _)| id.strategy().0 == 0).count(), 20);
    }
}
