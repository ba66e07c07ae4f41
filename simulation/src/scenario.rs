//! Draws a scenario from a seed: a plan, a schedule, faults, and slow roles.

use super::bursts;
use super::endings::{self, EndingAct, EndingEvent};
use super::hostile::Attack;
use super::machine::MachineScenario;
use super::recovery;
use super::recovery_environment::SimulatedRecovery;
use super::surroundings::{self, SurroundingEvent};
use anyhow::Result;
use planner::config::{Arrivals, Choice, DelayRange, Settings};
use planner::{self, OrderCounts, Resolved, RunIdentity};
use protocol::commands::{Command, OpenOrders};
use protocol::faults::Draws;
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::kill::Scope;
use protocol::plan::{
    Fault, FaultKind, FaultTarget, FaultTime, Idle, Isolation, IsolationLevel, IsolationLevels, OnDeath,
    Plan, Role, Technique, Threading,
};
use record::machine::Machine;
use record::units::{Count, Nanos};
use roles::SystemRecovery;
use roles::faults::venue::SLOW_BY_NS;
use shm::ring::spsc_mux::SpscMux;
use strategy::schedule::{Schedule, Spec, sample};

/// Liveness deadline of simulated threads, in nanoseconds of the virtual clock.
pub(super) const LIVENESS_NS: u64 = 1_000_000;

/// The kind of a scenario: normal trading, deaths, crash recovery, an attack, or another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioKind {
    /// A run without faults.
    Peace,
    /// Operators turn kill switches on and off, by the scenario's commands, and a venue may have a
    /// fault of the plan.
    Switched,
    /// Interrupted as by Ctrl-C: after this many nanoseconds no strategy sends any more.
    Interrupted(u64),
    /// Strategies die or hang, by faults of the plan.
    Deaths,
    /// The engine and exchanges die, and perhaps strategies, by faults of the plan. All recover,
    /// and nothing is lost.
    Recovery,
    /// One strategy attacks from within, by a fault of the plan: `scribble`, `flood`, `forge`,
    /// `feign`, `lose`, `hold`.
    Assault(FaultKind),
    /// One strategy sends invalid messages, beginning with one of its orders.
    Hostile(Attack, u64),
}

impl ScenarioKind {
    /// Returns the name of the scenario's kind in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ScenarioKind::Peace => "peace",
            ScenarioKind::Switched => "switched",
            ScenarioKind::Interrupted(_) => "interrupted",
            ScenarioKind::Deaths => "deaths",
            ScenarioKind::Recovery => "comebacks",
            ScenarioKind::Assault(kind) => kind.name(),
            ScenarioKind::Hostile(attack, _) => attack.name(),
        }
    }
}

/// A run to simulate, drawn from a seed: plan, schedule, faults and speeds.
#[derive(Debug)]
pub struct Scenario {
    /// The seed from which the scenario is drawn.
    pub seed: u64,
    /// Kind of the scenario.
    pub kind: ScenarioKind,
    /// Strategies that may die, hang or misbehave.
    pub culprits: Vec<StrategyIndex>,
    /// The plan of the simulated run.
    pub plan: Plan,
    /// The orders of the simulated run.
    pub schedule: Schedule,
    /// Hooks into the recovery of processes after a crash.
    pub recovery: &'static dyn SimulatedRecovery,
    /// Whether the engine and exchanges have hot standbys.
    pub has_standbys: bool,
    /// Time at which the simulated machine crashes, in nanoseconds after the start, if the run
    /// lasts that long.
    pub machine_crash_ns: Option<u64>,
    /// External kills: times in nanoseconds after the start, in order, with the roles whose
    /// processes are killed.
    pub bursts: Vec<(u64, Role)>,
    /// Operator commands with their times in nanoseconds after the start, in order.
    pub commands: Vec<(u64, Command)>,
    /// Events at the natural end of strategies.
    pub endings: Vec<EndingEvent>,
    /// The external event of the run, if it has one.
    pub surroundings: Option<SurroundingEvent>,
    /// Whether processes take several turns to end: their threads one after the other, the rest
    /// later.
    pub has_slow_exits: bool,
    /// Slowness of each thread of the plan, and of the launcher: n, if it gets one in 2^n of its
    /// drawn turns.
    pub(super) slowness: Vec<u64>,
}

