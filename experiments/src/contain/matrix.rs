//! The containment matrix: the faults to inject, the techniques and the isolation levels.

use planner::config::value::SettingValue;
use planner::config::{FaultSpec, Faults, Settings};
use protocol::index::{GatewayIndex, StrategyIndex, VenueIndex};
use protocol::plan::{
    ExchangePlacement, FaultKind, FaultTarget, FaultTime, Isolation, IsolationLevels, Journaling, OnDeath,
    Placement, Technique, Trading,
};
use record::units::{Count, Nanos};
use shm::ring::Step;

/// Default index of the target of an injected fault: the second of three strategies, or of two
/// venues or gateways.
pub const VICTIM: u16 = 1;
/// Strategies of a run, unless the user asks for another number.
const STRATEGIES: Count = Count(3);
/// Default time of a fault: late enough for a picture of the time before.
const FAULT_AT: Nanos = Nanos(400_000_000);
/// The order in whose push a fault is injected that is tied to one: at about the default time.
const FAULT_ORDER: u64 = 6_000;
/// Default duration of a venue fault.
const VENUE_FAULT: Nanos = Nanos(400_000_000);
/// Time after which an order without a sign from its venue is closed: a session that is down
/// recovers before that.
const VENUE_TIMEOUT: Nanos = Nanos(600_000_000);
/// Orders of a run: a percentile p99.9 of the others needs ten thousand, before and after.
const ORDERS: Count = Count(54_000);
/// Orders of a run in which the engine or another role has the fault.
const ROLE_ORDERS: Count = Count(6_000);
/// Orders of a run in which a venue has the fault: a 99th percentile of the others' needs a
/// thousand, before and during.
const VENUE_ORDERS: Count = Count(12_000);
/// The liveness deadline of runs with venue faults, in which no thread should hang.
const VENUE_LIVENESS: Nanos = Nanos(2_000_000_000);
const LIVENESS: Nanos = Nanos(200_000_000);

/// An injected fault with its target and time, and the name under which tables list it.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedFault {
    /// Name of the fault in the table: `kill`, `kill in a push`.
    pub name: String,
    pub fault: FaultSpec,
}

/// One combination of fault, technique and isolation level in the containment matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct ContainCase {
    pub technique: Technique,
    pub isolation: IsolationLevels,
    pub scenario: NamedFault,
    /// Journaling of exchanges and engine.
    pub journal: Journaling,
}

/// The journals that are tried where an exchange or the engine has the fault.
const JOURNALS: [Journaling; 3] = [Journaling::None, Journaling::Process, Journaling::Group];

impl ContainCase {
    /// Returns the name of this combination of fault, technique and level in a record.
    pub fn name(&self) -> String {
        let Self { technique, isolation, scenario: NamedFault { name, fault }, journal } = self;
        match fault.target {
            FaultTarget::Exchange(_) => format!("{fault} with journal {journal} under {isolation}"),
            FaultTarget::Gateway(_) => format!("{fault} against {technique} under {isolation}"),
            _ => format!("{name} against {technique} under {isolation}"),
        }
    }

    /// Returns the index of the strategy that gets the injected fault; `VICTIM` if the target is
    /// not a strategy.
    pub const fn victim(&self) -> u16 {
        match self.scenario.fault.target {
            FaultTarget::Strategy(index) => index.0,
            _ => VICTIM,
        }
    }

    /// Returns `true` if the fault's target is the engine, a gateway or an exchange; `false` for
    /// faults of strategies and venues.
    pub const fn is_of_role(&self) -> bool {
        matches!(
            self.scenario.fault.target,
            FaultTarget::Engine | FaultTarget::Exchange(_) | FaultTarget::Gateway(_)
        )
    }
}

impl NamedFault {
    /// Creates a named fault, with defaults for a target, a time or a venue fault's duration that
    /// is unset.
    pub fn new(fault: FaultSpec) -> Self {
        let is_of_venue = fault.kind.is_of_venue();
        let victim = if is_of_venue {
            FaultTarget::Venue(VenueIndex(VICTIM))
        } else {
            FaultTarget::Strategy(StrategyIndex(VICTIM))
        };
        let target = if fault.target == FaultTarget::Any { victim } else { fault.target };
        let lasts = fault.lasts.or(is_of_venue.then_some(VENUE_FAULT));
        let when = fault.when.unwrap_or(FaultTime::At { ns: FAULT_AT.0 });
        let name = match when {
            FaultTime::At { .. } => fault.kind.name().to_owned(),
            FaultTime::Push { step, .. } => format!("{} in a push, {step}", fault.kind),
        };
        Self { name, fault: FaultSpec { target, when: Some(when), lasts, ..fault } }
    }

