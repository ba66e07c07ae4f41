//! The simulation runs the supervisor of real runs: a supervisor with a mistake is found. Each
//! mistake wraps a step, changes what it observes or does, and leaves the rest as it is.

mod early_deaths;
mod ignored_observations;

use crate::common::concurrently;
use protocol::commands::{Command, OpenOrders};
use protocol::control::RunState;
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::plan::{FaultKind, Isolation, Role, Technique};
use protocol::status::LivenessSample;
use record::run::RunOutcome;
use simulation::scenario::{Scenario, ScenarioKind, draw_technique, is_simulated};
use simulation::{
    Action, ExitTime, NOT_STARTED, Observations, OperatorEnd, ProcessObservation, SimulationOptions,
    Supervisor, SupervisorStep, simulate, simulate_with,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of runs until a mistake is found.
const SEEDS: u64 = 1_000;

/// A mistake of a supervisor.
struct BrokenSupervisor {
    name: &'static str,
    /// Only crash-recovery runs.
    recovery_only: bool,
    /// Runs with events in their surroundings, which are removed otherwise.
    has_surroundings: bool,
    /// Runs in which it can show.
    can_show: fn(&Scenario) -> bool,
    /// Creates the step for one run.
    step: fn() -> Box<SupervisorStep<'static>>,
}

fn has_deaths(scenario: &Scenario) -> bool {
    matches!(scenario.kind, ScenarioKind::Deaths | ScenarioKind::Recovery)
}

/// Operators end strategies.
fn is_ended_by_operators(scenario: &Scenario) -> bool {
    let is_end = |(_, command): &(u64, Command)| matches!(command, Command::EndStrategy { .. });
    has_deaths(scenario) && scenario.commands.iter().any(is_end)
}

/// Operators add strategies.
fn has_additions(scenario: &Scenario) -> bool {
    let is_addition = |(_, command): &(u64, Command)| matches!(command, Command::AddStrategy { .. });
    has_deaths(scenario) && scenario.commands.iter().any(is_addition)
}

/// Strategies are ended, added or killed at their natural end.
fn has_endings(scenario: &Scenario) -> bool {
    has_deaths(scenario) && !scenario.endings.is_empty()
}

fn has_spares(scenario: &Scenario) -> bool {
    has_deaths(scenario) && scenario.plan.trading().spares().len() > 0
}

fn has_threads_that_die(scenario: &Scenario) -> bool {
    scenario.kind == ScenarioKind::Deaths && scenario.plan.isolation.is_only(Isolation::Thread)
}

/// Strategies share processes, and some of them die.
fn has_groups_that_die(scenario: &Scenario) -> bool {
    scenario.kind == ScenarioKind::Deaths && scenario.plan.isolation.has_groups()
}

/// Takes a step, then drops some of the actions.
fn without(is_forgotten: fn(&Action) -> bool) -> Box<SupervisorStep<'static>> {
    Box::new(move |supervisor, observed, now, out| {
        supervisor.step(observed, now, out);
        out.retain(|action| !is_forgotten(action));
    })
}

/// Does not declare dead strategies dead: the engine repairs nothing.
fn forgets_fence() -> Box<SupervisorStep<'static>> {
    without(|action| matches!(action, Action::Fence(..)))
}

/// As [`forgets_fence`], for strategies that are threads of the engine's process.
fn forgets_fence_of_thread() -> Box<SupervisorStep<'static>> {
    without(|action| matches!(action, Action::FenceThread(..)))
}

/// Believes that each thread that dies alone is gone, also one that hangs, whose successor would
/// share its ring.
fn restarts_abandoned_thread() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        let mut observed = observed.clone();
        for (index, thread) in observed.threads.iter_mut().enumerate() {
            thread.is_gone |= supervisor.containment().has_lost_thread(index);
        }
        supervisor.step(&observed, now, out);
    })
}

/// Believes that the engine has repaired what a dead strategy left as soon as it is fenced.
fn restarts_before_repair() -> Box<SupervisorStep<'static>> {
    let mut fenced: BTreeMap<StrategyIndex, u16> = BTreeMap::new();
    Box::new(move |supervisor, observed, now, out| {
        let mut observed = observed.clone();
        for (strategy, epoch) in &fenced {
            let strategy: &mut _ = &mut observed.strategies[strategy.as_usize()];
            strategy.repair.repaired = Some(*epoch);
        }
        supervisor.step(&observed, now, out);
        for action in out {
            if let Action::Fence(Role::Strategy(strategy), epoch) = action {
                fenced.insert(*strategy, *epoch);
            }
        }
    })
}

