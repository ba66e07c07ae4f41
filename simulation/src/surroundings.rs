//! Draws the external event of a simulated run: the kernel starts no process, takes memory away,
//! gives a thread no CPU time, or makes a journal wait for its disk; a debugger stops a strategy;
//! the launcher itself fails.
//!
//! | event | what must hold |
//! |---|---|
//! | starts fail | each is a death of its own; later ones succeed, or the strategy stays down |
//! | the launcher fails, memory is lost | the run ends in the launcher's name |
//! | a strategy is stopped by a debugger | no incident |
//! | a thread is starved, or waits for a disk | no incident, and no restart |
//! | a strategy is starved for ever, or sleeps in the kernel | it is found within its limits |
//! | a disk syncs nothing for a time | the run does not stall |
//!
//! At most one event in a run, from a random stream of its own: without it, a seed's run is the one
//! that it was before.

use protocol::faults::Draws;
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::plan::{Fault, FaultKind, FaultTarget, Isolation, Journaling, OnDeath, Plan, Role};
use supervision::restart_policy::MAX_RESTARTS;

/// Number of scenarios of which one has an event in its surroundings.
const SHARE: u64 = 3;
/// A process that sleeps in the kernel exits this long after SIGKILL, at least: longer than the
/// time from which on the launcher records why.
const MIN_SLOW_EXIT_NS: u64 = 1_100_000_000;
/// The sum of the pauses before all restarts of a strategy that makes no progress, at least.
const MAX_BACKOFFS_NS: u64 = 1_300_000_000;

/// The reason why a simulated thread gets no duty cycles for a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandstillCause {
    /// The thread is runnable and gets no core.
    Starved,
    /// A trusted debugger has stopped the thread's process.
    Debugger,
    /// The thread waits for a journal thread of its process, which waits for the disk.
    Disk,
    /// The thread is in an uninterruptible sleep, and its process exits this long after SIGKILL.
    Kernel {
        /// Time from SIGKILL to the exit, in nanoseconds.
        exits_after_ns: u64,
    },
}

/// An external event of a simulated run, caused by the kernel, a debugger or the launcher. Times
/// are nanoseconds after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurroundingEvent {
    /// The next starts of a role's process fail.
    FailedStarts {
        /// The role that cannot be started.
        role: Role,
        /// Number of starts that fail.
        failures: u32,
    },
    /// An action of the launcher cannot be performed.
    LauncherError {
        /// When it fails.
        at_ns: u64,
    },
    /// The status of a strategy's thread is lost: the launcher reads zeros from then on.
    LauncherLostMemory {
        /// When the launcher loses it.
        at_ns: u64,
        /// The strategy.
        strategy: StrategyIndex,
    },
    /// A process accesses lost memory, and dies of SIGBUS.
    ProcessLostMemory {
        /// When it dies.
        at_ns: u64,
        /// A role of the process.
        role: Role,
    },
    /// The thread of a role gets no turns.
    Standstill {
        /// When it gets its last turn.
        at_ns: u64,
        /// The role.
        role: Role,
        /// Why it gets none.
        cause: StandstillCause,
        /// For how long; `None`: it never runs again.
        lasts_ns: Option<u64>,
    },
    /// No journal reaches the disk.
    DiskStall {
        /// When the disk stalls.
        at_ns: u64,
        /// For how long.
        lasts_ns: u64,
    },
}

impl SurroundingEvent {
    /// Returns the strategy that this external event hits, if the event may end that strategy's
    /// process; otherwise `None`.
    pub fn culprit(&self) -> Option<StrategyIndex> {
        match *self {
            Self::FailedStarts { role: Role::Strategy(strategy), .. }
            | Self::ProcessLostMemory { role: Role::Strategy(strategy), .. }
            | Self::Standstill { role: Role::Strategy(strategy), lasts_ns: None, .. } => Some(strategy),
            _ => None,
        }
    }

    /// Returns when it comes, in nanoseconds after the start; `None` if it depends on the launcher.
    pub(super) const fn at_ns(&self) -> Option<u64> {
        match *self {
            Self::FailedStarts { .. } => None,
            Self::LauncherError { at_ns }
            | Self::LauncherLostMemory { at_ns, .. }
            | Self::ProcessLostMemory { at_ns, .. }
            | Self::Standstill { at_ns, .. }
            | Self::DiskStall { at_ns, .. } => Some(at_ns),
        }
    }

    /// Returns how long the death of a strategy may take to handle, in nanoseconds: restarts wait
    /// for their backoff, and exits for the kernel. The limits of other simulated runs are shorter.
    pub(super) const fn handling_ns(&self) -> Option<u64> {
        match *self {
            Self::FailedStarts { .. } => Some(MAX_BACKOFFS_NS),
            Self::Standstill { cause: StandstillCause::Kernel { exits_after_ns }, .. } => {
                Some(exits_after_ns)
            }
            _ => None,
        }
    }

