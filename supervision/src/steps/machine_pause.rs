//! A machine that pauses: the launcher takes no step, and no thread has a duty cycle.

use super::*;

/// Orders are at a venue for 1.5 seconds when the run is interrupted, and the machine pauses for
/// longer than the drain may take, and than each deadline. Nothing is killed, and the last reports
/// are waited for.
#[test]
fn machine_pause_during_drain_extends_it() {
    let mut plan = plan("isolation=process strategies=2 venues=1 orders=10 on_death=stop", 1_000);
    plan.trading_mut().max_delay_ns = 1_500 * MS;
    let mut run = SteppedRun::start(&plan);
    for strategy in &mut run.observed.strategies {
        strategy.sent = 5;
    }
    let engine = EngineObservation { dispatched: 10, reports: 2, ..EngineObservation::default() };
    run.observed.engine = Some(engine);
    run.run_for(300);
    run.observed.termination_requests = 1;
    run.run_for(300);
    assert!(run.actions.contains(&Action::SetRunState(RunState::Drain)), "{:?}", run.actions);
    // The launcher runs first.
    run.now += 7_500 * MS;
    run.silent = (0..plan.threads.len()).collect();
    run.run_for(100);
    run.silent = Vec::new();
    run.run_for(1_500);
    let is_end = |action: &Action| matches!(action, Action::EndProcesses(_) | Action::End(_));
    assert!(!run.has_killed() && !run.actions.iter().any(is_end), "{:?}", run.actions);
    for strategy in &mut run.observed.strategies {
        strategy.returned = 5;
    }
    run.observed.engine = Some(EngineObservation { settled: 10, reports: 12, returned: 10, ..engine });
    assert_eq!(run.finish(), RunOutcome::Interrupted);
    assert!(!run.has_killed());
}

/// The same drain without a pause ends at its limit.
#[test]
fn drain_without_reports_ends_at_its_limit() {
    let mut plan = plan("isolation=process strategies=2 venues=1 orders=10 on_death=stop", 1_000);
    plan.trading_mut().max_delay_ns = 1_500 * MS;
    let mut run = SteppedRun::start(&plan);
    run.observed.strategies[0].sent = 5;
    run.observed.termination_requests = 1;
    let is_end = |action: &Action| matches!(action, Action::EndProcesses(_));
    run.run_for(6_400);
    assert!(!run.actions.iter().any(is_end), "{:?}", run.actions);
    run.run_for(200);
    assert!(run.actions.iter().any(is_end), "the delay and five seconds");
}
