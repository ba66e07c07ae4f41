//! The trading workload: strategies, an orchestrator, and a gateway for each venue and credential.

use crate::index::{GatewayIndex, StrategyIndex};
use crate::instrument::MAX_INSTRUMENTS;
use crate::link::LinkPlan;
use crate::plan::{
    ClockSource, Idle, Isolation, IsolationLevels, OnDeath, Placement, Plan, PlanError, PlanVersion,
    ProcessPlan, Stamps, Technique, ThreadPlan, Threading, Trading, Workload, ensure,
};
use crate::role::Role;
use crate::wire::{MAX_REPORTS, MAX_STRATEGIES, MAX_VENUES};
use crate::workload::{ExchangePlacement, Speculation};
use std::collections::BTreeMap;

/// The name of the hand-off that carries orders: strategies to orchestrator.
pub const SUBMIT: &str = "submit";
/// Name of the environment variable with the address of the run: the run's id, or the control
/// segment's descriptor as `fd:N`. [`control_at`](crate::segments::control_at) opens it.
pub const RUN_VARIABLE: &str = "BULKHEAD_RUN";
/// Name of the environment variable with the name of an external program's process in the run.
pub const PROCESS_VARIABLE: &str = "BULKHEAD_PROCESS";
/// Name of the environment variable with the kind (such as `maker`) that an operator gave a
/// strategy during the run, as `strategy-2=maker`. It is not set if no operator did.
pub const KIND_VARIABLE: &str = "BULKHEAD_KIND";

/// The name of the engine's process.
const ENGINE: &str = "engine";

/// The name of the hand-off that carries reports: gateways to orchestrator.
pub const COMPLETION: &str = "completion";

/// Returns the name of the 1→1 link from the orchestrator to a gateway.
pub fn inbox(gateway: GatewayIndex) -> String {
    format!("inbox-{gateway}")
}

/// Returns the name of the 1→1 link from a gateway to its exchange.
pub fn session_out(gateway: GatewayIndex) -> String {
    format!("session-out-{gateway}")
}

/// Returns the name of the 1→1 link from an exchange to one of its gateways.
pub fn session_in(gateway: GatewayIndex) -> String {
    format!("session-in-{gateway}")
}

/// Returns the name of the 1→1 link from the orchestrator back to a strategy.
pub fn return_path(strategy: StrategyIndex) -> String {
    format!("return-{strategy}")
}

impl Trading {
    /// Returns the name of a role for people, such as `strategy-2`. With several credentials that
    /// of a gateway has its venue and credential: `gateway-3 1/1`.
    pub fn role_name(&self, role: Role) -> String {
        match role {
            Role::Gateway(gateway) if self.credentials > 1 => {
                let (venue, credential) = self.venue_and_credential(gateway);
                format!("{role} {venue}/{credential}")
            }
            role => role.to_string(),
        }
    }
}

impl Plan {
    /// Creates a trading plan with minimal settings, to be changed and then completed by
    /// [`Plan::arranged`].
    pub fn for_trading(trading: Trading) -> Plan {
        Self::for_workload(Workload::Trading(trading))
    }

    /// Creates a plan with minimal settings, without threads, processes and links.
    pub(crate) fn for_workload(workload: Workload) -> Plan {
        Plan {
            version: PlanVersion,
            run: "test-1".into(),
            folder: "/nowhere".into(),
            launcher_pid: 1,
            launcher_start: 1,
            clock: ClockSource::Monotonic,
            ns_per_tick: 1.0,
            technique: Technique::default(),
            isolation: IsolationLevels::uniform(Isolation::Process),
            threading: Threading::Shared,
            placement: Placement::Engine,
            stamps: Stamps::All,
            priority: None,
            handles: Vec::new(),
            weaker_sandbox: false,
            on_death: OnDeath::Stop,
            liveness_ns: 10_000_000_000,
            faults: Vec::new(),
            workload,
            links: Vec::new(),
            threads: Vec::new(),
            processes: Vec::new(),
        }
    }

