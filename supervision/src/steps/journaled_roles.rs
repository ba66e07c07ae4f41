//! Engine and exchanges: with a journal they come back, without one the run ends with them.

use super::*;
use protocol::index::VenueIndex;

const LOAD: &str =
    "isolation=process strategies=2 venues=1 orders=10 on_death=restart venue=book exchange=process";
const EXCHANGE: Role = Role::Exchange(VenueIndex(0));

fn journaled(liveness_ms: u64) -> Plan {
    plan(&format!("{LOAD} journal=each"), liveness_ms)
}

#[test]
fn killed_exchange_without_journal_ends_run() {
    let plan = plan(LOAD, 500);
    let mut run = SteppedRun::start(&plan);
    let exchange = plan.process_of(EXCHANGE).unwrap();
    run.run_for(200);
    run.exit(exchange, "signal 9 (SIGKILL)");
    let outcome = run.finish();
    let RunOutcome::Failed { process, what, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!((process.as_str(), what.as_str()), ("exchange-0", "signal 9 (SIGKILL)"));
    assert!(run.incidents().is_empty() && !run.actions.contains(&Action::Restart(exchange)));
}

/// Its orders are not lost by a successor: there is none. The count starts again after a recovery.
#[test]
fn engine_killed_in_each_recovery_ends_run_with_reason() {
    let plan = journaled(500);
    let mut run = SteppedRun::start(&plan);
    let engine = plan.process_of(Role::Orchestrator).unwrap();
    let restart_count = |run: &SteppedRun<'_>| {
        run.actions.iter().filter(|action| **action == Action::Restart(engine)).count()
    };
    run.run_for(200);
    while restart_count(&run) < 10 {
        run.exit(engine, "signal 9 (SIGKILL)");
        run.step();
    }
    run.run_for(100);
    for _ in 0..100 {
        run.exit(engine, "signal 9 (SIGKILL)");
        run.step();
    }
    assert_eq!(restart_count(&run), 10 + 16);
    let outcome = run.run_to_end();
    let RunOutcome::Failed { process, what, .. } = &outcome else { panic!("{outcome:?}") };
    let reason = "signal 9 (SIGKILL): killed 16 times in a row before it had recovered";
    assert!(process == "engine" && what.starts_with(reason), "{outcome:?}");
}

/// The others trade on, and no strategy is blamed.
#[test]
fn hung_engine_or_exchange_restarts_alone() {
    for role in [Role::Orchestrator, EXCHANGE] {
        let plan = journaled(500);
        let mut run = SteppedRun::start(&plan);
        let process = plan.process_of(role).unwrap();
        run.run_for(200);
        run.silent = vec![plan.thread_of(role).unwrap()];
        run.run_for(490);
        assert!(!run.has_killed(), "its deadline is not over");
        run.run_for(60);
        run.silent = Vec::new();
        run.run_for(300);
        let count = |wanted: Action| run.actions.iter().filter(|action| **action == wanted).count();
        assert_eq!((count(Action::Kill(process)), count(Action::Restart(process))), (1, 1), "{role}");
        assert!(run.incidents().is_empty() && run.supervisor.is_trading(), "{role}");
        assert_eq!(run.finish(), RunOutcome::Complete);
        let restarts = run.supervisor.into_record().role_restarts;
        let [restart] = restarts.as_slice() else { panic!("{restarts:?}") };
        assert_eq!((restart.role, restart.cause.as_str()), (role, "hangs: no duty cycle for 500ms"));
        assert!(restart.recovered_ns > Some(restart.detected_ns), "{restart:?}");
    }
}

/// The engine is silent for five deadlines while it waits for its disk. The same silence without a
/// wait is found within one deadline.
#[test]
fn deadline_waits_for_disk_of_journal() {
    let plan = journaled(500);
    let mut run = SteppedRun::start(&plan);
    let process = plan.process_of(Role::Orchestrator).unwrap();
    let thread = plan.thread_of(Role::Orchestrator).unwrap();
    run.run_for(200);
    (run.silent, run.waits_for_disk) = (vec![thread], vec![thread]);
    run.run_for(2_500);
    assert!(!run.has_killed(), "{:?}", run.actions);
    assert!(run.has_told("for the disk of its journal: its deadline (--liveness) pauses"));
    (run.silent, run.waits_for_disk) = (Vec::new(), Vec::new());
    run.run_for(1_000);
    run.silent = vec![thread];
    run.run_for(490);
    assert!(!run.has_killed(), "its deadline starts again");
    run.run_for(60);
    run.silent = Vec::new();
    run.run_for(300);
    assert!(run.actions.contains(&Action::Restart(process)), "{:?}", run.actions);
    assert_eq!(run.finish(), RunOutcome::Complete);
    let record = run.supervisor.into_record();
    assert_eq!(record.role_restarts.len(), 1, "{:?}", record.role_restarts);
    let [warning] = record.warnings.as_slice() else { panic!("{:?}", record.warnings) };
    assert!(warning.contains("waited for the disk of its journal once"), "{warning}");
}
