//! Deaths that are proven before a process is dismantled: they happen, and a supervisor that
//! believes one too soon is found.

use super::*;

fn can_die_early(scenario: &Scenario) -> bool {
    has_deaths(scenario) && scenario.has_slow_exits
}

/// Believes the word of a lock, which a process can write that lives.
fn believes_word() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        supervisor.step(observed, now, out);
        for (index, process) in observed.processes.iter().enumerate() {
            if process.is_lock_free && supervisor.awaits_threads(index) {
                out.push(Action::ConcludeExit(index));
            }
        }
    })
}

/// Believes the death of a process of which one thread is exiting and another one runs.
fn believes_one_thread() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        let mut observed = observed.clone();
        for threads in observed.processes.iter_mut().filter_map(|process| process.exiting.as_mut()) {
            if threads.exiting > 0 {
                threads.exiting = threads.count;
            }
        }
        supervisor.step(&observed, now, out);
    })
}

/// Asks the kernel about the threads of a process that was not killed, which may start another one.
fn repairs_before_kill() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        supervisor.step(observed, now, out);
        let is_hinted = |process: usize| observed.processes[process].is_lock_free;
        out.retain(|action| !matches!(action, Action::Kill(process) if is_hinted(*process)));
    })
}

const BROKEN: [BrokenSupervisor; 3] = {
    const fn broken(name: &'static str, step: fn() -> Box<SupervisorStep<'static>>) -> BrokenSupervisor {
        BrokenSupervisor { name, recovery_only: false, has_surroundings: true, can_show: can_die_early, step }
    }
    [
        broken("believes the word of a lock", believes_word),
        broken("believes one thread of two", believes_one_thread),
        broken("repairs before the kill", repairs_before_kill),
    ]
};

#[test]
fn each_death_believed_too_soon_is_found() {
    assert_found(&BROKEN, SEEDS);
}

/// Engine, exchanges and strategies: some of their deaths are proven before they have exited, and
/// others after.
#[test]
fn deaths_are_proven_early_and_late() {
    let (mut of_roles, mut of_strategies) = ([0, 0], [0, 0]);
    for seed in 0..120 {
        let scenario = Scenario::recovery(seed).unwrap();
        if scenario.has_slow_exits {
            let record = simulate(scenario, None).unwrap().record;
            for restart in &record.role_restarts {
                of_roles[usize::from(restart.steps.proven_early)] += 1;
            }
            for incident in &record.incidents {
                of_strategies[usize::from(incident.proven_early)] += 1;
            }
        }
    }
    println!("late and early: roles {of_roles:?}, strategies {of_strategies:?}");
    assert!(of_roles.iter().chain(&of_strategies).all(|count| *count > 0), "{of_roles:?} {of_strategies:?}");
}
