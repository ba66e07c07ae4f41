//! Strategies that share a process of their own.

use super::*;

fn settings(on_death: &str) -> String {
    format!("isolation=process*3 strategies=5 venues=1 orders=10 on_death={on_death}")
}

/// Returns which strategies have an incident, in the order of the incidents.
fn victims(run: &SteppedRun<'_>) -> Vec<u16> {
    run.incidents().iter().map(|incident| incident.strategy.0).collect()
}

fn restarts(run: &SteppedRun<'_>) -> Vec<usize> {
    let restart = |action: &Action| match action {
        Action::Restart(process) => Some(*process),
        _ => None,
    };
    run.actions.iter().filter_map(restart).collect()
}

fn fenced(epoch: u16) -> Vec<(Role, u16)> {
    [0, 1, 2].map(|strategy| (Role::Strategy(StrategyIndex(strategy)), epoch)).into()
}

#[test]
fn death_takes_its_group_and_no_other() {
    let plan = plan(&settings("restart"), 200);
    let mut run = SteppedRun::start(&plan);
    run.run_for(300);
    let group = run.process_of(VICTIM);
    run.exit(group, "signal 11 (SIGSEGV)");
    run.run_for(100);
    assert_eq!(victims(&run), [0, 1, 2]);
    for incident in run.incidents() {
        let [cause, group] = [&incident.cause, &format!("{:?}", incident.group)];
        assert_eq!(cause, "signal 11 (SIGSEGV)", "nobody knows which of them was at fault");
        assert!(["0", "1", "2"].iter().all(|strategy| group.contains(strategy)), "{group}");
        assert!(incident.repaired_ns.is_some() && incident.restarted_ns.is_some(), "{incident:?}");
    }
    assert_eq!(run.fences(), fenced(0));
    assert_eq!(restarts(&run), [group], "one process is started for all of them");
    let renewed: Vec<&Action> =
        run.actions.iter().filter(|action| matches!(action, Action::Renew(..))).collect();
    let wanted: Vec<Action> = fenced(1).into_iter().map(|(role, epoch)| Action::Renew(role, epoch)).collect();
    assert_eq!(renewed, wanted.iter().collect::<Vec<_>>());
    assert_eq!(run.finish(), RunOutcome::Complete);
    assert_eq!(victims(&run), [0, 1, 2], "strategies 3 and 4 are another group");
}

#[test]
fn hang_of_one_strategy_names_it_to_its_group() {
    let plan = plan(&settings("restart"), 200);
    let mut run = SteppedRun::start(&plan);
    run.run_for(300);
    run.silent = vec![run.thread_of(VICTIM)];
    run.run_for(250);
    run.silent.clear();
    run.run_for(100);
    let mut causes: Vec<_> =
        run.incidents().iter().map(|incident| (incident.strategy.0, incident.cause.as_str())).collect();
    causes.sort_unstable();
    let other = "ended with its group: strategy-1: hangs: no duty cycle for 200ms";
    assert_eq!(causes, [(0, other), (1, "hangs: no duty cycle for 200ms"), (2, other)]);
    assert_eq!(run.actions.iter().filter(|action| matches!(action, Action::Kill(_))).count(), 1);
    assert_eq!(restarts(&run), [run.process_of(VICTIM)]);
    assert_eq!(run.finish(), RunOutcome::Complete);
}

/// The process starts once the engine has repaired what each of its strategies has left.
#[test]
fn group_waits_for_repair_of_each_strategy() {
    let plan = plan(&settings("restart"), 200);
    let mut run = SteppedRun::start(&plan);
    run.run_for(300);
    run.unrepaired = Some(StrategyIndex(2));
    run.exit(run.process_of(VICTIM), "exit 3");
    run.run_for(100);
    assert_eq!(run.fences(), fenced(0));
    let is_early = |action: &Action| {
        matches!(action, Action::Restart(_) | Action::Reset(_) | Action::Renew(..) | Action::Forget(_))
    };
    assert!(!run.actions.iter().any(is_early), "{:?}", run.actions);
    run.unrepaired = None;
    run.observed.strategies[2].repair.repaired = Some(0);
    run.run_for(50);
    assert_eq!(restarts(&run), [run.process_of(VICTIM)]);
    assert_eq!(run.finish(), RunOutcome::Complete);
}