/// Believes that a process is dead as soon as it was sent SIGKILL.
fn fences_without_proof() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        let mut observed = observed.clone();
        for (index, process) in observed.processes.iter_mut().enumerate() {
            if supervisor.containment().awaits_exit(index) {
                process.exit.get_or_insert_default();
                process.is_proven_dead = true;
            }
        }
        supervisor.step(&observed, now, out);
    })
}

/// Ends the run once all orders were sent, and does not wait for their reports.
fn ends_before_reports() -> Box<SupervisorStep<'static>> {
    let mut is_over = false;
    Box::new(move |supervisor, observed, now, out| {
        if is_over {
            return out.push(Action::End(RunOutcome::Complete));
        }
        supervisor.step(observed, now, out);
        if supervisor.is_trading() && supervisor.progress().is_draining {
            is_over = true;
            let time = ExitTime::Extended(Duration::from_secs(5));
            out.extend([Action::SetRunState(RunState::Stop), Action::EndProcesses(time)]);
        }
    })
}

/// Sees progress where there is none.
fn never_gives_up() -> Box<SupervisorStep<'static>> {
    let mut steps = 0;
    Box::new(move |supervisor, observed, now, out| {
        let mut observed = observed.clone();
        steps += 1;
        if let Some(engine) = &mut observed.engine {
            engine.reports += steps;
        }
        supervisor.step(&observed, now, out);
    })
}

/// Names the process after the one that has failed.
fn blames_neighbor() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        supervisor.step(observed, now, out);
        for action in out {
            if let Action::End(RunOutcome::Failed { process, .. }) = action
                && let Some(strategy) =
                    process.strip_prefix("strategy-").and_then(|it| it.parse::<u16>().ok())
            {
                *process = format!("strategy-{}", strategy + 1);
            }
        }
    })
}

/// Takes the exit of a strategy for that of the next one.
fn confuses_exits() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        let mut observed = observed.clone();
        let strategies = observed.strategies.len().min(observed.processes.len());
        let is_bad = |index: &usize| observed.exited_normally(*index) == Some(false);
        if let Some(dead) = (0..strategies).find(is_bad) {
            let next = (dead + 1) % strategies;
            let exit = observed.processes[dead].exit.take();
            observed.processes[next].exit = exit;
            observed.processes[next].is_proven_dead = true;
        }
        supervisor.step(&observed, now, out);
    })
}

/// Sees only the first of the processes that have died since the last step.
fn misses_second_death() -> Box<SupervisorStep<'static>> {
    let mut known: Vec<u32> = Vec::new();
    let mut missed: Vec<u32> = Vec::new();
    Box::new(move |supervisor, observed, now, out| {
        let mut observed = observed.clone();
        let died = observed.processes.iter().filter(|process| {
            process.exit.as_ref().is_some_and(|exit| !exit.is_success) && !known.contains(&process.pid)
        });
        let died: Vec<u32> = died.map(|process| process.pid).collect();
        missed.extend(died.iter().skip(1));
        known.extend(died);
        for process in observed.processes.iter_mut().filter(|process| missed.contains(&process.pid)) {
            (process.exit, process.is_proven_dead) = (None, false);
        }
        supervisor.step(&observed, now, out);
    })
}

/// Starts the process of a group again, and publishes only its first strategy's next incarnation.
fn restarts_one_of_group() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        supervisor.step(observed, now, out);
        let mut started = Vec::new();
        out.retain(|action| match action {
            Action::Renew(Role::Strategy(strategy), _) => {
                let is_first =
                    supervisor.containment().group_of(*strategy).iter().all(|it| !started.contains(it));
                started.push(*strategy);
                is_first
            }
            _ => true,
        });
    })
}

/// Believes that the process of a group is dead as soon as it was sent SIGKILL.
fn repairs_living_group() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        let mut observed = observed.clone();
        for (index, process) in observed.processes.iter_mut().enumerate() {
            let containment = supervisor.containment();
            if containment.awaits_exit(index) && containment.has_group(index) {
                process.exit.get_or_insert_default();
                process.is_proven_dead = true;
            }
        }
        supervisor.step(&observed, now, out);
    })
}

