//! Verdicts: each condition that makes a latency figure worthless is a reason that names the
//! remedy.

use crate::common::{Defect, summary};
use crate::fixture::{Fixture, START, Shape};
use protocol::stamps::Point;
use protocol::status::StatusField;
use record::kernel::{KernelAccount, LauncherLoad};
use record::run::RunOutcome;
use std::sync::LazyLock;

/// Enough orders for a p99.9.
const SHAPE: Shape = Shape { orders: 5_000, ..Shape::PLAIN };

fn reasons(introduce: impl FnOnce(&mut Fixture)) -> Vec<String> {
    static GOOD: LazyLock<Fixture> = LazyLock::new(|| Fixture::new(SHAPE));
    let mut fixture = GOOD.clone();
    introduce(&mut fixture);
    let summary = summary(&fixture);
    assert_eq!(summary.fit_for_latency, summary.reasons.is_empty());
    assert!(summary.reasons.iter().all(|reason| !reason.contains('\n')));
    summary.reasons
}

fn assert_only_reason(expected: &str, introduce: impl FnOnce(&mut Fixture)) {
    let reasons = reasons(introduce);
    let [reason] = reasons.as_slice() else { panic!("one reason expected, got {reasons:?}") };
    assert!(reason.contains(expected), "{reason}");
}

#[test]
fn good_run_is_fit_for_latency() {
    assert_eq!(reasons(|_| {}), [""; 0]);
}

#[test]
fn each_disturbance_is_a_reason() {
    assert_only_reason("two roles on one core", |f| f.record.warnings.push("two roles\non one core".into()));
    assert_only_reason("interrupted", |f| f.record.outcome = RunOutcome::Interrupted);
    assert_only_reason("failed: engine (pid 77): signal 9", |f| f.fail("engine"));
    assert_only_reason("offered 220,000/s but sent 200,", |f| f.record.input.offered_per_s = Some(220_000.0));
    assert_only_reason("7 pushes found a ring full, most on strategy-1", |f| {
        f.counter("strategy-1", "full", 7)
    });
    assert_only_reason("strategy-0 was to be on core 0, is pinned on core 3", |f| {
        f.status("strategy-0", StatusField::CorePlusOne, 4)
    });
    assert_only_reason("is pinned nowhere", |f| f.status("strategy-0", StatusField::CorePlusOne, 0));
    assert_only_reason("gateway-0 was away for 1,500 µs", |f| {
        f.status("gateway-0", StatusField::LongestGapTicks, 3_000_000)
    });
    assert_only_reason("orchestrator was preempted 99.0 times a second", |f| {
        f.status("orchestrator", StatusField::InvoluntarySwitches, 99)
    });
    assert_only_reason("waited for a device on 1 page fault:", |f| {
        f.status("gateway-1", StatusField::MajorFaults, 1)
    });
    let launcher = |f: &mut Fixture, cpu_ns| {
        let load = LauncherLoad { times: 5, ns: 1_000_000, cpu_ns };
        f.record.kernel = Some(KernelAccount { launcher: Some(load), ..KernelAccount::default() });
    };
    assert_only_reason("launcher busy: it took 35% of a core", |f| launcher(f, Some(350_000)));
    assert_eq!(reasons(|f| launcher(f, Some(50_000))), [""; 0]);
    assert_eq!(reasons(|f| launcher(f, None)), [""; 0], "saved by an older launcher");
    // 20.1 are open by the stamps. A tenth more by the counters is beyond chance and lag, a
    // twentieth is not.
    let counted = |f: &mut Fixture, factor: f64| {
        let open = f.record.open_orders.as_mut().unwrap();
        (open.samples, open.order_ticks) = (10_000, open.order_ticks * factor);
    };
    assert_only_reason("by 10,000 samples of the counters", |f| counted(f, 1.11));
    assert_only_reason("by Little's law", |f| counted(f, 0.89));
    assert_eq!(reasons(|f| counted(f, 1.05)), [""; 0]);
    assert_only_reason("drifted by -80 ppm", |f| f.record.clock.drift_ppm = -80.0);
    assert_only_reason("104 ns before the run, 490 ns after", |f| {
        f.record.core_to_core_rtt.after_ns = Some(490.0)
    });
    assert_only_reason("busy 96% of its time", |f| {
        let orchestrator = f.thread("orchestrator");
        let span = f.statuses[orchestrator][StatusField::EndedTicks as usize] - START;
        f.status("orchestrator", StatusField::BusyTicks, span * 96 / 100);
    });
    let send_late = |f: &mut Fixture| {
        for record in f.logs.iter_mut().flatten().filter(|record| record.point == Point::Due) {
            record.value -= 10_000;
        }
    };
    let late = "senders lag: slip p99 is 5,050 ns, rt_venue p50 790 ns: read rt_venue from due, or";
    assert_only_reason(&format!("{late} keep other work off their cores"), send_late);
    assert_only_reason(&format!("{late} give each strategy a core"), |f| {
        send_late(f);
        f.record.plan.threads[1].core = f.record.plan.threads[0].core;
        f.statuses[1][StatusField::CorePlusOne as usize] = f.statuses[0][StatusField::CorePlusOne as usize];
    });
}