    /// Returns `true` if this fault is to be tried with this technique. A fault at a step of a push
    /// needs a technique with that step; a fault that does not depend on the technique is tried
    /// with the default technique only.
    pub fn applies_to(&self, technique: Technique) -> bool {
        // A claimed slot of a private ring blocks no other producer.
        let is_shared = technique.steps().contains(&Step::Claimed);
        match self.fault.when {
            _ if self.fault.kind == FaultKind::HoldClaim && !is_shared => false,
            // Resource-exhaustion faults, core dumps and wild writes past the rings do not depend
            // on the technique.
            _ if self.fault.kind.is_resource_fault()
                || matches!(
                    self.fault.kind,
                    FaultKind::CoreDump
                        | FaultKind::WildLog
                        | FaultKind::WildHeap
                        | FaultKind::WildEngine
                        | FaultKind::WildCode
                ) =>
            {
                technique == Technique::default()
            }
            Some(FaultTime::Push { step, .. }) => technique.steps().contains(&step),
            _ => true,
        }
    }
}

/// Returns the faults that `launcher contain` injects by default: each kind, two kinds also in the
/// middle of a push, and a gateway that is killed or stopped. Not those of venues and disturbances,
/// which have tables of their own, and not [`FaultKind::Lose`]: a message lost before any peer sees
/// it cannot be contained, only noticed, and that ends the run.
pub fn standard_faults() -> Vec<NamedFault> {
    let at = |kind, when| FaultSpec { kind, target: FaultTarget::Any, when, every: None, lasts: None };
    let pushes = [FaultKind::Kill, FaultKind::Hang]
        .map(|kind| at(kind, Some(FaultTime::Push { order: FAULT_ORDER, step: Step::HalfWritten })));
    let is_tried =
        |kind: &&FaultKind| **kind != FaultKind::Lose && !kind.is_of_venue() && !kind.is_disturbance();
    let kinds = FaultKind::ALL.iter().filter(is_tried).map(|kind| at(*kind, None));
    let of_gateway = [FaultKind::Kill, FaultKind::Stop]
        .map(|kind| FaultSpec { target: FaultTarget::Gateway(GatewayIndex(VICTIM)), ..at(kind, None) });
    kinds.chain(pushes).chain(of_gateway).map(NamedFault::new).collect()
}

/// Returns all combinations to try, sorted by isolation level, technique and fault.
pub fn contain_cases(
    techniques: &[Technique],
    isolations: &[IsolationLevels],
    faults: Option<&Faults>,
) -> Vec<ContainCase> {
    let scenarios = match faults {
        Some(faults) => faults.0.iter().copied().map(NamedFault::new).collect(),
        None => standard_faults(),
    };
    let mut cases = Vec::new();
    for &isolation in isolations {
        let is_supported = |technique: &&Technique| {
            isolation.distinct().all(|level| planner::is_supported(**technique, level.kind()))
        };
        // Next to threads no role is restarted but strategies.
        let has_threads = isolation.has_threads();
        for &technique in techniques.iter().filter(is_supported) {
            // What carries the orders makes little difference to a gateway: the standard set tries
            // one technique only.
            let is_tried = |scenario: &&NamedFault| {
                let is_of_gateway = matches!(scenario.fault.target, FaultTarget::Gateway(_));
                scenario.applies_to(technique)
                    && (!is_of_gateway || faults.is_some() || technique == Technique::default())
            };
            for scenario in scenarios.iter().filter(is_tried) {
                let journals = match scenario.fault.target {
                    // The launcher's process has no exchange or gateway that could die alone.
                    FaultTarget::Exchange(_) | FaultTarget::Gateway(_) if has_threads => continue,
                    FaultTarget::Engine if has_threads => &JOURNALS[..1],
                    FaultTarget::Exchange(_) | FaultTarget::Engine => &JOURNALS[..],
                    _ => &JOURNALS[..1],
                };
                let case =
                    |journal| ContainCase { technique, isolation, scenario: scenario.clone(), journal };
                cases.extend(journals.iter().copied().map(case));
            }
        }
    }
    cases
}

/// Returns the techniques that work between processes, which `launcher contain` tries by default.
pub fn cross_process_techniques() -> Vec<Technique> {
    Technique::all().into_iter().filter(|technique| technique.crosses_processes()).collect()
}

/// Returns `true` if one of the requested strategies is an external program of the user, not built
/// in.
pub fn has_program(asked: &Settings) -> bool {
    asked.strategy().0.iter().any(|kind| Trading::command_of(kind).is_some())
}

/// Returns `true` if a strategy at this isolation level can be an external program of the user
/// (`process` and `container`).
pub const fn carries_programs(isolation: Isolation) -> bool {
    matches!(isolation, Isolation::Process | Isolation::Container)
}