/// Returns `true` if a technique can be simulated, because it uses only memory. Others would wait
/// for the kernel, or for their own clock and threads.
pub fn is_simulated(technique: Technique) -> bool {
    !technique.is_kernel() && !technique.is_foreign()
}

/// Draws one of the given techniques at random.
///
/// # Panics
/// The list is empty.
pub fn draw_technique(seed: u64, techniques: &[Technique]) -> Technique {
    techniques[Draws::new(seed, Draws::TECHNIQUE).below(techniques.len() as u64) as usize]
}

impl Scenario {
    /// Draws a scenario from a seed: plan, schedule, faults and speeds.
    ///
    /// # Errors
    /// The planner refuses what was drawn: a mistake here or there.
    pub fn draw(seed: u64, technique: Technique) -> Result<Self> {
        Self::draw_with(seed, technique, recovery::is_drawn(seed, technique))
    }

    /// Draws a recovery scenario from a seed: with crashes of engine and exchanges and their
    /// recovery, and in most of them bursts of deaths.
    ///
    /// # Errors
    /// The errors of [`Scenario::draw`].
    pub fn recovery(seed: u64) -> Result<Self> {
        let mut scenario = Self::draw_with(seed, Technique::from_link::<SpscMux>(), true)?;
        scenario.bursts = bursts::draw(seed, &scenario.plan, scenario.schedule.window_ns());
        let killed = scenario.bursts.iter().filter_map(|(_, role)| match role {
            Role::Strategy(strategy) => Some(*strategy),
            _ => None,
        });
        scenario.culprits.extend(killed);
        scenario.culprits.sort_unstable();
        scenario.culprits.dedup();
        Ok(scenario)
    }

