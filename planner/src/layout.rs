//! Assigns roles to threads, processes and cores, with the idle strategy and log size of each
//! thread.
//!
//! ```text
//!                threads                                     processes
//! dedicated      strategy-0 … strategy-N, orchestrator,      process: each strategy, engine
//!                gateway-0 … gateway-M, each on its core     thread:  all
//! shared         strategy-0 … strategy-N round-robin over the
//!                first cores, engine on the last one
//! ```

use super::resolved::{Input, Resolved};
use super::{cores, faults, priority, warnings};
use crate::config::{Arrivals, Choice, Settings, Switch, UsageError, instruments, limits, venue_info};
use crate::host::Machine;
use gateway::VenueInfo;
use protocol::gaps::{MAX_GAPS, MAX_SLEEPS, capacity_for};
use protocol::instrument::Instrument;
use protocol::kill::Scope;
use protocol::plan::{ClockSource, Idle, OnDeath, Pacing, Plan, Role, Workload};
use record::units::Count;
use strategy::schedule::Schedule;

/// Records that each log has in addition to those of its orders.
const SPARE_RECORDS: u64 = 16 + MAX_GAPS;
/// Maximum number of sleep records of all logs together: 16 MiB; a report needs some hundreds.
const MAX_SLEEP_RECORDS: u64 = 1 << 20;
/// Minimum number of sleep records in the log of a thread that sleeps.
const MIN_SLEEP_RECORDS: u64 = 1 << 10;
/// Maximum number of orders that a gateway holds at once.
const MAX_HELD: u64 = 1 << 18;

/// The numbers of orders that each strategy and gateway of a run will handle, from its schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderCounts {
    /// Number of orders of each strategy, by its index.
    pub per_strategy: Vec<u64>,
    /// Number of orders of each strategy for each venue: a strategy's venues in sequence, strategy
    /// after strategy.
    pub per_strategy_and_venue: Vec<u64>,
    /// Number of venues.
    pub venues: u16,
    /// The longest venue delay, in nanoseconds.
    pub max_delay_ns: u64,
    /// Orders that rest in the exchanges' books at the start.
    pub opening_orders: u64,
}

impl OrderCounts {
    /// Counts a schedule's orders by strategy and venue, and sets `opening_orders` (orders that
    /// rest in the exchanges' books at the start) to 0.
    pub fn from_schedule(schedule: &Schedule) -> OrderCounts {
        OrderCounts {
            per_strategy: schedule.orders_per_strategy(),
            per_strategy_and_venue: schedule.orders_per_strategy_and_venue(),
            venues: schedule.venues(),
            max_delay_ns: schedule.max_delay_ns(),
            opening_orders: 0,
        }
    }

    fn even(orders: u64, strategies: u16, venues: u16, max_delay_ns: u64) -> OrderCounts {
        let divide_evenly = |orders: u64, parts: u16, first: u64| -> Vec<u64> {
            let parts = u64::from(parts.max(1));
            let extra = |part: u64| u64::from((part + parts - first) % parts < orders % parts);
            (0..parts).map(|part| orders / parts + extra(part)).collect()
        };
        let per_strategy = divide_evenly(orders, strategies, 0);
        let mut divided = 0;
        let mut per_strategy_and_venue = Vec::new();
        for &orders in &per_strategy {
            per_strategy_and_venue.extend(divide_evenly(orders, venues, divided % u64::from(venues.max(1))));
            divided += orders;
        }
        OrderCounts { per_strategy, per_strategy_and_venue, venues, max_delay_ns, opening_orders: 0 }
    }

    fn per_venue(&self) -> Vec<u64> {
        let venues = usize::from(self.venues);
        let orders_of_venue =
            |venue: usize| self.per_strategy_and_venue.iter().skip(venue).step_by(venues.max(1)).sum();
        (0..venues).map(orders_of_venue).collect()
    }
}

