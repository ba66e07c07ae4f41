//! Quarantined strategies: whatever they wrote, the run is merged, and they are in no figure.

use super::deaths::{T1_OF_20, run_with_killed};
use crate::common::{all_accounted, fault, run, scribbled, stamp};
use crate::fixture::Fixture;
use crate::fixture::killing::StrategyDeath;
use merge::ViolationKind;
use proptest::prelude::*;
use protocol::index::StrategyIndex;
use protocol::isolation::IsolationLevel;
use protocol::plan::{Fault, FaultKind, FaultTarget, Isolation};
use protocol::stamps::{Point, Record};
use protocol::status::{LOG_OFFSET, StatusField};
use protocol::supervision::ProtocolViolation;
use protocol::wire::OrderId;
use shm::memory::header::HEADER_WORDS;

fn quarantined() -> Fixture {
    run_with_killed(&[StrategyDeath {
        quarantined: Some(ProtocolViolation::BadCursor),
        ..StrategyDeath::new(1, T1_OF_20)
    }])
}

/// Returns the number of orders of strategy 1 that the engine stamped.
fn count_stamped_by_engine(fixture: &Fixture) -> u64 {
    let log = &fixture.logs[fixture.thread("orchestrator")];
    let of_strategy = |record: &&Record| record.id.strategy().0 == 1 && record.point == Point::OrchRecvSubmit;
    log.iter().filter(of_strategy).count() as u64
}

#[test]
fn quarantined_strategy_log_is_ignored() {
    let fixture = quarantined();
    let undamaged = run(&fixture);
    assert_eq!(undamaged.violations, []);
    assert_eq!(undamaged.orders.sent, 80 + count_stamped_by_engine(&fixture));
    all_accounted(&undamaged.orders);
    assert!(undamaged.measured().all(|(id, _)| id.strategy().0 != 1));
    assert!(undamaged.threads[1].is_untrusted && !undamaged.threads[0].is_untrusted);
    assert_eq!(undamaged.threads[1].status.get(StatusField::Pid), 0);
    assert!(undamaged.notes[0].contains("the log and the counters of strategy-1"), "{:?}", undamaged.notes);

    // Damage in its header, status, record keys, everything, and its end.
    let scribbles: [fn(&mut Vec<u8>); 7] = [
        |bytes| bytes[..HEADER_WORDS * 8].fill(0xA5),
        |bytes| bytes[HEADER_WORDS * 8..LOG_OFFSET * 8].fill(0xFF),
        |bytes| bytes[LOG_OFFSET * 8 + 16 * 9 + 7] = 0xF0,
        |bytes| bytes[LOG_OFFSET * 8 + 16 * 9..][..16].fill(0),
        |bytes| bytes.fill(0x11),
        |bytes| bytes.truncate(LOG_OFFSET * 8 + 5),
        |bytes| bytes.truncate(20),
    ];
    for scribble in scribbles {
        let merged = scribbled(&fixture, "strategy-1", scribble).unwrap();
        assert_eq!(merged.violations, []);
        assert_eq!((merged.orders.sent, merged.orders.full), (80 + count_stamped_by_engine(&fixture), 0));
        all_accounted(&merged.orders);
        assert_eq!(merged.span, undamaged.span);
    }
    let merged = scribbled(&fixture, "strategy-1", scribbles[2]).unwrap();
    assert!(merged.notes[0].contains("strategy-1.stamps: record 9"), "{:?}", merged.notes);
}