    /// Returns the trading plan with its links, threads and processes filled in; no thread is
    /// pinned to a core.
    #[must_use]
    pub fn arranged(mut self) -> Plan {
        self.links = self.trading_links();
        self.arrange_threads();
        self
    }

    /// Returns the command of a plan's process that is an external program; else `None`.
    pub fn program_of(&self, process: &ProcessPlan) -> Option<&str> {
        self.roles_of(process).find_map(|role| match role {
            Role::Strategy(index) => self.trading().program_of(index),
            _ => None,
        })
    }

    fn trading_links(&self) -> Vec<LinkPlan> {
        let trading = self.trading();
        let strategies = StrategyIndex::first(trading.strategies).map(Role::Strategy);
        let gateways = GatewayIndex::first(trading.gateways()).map(Role::Gateway);
        let (engine, slots) = (Role::Orchestrator, trading.capacity);
        let mut links = vec![
            LinkPlan::many_to_one(SUBMIT, strategies, engine, slots),
            LinkPlan::many_to_one(COMPLETION, gateways, engine, slots),
        ];
        let inboxes = GatewayIndex::first(trading.gateways())
            .map(|i| LinkPlan::one_to_one(inbox(i), engine, Role::Gateway(i), slots));
        links.extend(inboxes);
        for venue in trading.books() {
            let exchange = Role::Exchange(venue);
            for gateway in trading.gateways_of(venue) {
                let role = Role::Gateway(gateway);
                links.push(LinkPlan::one_to_one(session_out(gateway), role, exchange, slots));
                links.push(LinkPlan::one_to_one(session_in(gateway), exchange, role, slots));
            }
        }
        let returns = StrategyIndex::first(trading.strategies)
            .map(|i| LinkPlan::one_to_one(return_path(i), engine, Role::Strategy(i), slots));
        links.extend(returns);
        links
    }

    /// Arranges threads and processes: strategies, orchestrator, gateways, exchanges.
    fn arrange_threads(&mut self) {
        let trading = self.trading();
        let gateways: Vec<Role> = GatewayIndex::first(trading.gateways()).map(Role::Gateway).collect();
        let process_of_role = |role: Role| (role.to_string(), vec![role]);
        let each = |roles: &[Role]| roles.iter().copied().map(process_of_role).collect::<Vec<_>>();
        let mut threads: Vec<(String, Vec<Role>)> =
            StrategyIndex::first(trading.strategies).map(Role::Strategy).map(process_of_role).collect();
        match (self.threading, self.placement) {
            (Threading::Shared, Placement::Engine) => {
                let roles = [&[Role::Orchestrator], gateways.as_slice()].concat();
                threads.push(("engine".into(), roles));
            }
            (Threading::Shared, Placement::Gateways) => {
                threads.push(process_of_role(Role::Orchestrator));
                threads.push(("gateways".into(), gateways));
            }
            (Threading::Dedicated, _) | (_, Placement::EachGateway) => {
                threads.push(process_of_role(Role::Orchestrator));
                threads.extend(each(&gateways));
            }
        }
        for venue in trading.books() {
            let first = Role::Gateway(trading.gateway(venue, 0));
            let host = threads.iter_mut().find(|(_, roles)| roles.contains(&first));
            match (trading.exchange, host) {
                (ExchangePlacement::Gateway, Some((_, roles))) => roles.push(Role::Exchange(venue)),
                _ => threads.push(process_of_role(Role::Exchange(venue))),
            }
        }
        let thread = |(name, roles)| ThreadPlan {
            name,
            roles,
            core: None,
            idle: Idle::Yield,
            log_records: 64,
            sleep_records: 0,
        };
        self.threads = threads.into_iter().map(thread).collect();
        self.processes = self.processes_of_threads();
    }

