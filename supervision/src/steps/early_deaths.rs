//! Deaths that are proven before the kernel has dismantled the process.

use super::*;
use crate::observations::ExitingObservation;

fn engine_of(plan: &Plan) -> usize {
    plan.process_of(Role::Orchestrator).unwrap()
}

fn journaled() -> Plan {
    let settings =
        "isolation=process strategies=2 venues=1 orders=10 on_death=restart venue=book exchange=process";
    plan(&format!("{settings} journal=process"), 500)
}

/// Takes a step in which the threads of a process are observed.
fn observe_threads(run: &mut SteppedRun<'_>, process: usize, exiting: usize) {
    run.observed.processes[process].exiting = Some(ExitingObservation { count: 2, exiting });
    run.step();
}

#[test]
fn process_with_free_locks_is_killed_and_concluded() {
    let plan = journaled();
    let mut run = SteppedRun::start(&plan);
    let engine = engine_of(&plan);
    run.run_for(100);
    run.exits_late = true;
    run.observed.processes[engine].is_lock_free = true;
    run.step();
    assert!(run.actions.contains(&Action::Kill(engine)) && run.supervisor.awaits_threads(engine));
    assert!(run.supervisor.max_pause().is_zero(), "the threads leave within microseconds");
    observe_threads(&mut run, engine, 1);
    assert!(!run.actions.contains(&Action::ConcludeExit(engine)), "one of two may still store");
    observe_threads(&mut run, engine, 2);
    assert!(run.actions.contains(&Action::ConcludeExit(engine)));
    assert!(!run.actions.contains(&Action::Restart(engine)), "its exit was not observed");
    run.exit(engine, "signal 9 (SIGKILL)");
    run.observed.processes[engine].exit.as_mut().unwrap().is_early = true;
    run.step();
    assert!(run.actions.contains(&Action::Restart(engine)) && !run.supervisor.awaits_threads(engine));
    run.exits_late = false;
    run.run_for(100);
    assert_eq!(run.finish(), RunOutcome::Complete);
    let restarts = run.supervisor.into_record().role_restarts;
    let [restart] = restarts.as_slice() else { panic!("{restarts:?}") };
    assert!(restart.steps.proven_early, "{restart:?}");
}

/// What the kernel said before the kill proves nothing.
#[test]
fn threads_are_believed_after_the_kill_only() {
    let plan = journaled();
    let mut run = SteppedRun::start(&plan);
    let engine = engine_of(&plan);
    run.run_for(100);
    run.exits_late = true;
    observe_threads(&mut run, engine, 2);
    assert!(!run.has_killed() && !run.actions.contains(&Action::ConcludeExit(engine)));
    run.observed.processes[engine].is_lock_free = true;
    run.step();
    assert!(run.has_killed() && !run.actions.contains(&Action::ConcludeExit(engine)), "in the same step");
}

/// The kernel never answers: its pidfd decides.
#[test]
fn exit_decides_where_threads_are_not_observed() {
    let plan = journaled();
    let mut run = SteppedRun::start(&plan);
    let engine = engine_of(&plan);
    run.run_for(100);
    run.exits_late = true;
    run.observed.processes[engine].is_lock_free = true;
    run.run_for(300);
    assert_eq!(run.actions.iter().filter(|action| **action == Action::Kill(engine)).count(), 1);
    assert!(!run.actions.iter().any(|action| matches!(action, Action::Restart(_) | Action::ConcludeExit(_))));
    run.exits_late = false;
    run.exit(engine, "signal 9 (SIGKILL)");
    run.run_for(100);
    assert!(run.actions.contains(&Action::Restart(engine)), "{:?}", run.actions);
    assert_eq!(run.finish(), RunOutcome::Complete);
    assert!(!run.supervisor.into_record().role_restarts[0].steps.proven_early);
}