#[test]
fn unexplained_quarantine_is_a_violation_outside_sandbox() {
    let at = |why, isolation: IsolationLevel, faults: &[Fault]| {
        let mut fixture =
            run_with_killed(&[StrategyDeath { quarantined: Some(why), ..StrategyDeath::new(1, T1_OF_20) }]);
        (fixture.record.plan.isolation, fixture.record.plan.faults) = (isolation.into(), faults.to_vec());
        run(&fixture).violations
    };
    let with = |why, isolation: Isolation, faults: &[Fault]| at(why, isolation.into(), faults);
    let [other, scribble] =
        [0, 1].map(|index| fault(FaultKind::Scribble, FaultTarget::Strategy(StrategyIndex(index)), 0));
    for faults in [&[][..], &[other]] {
        let found = with(ProtocolViolation::OutOfSequence, Isolation::Process, faults);
        assert_eq!((found.len(), found[0].kind), (1, ViolationKind::PeerFaults), "{found:?}");
        let message = "strategy-1 was quarantined (out-of-sequence), and no fault of the plan explains it";
        assert!(found[0].first.starts_with(message), "{found:?}");
    }
    assert_eq!(with(ProtocolViolation::OutOfSequence, Isolation::Process, &[scribble]), []);
    let group = IsolationLevel::grouped(Isolation::Process, 2);
    assert_eq!(at(ProtocolViolation::OutOfSequence, group, &[other]), [], "it writes all of its group");
    assert_eq!(
        with(ProtocolViolation::OutOfSequence, Isolation::Sandbox, &[]),
        [],
        "there strategies may be hostile"
    );
    assert_eq!(with(ProtocolViolation::Flood, Isolation::Process, &[]), [], "no ring makes a flood");
}

#[test]
fn overwritten_engine_log_is_an_error() {
    let mut fixture = run_with_killed(&[StrategyDeath::new(1, T1_OF_20)]);
    fixture.record.plan.isolation = Isolation::Thread.into();
    let try_merge = |fixture: &Fixture| {
        scribbled(fixture, "strategy-1", |bytes| bytes[LOG_OFFSET * 8 + 16 * 9 + 7] = 0xF0)
    };
    assert!(try_merge(&fixture).unwrap_err().to_string().contains("record 9"));
    // Unless a strategy in that process had a `scribble` fault, detected or not.
    fixture.record.plan.faults = vec![fault(FaultKind::Scribble, FaultTarget::Strategy(StrategyIndex(0)), 0)];
    assert_eq!(try_merge(&fixture).unwrap().violations, []);
    fixture.record.plan.faults.clear();
    fixture.record.plan.isolation = Isolation::Process.into();
    assert_eq!(try_merge(&fixture).unwrap().violations, [], "in a process of its own it was the strategy");
}

#[test]
fn invalid_records_in_untrusted_log_are_skipped_with_note() {
    let mut fixture = quarantined();
    for (point, id) in [
        (Point::OrchReturn, OrderId::new(1, 0, 3)),
        (Point::StrategyRecv, OrderId::new(0, 0, 3)),
        (Point::StrategySend, OrderId::new(1, 4_000, 3)),
        (Point::StrategySend, OrderId::new(1, 0, 1 << 31)),
        (Point::StrategySend, OrderId::new(200, 0, 3)),
    ] {
        fixture.push("strategy-1", stamp(point, id, 1));
    }
    // Claims of additional orders do not count.
    fixture.push("strategy-1", stamp(Point::StrategySend, OrderId::new(1, 0, 39), 1));
    fixture.status("strategy-1", StatusField::RecordsDropped, 7);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert_eq!(merged.orders.sent, 80 + count_stamped_by_engine(&fixture));
    assert!(merged.notes[0].contains("; 5 records in it that make no sense"), "{:?}", merged.notes);
    // Stamps of other threads are not exempt.
    fixture.push("gateway-0", stamp(Point::StrategySend, OrderId::new(1, 0, 3), 1));
    assert_eq!(run(&fixture).violations[0].kind, ViolationKind::Misplaced);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_overwrites_are_contained(scribbles in prop::collection::vec((0usize..3_000, any::<u8>()), 0..400)) {
        let fixture = quarantined();
        let merged = scribbled(&fixture, "strategy-1", |bytes| {
            for (index, byte) in scribbles {
                let len = bytes.len();
                bytes[index % len] = byte;
            }
        });
        let merged = merged.unwrap();
        prop_assert_eq!(&merged.violations, &[]);
        all_accounted(&merged.orders);
        prop_assert_eq!(merged.orders.sent, 80 + count_stamped_by_engine(&fixture));
        prop_assert!(merged.measured().all(|(id, _)| id.strategy().0 != 1));
    }
}