    fn processes_of_threads(&self) -> Vec<ProcessPlan> {
        let trading = self.trading();
        let all: Vec<u32> = (0..self.threads.len() as u32).collect();
        if self.isolation.has_only_threads() {
            return vec![ProcessPlan { name: "all".into(), threads: all }];
        }
        let groups = self.groups();
        let group_name = |group: usize| format!("group-{group}");
        let mut processes: Vec<ProcessPlan> = Vec::new();
        for thread in all {
            let roles = &self.threads[thread as usize].roles;
            let name = match (roles[0], self.placement) {
                (Role::Exchange(venue), _) if trading.exchange == ExchangePlacement::Thread => {
                    // In the process of its venue's first gateway.
                    let first = Role::Gateway(trading.gateway(venue, 0));
                    let holds = |process: &&ProcessPlan| self.roles_of(process).any(|role| role == first);
                    processes.iter().find(holds).map(|process| process.name.clone())
                }
                (Role::Orchestrator, _) | (Role::Gateway(_), Placement::Engine) => Some(ENGINE.into()),
                (Role::Strategy(index), _) if self.isolation.kind_of(index).is_thread() => {
                    Some(ENGINE.into())
                }
                (Role::Strategy(index), _) => {
                    groups.iter().position(|group| group.contains(&index)).map(group_name)
                }
                (Role::Gateway(_), Placement::Gateways) => Some("gateways".into()),
                _ => None,
            };
            let name = name.unwrap_or_else(|| self.threads[thread as usize].name.clone());
            match processes.iter_mut().find(|process| process.name == name) {
                Some(process) => process.threads.push(thread),
                None => processes.push(ProcessPlan { name, threads: vec![thread] }),
            }
        }
        // Strategies first, also where one of them is a thread of the engine.
        let is_of_strategies =
            |process: &ProcessPlan| self.roles_of(process).all(|role| matches!(role, Role::Strategy(_)));
        processes.sort_by_key(|process| !is_of_strategies(process));
        processes
    }

    /// Returns the groups of two or more strategies that share a process, in the order of their
    /// first strategies.
    pub fn groups(&self) -> Vec<Vec<StrategyIndex>> {
        let mut groups: BTreeMap<StrategyIndex, Vec<StrategyIndex>> = BTreeMap::new();
        for strategy in StrategyIndex::first(self.trading().strategies) {
            if self.can_be_in_group(strategy) {
                groups.entry(self.isolation.first_of_group(strategy)).or_default().push(strategy);
            }
        }
        groups.into_values().filter(|group| group.len() > 1).collect()
    }

    /// Returns the strategies that share a process with a strategy, itself included; none if it
    /// shares no process or runs in the engine's.
    pub fn group_of(&self, strategy: StrategyIndex) -> Vec<StrategyIndex> {
        if !self.can_be_in_group(strategy) {
            return Vec::new();
        }
        let first = self.isolation.first_of_group(strategy);
        let is_there =
            |it: &StrategyIndex| self.can_be_in_group(*it) && self.isolation.first_of_group(*it) == first;
        let group: Vec<_> = StrategyIndex::first(self.trading().strategies).filter(is_there).collect();
        if group.len() > 1 { group } else { Vec::new() }
    }

    /// Returns `true` at a level with groups. A spare strategy has a process of its own: it is
    /// started alone.
    fn can_be_in_group(&self, strategy: StrategyIndex) -> bool {
        self.isolation.level_of(strategy).group_size() > 1 && !self.trading().is_spare(strategy)
    }

    /// Returns `true` if a process has only strategies whose setting or isolation level disables
    /// indirect branch speculation.
    pub fn closes_speculation(&self, process: &ProcessPlan) -> bool {
        let is_closed = |role: Role| match role {
            Role::Strategy(strategy) => {
                let level = self.isolation.level_of(strategy);
                [self.trading().speculation, level.speculation()].contains(&Speculation::Closed)
            }
            _ => false,
        };
        self.roles_of(process).all(is_closed)
    }

    /// Returns `true` if some process of the run disables indirect branch speculation.
    pub fn has_closed_speculation(&self) -> bool {
        self.processes.iter().any(|process| self.closes_speculation(process))
    }