/// The identity of a run: its id, and the process id and start time of its launcher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunIdentity {
    /// The run's id, `[0-9a-z-]`, at most 64 characters.
    pub run: String,
    /// Process id of the launcher.
    pub pid: u32,
    /// The launcher's start time (`/proc/PID/stat`, field 22).
    pub start: u64,
}

/// Creates a provisional plan of a run, to show and check it before its schedule exists: orders are
/// divided evenly among strategies. Also returns the reasons not to quote its latencies.
pub fn preview(resolved: &Resolved, machine: &Machine) -> Result<(Plan, Vec<String>), UsageError> {
    let orders = match resolved.input {
        Input::Drawn { orders, .. } => orders,
        Input::Recorded { .. } => 1000,
    };
    let trading = resolved.plan.trading();
    let delay_ns = resolved.settings.delay().max_ns;
    let counts = OrderCounts::even(orders, trading.strategies, trading.venues, delay_ns);
    let identity = RunIdentity { run: "preview".into(), pid: 1, start: 1 };
    layout(resolved, machine, &counts, identity)
}

/// Creates the plan of a run (processes, threads, cores, memory) from its resolved settings. Also
/// returns the reasons not to quote its latencies.
pub fn layout(
    resolved: &Resolved,
    machine: &Machine,
    counts: &OrderCounts,
    identity: RunIdentity,
) -> Result<(Plan, Vec<String>), UsageError> {
    let Resolved { settings, .. } = resolved;
    let mut plan = resolved.plan.clone();
    plan.faults = faults::plan(resolved);
    plan.clock = if machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
    (plan.run, plan.launcher_pid, plan.launcher_start) = (identity.run, identity.pid, identity.start);
    plan.folder.clear();
    let trading = plan.trading_mut();
    for (noun, count, wanted) in [
        ("strategies", counts.per_strategy.len(), usize::from(trading.strategies)),
        ("venues", usize::from(counts.venues), usize::from(trading.venues)),
    ] {
        if count != wanted {
            return Err(UsageError(format!(
                "the schedule is for {count} {noun}: run it with --{noun} {count}"
            )));
        }
    }
    let is_own = !resolved.is_on_schedule();
    let total = counts.per_strategy.iter().fold(0, |sum: u64, orders| sum.saturating_add(*orders));
    let per_venue = if is_own { vec![total; usize::from(counts.venues)] } else { counts.per_venue() };
    let busiest = per_venue.iter().copied().max().unwrap_or(0);
    let is_closed_loop = matches!(resolved.input, Input::Drawn { arrivals: Arrivals::Stress, .. });
    let venues: Vec<VenueInfo> = trading.venue_kinds.iter().map(|kind| venue_info(kind)).collect();
    let has_sessions = settings.fault().0.iter().any(|fault| fault.kind.is_of_venue());
    trading.orders.clone_from(&counts.per_strategy);
    trading.opening_orders = counts.opening_orders;
    trading.max_delay_ns = counts.max_delay_ns;
    trading.max_held = max_held(resolved, busiest);
    trading.pacing = if is_closed_loop { Pacing::Closed } else { Pacing::Scheduled };
    trading.reports_per_order = venues.iter().map(|venue| venue.reports_per_order).max().unwrap_or(1);
    // A venue with a session does not publish when its reports are due.
    trading.tells_release = venues.iter().all(|venue| venue.reports_release_time) && !has_sessions;
    trading.instruments = read_instruments(settings)?;
    let mut plan = plan.arranged();
    let venue_threads = plan.threads.iter().filter(|thread| matches!(thread.roles[..], [Role::Gateway(_)]));
    if venue_threads.count() > 0 && !is_own {
        // A gateway's own log has room for what the schedule sends it; one log of all venues for
        // all orders.
        plan.trading_mut().venue_orders.clone_from(&counts.per_strategy_and_venue);
    }
    set_threads(&mut plan, resolved, machine, &per_venue);
    plan.validate().map_err(|error| UsageError(error.to_string()))?;
    priority::check(&plan)?;
    let warnings = warnings::collect(&plan, machine);
    Ok((plan, warnings))
}