    fn draw_with(seed: u64, technique: Technique, is_recovery: bool) -> Result<Self> {
        let draws = &mut Draws::new(seed, Draws::SCENARIO);
        let on_heap = !technique.crosses_processes();
        let strategies = 1 + draws.below(4) as u16;
        let venues = 1 + draws.below(3) as u16;
        let orders = 1 + draws.below(120);
        let arrivals = Arrivals::ALL[draws.below(Arrivals::ALL.len() as u64) as usize];
        let window_ns = 1 + draws.below(20_000);
        let delay = DelayRange { min_ns: 0, max_ns: draws.below(2_000) };
        let mut isolation =
            if on_heap || draws.below(10) == 0 { Isolation::Thread } else { Isolation::Process };
        let mut kind = draw_kind(draws, isolation, strategies, window_ns, orders);
        // From a random stream of their own, so that the rest of the scenario does not depend on
        // them.
        let switches = &mut Draws::new(seed, Draws::SWITCHES);
        if kind == ScenarioKind::Peace && switches.below(2) == 0 {
            kind = ScenarioKind::Switched;
        }
        let is_thread = isolation == Isolation::Thread;
        if is_thread && kind == ScenarioKind::Peace && switches.below(2) == 0 {
            kind = ScenarioKind::Deaths;
        }
        if is_recovery {
            (isolation, kind) = (Isolation::Process, ScenarioKind::Recovery);
        }
        let on_death = match (isolation, kind) {
            (_, ScenarioKind::Recovery) => OnDeath::Restart,
            (Isolation::Thread, ScenarioKind::Deaths) => {
                [OnDeath::Restart, OnDeath::Continue][switches.below(2) as usize]
            }
            (Isolation::Thread, _)
            | (_, ScenarioKind::Peace | ScenarioKind::Switched | ScenarioKind::Interrupted(_)) => {
                OnDeath::Stop
            }
            _ => [OnDeath::Restart, OnDeath::Restart, OnDeath::Restart, OnDeath::Continue, OnDeath::Stop]
                [draws.below(5) as usize],
        };
        let is_contained = isolation != Isolation::Thread && on_death != OnDeath::Stop;
        let isolation = if kind == ScenarioKind::Deaths && is_contained && strategies > 1 {
            draw_groups(&mut Draws::new(seed, Draws::GROUPS), isolation)
        } else {
            isolation.into()
        };
        let can_change = is_contained
            && !isolation.has_groups()
            && matches!(kind, ScenarioKind::Deaths | ScenarioKind::Recovery);
        let additions = &mut Draws::new(seed, Draws::ADDITIONS);
        let spares = if can_change { additions.below(2) * (1 + additions.below(2)) } else { 0 };
        let threading = if draws.below(2) == 0 { Threading::Dedicated } else { Threading::Shared };
        let mut settings = Settings {
            technique: Some(technique),
            isolation: Some(isolation),
            threading: Some(Choice::Fixed(threading)),
            idle: Some(Choice::Fixed(Idle::Yield)),
            strategies: Some(Count(strategies.into())),
            spare_strategies: Some(Count(spares)),
            venues: Some(Count(venues.into())),
            capacity: Some(Count(2 << draws.below(4))),
            max_open: Some(Count(1 + draws.below(20))),
            orders: Some(Count(orders)),
            window: Some(Nanos(window_ns)),
            arrivals: Some(arrivals),
            delay: Some(delay),
            seed: Some(Count(seed)),
            on_death: Some(on_death),
            liveness: Some(Nanos(LIVENESS_NS)),
            ..Settings::default()
        };
        let several = strategies > 1 && Draws::new(seed, Draws::CREDENTIALS).below(3) == 0;
        settings.credentials = several.then_some(Count(2));
        let recovery_draws = &mut Draws::new(seed, Draws::RESTARTS);
        let machine_scenario =
            if is_recovery { MachineScenario::draw(seed, window_ns) } else { MachineScenario::default() };
        if is_recovery {
            recovery::shape(&mut settings, recovery_draws);
            settings.journal = Some(machine_scenario.journal);
        }
        let resolved = Resolved::new(settings, Vec::new());
        let all_strategies = strategies + spares as u16;
        let spec = Spec { strategies: all_strategies, venues, orders, window_ns, arrivals, delay, seed };
        let schedule = sample(&spec)?;
        let counts = OrderCounts::from_schedule(&schedule);
        let identity = RunIdentity { run: format!("simulated-{seed}"), pid: super::LAUNCHER_PID, start: 1 };
        let (mut plan, _) = planner::layout(&resolved, &Machine::default(), &counts, identity)?;
        if kind == ScenarioKind::Peace && draws.below(2) == 0 {
            plan.trading_mut().max_held = 1 + draws.below(5) as u32;
        }
        let (mut culprits, mut commands) = (Vec::new(), Vec::new());
        match kind {
            ScenarioKind::Peace | ScenarioKind::Interrupted(_) => {}
            ScenarioKind::Switched => {
                commands = draw_kill_switches(switches, &plan, window_ns);
                if switches.below(2) == 0 {
                    add_venue_fault(switches, &mut plan, window_ns);
                }
            }
            ScenarioKind::Deaths => {
                let draw = if is_thread && !is_recovery { draw_thread_end } else { draw_death };
                for _ in 0..=draws.below(3) {
                    plan.faults.push(draw(draws, &plan, window_ns));
                }
                culprits = with_groups(targeted_strategies(&plan), &plan);
            }
            ScenarioKind::Recovery => {
                plan.faults = recovery::faults(recovery_draws, &plan, window_ns, draw_death);
                culprits = targeted_strategies(&plan);
            }
            ScenarioKind::Assault(kind) => {
                let target = StrategyIndex(draws.below(strategies.into()) as u16);
                let when = FaultTime::At { ns: draws.below(window_ns) };
                plan.faults.push(Fault {
                    kind,
                    target: FaultTarget::Strategy(target),
                    when,
                    every_ns: None,
                    lasts_ns: None,
                });
                culprits.push(target);
            }
            ScenarioKind::Hostile(..) => culprits.push(StrategyIndex(draws.below(strategies.into()) as u16)),
        }
        if can_change {
            commands.extend(draw_ends_by_operators(&mut Draws::new(seed, Draws::ENDS), &plan, window_ns));
            commands.extend(draw_additions(additions, &plan, window_ns));
            commands.sort_by_key(|(at, _)| *at);
            culprits.extend(commands.iter().filter_map(|(_, command)| match command {
                Command::EndStrategy { strategy, .. } => Some(*strategy),
                // What recovers may be killed while it starts.
                Command::AddStrategy { strategy } if kind == ScenarioKind::Recovery => Some(*strategy),
                _ => None,
            }));
        }
        let mut endings = Vec::new();
        if can_change {
            endings = endings::draw(&mut Draws::new(seed, Draws::ENDINGS), &plan, is_recovery);
            culprits.extend(endings.iter().map(|event| event.strategy));
        }
        let is_attack = matches!(kind, ScenarioKind::Assault(_) | ScenarioKind::Hostile(..));
        let can_have_event = machine_scenario.crash_ns.is_none() && !is_attack && !isolation.has_groups();
        let surroundings = surroundings::draw(seed, is_recovery, &plan, &culprits, window_ns);
        let surroundings = surroundings.filter(|_| can_have_event);
        let slowness =
            (0..=plan.threads.len()).map(|_| [0, 0, 0, 0, 1, 3, 5][draws.below(7) as usize]).collect();
        Ok(Self {
            seed,
            kind,
            culprits,
            plan,
            schedule,
            recovery: &SystemRecovery,
            has_standbys: machine_scenario.has_standbys,
            machine_crash_ns: machine_scenario.crash_ns,
            bursts: Vec::new(),
            commands,
            endings,
            surroundings,
            has_slow_exits: !is_attack && Draws::new(seed, Draws::DEATHS).below(2) == 0,
            slowness,
        })
    }