#[test]
fn unsent_orders_are_a_reason_only_for_players() {
    let more = |f: &mut Fixture| f.record.plan.trading_mut().orders[1] += 7;
    let message = |introduce: &dyn Fn(&mut Fixture)| {
        let reasons = reasons(|f| introduce(f));
        reasons.into_iter().find(|reason| reason.contains("orders were not sent"))
    };
    let reason = message(&more).expect("seven are missing");
    assert!(reason.starts_with("7 of 10,007 orders were not sent: nothing had moved"), "{reason}");
    let exemptions: [Defect; 2] = [
        |f| f.record.plan.trading_mut().strategy_kinds = vec!["player".into(), "mine".into()],
        // Another reason covers it.
        |f| f.record.outcome = RunOutcome::Interrupted,
    ];
    for exemption in exemptions {
        let both = |f: &mut Fixture| {
            more(f);
            exemption(f);
        };
        assert_eq!(message(&both), None);
    }
}

#[test]
fn distrusted_strategies_are_named() {
    let reasons = reasons(|f| f.status("strategy-0", StatusField::RecordsDropped, 1));
    let expected = "the logs of 1 strategy prove nothing, first that of strategy-0";
    assert!(reasons[0].starts_with(expected), "{reasons:?}");
    // Partial knowledge of the other strategy's orders is not a reason.
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    assert!(reasons[1].contains("5,000 orders came back"), "{reasons:?}");
}

#[test]
fn invalid_run_names_that_reason_first() {
    let mut fixture = Fixture::new(Shape::PLAIN);
    fixture.status("gateway-0", StatusField::RecordsDropped, 3);
    let summary = summary(&fixture);
    let [first, second, ..] = summary.reasons.as_slice() else { panic!("{:?}", summary.reasons) };
    assert!(!summary.valid && first.starts_with("invalid: 3 violations, first gateway-0"), "{first}");
    assert!(second.contains("40 orders came back, a p99.9 needs 10,000"), "{second}");
}

#[test]
fn unexplained_orders_invalidate_interrupted_run() {
    let mut fixture = Fixture::new(Shape { orders: 40, ..SHAPE });
    fixture.record.outcome = RunOutcome::Interrupted;
    assert!(summary(&fixture).valid, "nothing was lost");
    fixture.lose(protocol::wire::OrderId::new(0, 0, 7));
    let summary = summary(&fixture);
    assert!(!summary.valid && summary.violations.is_empty());
    let is_said = summary.reasons.iter().any(|reason| reason.contains("1 order was lost"));
    assert!(is_said, "{:?}", summary.reasons);
}
