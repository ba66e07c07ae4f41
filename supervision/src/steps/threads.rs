//! Strategies that are threads of the engine's process.

use super::*;

fn settings(on_death: &str) -> String {
    format!("isolation=thread strategies=3 venues=1 orders=10 on_death={on_death}")
}

/// The run goes on without the victim's thread, which is fenced, and its process is not killed.
fn assert_abandoned(run: &mut SteppedRun<'_>, cause: &str) -> Incident {
    let [incident] = run.incidents() else { panic!("{:?}", run.incidents()) };
    let incident = incident.clone();
    assert!(incident.strategy == VICTIM && incident.abandoned, "{incident:?}");
    assert!(incident.cause.contains(cause), "{}", incident.cause);
    assert!(incident.repaired_ns.is_some() && incident.restarted_ns.is_none(), "{incident:?}");
    assert!(run.actions.contains(&Action::FenceThread(VICTIM, 0)), "{:?}", run.actions);
    let is_restart = |action: &Action| matches!(action, Action::ResetThread(_) | Action::Restart(_));
    assert!(!run.has_killed() && !run.actions.iter().any(is_restart), "{:?}", run.actions);
    assert!(run.supervisor.is_trading(), "the others trade on");
    assert_eq!(run.finish(), RunOutcome::Complete);
    incident
}

/// It publishes that it is done, and its thread stays.
#[test]
fn thread_that_feigns_its_end_is_abandoned() {
    for on_death in ["continue", "restart"] {
        let plan = plan(&settings(on_death), 200);
        let mut run = SteppedRun::start(&plan);
        run.run_for(300);
        run.set_state(VICTIM, ThreadState::Done);
        run.run_for(900);
        assert!(run.incidents().is_empty(), "it has a second to exit");
        run.run_for(400);
        assert_abandoned(&mut run, "reported done");
    }
}

#[test]
fn hung_thread_is_abandoned_and_stays_down() {
    for on_death in ["continue", "restart"] {
        let plan = plan(&settings(on_death), 200);
        let mut run = SteppedRun::start(&plan);
        run.silent = vec![run.thread_of(VICTIM)];
        run.run_for(190);
        assert!(run.incidents().is_empty(), "its deadline is not over");
        run.run_for(60);
        let incident = assert_abandoned(&mut run, "hangs: no duty cycle for 200ms");
        let why = incident.stayed_down.map(|down| down.why).unwrap_or_default();
        assert_eq!(why.starts_with("its thread may still run"), on_death == "restart", "{why}");
    }
}

/// Its process dies with it, and with all others.
#[test]
fn death_of_the_process_of_all_threads_ends_run() {
    for on_death in ["continue", "restart"] {
        let plan = plan(&settings(on_death), 200);
        let mut run = SteppedRun::start(&plan);
        run.run_for(300);
        run.exit(run.process_of(VICTIM), "signal 6 (SIGABRT)");
        let outcome = run.run_to_end();
        let RunOutcome::Failed { process, what, .. } = &outcome else { panic!("{outcome:?}") };
        assert_eq!((process.as_str(), what.as_str()), ("all", "signal 6 (SIGABRT)"));
        assert!(run.incidents().is_empty(), "no thread died alone: {:?}", run.incidents());
    }
}

/// Without containment the run ends, and names the thread and its process.
#[test]
fn hung_thread_ends_uncontained_run() {
    let plan = plan(&settings("stop"), 200);
    let mut run = SteppedRun::start(&plan);
    run.silent = vec![run.thread_of(VICTIM)];
    run.run_for(190);
    assert!(run.supervisor.is_trading(), "its deadline is not over");
    let outcome = run.run_to_end();
    let RunOutcome::Failed { process, what, .. } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(
        (process.as_str(), what.as_str()),
        ("all", "thread strategy-1 hangs: no duty cycle for 200ms")
    );
}
