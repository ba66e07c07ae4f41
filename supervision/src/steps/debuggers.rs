//! A strategy in a debugger.

use super::*;

const WORDS: &str = "isolation=process technique=spsc-mux strategies=2 venues=1 orders=10 on_death=continue";

/// It is silent for five deadlines in a debugger, and runs again. The same silence without a
/// debugger is found within one deadline, which starts again.
#[test]
fn deadline_waits_for_debugger_and_user_is_told() {
    let plan = plan(WORDS, 500);
    let mut run = SteppedRun::start(&plan);
    let victim = run.thread_of(VICTIM);
    run.run_for(200);
    run.silent = vec![victim];
    run.debugger = Some(Debugger { pid: Some(7), name: "gdb".into() });
    run.run_for(2_500);
    assert!(run.incidents().is_empty() && !run.has_killed(), "{:?}", run.actions);
    let stopped = "strategy-1 is stopped by a debugger (pid 7, gdb): its deadline (--liveness) waits";
    assert!(run.has_told(stopped), "{:?}", run.actions);
    assert!(!run.has_told("runs again"));
    (run.silent, run.debugger) = (Vec::new(), None);
    run.run_for(1_000);
    assert!(run.has_told("strategy-1 runs again after"), "{:?}", run.actions);
    run.silent = vec![victim];
    run.run_for(490);
    assert!(run.incidents().is_empty(), "its deadline is not over");
    run.run_for(100);
    let [hung] = run.incidents() else { panic!("{:?}", run.incidents()) };
    assert_eq!((hung.strategy, hung.cause.as_str()), (VICTIM, "hangs: no duty cycle for 500ms"));
    assert_eq!(run.finish(), RunOutcome::Complete);
    let warnings = run.supervisor.into_record().warnings;
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert!(warning.contains("strategy-1 was stopped by a debugger (pid 7, gdb) once"), "{warning}");
}

/// A debugger that detaches from a strategy that hangs: the deadline starts then.
#[test]
fn deadline_starts_again_when_debugger_detaches() {
    let plan = plan(WORDS, 500);
    let mut run = SteppedRun::start(&plan);
    run.silent = vec![run.thread_of(VICTIM)];
    run.debugger = Some(Debugger { pid: Some(7), name: "gdb".into() });
    run.run_for(2_500);
    run.debugger = None;
    run.run_for(490);
    assert!(run.incidents().is_empty(), "{:?}", run.incidents());
    run.run_for(100);
    assert_eq!(run.incidents().len(), 1);
}