    /// Returns `true` if the scenario has faults that make a venue slow or silent.
    pub(super) fn has_venue_faults(&self) -> bool {
        self.plan.faults.iter().any(|fault| fault.kind.is_of_venue())
    }

    /// Returns the scenario without its external event (of kernel, debugger or launcher), in which
    /// a process that ends exits in one step.
    #[must_use]
    pub fn without_surroundings(self) -> Self {
        Self { surroundings: None, has_slow_exits: false, ..self }
    }

    /// Returns `true` if a strategy may die, hang or misbehave.
    pub(super) fn is_culprit(&self, strategy: StrategyIndex) -> bool {
        let dies_of_surroundings = self.surroundings.and_then(|event| event.culprit()) == Some(strategy);
        self.culprits.contains(&strategy) || dies_of_surroundings
    }

    /// Returns all operators' commands of the scenario.
    pub fn operator_commands(&self) -> impl Iterator<Item = Command> + '_ {
        let at_ends = self.endings.iter().filter_map(|event| match event.act {
            EndingAct::Command(command) => Some(command),
            EndingAct::Kill(_) => None,
        });
        self.commands.iter().map(|(_, command)| *command).chain(at_ends)
    }

    /// Describes the scenario in one line for reports.
    pub fn describe(&self) -> String {
        let plan = &self.plan;
        let mut text = format!(
            "{} strategies, {} venues, {} orders, {} slots, at most {} open, {} at {}, {}",
            plan.trading().strategies,
            plan.trading().venues,
            plan.trading().total_orders(),
            plan.trading().capacity,
            plan.trading().max_open,
            plan.technique,
            plan.isolation,
            plan.threading,
        );
        if plan.trading().credentials > 1 {
            text += &format!(", {} credentials", plan.trading().credentials);
        }
        if plan.trading().spare_strategies > 0 {
            text += &format!(", {} spare", plan.trading().spare_strategies);
        }
        if self.kind != ScenarioKind::Peace {
            text += &format!("; {}", self.kind.name());
        }
        if self.has_standbys {
            text += " with spares";
        }
        if !self.culprits.is_empty() {
            let names: Vec<String> = self.culprits.iter().map(StrategyIndex::to_string).collect();
            text += &format!(" of strategy {}, on death {}", names.join(", "), plan.on_death);
        }
        if self.kind == ScenarioKind::Recovery {
            text += &format!("; journals kept with {}", plan.trading().journal);
        }
        if let Some(ns) = self.machine_crash_ns {
            text += &format!("; the machine dies after {ns} ns");
        }
        if let Some(event) = &self.surroundings {
            text += &format!("; {}", event.describe());
        }
        text
    }
}

