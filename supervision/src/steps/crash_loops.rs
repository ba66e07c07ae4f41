//! A strategy that crashes each time it is started.

use super::*;

/// The first incarnation has traded, so its death does not count towards the limit. The others wait
/// longer from one to the next; the last one is given up, named, and no longer waited for.
#[test]
fn crash_loop_is_bounded_and_named() {
    let plan = plan("isolation=process strategies=2 venues=1 orders=10 on_death=restart", 500);
    let mut run = SteppedRun::start(&plan);
    let victim = run.process_of(VICTIM);
    run.observed.strategies[VICTIM.as_usize()].sent = 3;
    run.run_for(300);
    run.crashing = Some(victim);
    run.exit(victim, "exit 7");
    run.run_for(10_000);
    assert_eq!(run.incidents().len(), 1 + 1 + restart_policy::MAX_RESTARTS as usize);
    assert!(run.incidents().iter().all(|it| it.strategy == VICTIM && it.cause.contains("exit 7")));
    let (last, earlier) = run.incidents().split_last().unwrap();
    assert!(earlier.iter().all(|incident| incident.stayed_down.is_none()), "{earlier:?}");
    let down = last.stayed_down.as_ref().unwrap();
    assert_eq!(down.restarts, restart_policy::MAX_RESTARTS);
    let is_told = run.has_told("strategy-1 stayed down after 8 restarts: ") && run.has_told("exit 7");
    assert!(is_told, "{:?}", run.actions);
    let took_ns = last.detected_ns - earlier[0].detected_ns;
    assert!((2_270 * MS..2_600 * MS).contains(&took_ns), "pauses of 0, 10, … 640, 1000 ms: {took_ns}");
    assert!(run.supervisor.is_trading() && !run.supervisor.containment.awaits(VICTIM, &run.observed));
    assert_eq!(run.finish(), RunOutcome::Complete);
}

/// All others have finished. The broken variant: a wait for progress that has no time for the
/// pauses.
#[test]
fn crash_loop_is_no_stall_however_short_its_limit() {
    let plan = plan("isolation=process strategies=2 venues=1 orders=10 on_death=restart", 500);
    let mut run = SteppedRun::start(&plan);
    run.supervisor.stall = StallWatch::with_limit(Duration::from_millis(50));
    let victim = run.process_of(VICTIM);
    run.set_state(StrategyIndex(0), ThreadState::Done);
    run.exit(run.process_of(StrategyIndex(0)), "exit 0");
    run.crashing = Some(victim);
    run.exit(victim, "exit 7");
    for _ in 0..1_000 {
        if run.supervisor.containment.awaits(VICTIM, &run.observed) {
            run.step();
        }
    }
    let down = run.incidents().last().unwrap().stayed_down.as_ref();
    assert_eq!(down.map(|down| down.restarts), Some(restart_policy::MAX_RESTARTS), "{:?}", run.actions);
    assert_eq!(run.run_to_end(), RunOutcome::Complete);
}

/// One that trades each time is started again without end.
#[test]
fn strategy_that_trades_before_each_crash_is_not_given_up() {
    let plan = plan("isolation=process strategies=2 venues=1 orders=10 on_death=restart", 500);
    let mut run = SteppedRun::start(&plan);
    let victim = run.process_of(VICTIM);
    for _ in 0..20 {
        run.observed.strategies[VICTIM.as_usize()].sent = 3;
        run.step();
        run.exit(victim, "exit 7");
        run.run_for(1_200);
    }
    assert_eq!(run.incidents().len(), 20);
    assert!(run.incidents().iter().all(|it| it.stayed_down.is_none() && it.restarted_ns.is_some()));
}