/// Does not start the successor of a dead process.
fn forgets_successor() -> Box<SupervisorStep<'static>> {
    without(|action| matches!(action, Action::Restart(_)))
}

/// Does not stop strategies when the run is interrupted, nor exchanges at its end.
fn forgets_drain() -> Box<SupervisorStep<'static>> {
    without(|action| *action == Action::SetRunState(RunState::Drain))
}

/// Starts a successor of a strategy that was retired.
fn replaces_retired() -> Box<SupervisorStep<'static>> {
    with_ends(|end, _| end.successor = Some(String::new()))
}

/// Ends the strategy after the one that an operator named.
fn ends_neighbor() -> Box<SupervisorStep<'static>> {
    with_ends(|end, strategies| end.strategy.0 = (end.strategy.0 + 1) % strategies)
}

/// Takes a step that observes other ends of strategies by operators.
fn with_ends(change: fn(&mut OperatorEnd, u16)) -> Box<SupervisorStep<'static>> {
    Box::new(move |supervisor, observed, now, out| {
        let mut observed = observed.clone();
        let strategies = observed.strategies.len() as u16;
        observed.ended_by_operators.iter_mut().for_each(|end| change(end, strategies));
        supervisor.step(&observed, now, out);
    })
}

/// Believes that a strategy that an operator ended is gone, and leaves its process running.
fn forgets_kill() -> Box<SupervisorStep<'static>> {
    without(|action| matches!(action, Action::Kill(_)))
}

/// Sees no strategy that an operator ends.
fn ignores_ends() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        supervisor.step(&Observations { ended_by_operators: Vec::new(), ..observed.clone() }, now, out);
    })
}

/// Starts the successor of a strategy that an operator replaces when trading has ended.
fn replaces_after_end() -> Box<SupervisorStep<'static>> {
    let mut has_started = false;
    Box::new(move |supervisor, observed, now, out| {
        let has_traded = supervisor.is_open() && !supervisor.is_trading();
        supervisor.step(observed, now, out);
        let is_over = out.iter().any(|action| matches!(action, Action::EndProcesses(_) | Action::End(_)));
        if has_started || !has_traded || is_over {
            return;
        }
        let replaced = observed.ended_by_operators.iter().find(|end| end.successor.is_some());
        let process = replaced.map(|end| usize::from(end.strategy.0));
        if let Some(process) = process.filter(|it| observed.exited_normally(*it) == Some(true)) {
            has_started = true;
            out.push(Action::Restart(process));
        }
    })
}

/// Sees no strategy that an operator adds.
fn ignores_additions() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        supervisor.step(&Observations { added_by_operators: Vec::new(), ..observed.clone() }, now, out);
    })
}

/// Starts the next incarnation of a strategy, and does not publish its epoch.
fn forgets_epoch() -> Box<SupervisorStep<'static>> {
    without(|action| matches!(action, Action::Renew(Role::Strategy(_), _)))
}

/// Starts spare strategies with the run.
fn starts_spares() -> Box<SupervisorStep<'static>> {
    Box::new(|supervisor, observed, now, out| {
        supervisor.step(observed, now, out);
        if out.iter().any(|action| matches!(action, Action::OpenBarrier(_))) {
            let is_spare = |process: &ProcessObservation| {
                process.exit.as_ref().is_some_and(|exit| exit.text == NOT_STARTED)
            };
            let spares = (0..).zip(&observed.processes).filter(|(_, process)| is_spare(process));
            out.extend(spares.map(|(index, _)| Action::Restart(index)));
        }
    })
}

