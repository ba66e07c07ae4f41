//! A strategy that shifts its own stamps afterwards. If a stamp passes another one, its log is
//! untrusted from then on; otherwise the run states how much its pooled figures depend on that
//! strategy.

use super::distrust::assert_only_strategy_1_distrusted;
use crate::common::{run, summary};
use crate::fixture::{Fixture, RT_VENUE, Shape};
use protocol::plan::Isolation;
use protocol::stamps::{Point, Record};

const SHIFT: u64 = 900_000;

fn honest(isolation: Isolation, orders: u64) -> Fixture {
    let mut fixture = Fixture::new(Shape { orders, ..Shape::PLAIN });
    fixture.record.plan.isolation = isolation.into();
    fixture
}

/// Returns the stamps of strategy 1 at a point and, for t1, the due times: no order is sent before
/// it is due.
fn stamps(fixture: &mut Fixture, point: Point) -> impl Iterator<Item = &mut Record> {
    let is_due = move |record: &Record| point == Point::StrategySend && record.point == Point::Due;
    fixture.logs[1].iter_mut().filter(move |record| record.point == point || is_due(record))
}

#[test]
fn stamps_moved_past_others_make_log_untrusted() {
    type Spoil = fn(&mut Fixture);
    let defects: [(&str, Spoil); 5] = [
        ("all t1", |f| stamps(f, Point::StrategySend).for_each(|record| record.value -= SHIFT)),
        ("some t1", |f| {
            let some = stamps(f, Point::StrategySend).filter(|record| record.id.sequence() % 7 == 3);
            some.for_each(|record| record.value -= SHIFT);
        }),
        ("one t1", |f| {
            let one = stamps(f, Point::StrategySend).filter(|record| record.id.sequence() == 9);
            one.for_each(|record| record.value -= 25_000);
        }),
        ("t1 backwards", |f| {
            stamps(f, Point::StrategySend).for_each(|record| record.value -= 30_000 * record.id.sequence());
        }),
        ("all t8", |f| stamps(f, Point::StrategyRecv).for_each(|record| record.value += SHIFT)),
    ];
    for isolation in [Isolation::Process, Isolation::Sandbox] {
        for (expected, introduce) in defects {
            let mut fixture = honest(isolation, 20);
            introduce(&mut fixture);
            let merged = run(&fixture);
            assert_only_strategy_1_distrusted(
                &merged,
                "before the stamp in front of it in strategy-1.stamps",
            );
            let summary = summary(&fixture);
            assert!(summary.valid && !summary.fit_for_latency, "{expected}");
            let is_named = |reason: &String| reason.contains("prove nothing, first that of strategy-1");
            assert!(summary.reasons.iter().any(is_named), "{expected}: {:?}", summary.reasons);
            let pool = (summary.rt_venue.count, summary.rt_venue.max_ns);
            assert_eq!(pool, (20, Some(RT_VENUE / 2)), "{expected}: the other strategy's alone");
            assert_eq!(summary.leave_one_out, [], "one strategy is left");
        }
    }
}

#[test]
fn time_going_back_in_engine_log_makes_run_unfit() {
    for isolation in [Isolation::Process, Isolation::Sandbox] {
        let mut fixture = honest(isolation, 20);
        let engine = fixture.thread("orchestrator");
        // Of two orders, at two points: no hand-off is out of order.
        let are_apart = |pair: &[Record]| {
            pair[0].point == Point::OrchReturn
                && pair[1].point == Point::OrchRecvSubmit
                && pair[0].value < pair[1].value
        };
        let index = fixture.logs[engine].windows(2).position(are_apart).unwrap();
        fixture.logs[engine].swap(index, index + 1);
        let summary = summary(&fixture);
        assert!(summary.valid && !summary.fit_for_latency);
        let is_said = |lines: &[String], expected| lines.iter().any(|line| line.contains(expected));
        let reason = "the clock of orchestrator went back 1 time:";
        assert!(is_said(&summary.reasons, reason), "{:?}", summary.reasons);
        let note = "before the stamp in front of it in orchestrator.stamps";
        assert!(is_said(&summary.notes, note), "{:?}", summary.notes);
    }
}

/// The log is rewritten in the order of the shifted times: it contradicts nothing.
#[test]
fn consistent_shift_shows_in_leave_one_out() {
    let fixture = honest(Isolation::Sandbox, 1_200);
    let before = summary(&fixture);
    let percentiles = |summary: &verdict::summary::Summary| {
        let without = |one: &verdict::summary::LeaveOneOut| (one.strategy.0, one.orders, one.rt_venue.p50_ns);
        summary.leave_one_out.iter().map(without).collect::<Vec<_>>()
    };
    let honest_p50 = Some(RT_VENUE / 2);
    assert_eq!(percentiles(&before), [(0, 1_200, honest_p50), (1, 1_200, honest_p50)]);
    assert_eq!(before.notes, [""; 0]);

    type Move = fn(&mut Fixture);
    let moves: [(&str, Move); 2] = [
        ("submit", |f| stamps(f, Point::StrategySend).for_each(|record| record.value -= SHIFT)),
        ("return", |f| stamps(f, Point::StrategyRecv).for_each(|record| record.value += SHIFT)),
    ];
    for (stage, introduce) in moves {
        let mut shifted = honest(Isolation::Sandbox, 1_200);
        introduce(&mut shifted);
        // By time; a due record precedes its t1.
        shifted.logs[1].sort_by_key(|record| record.value);
        let after = summary(&shifted);
        assert!(after.valid, "{stage}: {:?}", after.violations);
        assert!(after.rt_venue.p99_ns > Some(SHIFT / 2), "{stage}: the pool moved");
        let without = &after.leave_one_out[1];
        assert_eq!((without.strategy.0, without.rt_venue.p50_ns), (1, honest_p50), "{stage}");
        assert_eq!(without.rt_venue.p99_ns, honest_p50, "{stage}");
        let is_named =
            |note: &String| note.contains(stage) && note.contains("depends on the stamps of one strategy");
        assert!(after.notes.iter().any(is_named), "{stage}: {:?}", after.notes);
        let text = verdict::report::terminal(&after, false);
        assert!(text.contains("less one") && text.contains("depends on the stamps"), "{text}");
        let json = serde_json::to_value(&after).unwrap();
        assert_eq!(json["leave_one_out"][1]["rt_venue"]["p50_ns"], RT_VENUE / 2, "{stage}");
    }
}
