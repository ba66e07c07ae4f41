//! Runs without progress.

use super::*;

/// Two of its orders have no report: the run ends after ten seconds and its deadline, and names it.
#[test]
fn lost_reports_end_run_and_name_strategy() {
    for settings in ["technique=spsc-mux", "technique=array-queue"] {
        let plan = plan(
            &format!("{settings} isolation=process strategies=2 venues=1 orders=10 on_death=restart"),
            500,
        );
        let mut run = SteppedRun::start(&plan);
        for (strategy, returned) in run.observed.strategies.iter_mut().zip([5, 3]) {
            (strategy.sent, strategy.returned) = (5, returned);
        }
        let counts =
            EngineObservation { dispatched: 10, settled: 10, reports: 10, returned: 8, ..Default::default() };
        run.observed.engine = Some(counts);
        run.run_for(200);
        run.set_state(StrategyIndex(0), ThreadState::Done);
        run.exit(run.process_of(StrategyIndex(0)), "exit 0");
        run.run_for(9_000);
        assert!(run.supervisor.is_trading(), "{:?}", run.actions);
        let outcome = run.run_to_end();
        let RunOutcome::Failed { process, what, .. } = &outcome else { panic!("{outcome:?}") };
        assert_eq!(process, "engine");
        let expected = "stalled: no progress for 10.5s; 2 orders without a report, waiting: strategy-1";
        assert_eq!(what, expected);
        assert!(run.incidents().is_empty() && !run.has_killed());
    }
}