fn draw_kind(
    draws: &mut Draws,
    isolation: Isolation,
    strategies: u16,
    window_ns: u64,
    orders: u64,
) -> ScenarioKind {
    if isolation == Isolation::Thread {
        let is_interrupted = draws.below(4) == 0;
        return if is_interrupted {
            ScenarioKind::Interrupted(draws.below(window_ns))
        } else {
            ScenarioKind::Peace
        };
    }
    match draws.below(12) {
        0..=1 => ScenarioKind::Peace,
        2 => ScenarioKind::Interrupted(draws.below(window_ns)),
        3..=6 => ScenarioKind::Deaths,
        7 => ScenarioKind::Assault(FaultKind::Scribble),
        8 => ScenarioKind::Assault(FaultKind::Flood),
        9 => ScenarioKind::Assault(
            [FaultKind::Forge, FaultKind::Feign, FaultKind::Lose, FaultKind::HoldClaim]
                [draws.below(4) as usize],
        ),
        _ => {
            let attack = Attack::ALL[draws.below(Attack::ALL.len() as u64) as usize];
            let is_alone = strategies == 1 && attack == Attack::ForeignId;
            let attack = if is_alone { Attack::Garbage } else { attack };
            ScenarioKind::Hostile(attack, draws.below(orders.div_ceil(u64::from(strategies))))
        }
    }
}

/// Draws whether strategies share processes, in one of three scenarios: all of them in groups, or
/// every second one.
fn draw_groups(draws: &mut Draws, level: Isolation) -> IsolationLevels {
    let size = 2 + draws.below(2) as u16;
    let levels = match draws.below(6) {
        0 => vec![IsolationLevel::grouped(level, size)],
        1 => vec![IsolationLevel::grouped(level, size), level.into()],
        _ => vec![level.into()],
    };
    IsolationLevels::new(&levels).unwrap_or(level.into())
}

/// Returns these strategies and those that share a process with one of them.
fn with_groups(strategies: Vec<StrategyIndex>, plan: &Plan) -> Vec<StrategyIndex> {
    let dies_with_one = |strategy: &StrategyIndex| {
        let group = plan.group_of(*strategy);
        strategies.contains(strategy) || group.iter().any(|other| strategies.contains(other))
    };
    StrategyIndex::first(plan.trading().strategies).filter(dies_with_one).collect()
}

/// Draws kill switches, some of which are turned off again.
fn draw_kill_switches(draws: &mut Draws, plan: &Plan, window_ns: u64) -> Vec<(u64, Command)> {
    let trading = plan.trading();
    let mut commands = Vec::new();
    for _ in 0..=draws.below(4) {
        let scope = match draws.below(4) {
            0 if trading.credentials > 1 => Scope::Credential(draws.below(trading.credentials.into()) as u16),
            0 => Scope::All,
            1 => Scope::Venue(VenueIndex(draws.below(trading.venues.into()) as u16)),
            2 => Scope::Instrument(0),
            _ => Scope::Strategy(StrategyIndex(draws.below(trading.strategies.into()) as u16)),
        };
        let at = draws.below(window_ns);
        commands.push((at, Command::Kill(scope)));
        if draws.below(3) > 0 {
            commands.push((at + draws.below(window_ns), Command::Revive(scope)));
        }
    }
    commands.sort_by_key(|(at, _)| *at);
    commands
}

/// Draws retirements and replacements of strategies; none in half of the scenarios.
fn draw_ends_by_operators(draws: &mut Draws, plan: &Plan, window_ns: u64) -> Vec<(u64, Command)> {
    let count = draws.below(2) * (1 + draws.below(3));
    let end = |_| {
        let strategy = draws.below(plan.trading().strategies.into()) as u16;
        let open_orders = [OpenOrders::Drain, OpenOrders::Cancel][draws.below(2) as usize];
        let is_replaced = draws.below(3) > 0;
        (
            draws.below(window_ns),
            Command::EndStrategy { strategy: StrategyIndex(strategy), open_orders, is_replaced },
        )
    };
    (0..count).map(end).collect()
}

/// Draws additions of strategies: of spares, and in the place of others, which may be down then.
fn draw_additions(draws: &mut Draws, plan: &Plan, window_ns: u64) -> Vec<(u64, Command)> {
    let (count, spares) = (draws.below(4), plan.trading().spares());
    let addition = |_| {
        let is_of_spare = draws.below(3) > 0 && spares.len() > 0;
        let strategies = plan.trading().strategies;
        let candidates = if is_of_spare { strategies - spares.len() as u16 } else { 0 }..strategies;
        let strategy = StrategyIndex(candidates.start + draws.below(candidates.len() as u64) as u16);
        // Some are too late: their run has ended.
        (draws.below(window_ns + window_ns / 2), Command::AddStrategy { strategy })
    };
    (0..count).map(addition).collect()
}