const ALL: [BrokenSupervisor; 22] = {
    const fn broken(name: &'static str, step: fn() -> Box<SupervisorStep<'static>>) -> BrokenSupervisor {
        BrokenSupervisor { name, recovery_only: false, has_surroundings: false, can_show: has_deaths, step }
    }
    const fn of_threads(name: &'static str, step: fn() -> Box<SupervisorStep<'static>>) -> BrokenSupervisor {
        BrokenSupervisor {
            name,
            recovery_only: false,
            has_surroundings: false,
            can_show: has_threads_that_die,
            step,
        }
    }
    const fn of_recovery(name: &'static str, step: fn() -> Box<SupervisorStep<'static>>) -> BrokenSupervisor {
        BrokenSupervisor { name, recovery_only: true, has_surroundings: false, can_show: has_deaths, step }
    }
    [
        broken("forgets a fence", forgets_fence),
        of_threads("forgets a thread's fence", forgets_fence_of_thread),
        of_threads("restarts an abandoned thread", restarts_abandoned_thread),
        broken("restarts before the repair", restarts_before_repair),
        broken("fences without a proof", fences_without_proof),
        BrokenSupervisor { can_show: |_| true, ..broken("ends before the reports", ends_before_reports) },
        BrokenSupervisor {
            can_show: |scenario| scenario.kind == ScenarioKind::Assault(FaultKind::Lose),
            ..broken("never gives up", never_gives_up)
        },
        broken("blames another strategy", blames_neighbor),
        broken("confuses two exits", confuses_exits),
        broken("replaces a retired strategy", replaces_retired),
        broken("ends another strategy", ends_neighbor),
        BrokenSupervisor { can_show: is_ended_by_operators, ..broken("forgets a kill", forgets_kill) },
        BrokenSupervisor { can_show: is_ended_by_operators, ..broken("ignores an end", ignores_ends) },
        BrokenSupervisor { can_show: has_additions, ..broken("ignores an addition", ignores_additions) },
        BrokenSupervisor { can_show: has_additions, ..broken("forgets an epoch", forgets_epoch) },
        BrokenSupervisor { can_show: has_spares, ..broken("starts a spare", starts_spares) },
        BrokenSupervisor { can_show: has_endings, ..broken("replaces after the end", replaces_after_end) },
        BrokenSupervisor {
            can_show: has_groups_that_die,
            ..broken("restarts one strategy of a group", restarts_one_of_group)
        },
        BrokenSupervisor {
            can_show: has_groups_that_die,
            ..broken("repairs a group that lives", repairs_living_group)
        },
        of_recovery("misses a death with another", misses_second_death),
        of_recovery("forgets a successor", forgets_successor),
        of_recovery("forgets to drain", forgets_drain),
    ]
};

/// Returns the violated invariants of one run.
fn violations(supervisor: &BrokenSupervisor, seed: u64, techniques: &[Technique]) -> Vec<String> {
    let options =
        SimulationOptions { recovery_only: supervisor.recovery_only, ..SimulationOptions::default() };
    let scenario = options.scenario(seed, draw_technique(seed, techniques)).unwrap();
    let scenario = if supervisor.has_surroundings { scenario } else { scenario.without_surroundings() };
    if !(supervisor.can_show)(&scenario) {
        return Vec::new();
    }
    match simulate_with(scenario, None, &mut *(supervisor.step)()) {
        Ok(simulated) => simulated.judge().broken,
        Err(what) => vec![what],
    }
}

/// Finds each of these supervisors in fewer than `max` runs.
fn assert_found(all: &[BrokenSupervisor], max: u64) {
    let techniques: Vec<Technique> =
        Technique::all().into_iter().filter(|technique| is_simulated(*technique)).collect();
    let all: Vec<&BrokenSupervisor> = all.iter().collect();
    concurrently(4, &all, |supervisor| {
        let found = (0..max).find_map(|seed| {
            let broken = violations(supervisor, seed, &techniques);
            (!broken.is_empty()).then_some((seed, broken))
        });
        println!("{}: {found:?}", supervisor.name);
        assert!(found.is_some(), "a supervisor that {} was not found in {max} runs", supervisor.name);
    });
}

#[test]
fn each_broken_supervisor_is_found() {
    assert_found(&ALL, SEEDS);
}

/// Spares and strategies that have ended are added in many scenarios, and not all of them at once.
#[test]
fn drawn_additions_are_performed() {
    let (mut of_spares, mut of_others) = (0, 0);
    for seed in 0..200 {
        let scenario = Scenario::draw(seed, Technique::default()).unwrap().without_surroundings();
        if has_additions(&scenario) {
            let trading = scenario.plan.trading().clone();
            let additions = simulate(scenario, None).unwrap().record.additions;
            of_spares += additions.iter().filter(|added| trading.is_spare(added.strategy)).count();
            of_others += additions.iter().filter(|added| !trading.is_spare(added.strategy)).count();
        }
    }
    assert!(of_spares >= 10 && of_others >= 2, "{of_spares} spares, {of_others} others");
}