/// Returns the instruments in the file of `--instruments`, none without one. Fails if a limit names
/// an instrument that does not exist.
fn read_instruments(settings: &Settings) -> Result<Vec<Instrument>, UsageError> {
    let instruments = settings.instruments.as_deref().map_or(Ok(Vec::new()), instruments::read)?;
    let is_missing = |index: u16| usize::from(index) >= instruments.len().max(1);
    let limits = settings.limits().0;
    let missing =
        limits.iter().find(|limit| matches!(limit.scope, Scope::Instrument(index) if is_missing(index)));
    match missing {
        Some(limit) => Err(UsageError(format!(
            "--limits {}: the run has instruments 0 to {}. Name more of them with --instruments FILE",
            limits::limit_text(limit),
            instruments.len().max(1) - 1
        ))),
        None => Ok(instruments),
    }
}

/// Returns the number of orders that a gateway can hold. If the run continues after a death, it has
/// room for more: a restarted strategy sends before the orders of its dead incarnation are
/// cancelled, and a strategy that floods must reach its own limit before it fills a gateway and
/// blocks the others.
fn max_held(resolved: &Resolved, busiest: u64) -> u32 {
    let held = busiest.clamp(1, MAX_HELD);
    let trading = resolved.plan.trading();
    let more = match resolved.plan.on_death {
        OnDeath::Stop => 0,
        OnDeath::Continue | OnDeath::Restart => u64::from(trading.max_open) * u64::from(trading.strategies),
    };
    (held + more.min(MAX_HELD)) as u32
}

/// Sets each thread's core, idle strategy and log size.
fn set_threads(plan: &mut Plan, resolved: &Resolved, machine: &Machine, per_venue: &[u64]) {
    let hottest = plan.thread_of(Role::Orchestrator).unwrap_or(0);
    let Plan { workload: Workload::Trading(trading), threads, .. } = plan else { return };
    let total = trading.total_orders();
    let orders = |role: &Role| match role {
        Role::Strategy(index) => trading.orders[index.as_usize()],
        Role::Gateway(index) => per_venue[trading.venue_of(*index).as_usize()],
        Role::Exchange(venue) => per_venue[venue.as_usize()],
        _ => total,
    };
    let further = u64::from(trading.reports_per_order.max(1) - 1);
    let records = |role: &Role| {
        // The orchestrator's log ends with a checksum for each strategy's two rings, each gateway's
        // inbox and the completion ring, and with the final positions. Kill switches are part of
        // `log_records`.
        let (strategies, gateways) = (u64::from(trading.strategies), u64::from(trading.gateways()));
        let at_end = if *role == Role::Orchestrator {
            2 * strategies
                + gateways
                + 1
                + orchestrator::log_records(strategies, trading.instruments.len().max(1) as u64)
        } else {
            0
        };
        let per_order = role.info().records_per_order + further * role.info().records_per_report;
        // With market data an exchange records, for each order, the tick that triggered it and the
        // best prices twice: when it arrives, and when it expires or is withdrawn. And the best
        // prices of each instrument's opening book.
        let (ticks_per_order, opening_ticks) = match role {
            Role::Exchange(_) if trading.market_data => (3, trading.instrument_count() as u64),
            _ => (0, 0),
        };
        // Each order of the opening book gives a strategy's order at most one more report.
        let opening_reports = trading.opening_orders.saturating_mul(role.info().records_per_report);
        orders(role)
            .saturating_mul(per_order + ticks_per_order)
            .saturating_add(at_end + opening_ticks)
            .saturating_add(opening_reports)
    };
    let is_pinned = resolved.settings.pin() == Switch::On;
    let threads_count = threads.len();
    let cores = match resolved.settings.strategy_cores {
        _ if !is_pinned => vec![None; threads.len()],
        Some(Count(on)) => {
            let others = threads.len() - usize::from(trading.strategies);
            let on = (on as usize).min(trading.strategies.into());
            let picked = cores::pick(on + others, &resolved.cores, machine);
            assign_in_turn(threads.len() - others, others, on, &picked)
        }
        None => assign(threads.len(), hottest, &cores::pick(threads.len(), &resolved.cores, machine)),
    };
    // The kernel gives each unpinned thread a core if there are as many.
    let has_own_core = |core: &Option<u32>| match core {
        None => !is_pinned && threads_count <= resolved.cores.len(),
        Some(_) => cores.iter().filter(|other| *other == core).count() == 1,
    };
    for (thread, core) in threads.iter_mut().zip(&cores) {
        thread.core = *core;
        thread.idle = match resolved.settings.idle() {
            Choice::Fixed(idle) => idle,
            // A thread that spins on a shared core only delays the thread it waits for.
            Choice::Auto if has_own_core(core) => Idle::Spin,
            Choice::Auto => Idle::Yield,
        };
    }
    let sleepers = threads.iter().filter(|thread| thread.idle != Idle::Spin).count() as u64;
    let max_sleeps = (MAX_SLEEP_RECORDS / sleepers.max(1)).clamp(MIN_SLEEP_RECORDS, MAX_SLEEPS);
    // A role wakes up twice for each order, when it arrives and when its first report does, and
    // once for each further report.
    let wakes = |role: &Role| orders(role).saturating_mul(2 + further);
    for thread in threads.iter_mut() {
        if thread.idle != Idle::Spin {
            let wakes = thread.roles.iter().map(wakes).fold(0, u64::saturating_add);
            thread.sleep_records = capacity_for(wakes).clamp(MIN_SLEEP_RECORDS, max_sleeps);
        }
        let records = thread.roles.iter().map(records);
        thread.log_records = records.fold(SPARE_RECORDS + thread.sleep_records, u64::saturating_add);
    }
}