    /// Checks the requirements of a trading plan beyond a consistent topology.
    pub(crate) fn validate_trading(&self, trading: &Trading) -> Result<(), PlanError> {
        let (strategies, venues) = (usize::from(trading.strategies), usize::from(trading.venues));
        if !(1..=MAX_STRATEGIES).contains(&strategies) {
            return Err(PlanError::Strategies(strategies as u64));
        }
        ensure(trading.spare_strategies < trading.strategies, "not all strategies are spare")?;
        let can_add = |spare| !self.isolation.kind_of(spare).is_thread() && self.on_death != OnDeath::Stop;
        ensure(trading.spares().all(can_add), "spare strategies are processes, whose deaths are contained")?;
        if !(1..=MAX_VENUES).contains(&venues) {
            return Err(PlanError::Venues(venues as u64));
        }
        let gateways = usize::from(trading.venues) * usize::from(trading.credentials);
        let gateways = gateways + trading.books().count();
        if trading.credentials == 0 || gateways > MAX_VENUES {
            return Err(PlanError::Gateways(gateways as u64));
        }
        if !trading.capacity.is_power_of_two() || !(2..=Self::MAX_CAPACITY).contains(&trading.capacity) {
            return Err(PlanError::Capacity(trading.capacity.into()));
        }
        let has_kinds = !trading.strategy_kinds.is_empty() && !trading.venue_kinds.is_empty();
        ensure(has_kinds, "strategies and venues are of a kind")?;
        ensure(trading.orders.len() == strategies, "one order count for each strategy")?;
        ensure(
            trading.venue_orders.is_empty() || trading.venue_orders.len() == strategies * venues,
            "one order count for each strategy and venue, or none",
        )?;
        ensure(trading.max_open > 0 && trading.max_held > 0, "open and held orders have room")?;
        let reports = usize::from(trading.reports_per_order);
        ensure((1..=MAX_REPORTS).contains(&reports), "an order has reports, and no more than are numbered")?;
        ensure(
            trading.instruments.len() <= MAX_INSTRUMENTS
                && trading.instruments.iter().all(|instrument| instrument.check().is_ok()),
            "instruments make sense, and are no more than there can be",
        )?;
        ensure(trading.limits.iter().all(|limit| limit.check().is_ok()), "limits make sense")?;
        ensure(
            trading.resources.is_empty() || trading.resources.len() == strategies,
            "limits of resources for each strategy, or for none",
        )?;
        let mut wanted = StrategyIndex::first(trading.strategies)
            .map(Role::Strategy)
            .chain(GatewayIndex::first(trading.gateways()).map(Role::Gateway));
        let runs = |role: Role| self.thread_of(role).is_some();
        let mut exchanges = trading.books().map(Role::Exchange);
        ensure(
            runs(Role::Orchestrator) && wanted.all(runs) && exchanges.all(runs),
            "strategies, orchestrator, gateways and exchanges all run",
        )?;
        let is_strategy = |role: &&Role| matches!(role, Role::Strategy(_));
        let roles = || self.threads.iter().flat_map(|thread| &thread.roles);
        ensure(roles().filter(is_strategy).count() == strategies, "no strategies but those")?;
        let has = |wanted: &LinkPlan| {
            self.link(&wanted.name).is_some_and(|link| {
                (link.shape, &link.writers, &link.readers) == (wanted.shape, &wanted.writers, &wanted.readers)
            })
        };
        // Saved plans of earlier versions have no links; they are read, but never run.
        ensure(
            self.links.is_empty() || self.trading_links().iter().all(has),
            "the links of a trading run are there",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::VenueIndex;

    fn processes(plan: &Plan) -> String {
        let of = |process: &ProcessPlan| {
            let threads: Vec<&str> =
                process.threads.iter().map(|thread| plan.threads[*thread as usize].name.as_str()).collect();
            format!("{}[{}]", process.name, threads.join(" "))
        };
        plan.processes.iter().map(of).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn strategies_of_level_thread_are_threads_of_the_engine() {
        let isolation = "thread+process+container".parse().unwrap();
        let plan =
            Plan { isolation, ..Plan::for_trading(Trading { orders: vec![1; 4], ..Trading::new(4, 1) }) };
        let plan = plan.arranged();
        assert_eq!(plan.validate(), Ok(()));
        let wanted = "strategy-1[strategy-1] strategy-2[strategy-2] engine[strategy-0 strategy-3 engine]";
        assert_eq!(processes(&plan), wanted);
        let levels: Vec<_> = plan.processes.iter().map(|process| plan.isolation_of(process).name()).collect();
        assert_eq!(levels, ["process", "container", "thread"]);
        assert!(plan.is_contained(&plan.processes[1]) && !plan.is_contained(&plan.processes[0]));
        let sealed = crate::topology::segments(&plan).into_iter().filter(|segment| segment.is_sealed(&plan));
        assert!(sealed.count() > 0, "what a container writes has no name");
    }

    #[test]
    fn strategies_of_group_share_a_process() {
        let plan = |isolation: &str, strategies, spare_strategies| {
            let orders = vec![1; usize::from(strategies)];
            let trading = Trading { orders, spare_strategies, ..Trading::new(strategies, 1) };
            let isolation = isolation.parse().unwrap();
            let plan = Plan { isolation, on_death: OnDeath::Restart, ..Plan::for_trading(trading) };
            let plan = plan.arranged();
            assert_eq!(plan.validate(), Ok(()));
            plan
        };
        let pairs = plan("process*2", 5, 0);
        let wanted = "group-0[strategy-0 strategy-1] group-1[strategy-2 strategy-3] strategy-4[strategy-4] engine[engine]";
        assert_eq!(processes(&pairs), wanted);
        let group = |plan: &Plan, strategy| -> Vec<u16> {
            plan.group_of(StrategyIndex(strategy)).iter().map(|strategy| strategy.0).collect()
        };
        assert_eq!([1, 2, 4].map(|strategy| group(&pairs, strategy)), [vec![0, 1], vec![2, 3], vec![]]);
        let mixed = plan("thread+sandbox*2", 5, 0);
        let wanted = "group-0[strategy-1 strategy-3] engine[strategy-0 strategy-2 strategy-4 engine]";
        assert_eq!(processes(&mixed), wanted);
        assert_eq!([0, 3].map(|strategy| group(&mixed, strategy)), [vec![], vec![1, 3]]);
        assert_eq!(mixed.isolation_of(&mixed.processes[0]), Isolation::Sandbox);
        assert!(mixed.sandbox_of(&mixed.processes[0]).is_some());
        let spare = plan("container*4", 6, 2);
        let wanted = "group-0[strategy-0 strategy-1 strategy-2 strategy-3] strategy-4[strategy-4] strategy-5[strategy-5] \
                      engine[engine]";
        assert_eq!(processes(&spare), wanted, "a spare strategy is started alone");
        assert!(spare.is_spare(&spare.processes[1]) && !spare.is_spare(&spare.processes[0]));
        assert!(spare.is_contained(&spare.processes[0]));
    }

    #[test]
    fn every_placement_gives_a_valid_plan() {
        for (threading, placement, wanted) in [
            (Threading::Shared, Placement::Engine, "strategy-0[strategy-0] engine[engine]"),
            (
                Threading::Shared,
                Placement::Gateways,
                "strategy-0[strategy-0] engine[orchestrator] gateways[gateways]",
            ),
            (
                Threading::Shared,
                Placement::EachGateway,
                "strategy-0[strategy-0] engine[orchestrator] gateway-0[gateway-0] gateway-1[gateway-1]",
            ),
            (
                Threading::Dedicated,
                Placement::Gateways,
                "strategy-0[strategy-0] engine[orchestrator] gateways[gateway-0 gateway-1]",
            ),
        ] {
            let plan = Plan { threading, placement, ..Plan::for_trading(Trading::new(1, 2)) }.arranged();
            assert_eq!(plan.validate(), Ok(()));
            assert_eq!(processes(&plan), wanted);
        }
    }

    #[test]
    fn exchange_runs_where_it_is_placed() {
        let plan = |exchange, placement, isolation| {
            let mut trading = Trading { credentials: 2, exchange, ..Trading::new(3, 2) };
            trading.venue_kinds = vec![Trading::DELAY_VENUE.into(), Trading::BOOK.into()];
            Plan { threading: Threading::Shared, placement, isolation, ..Plan::for_trading(trading) }
                .arranged()
        };
        let strategies = "strategy-0[strategy-0] strategy-1[strategy-1] strategy-2[strategy-2] ";
        for (exchange, placement, wanted) in [
            (ExchangePlacement::Gateway, Placement::Engine, "engine[engine]"),
            (ExchangePlacement::Thread, Placement::Engine, "engine[engine exchange-1]"),
            (ExchangePlacement::Process, Placement::Engine, "engine[engine] exchange-1[exchange-1]"),
            (
                ExchangePlacement::Thread,
                Placement::Gateways,
                "engine[orchestrator] gateways[gateways exchange-1]",
            ),
            (
                ExchangePlacement::Thread,
                Placement::EachGateway,
                "engine[orchestrator] gateway-0[gateway-0] gateway-1[gateway-1] gateway-2[gateway-2 exchange-1] \
                 gateway-3[gateway-3]",
            ),
        ] {
            let plan = plan(exchange, placement, Isolation::Process.into());
            assert_eq!(plan.validate(), Ok(()));
            assert_eq!(processes(&plan), format!("{strategies}{wanted}"));
        }
        let plan = plan(ExchangePlacement::Gateway, Placement::EachGateway, Isolation::Process.into());
        let of = |role| plan.threads[plan.thread_of(role).unwrap()].name.as_str();
        assert_eq!(
            (of(Role::Exchange(VenueIndex(1))), plan.thread_of(Role::Exchange(VenueIndex(0)))),
            ("gateway-2", None)
        );
        let links: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
        assert!(links.contains(&"session-out-2") && links.contains(&"session-in-3"), "{links:?}");
        assert!(!links.contains(&"session-out-1"), "{links:?}");
    }

    #[test]
    fn each_venue_has_a_gateway_for_each_credential() {
        let mut trading = Trading { credentials: 2, ..Trading::new(3, 2) };
        let pairs: Vec<_> = GatewayIndex::first(trading.gateways())
            .map(|index| trading.venue_and_credential(index))
            .collect();
        let [first, second] = [0, 1].map(VenueIndex);
        assert_eq!(pairs, [(first, 0), (first, 1), (second, 0), (second, 1)]);
        assert!(trading.gateways_of(VenueIndex(1)).eq([GatewayIndex(2), GatewayIndex(3)]));
        let credential = trading.credential_of(StrategyIndex(2));
        assert_eq!(trading.gateway(VenueIndex(1), credential), GatewayIndex(2));
        let names =
            (trading.role_name(Role::Gateway(GatewayIndex(3))), trading.gateway_place(GatewayIndex(3)));
        assert_eq!(names, ("gateway-3 1/1".into(), "venue-1/credential-1".into()));
        let plan = |trading: &Trading| Plan::for_trading(trading.clone()).arranged().validate();
        assert_eq!(plan(&trading), Ok(()));
        trading.credentials = 33;
        assert_eq!(plan(&trading), Err(PlanError::Gateways(66)));
        trading.credentials = 0;
        assert!(plan(&trading).is_err());
        // Values of a hostile file.
        trading.credentials = u16::MAX;
        assert_eq!(plan(&trading), Err(PlanError::Gateways(2 * u64::from(u16::MAX))));
        trading.credentials = 1;
        assert_eq!(
            (trading.role_name(Role::Gateway(GatewayIndex(1))), trading.gateway(VenueIndex(1), 0)),
            ("gateway-1".into(), GatewayIndex(1))
        );
    }

    #[test]
    fn additional_roles_are_valid() {
        let mut plan = Plan::for_trading(Trading::new(1, 2)).arranged();
        plan.threads[1].roles.push(Role::Gateway(GatewayIndex(2)));
        plan.links.push(LinkPlan::one_to_one(
            "tap".into(),
            Role::Orchestrator,
            Role::Gateway(GatewayIndex(2)),
            8,
        ));
        assert_eq!(plan.validate(), Ok(()));
    }
}