/// Its epoch advances with the others': the engine does not confuse two incarnations of it.
#[test]
fn strategy_that_was_done_starts_with_its_group() {
    let plan = plan(&settings("restart"), 200);
    let mut run = SteppedRun::start(&plan);
    run.run_for(100);
    run.set_state(StrategyIndex(0), ThreadState::Done);
    run.run_for(2_000);
    assert!(run.incidents().is_empty(), "its process runs for the others: {:?}", run.incidents());
    run.exit(run.process_of(VICTIM), "exit 3");
    run.run_for(100);
    assert_eq!((victims(&run), restarts(&run).len()), (vec![0, 1, 2], 1));
    assert_eq!(run.finish(), RunOutcome::Complete);
}

#[test]
fn group_of_quarantined_strategy_stays_down() {
    let plan = plan(&settings("restart"), 200);
    let mut run = SteppedRun::start(&plan);
    run.run_for(300);
    let violation = protocol::supervision::ProtocolViolation::BadCursor;
    run.observed.strategies[1].repair.quarantined = Some((0, violation));
    run.run_for(100);
    let down: Vec<_> =
        run.incidents().iter().map(|incident| incident.stayed_down.clone().unwrap().why).collect();
    assert!(restarts(&run).is_empty() && down.len() == 3, "{:?}", run.incidents());
    assert_eq!(down.iter().filter(|why| why.starts_with("its group stays down with strategy-1")).count(), 2);
    let quarantined: Vec<u16> = run
        .incidents()
        .iter()
        .filter(|incident| incident.quarantined.is_some())
        .map(|incident| incident.strategy.0)
        .collect();
    assert_eq!(quarantined, [1], "the others are not accused");
    assert_eq!(run.finish(), RunOutcome::Complete);
}

/// Without restarts a dead group stays down and the other one trades on; without containment the
/// run ends and names the process.
#[test]
fn group_follows_on_death() {
    let plans = ["continue", "stop"].map(|on_death| plan(&settings(on_death), 200));
    let mut run = SteppedRun::start(&plans[0]);
    run.run_for(300);
    run.exit(run.process_of(VICTIM), "exit 3");
    run.run_for(100);
    assert_eq!((victims(&run), restarts(&run)), (vec![0, 1, 2], vec![]));
    assert_eq!(run.finish(), RunOutcome::Complete);
    let mut run = SteppedRun::start(&plans[1]);
    run.run_for(300);
    run.exit(run.process_of(VICTIM), "exit 3");
    let RunOutcome::Failed { process, what, .. } = run.run_to_end() else { panic!("{:?}", run.actions) };
    assert_eq!((process.as_str(), what.as_str()), ("group-0", "exit 3"));
}

/// One that crashes at once is not restarted without end: its strategies are counted together.
#[test]
fn crash_loop_of_group_ends() {
    let plan = plan(&settings("restart"), 200);
    let mut run = SteppedRun::start(&plan);
    run.run_for(300);
    run.crashing = Some(run.process_of(VICTIM));
    run.exit(run.process_of(VICTIM), "exit 7");
    run.run_for(9_000);
    let down: Vec<u32> =
        run.incidents().iter().filter_map(|incident| Some(incident.stayed_down.as_ref()?.restarts)).collect();
    let limit = restart_policy::MAX_RESTARTS;
    assert_eq!((down, restarts(&run).len()), (vec![limit; 3], limit as usize), "none of them traded");
    assert_eq!(run.finish(), RunOutcome::Complete);
}

/// A command that reaches the supervisor although `launcher retire` refuses it.
#[test]
fn operator_ends_no_strategy_of_group() {
    let plan = plan(&settings("restart"), 200);
    let mut run = SteppedRun::start(&plan);
    run.run_for(300);
    let (number, ticks) = (1, run.now);
    run.observed.ended_by_operators =
        vec![crate::observations::OperatorEnd { number, ticks, strategy: VICTIM, successor: None }];
    run.run_for(300);
    assert!(run.incidents().is_empty() && !run.has_killed(), "{:?}", run.actions);
    assert_eq!(run.finish(), RunOutcome::Complete);
}