/// Draws a temporary fault of a venue.
fn add_venue_fault(draws: &mut Draws, plan: &mut Plan, window_ns: u64) {
    const KINDS: [FaultKind; 5] =
        [FaultKind::Slow, FaultKind::Disconnect, FaultKind::Reject, FaultKind::Mute, FaultKind::Garble];
    let kind = KINDS[draws.below(5) as usize];
    let target = FaultTarget::Venue(VenueIndex(draws.below(plan.trading().venues.into()) as u16));
    let when = FaultTime::At { ns: draws.below(window_ns) };
    let lasts_ns = Some(1 + draws.below(window_ns));
    plan.faults.push(Fault { kind, target, when, every_ns: None, lasts_ns });
    let trading = plan.trading_mut();
    // A venue with a session does not publish when its reports are due. One timeout is shorter than
    // a slow venue's delay.
    trading.tells_release = false;
    trading.venue_timeout_ns = [50_000, 3 * SLOW_BY_NS][draws.below(2) as usize];
}

/// Returns the strategies that may receive a fault.
fn targeted_strategies(plan: &Plan) -> Vec<StrategyIndex> {
    let hits_any = plan.faults.iter().any(|fault| fault.target == FaultTarget::Any);
    let is_targeted = |index: &StrategyIndex| {
        hits_any || plan.faults.iter().any(|fault| fault.target == FaultTarget::Strategy(*index))
    };
    StrategyIndex::first(plan.trading().strategies).filter(is_targeted).collect()
}

/// Draws a fault by which a strategy dies or hangs.
fn draw_death(draws: &mut Draws, plan: &Plan, window_ns: u64) -> Fault {
    let strategy = FaultTarget::Strategy(StrategyIndex(draws.below(plan.trading().strategies.into()) as u16));
    let (ns, by_signal) = (draws.below(window_ns), draws.below(2) == 0);
    if by_signal {
        let kind = if draws.below(4) == 0 { FaultKind::Stop } else { FaultKind::Kill };
        let target = if draws.below(2) == 0 { FaultTarget::Any } else { strategy };
        let every_ns = (draws.below(2) == 0).then(|| window_ns / 4 + 1 + draws.below(window_ns));
        return Fault { kind, target, when: FaultTime::At { ns }, every_ns, lasts_ns: None };
    }
    const KINDS: [FaultKind; 6] = [
        FaultKind::Kill,
        FaultKind::Hang,
        FaultKind::Segv,
        FaultKind::Abort,
        FaultKind::Exit,
        FaultKind::Stop,
    ];
    let kind = KINDS[draws.below(6) as usize];
    draw_own_fault(draws, plan, ns, kind, strategy)
}

/// Draws a fault by which a strategy that is a thread panics or hangs.
fn draw_thread_end(draws: &mut Draws, plan: &Plan, window_ns: u64) -> Fault {
    let strategy = FaultTarget::Strategy(StrategyIndex(draws.below(plan.trading().strategies.into()) as u16));
    let ns = draws.below(window_ns);
    let kind = if draws.below(3) == 0 { FaultKind::Hang } else { FaultKind::Exit };
    draw_own_fault(draws, plan, ns, kind, strategy)
}

/// Draws when a strategy inflicts a fault on itself: at `ns` after the start, or within a push.
fn draw_own_fault(draws: &mut Draws, plan: &Plan, ns: u64, kind: FaultKind, target: FaultTarget) -> Fault {
    let steps = plan.technique.steps();
    let when = if draws.below(4) == 0 && kind != FaultKind::Kill && kind != FaultKind::Stop {
        FaultTime::At { ns }
    } else {
        let max_orders = plan.trading().orders.iter().copied().max().unwrap_or(1);
        let step = steps[draws.below(steps.len() as u64) as usize];
        FaultTime::Push { order: draws.below(max_orders), step }
    };
    Fault { kind, target, when, every_ns: None, lasts_ns: None }
}