/// Moves a case's fault from a user's program to the first built-in strategy, if the strategy must
/// commit the fault itself. A user's program cannot be made to. Returns `false` if no strategy is
/// built in.
pub fn choose_victim(case: &mut ContainCase, asked: &Settings) -> bool {
    let fault = &mut case.scenario.fault;
    let is_by_signal = matches!(fault.kind, FaultKind::Kill | FaultKind::Stop)
        && !matches!(fault.when, Some(FaultTime::Push { .. }));
    let kinds = asked.strategy().0;
    let is_program = |index: u16| Trading::command_of(&kinds[usize::from(index) % kinds.len()]).is_some();
    match fault.target {
        FaultTarget::Strategy(index) if is_program(index.0) && !is_by_signal => {
            let strategies = asked.strategies.unwrap_or(STRATEGIES).0;
            let own = (0..strategies.min(u16::MAX.into()) as u16).find(|index| !is_program(*index));
            own.is_some_and(|own| {
                fault.target = FaultTarget::Strategy(StrategyIndex(own));
                true
            })
        }
        _ => true,
    }
}

/// Returns the containment case of a run with these settings: fault, technique and isolation level;
/// `None` if one is unset. Of several faults it is about the last.
pub fn case_of(settings: &Settings) -> Option<ContainCase> {
    let fault = *settings.fault.as_ref()?.0.last()?;
    Some(ContainCase {
        technique: settings.technique?,
        isolation: settings.isolation?,
        scenario: NamedFault::new(fault),
        journal: settings.journal.unwrap_or_default(),
    })
}