    /// Returns the role that stands still for a time and must not be taken for hung.
    pub(super) const fn exempt_role(&self) -> Option<Role> {
        match *self {
            Self::Standstill { role, lasts_ns: Some(_), .. } => Some(role),
            _ => None,
        }
    }

    /// Describes the event in one line.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::FailedStarts { role, failures } => format!("{failures} starts of {role} fail"),
            Self::LauncherError { at_ns } => format!("the launcher fails after {at_ns} ns"),
            Self::LauncherLostMemory { at_ns, strategy } => {
                format!("the launcher loses memory of strategy {strategy} after {at_ns} ns")
            }
            Self::ProcessLostMemory { at_ns, role } => format!("{role} loses memory after {at_ns} ns"),
            Self::Standstill { at_ns, role, cause, lasts_ns } => {
                let length = lasts_ns.map_or_else(|| "for ever".into(), |ns| format!("for {ns} ns"));
                format!("{role} gets no turns after {at_ns} ns, {length}: {cause:?}")
            }
            Self::DiskStall { at_ns, lasts_ns } => {
                format!("the disk stalls after {at_ns} ns, for {lasts_ns} ns")
            }
        }
    }
}

/// Draws one kind of event. The last argument is the length of the schedule in nanoseconds; `None`:
/// there is nothing that it could happen to.
type DrawEvent = fn(&mut Draws, &Plan, &[StrategyIndex], u64) -> Option<SurroundingEvent>;

/// Draws the event in the surroundings of a run in which nobody attacks, if it has one.
/// `is_recovery`: engine and exchanges recover from crashes. `culprits`: the strategies that may
/// die without the event.
pub(super) fn draw(
    seed: u64,
    is_recovery: bool,
    plan: &Plan,
    culprits: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let mut draws = Draws::new(seed, Draws::SURROUNDINGS);
    if draws.below(SHARE) > 0 {
        return None;
    }
    let mut candidates: Vec<DrawEvent> = vec![launcher_error, launcher_lost_memory];
    let can_die = plan.on_death != OnDeath::Stop && !culprits.is_empty();
    if culprits.is_empty() || can_die {
        // Otherwise a strategy that hangs at this time may be named.
        candidates.push(process_lost_memory);
    }
    let is_process = !plan.isolation.has(Isolation::Thread);
    // Few runs can have the events that are drawn several times, and without a death there is no
    // start that could fail.
    if is_process && can_die && plan.on_death == OnDeath::Restart {
        candidates.extend([failed_starts as DrawEvent; 6]);
    }
    // Virtual time passes in steps to the next fault, which are too short for what lasts long.
    if !repeats_faults(plan) {
        candidates.push(starved_for_a_time);
        if is_process {
            candidates.extend([debugger_stop as DrawEvent; 4]);
        }
        if is_process && can_die {
            candidates.push(starved_for_ever);
        }
        // Processes that recover need too many turns in this time.
        if is_process && can_die && !is_recovery {
            candidates.extend([kernel_sleep as DrawEvent; 4]);
        }
        if is_recovery {
            candidates.extend([disk_wait as DrawEvent; 4]);
        }
        if is_recovery && plan.trading().journal == Journaling::Group {
            candidates.extend([disk_stall as DrawEvent; 8]);
        }
    }
    let draw = candidates[draws.below(candidates.len() as u64) as usize];
    draw(&mut draws, plan, culprits, window_ns)
}

fn any_strategy(draws: &mut Draws, plan: &Plan) -> StrategyIndex {
    let trading = plan.trading();
    let strategies = trading.strategies - trading.spares().len() as u16;
    StrategyIndex(draws.below(strategies.into()) as u16)
}

/// Returns a strategy that nothing else kills.
fn innocent(draws: &mut Draws, plan: &Plan, culprits: &[StrategyIndex]) -> Option<StrategyIndex> {
    let strategies = StrategyIndex::first(plan.trading().strategies);
    let is_innocent =
        |strategy: &StrategyIndex| !culprits.contains(strategy) && !plan.trading().is_spare(*strategy);
    let all: Vec<StrategyIndex> = strategies.filter(is_innocent).collect();
    all.get(draws.below(all.len() as u64) as usize).copied()
}

/// Returns a role that writes a journal: one that no fault of the plan ends, if there is one.
fn journaled_role(draws: &mut Draws, plan: &Plan) -> Role {
    let exchanges = VenueIndex::first(plan.trading().venues).map(Role::Exchange);
    let all: Vec<Role> = exchanges.chain([Role::Orchestrator]).collect();
    let is_spared = |role: &&Role| {
        let is_its = |fault: &Fault| match fault.target {
            FaultTarget::Engine => **role == Role::Orchestrator,
            FaultTarget::Exchange(venue) => **role == Role::Exchange(venue),
            _ => false,
        };
        !plan.faults.iter().any(is_its)
    };
    let spared: Vec<Role> = all.iter().filter(is_spared).copied().collect();
    let roles = if spared.is_empty() { all } else { spared };
    roles[draws.below(roles.len() as u64) as usize]
}

