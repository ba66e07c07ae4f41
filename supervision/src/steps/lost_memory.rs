//! Memory of the run that is taken away: the run ends in the launcher's name.

use super::*;

fn assert_ends_in_name_of_launcher(run: &mut SteppedRun<'_>) {
    let outcome = run.finish();
    assert_eq!(outcome, memory_failure(run.plan().launcher_pid));
    let is_blamed = |incident: &Incident| incident.quarantined.is_some();
    assert!(!run.incidents().iter().any(is_blamed), "{:?}", run.incidents());
    let is_restart = |action: &Action| matches!(action, Action::Restart(_));
    assert!(!run.actions.iter().any(is_restart), "{:?}", run.actions);
}

/// What the launcher reads of the victim is zero from then on.
#[test]
fn launcher_that_loses_memory_blames_nobody() {
    for on_death in ["stop", "continue", "restart"] {
        let settings = format!("isolation=process strategies=2 venues=1 orders=10 on_death={on_death}");
        let plan = plan(&settings, 500);
        let mut run = SteppedRun::start(&plan);
        run.run_for(200);
        run.observed.has_launcher_lost_memory = true;
        let thread = run.thread_of(VICTIM);
        run.observed.threads[thread].pulse = LivenessSample { state: 0, tid: 0, heartbeat_ticks: 0 };
        run.step();
        assert!(run.incidents().is_empty(), "{on_death}: {:?}", run.incidents());
        assert_ends_in_name_of_launcher(&mut run);
    }
}

/// The process dies of SIGBUS, whatever follows from deaths otherwise.
#[test]
fn process_that_loses_memory_ends_run_unblamed() {
    for on_death in ["stop", "continue", "restart"] {
        let settings = format!("isolation=process strategies=2 venues=1 orders=10 on_death={on_death}");
        let plan = plan(&settings, 500);
        let mut run = SteppedRun::start(&plan);
        run.run_for(200);
        run.observed.has_process_lost_memory = true;
        run.exit(run.process_of(VICTIM), "signal 7 (SIGBUS)");
        run.step();
        assert_ends_in_name_of_launcher(&mut run);
    }
}