/// Returns the user's settings, overridden by those of one case of the containment matrix. The load
/// is small and lasts long enough for some time before the incident, and some after it.
pub fn settings(case: &ContainCase, asked: &Settings) -> Settings {
    let contains = !case.isolation.has_threads();
    let own = Settings {
        technique: Some(case.technique),
        isolation: Some(case.isolation),
        fault: Some(Faults(vec![case.scenario.fault])),
        on_death: Some(asked.on_death.unwrap_or(OnDeath::Restart)),
        ..Settings::default()
    };
    let load = Settings {
        strategies: Some(STRATEGIES),
        venues: Some(Count(2)),
        orders: Some(if case.is_of_role() { ROLE_ORDERS } else { ORDERS }),
        window: Some(Nanos(1_200_000_000)),
        delay: SettingValue::parse("uniform:1ms..20ms").ok(),
        liveness: Some(LIVENESS),
        ..Settings::default()
    };
    let load = match case.scenario.fault.kind.is_of_venue() {
        true => Settings {
            orders: Some(VENUE_ORDERS),
            venue_timeout: Some(VENUE_TIMEOUT),
            liveness: Some(VENUE_LIVENESS),
            ..load
        },
        false => load,
    };
    let own = match case.scenario.fault.target {
        FaultTarget::Exchange(_) | FaultTarget::Engine if contains => Settings {
            venue: SettingValue::parse(Trading::BOOK).ok(),
            exchange: Some(ExchangePlacement::Process),
            journal: Some(case.journal),
            ..own
        },
        FaultTarget::Gateway(_) => Settings { process: Some(Placement::EachGateway), ..own },
        _ => own,
    };
    own.over(asked.clone()).over(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cases of these faults with the default technique, each with its settings, by which it is
    /// found again.
    fn cases_of(faults: &str) -> Vec<(ContainCase, Settings)> {
        let faults = Faults::parse(faults).unwrap();
        let cases = contain_cases(&[Technique::default()], &each_level(), Some(&faults));
        cases.into_iter().map(found_again).collect()
    }

    fn each_level() -> Vec<IsolationLevels> {
        Isolation::ALL.iter().map(|level| IsolationLevels::uniform(*level)).collect()
    }

    fn found_again(case: ContainCase) -> (ContainCase, Settings) {
        let settings = settings(&case, &Settings::default());
        assert_eq!(case_of(&Settings::from_texts(&settings.to_texts()).unwrap()).as_ref(), Some(&case));
        (case, settings)
    }

    #[test]
    fn default_faults_are_every_kind_and_mid_push() {
        let names: Vec<String> = standard_faults().into_iter().map(|scenario| scenario.name).collect();
        let others = FaultKind::ALL.iter().filter(|kind| kind.is_of_venue() || kind.is_disturbance()).count();
        assert_eq!(names.len(), FaultKind::ALL.len() - 1 - others + 2 + 2);
        assert!(names.contains(&"kill in a push, half-written".to_owned()), "{names:?}");
        let cases = contain_cases(&Technique::all(), &each_level(), None);
        let heap = |case: &&ContainCase| !case.technique.crosses_processes();
        assert!(cases.iter().filter(heap).all(|case| case.isolation.is_only(Isolation::Thread)));
        let kernel_push =
            cases.iter().any(|case| case.technique.is_kernel() && case.scenario.name.contains("push"));
        assert!(!kernel_push, "a system call has no middle");
        let of_gateways: Vec<Technique> =
            cases.iter().filter(|case| case.is_of_role()).map(|case| case.technique).collect();
        assert_eq!(of_gateways, [Technique::default(); 6], "two at each level with processes");
        cases.into_iter().for_each(|case| drop(found_again(case)));
    }

    #[test]
    fn a_venue_has_its_faults_for_a_while() {
        let cases = cases_of("slow; mute:venue-0@1s for 10ms");
        let faults: Vec<String> = cases.iter().map(|(case, _)| case.scenario.fault.to_string()).collect();
        assert_eq!(faults[..2], ["slow:venue-1@400ms for 400ms", "mute:venue-0@1s for 10ms"]);
        assert_eq!(faults.len(), 2 * Isolation::ALL.len());
        let is_closed =
            |(_, settings): &(ContainCase, Settings)| settings.venue_timeout == Some(VENUE_TIMEOUT);
        assert!(cases.iter().all(is_closed), "the gateway closes silent orders");
    }

    #[test]
    fn role_faults_are_tried_with_and_without_journal() {
        let cases = cases_of("kill:exchange; stop:exchange@1s; kill:engine");
        let of = |isolation| cases.iter().filter(move |(case, _)| case.isolation.is_only(isolation)).count();
        assert_eq!(
            Isolation::ALL.iter().map(|isolation| of(*isolation)).collect::<Vec<_>>(),
            [1, 1, 9, 9, 9]
        );
        let gateways = cases_of("kill:gateway-1; stop:gateway-1");
        assert_eq!(gateways.len(), 2 * (Isolation::ALL.len() - 2));
        assert!(gateways.iter().all(|(_, settings)| settings.process == Some(Placement::EachGateway)));
        assert!(cases.iter().chain(&gateways).all(|(case, _)| case.is_of_role()));
    }

    #[test]
    fn own_strategy_has_faults_that_no_program_does() {
        let asked =
            |kinds: &str| Settings { strategy: SettingValue::parse(kinds).ok(), ..Settings::default() };
        let victims = |kinds: &str| {
            let mut cases = contain_cases(&[Technique::default()], &[Isolation::Process.into()], None);
            cases.retain(|case| !case.is_of_role());
            cases.retain_mut(|case| choose_victim(case, &asked(kinds)));
            let victims = cases.into_iter().map(|case| (case.scenario.name, case.scenario.fault.target));
            victims.collect::<Vec<_>>()
        };
        let all = victims("player");
        assert!(all.iter().all(|(_, target)| *target == FaultTarget::Strategy(StrategyIndex(VICTIM))));
        let mixed = victims("player,exec:./mine");
        assert_eq!(mixed.len(), all.len(), "each kind of fault has a victim");
        for (name, target) in &mixed {
            let victim = if ["kill", "stop"].contains(&name.as_str()) { VICTIM } else { 0 };
            assert_eq!(*target, FaultTarget::Strategy(StrategyIndex(victim)), "{name}");
        }
        let names: Vec<String> = victims("exec:./mine").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["kill", "stop"], "a program has no other fault");
    }

    #[test]
    fn victim_beside_threads_is_restarted() {
        let of = |levels: &str| {
            let faults = Faults::parse("kill; kill:exchange; kill:gateway-1").unwrap();
            let levels: IsolationLevels = levels.parse().unwrap();
            let cases = contain_cases(&[Technique::default()], &[levels], Some(&faults));
            cases.into_iter().map(found_again).collect::<Vec<_>>()
        };
        for (levels, victim) in
            [("thread+process", Isolation::Process), ("process+thread", Isolation::Thread)]
        {
            let [(case, settings)] = &of(levels)[..] else { panic!("{levels}: roles need restarts") };
            let found = (case.isolation.kind_of(StrategyIndex(case.victim())), settings.on_death);
            assert_eq!(found, (victim, Some(OnDeath::Restart)));
        }
        let restarted = of("process+sandbox");
        assert_eq!(restarted.len(), 5, "the strategy, the exchange with three journals, the gateway");
        assert!(restarted.iter().all(|(_, settings)| settings.on_death == Some(OnDeath::Restart)));
    }

    #[test]
    fn user_settings_stay_and_every_level_restarts() {
        let asked = Settings { strategies: Some(Count(5)), ..Settings::default() };
        let of = |isolation: Isolation| {
            settings(&contain_cases(&[Technique::default()], &[isolation.into()], None)[0], &asked)
        };
        assert_eq!(of(Isolation::Process).strategies, Some(Count(5)));
        assert_eq!(of(Isolation::Process).on_death, Some(OnDeath::Restart));
        assert_eq!(of(Isolation::Thread).on_death, Some(OnDeath::Restart));
    }
}