/// Returns the virtual time at which a run's trading ended, and its outcome.
fn end_of_trading(scenario: Scenario) -> (u64, RunOutcome) {
    let mut ended = None;
    let mut step = |supervisor: &mut Supervisor<'_>, observed: &Observations, now, out: &mut Vec<Action>| {
        supervisor.step(observed, now, out);
        if supervisor.is_open() && !supervisor.is_trading() {
            ended.get_or_insert(now);
        }
    };
    let outcome = simulate_with(scenario, None, &mut step).unwrap().record.outcome;
    (ended.unwrap(), outcome)
}

/// A run in which orders rest, and an operator retires strategy 0: nobody waits for its orders.
#[test]
fn retired_strategy_does_not_delay_end() {
    let (mut retired, mut seed) = (0, 0);
    while retired < 10 {
        let mut scenario = Scenario::recovery(seed).unwrap().without_surroundings();
        seed += 1;
        let trading = scenario.plan.trading();
        // None waits for a report, nor for space in its ring.
        let max_orders = u64::from(trading.max_open.min(trading.capacity));
        let can_send_all = trading.orders.iter().all(|orders| *orders <= max_orders);
        if trading.strategies < 2 || trading.spare_strategies > 0 || !can_send_all {
            continue;
        }
        let command = Command::EndStrategy {
            strategy: StrategyIndex(0),
            open_orders: OpenOrders::Cancel,
            is_replaced: false,
        };
        scenario.commands = vec![(scenario.schedule.window_ns() / 4, command)];
        (scenario.plan.faults, scenario.bursts, scenario.endings) = (Vec::new(), Vec::new(), Vec::new());
        scenario.machine_crash_ns = None;
        let (ended, outcome) = end_of_trading(scenario);
        assert_eq!(outcome, RunOutcome::Complete, "seed {seed}");
        // The wait for progress alone takes ten milliseconds.
        assert!(ended < 5_000_000, "seed {seed}: trading ended after {ended} ns");
        retired += 1;
    }
}

/// An exchange that is killed when trading has ended, and does not run again, is awaited for a
/// limited time.
#[test]
fn exchange_away_at_the_end_is_bounded() {
    let mut away = 0;
    let scenarios = (0..40).map(|seed| Scenario::recovery(seed).unwrap().without_surroundings());
    for scenario in scenarios.filter(|scenario| scenario.machine_crash_ns.is_none()).take(10) {
        let exchange = scenario.plan.process_of(Role::Exchange(VenueIndex(0))).unwrap();
        let threads = scenario.plan.processes[exchange].threads.clone();
        let (mut has_traded, mut killed, mut is_away) = (false, None, false);
        let mut step = |supervisor: &mut Supervisor<'_>, seen: &Observations, now, out: &mut Vec<Action>| {
            let mut observed = seen.clone();
            let pid = observed.processes[exchange].pid;
            if killed.is_some_and(|killed| killed != pid) {
                for thread in &threads {
                    observed.threads[*thread as usize].pulse =
                        LivenessSample { state: 0, tid: 0, heartbeat_ticks: 0 };
                }
                is_away = true;
            }
            supervisor.step(&observed, now, out);
            has_traded |= supervisor.is_trading();
            if has_traded && !supervisor.is_trading() && killed.is_none() {
                killed = Some(pid);
                out.push(Action::Kill(exchange));
            }
        };
        simulate_with(scenario, None, &mut step).unwrap();
        away += u32::from(is_away);
    }
    assert!(away > 0, "each run was over before");
}

/// A wrapper that changes nothing is not found: the mistakes are, and not the wrapping.
#[test]
fn unchanged_step_behind_wrapper_is_not_found() {
    let unchanged = BrokenSupervisor {
        name: "nothing",
        recovery_only: false,
        has_surroundings: true,
        can_show: |_| true,
        step: || {
            Box::new(
                |supervisor: &mut Supervisor<'_>, observed: &Observations, now, out: &mut Vec<Action>| {
                    supervisor.step(&observed.clone(), now, out);
                },
            )
        },
    };
    for seed in 0..40 {
        assert_eq!(violations(&unchanged, seed, &[Technique::default()]), Vec::<String>::new(), "{seed}");
    }
}