/// Returns `true` if a fault of the plan lets the engine or an exchange hang.
fn has_hanging_roles(plan: &Plan) -> bool {
    let hangs = |target: FaultTarget| matches!(target, FaultTarget::Engine | FaultTarget::Exchange(_));
    plan.faults.iter().any(|fault| fault.kind == FaultKind::Stop && hangs(fault.target))
}

fn repeats_faults(plan: &Plan) -> bool {
    plan.faults.iter().any(|fault| fault.every_ns.is_some())
}

fn failed_starts(
    draws: &mut Draws,
    plan: &Plan,
    culprits: &[StrategyIndex],
    _: u64,
) -> Option<SurroundingEvent> {
    let is_journaled = plan.engine_is_restartable() && draws.below(4) == 0;
    let role = match is_journaled {
        true => journaled_role(draws, plan),
        false => Role::Strategy(*culprits.get(draws.below(culprits.len() as u64) as usize)?),
    };
    let failures = match draws.below(4) {
        // Starts after the first failure wait for their backoff.
        _ if repeats_faults(plan) => 1,
        // Processes that recover need too many turns in this time.
        0 if !plan.engine_is_restartable() => MAX_RESTARTS + 1,
        _ => 1 + draws.below(4) as u32,
    };
    Some(SurroundingEvent::FailedStarts { role, failures })
}

fn launcher_error(
    draws: &mut Draws,
    _: &Plan,
    _: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    Some(SurroundingEvent::LauncherError { at_ns: draws.below(window_ns) })
}

fn launcher_lost_memory(
    draws: &mut Draws,
    plan: &Plan,
    _: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let strategy = any_strategy(draws, plan);
    Some(SurroundingEvent::LauncherLostMemory { at_ns: draws.below(window_ns), strategy })
}

fn process_lost_memory(
    draws: &mut Draws,
    plan: &Plan,
    _: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let role = match draws.below(3) {
        0 => Role::Orchestrator,
        _ => Role::Strategy(any_strategy(draws, plan)),
    };
    Some(SurroundingEvent::ProcessLostMemory { at_ns: draws.below(window_ns), role })
}

fn debugger_stop(
    draws: &mut Draws,
    plan: &Plan,
    culprits: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let role = Role::Strategy(innocent(draws, plan, culprits)?);
    standstill(draws, plan, (role, StandstillCause::Debugger), 18, window_ns)
}

fn starved_for_a_time(
    draws: &mut Draws,
    plan: &Plan,
    culprits: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let is_engine = draws.below(3) == 0 && !has_hanging_roles(plan);
    let role = if is_engine { Role::Orchestrator } else { Role::Strategy(innocent(draws, plan, culprits)?) };
    standstill(draws, plan, (role, StandstillCause::Starved), 8, window_ns)
}

fn starved_for_ever(
    draws: &mut Draws,
    plan: &Plan,
    _: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let role = Role::Strategy(any_strategy(draws, plan));
    let (at_ns, cause) = (draws.below(window_ns), StandstillCause::Starved);
    Some(SurroundingEvent::Standstill { at_ns, role, cause, lasts_ns: None })
}

fn kernel_sleep(
    draws: &mut Draws,
    plan: &Plan,
    _: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let role = Role::Strategy(any_strategy(draws, plan));
    let exits_after_ns = MIN_SLOW_EXIT_NS + draws.below(MIN_SLOW_EXIT_NS / 4);
    let (at_ns, cause) = (draws.below(window_ns), StandstillCause::Kernel { exits_after_ns });
    Some(SurroundingEvent::Standstill { at_ns, role, cause, lasts_ns: None })
}

fn disk_wait(
    draws: &mut Draws,
    plan: &Plan,
    _: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let role = journaled_role(draws, plan);
    let event = standstill(draws, plan, (role, StandstillCause::Disk), 30, window_ns);
    event.filter(|_| !has_hanging_roles(plan))
}

/// Draws the standstill of a role that lasts for up to `limits` liveness deadlines.
fn standstill(
    draws: &mut Draws,
    plan: &Plan,
    (role, cause): (Role, StandstillCause),
    limits: u64,
    window_ns: u64,
) -> Option<SurroundingEvent> {
    let lasts_ns = Some(plan.liveness_ns * 3 / 2 + draws.below((limits - 1) * plan.liveness_ns));
    Some(SurroundingEvent::Standstill { at_ns: draws.below(window_ns), role, cause, lasts_ns })
}

fn disk_stall(
    draws: &mut Draws,
    plan: &Plan,
    _: &[StrategyIndex],
    window_ns: u64,
) -> Option<SurroundingEvent> {
    // Longer than the run may be without progress, and shorter than any wait can be extended.
    let lasts_ns = (25 + draws.below(30)) * plan.liveness_ns;
    Some(SurroundingEvent::DiskStall { at_ns: draws.below(window_ns), lasts_ns })
}
