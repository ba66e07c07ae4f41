//! Faults that a plan asks for and that never fired: each is named with the reason, in the verdict.

use crate::common::{fault, summary};
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, Shape};
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime};
use record::run::RunOutcome;
use shm::ring::Step;

/// Two strategies with 200 orders each over 4 ms.
fn fixture() -> Fixture {
    Fixture::new(Shape { orders: 200, period: 20_000, delay: 100_000, ..Shape::PLAIN })
}

const VICTIM: FaultTarget = FaultTarget::Strategy(StrategyIndex(1));

fn at_order(kind: FaultKind, order: u64) -> Fault {
    let when = FaultTime::Push { order, step: Step::Entered };
    Fault { when, ..fault(kind, VICTIM, 0) }
}

/// Returns the reasons why these faults never fired, which all are in the verdict.
fn unfired(mut fixture: Fixture, faults: &[(Fault, Option<u64>)]) -> Vec<String> {
    fixture.record.plan.faults = faults.iter().map(|(fault, _)| *fault).collect();
    fixture.record.fault_injections = faults.iter().map(|(_, injections)| *injections).collect();
    let summary = summary(&fixture);
    let in_verdict = |why: &String| summary.reasons.iter().any(|reason| reason.starts_with(why));
    assert!(summary.unfired_faults.iter().all(in_verdict), "{:?}", summary.reasons);
    assert!(summary.unfired_faults.is_empty() || !summary.fit_for_latency);
    summary.unfired_faults
}

#[track_caller]
fn assert_unfired(fixture: Fixture, fault: Fault, injections: Option<u64>, expected: &[&str]) {
    let message = unfired(fixture, &[(fault, injections)]);
    let [why] = message.as_slice() else { panic!("one fault expected, got {message:?}") };
    assert!(expected.iter().all(|word| why.contains(word)) && why.contains("never fired"), "{why}");
}

#[test]
fn signal_without_victim_is_named_with_reason() {
    let at = |ns| fault(FaultKind::Kill, VICTIM, ns);
    assert_unfired(fixture(), at(1_000_000), Some(0), &["kill:strategy-1", "no target was running"]);
    assert_unfired(fixture(), at(60_000_000_000), Some(0), &["due after", "the last order was back after"]);
    assert!(unfired(fixture(), &[(at(1_000_000), Some(1))]).is_empty());
}

#[test]
fn order_that_was_never_sent_is_named() {
    for kind in [FaultKind::Kill, FaultKind::Flood] {
        assert_unfired(fixture(), at_order(kind, 5_000), None, &["it waits for order 5,000", "sent 200"]);
        assert_unfired(fixture(), at_order(kind, 201), None, &["it waits for order 201"]);
    }
    // The order of a flood is not sent itself; who should have died at its last order is alive.
    assert!(unfired(fixture(), &[(at_order(FaultKind::Flood, 200), None)]).is_empty());
    assert_unfired(fixture(), at_order(FaultKind::Hang, 200), None, &["it waits for order 200"]);
}

#[test]
fn strategy_that_finished_or_died_before_is_named() {
    let hang = fault(FaultKind::Hang, VICTIM, 1_000_000);
    assert_unfired(fixture(), hang, None, &["strategy-1 had finished before"]);
    let died = || {
        let mut fixture = fixture();
        fixture.kill(StrategyDeath { restart: Some(200_000), ..StrategyDeath::new(1, 2_000_000) });
        fixture
    };
    assert!(unfired(died(), &[(fault(FaultKind::Hang, VICTIM, 900_000), None)]).is_empty());
    let late = fault(FaultKind::Hang, VICTIM, 1_800_000);
    assert_unfired(died(), late, None, &["strategy-1 had died before (signal 9 (SIGKILL))"]);
    assert_unfired(died(), at_order(FaultKind::Exit, 190), None, &["had died before"]);
}

#[test]
fn venue_fault_after_the_end_is_named() {
    let mute = |ns| fault(FaultKind::Mute, FaultTarget::Venue(VenueIndex(0)), ns);
    assert_unfired(fixture(), mute(60_000_000_000), None, &["mute:venue-0", "due after"]);
    assert!(unfired(fixture(), &[(mute(1_000), None)]).is_empty());
}

/// A leak that had not reached its limit when the run was over.
#[test]
fn fault_that_run_cut_short_is_named() {
    let cut_short = |fault| {
        let [why] = &unfired(fixture(), &[(fault, None)])[..] else { panic!("{fault:?}") };
        assert!(why.contains("strategy-1 (at ") && why.contains("was cut short: it had not ended"), "{why}");
        assert!(!why.contains("never fired"), "{why}");
    };
    for kind in [FaultKind::Leak, FaultKind::CoreDump, FaultKind::Forkbomb] {
        cut_short(fault(kind, VICTIM, 1_000_000));
        cut_short(at_order(kind, 20));
    }
    let leak = |ns| fault(FaultKind::Leak, VICTIM, ns);
    assert_unfired(fixture(), leak(60_000_000_000), None, &["due after"]);
    assert_unfired(fixture(), at_order(FaultKind::Leak, 5_000), None, &["it waits for order 5,000"]);
    let mut died = fixture();
    died.kill(StrategyDeath { restart: Some(200_000), ..StrategyDeath::new(1, 2_000_000) });
    assert!(unfired(died, &[(leak(900_000), None)]).is_empty());
}

/// Such a run fails anyway, and a later fault might still have come.
#[test]
fn failed_run_has_no_unfired_faults() {
    let mut failed = fixture();
    failed.record.outcome = RunOutcome::Failed { process: "engine".into(), pid: 7, what: "signal 9".into() };
    assert!(unfired(failed, &[(at_order(FaultKind::Kill, 5_000), None)]).is_empty());
}