/// Assigns the picked cores to threads. One core for each: in their order. With fewer cores the
/// `hottest` thread has the last core to itself if there are two, and the others share the rest.
fn assign(threads: usize, hottest: usize, picked: &[u32]) -> Vec<Option<u32>> {
    let Some((last, rest)) = picked.split_last() else {
        return vec![None; threads];
    };
    if picked.len() >= threads {
        return picked.iter().copied().map(Some).take(threads).collect();
    }
    let others = if rest.is_empty() { picked } else { rest };
    let mut others = others.iter().copied().cycle();
    (0..threads).map(|thread| if thread == hottest { Some(*last) } else { others.next() }).collect()
}

/// Assigns the first `on` of the picked cores to the strategies in turn, and the rest to the others
/// in their order. Without a rest the others share the last core.
fn assign_in_turn(strategies: usize, others: usize, on: usize, picked: &[u32]) -> Vec<Option<u32>> {
    let (first, rest) = picked.split_at(on.min(picked.len()));
    let last = picked.last().copied();
    let of_others = (0..others).map(|other| rest.get(other).or(rest.last()).copied().or(last));
    let turn = |strategy: usize| Some(*first.get(strategy.checked_rem(first.len())?)?);
    (0..strategies).map(turn).chain(of_others).collect()
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{planned, settings};
    use super::super::{layout, resolve};
    use super::*;
    use crate::host::fake;
    use proptest::prelude::*;

    /// `name@core/idle` of each thread, and the threads of each process.
    fn shape(settings_text: &str, machine: &Machine) -> [String; 2] {
        let (_, plan, _) = planned(settings_text, machine).unwrap();
        let core = |core: Option<u32>| core.map_or("-".into(), |core| core.to_string());
        let threads = plan.threads.iter().map(|t| format!("{}@{}/{}", t.name, core(t.core), t.idle));
        let processes = plan.processes.iter().map(|p| format!("{}{:?}", p.name, p.threads));
        [threads.collect::<Vec<_>>().join(" "), processes.collect::<Vec<_>>().join(" ")]
    }

    #[test]
    fn roles_get_threads_cores_and_processes() {
        let (two, eight) = (fake::two_core_vm().machine(), fake::plain(8).machine());
        let one_each = "strategy-0[0] engine[1]";
        for (settings_text, machine, threads, processes) in [
            ("", &two, "strategy-0@0/spin engine@1/spin", one_each),
            (
                "strategies=3",
                &two,
                "strategy-0@0/yield strategy-1@0/yield strategy-2@0/yield engine@1/spin",
                "strategy-0[0] strategy-1[1] strategy-2[2] engine[3]",
            ),
            ("cores=1", &two, "strategy-0@1/yield engine@1/yield", one_each),
            ("idle=park", &two, "strategy-0@0/park engine@1/park", one_each),
            ("", &Machine::default(), "strategy-0@-/yield engine@-/yield", one_each),
            (
                "strategies=3 strategy_cores=2 idle=park",
                &two,
                "strategy-0@0/park strategy-1@1/park strategy-2@0/park engine@1/park",
                "strategy-0[0] strategy-1[1] strategy-2[2] engine[3]",
            ),
            ("strategy_cores=1", &two, "strategy-0@0/spin engine@1/spin", one_each),
            ("pin=off", &two, "strategy-0@-/spin engine@-/spin", one_each),
            (
                "strategies=2 pin=off",
                &two,
                "strategy-0@-/yield strategy-1@-/yield engine@-/yield",
                "strategy-0[0] strategy-1[1] engine[2]",
            ),
            // Dedicated: each role its core.
            (
                "strategies=5 strategy_cores=2 venues=2",
                &eight,
                "strategy-0@2/yield strategy-1@3/yield strategy-2@2/yield strategy-3@3/yield strategy-4@2/yield \
                 orchestrator@4/spin gateway-0@5/spin gateway-1@6/spin",
                "strategy-0[0] strategy-1[1] strategy-2[2] strategy-3[3] strategy-4[4] engine[5, 6, 7]",
            ),
            (
                "strategies=2 venues=2",
                &eight,
                "strategy-0@2/spin strategy-1@3/spin orchestrator@4/spin gateway-0@5/spin gateway-1@6/spin",
                "strategy-0[0] strategy-1[1] engine[2, 3, 4]",
            ),
            (
                "isolation=thread strategies=2 threading=shared",
                &eight,
                "strategy-0@2/spin strategy-1@3/spin engine@4/spin",
                "all[0, 1, 2]",
            ),
        ] {
            assert_eq!(shape(settings_text, machine), [threads, processes], "{settings_text}");
        }
    }

    #[test]
    fn logs_hold_every_stamp_of_every_order() {
        let machine = fake::plain(8).machine();
        let (_, plan, _) = planned("strategies=2 venues=2 orders=10", &machine).unwrap();
        let records: Vec<u64> = plan.threads.iter().map(|t| t.log_records).collect();
        assert!(plan.threads.iter().all(|thread| thread.sleep_records == 0), "all of them spin");
        // The orchestrator ends its log with the checksums of 2 × 2 + 2 + 1 links, and with
        // positions.
        let positions = |strategies| orchestrator::log_records(strategies, 1);
        let wanted = [5 * 3, 5 * 3, 10 * 4 + 7 + positions(2), 5 * 7, 5 * 7];
        assert_eq!(records, wanted.map(|records| records + 16 + MAX_GAPS));
        assert_eq!(plan.trading().venue_orders, [3, 2, 2, 3], "no gateway gets more than its log holds");
        let (_, plan, _) = planned("venues=3 orders=10 threading=shared", &machine).unwrap();
        assert!(plan.trading().venue_orders.is_empty(), "one log for all venues");
        assert_eq!(plan.threads[1].log_records, 10 * 4 + 10 * 7 + (2 + 3 + 1) + positions(1) + 16 + MAX_GAPS);
        assert_eq!((plan.trading().max_held, plan.trading().max_open), (4, 65_536));
        assert_eq!(plan.trading().pacing, Pacing::Scheduled);
        assert_eq!(planned("arrivals=stress", &machine).unwrap().1.trading().pacing, Pacing::Closed);
        let held = |settings_text| planned(settings_text, &machine).unwrap().1.trading().max_held;
        assert_eq!(held("orders=100M"), 1 << 18);
        assert_eq!(held("venues=2 orders=10 max_open=3 strategies=2 on_death=restart"), 5 + 3 * 2);
        assert_eq!(held("orders=100M on_death=restart"), 1 << 19);
        assert_eq!(held("venues=2 orders=10 max_open=3 on_death=continue"), 5 + 3);
    }

    #[test]
    fn sleeping_threads_get_sleep_records() {
        let machine = fake::plain(8).machine();
        let logs = |settings_text: &str| {
            let (_, plan, _) = planned(settings_text, &machine).unwrap();
            assert_eq!(plan.validate(), Ok(()));
            let record_counts =
                |thread: &protocol::plan::ThreadPlan| (thread.log_records, thread.sleep_records);
            plan.threads.iter().map(record_counts).collect::<Vec<_>>()
        };
        for (settings_text, room) in
            [("strategies=2 orders=10", 1 << 10), ("strategies=2 orders=20000", 22_072)]
        {
            let (spins, sleeps) = (logs(settings_text), logs(&format!("{settings_text} idle=park")));
            assert_eq!(sleeps[0].1, room);
            for (spins, sleeps) in spins.iter().zip(&sleeps) {
                assert_eq!((spins.1, sleeps.0 - spins.0), (0, sleeps.1), "{settings_text}: {sleeps:?}");
            }
        }
        let all = |settings_text| logs(settings_text).iter().map(|thread| thread.1).sum::<u64>();
        assert_eq!(logs("strategies=1 orders=10M idle=yield threading=shared")[0].1, MAX_SLEEPS);
        assert!(all("strategies=100 orders=100M idle=yield") <= MAX_SLEEP_RECORDS);
    }

    #[test]
    fn schedule_for_other_venues_is_refused() {
        let machine = fake::two_core_vm().machine();
        let resolved = resolve(&settings("venues=2"), &machine).unwrap();
        let plan = |counts: OrderCounts, run: &str| {
            let identity = RunIdentity { run: run.into(), pid: 1, start: 1 };
            layout(&resolved, &machine, &counts, identity).unwrap_err().to_string()
        };
        assert!(plan(OrderCounts::even(9, 1, 3, 0), "r").contains("run it with --venues 3"));
        assert!(plan(OrderCounts::even(9, 2, 2, 0), "r").contains("run it with --strategies 2"));
        assert!(plan(OrderCounts::even(9, 1, 2, 0), "no/path").contains("run id"));
    }

    proptest! {
        #[test]
        fn every_machine_gets_a_valid_plan(
            strategies in 1u16..=256, venues in 1u16..=64, log in 1u32..=20, orders in 1u64..=1_000_000_000,
            window in 1u64..=3_600_000, cores in 0u32..400, thread: bool,
        ) {
            let machine = Machine { cores_allowed: (0..cores).collect(), ..Machine::default() };
            let isolation = if thread { "thread" } else { "process" };
            let load = format!("orders={orders} window={window}ms capacity={}", 1 << log);
            let settings_text = format!("strategies={strategies} venues={venues} isolation={isolation} {load}");
            let (_, plan, _) = planned(&settings_text, &machine).unwrap();
            prop_assert_eq!(plan.trading().total_orders(), orders);
            if plan.threading == protocol::plan::Threading::Dedicated {
                let mut used: Vec<_> = plan.threads.iter().map(|t| t.core).collect();
                used.sort_unstable();
                used.dedup();
                prop_assert_eq!(used.len(), plan.threads.len());
            }
        }
    }
}
