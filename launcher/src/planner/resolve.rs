//! Makes every setting concrete, or says why it cannot be had.

use super::resolved::{
    DEFAULT_LIVENESS_NS, Input, Resolved, default_market_data, default_sequence, plays_all,
};
use super::{faults, programs, reach};
use crate::config::{
    Arrivals, Choice, CoreList, DelayRange, Settings, Switch, UsageError, VenueName, limits,
};
use crate::host::Machine;
use analysis::lists;
use analysis::units::{Count, Nanos};
use protocol::kill::Scope;
use protocol::limits::LimitSetting;
use protocol::plan::{
    ExchangePlacement, Isolation, Journalling, OnDeath, Placement, Plan, Sequence, Stamps, Threading, Trading,
};
use protocol::wire::{MAX_STRATEGIES, MAX_VENUES};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Cores beside the roles' own that dedicated threading wants: for the launcher and for the operating system.
const SPARE_CORES: usize = 2;
/// The longest window, delay and work, in nanoseconds: an hour, a minute, a second.
const MAX_WINDOW_NS: u64 = 3_600_000_000_000;
const MAX_DELAY_NS: u64 = 60_000_000_000;
const MAX_WORK_NS: u64 = 1_000_000_000;
/// How long a thread may go without a duty cycle, in nanoseconds: a parked one begins one every 10 ms.
const LIVENESS_NS: RangeInclusive<u64> = 20_000_000..=3_600_000_000_000;
/// The most open orders of a strategy.
const MAX_OPEN: u64 = 1 << 20;

/// Makes every setting concrete for a machine.
///
/// What is not set takes the seed benchmark's numbers where every role can have a whole core of its own and two
/// are left; else what a small machine can carry in about 15 seconds: 1 strategy, 100,000 orders over 5 seconds.
///
/// # Errors
/// The flag whose value cannot be had here, and the way out.
pub fn resolve(settings: &Settings, machine: &Machine) -> Result<Resolved, UsageError> {
    let settings = settings.clone().with_preset();
    let (cores, cores_named) = usable_cores(&settings, machine)?;
    // A role on the second hardware thread of another's core is not alone: only whole cores count here.
    let whole = super::cores::whole(&cores, machine);

    let count = |setting: Option<Count>, default: u64| setting.map_or(default, |count| count.0);
    let fits = |strategies: u64| {
        let roles = strategies.saturating_add(count(settings.venues, 4)).saturating_add(1);
        roles.saturating_add(SPARE_CORES as u64) <= whole as u64
    };
    let large = fits(count(settings.strategies, 8));
    let (strategies, orders, window_ns) =
        if large { (8, 4_000_000, 10_000_000_000) } else { (1, 100_000, 5_000_000_000) };

    let strategies =
        within("--strategies", count(settings.strategies, strategies), 1..=MAX_STRATEGIES as u64)?;
    let venues = within("--venues", count(settings.venues, 4), 1..=MAX_VENUES as u64)?;
    let credentials = within("--credentials", count(settings.credentials, 1), 1..=strategies)?;
    let roles = (strategies + venues * credentials + 1) as usize;
    let delay = settings.delay.unwrap_or(DelayRange { min_ns: 5_000_000, max_ns: 500_000_000 });
    if delay.max_ns > MAX_DELAY_NS {
        return usage(format!(
            "--delay up to {}: at most 1m, the run lasts that much longer",
            Nanos(delay.max_ns)
        ));
    }
    let work_ns = settings.work.map_or(0, |work| work.0);
    if work_ns > MAX_WORK_NS {
        return usage(format!("--work {}: at most 1s an order", Nanos(work_ns)));
    }
    let technique = settings.technique.unwrap_or_default();
    let isolation = settings.isolation.unwrap_or(Isolation::Process);
    reach::check(technique, isolation)?;
    let placement = settings.process.unwrap_or(Placement::Engine);
    if placement != Placement::Engine && isolation == Isolation::Thread {
        return usage(format!(
            "--process {placement} with --isolation thread: there all roles are threads of one process.\n\
             Use --isolation process or sandbox, or leave --process out"
        ));
    }
    let on_death = settings.on_death.unwrap_or(OnDeath::Stop);
    let liveness_ns = settings.liveness.map_or(DEFAULT_LIVENESS_NS, |liveness| liveness.0);
    if !LIVENESS_NS.contains(&liveness_ns) {
        return usage(format!(
            "--liveness {}: give a time from 20ms to 60m. A parked thread begins a duty cycle every 10ms",
            Nanos(liveness_ns)
        ));
    }
    let faults = settings.fault.clone().map_or_else(Vec::new, |faults| faults.0);
    check_paths(&settings)?;
    faults::check(&faults, technique, isolation, (strategies, venues), on_death)?;
    let (strategy, venue) =
        (settings.strategy.clone().unwrap_or_default(), settings.venue.clone().unwrap_or_default());
    for (flag, many, kinds, count) in [
        ("--strategy", "--strategies", strategy.0.len(), strategies),
        ("--venue", "--venues", venue.0.len(), venues),
    ] {
        if kinds as u64 > count {
            return usage(format!(
                "{flag} names {kinds} kinds, and the run has {count}: use {many} {kinds} or more"
            ));
        }
    }
    programs::check(&strategy, technique, isolation, &faults)?;
    let limits = settings.limits.clone().map_or_else(Vec::new, |limits| limits.0);
    check_limits(&limits, strategies)?;
    let is_book = |kind: &VenueName| kind.name() == Trading::BOOK;
    if !venue.0.iter().any(is_book) {
        for (flag, is_there) in [
            ("--book", settings.book.is_some()),
            ("--exchange", settings.exchange.is_some()),
            ("--journal", settings.journal.is_some()),
            ("--market-data", settings.market_data == Some(Switch::On)),
        ] {
            if is_there {
                return usage(format!(
                    "{flag} is for exchanges, and no venue is one: use --venue {}",
                    Trading::BOOK
                ));
            }
        }
    }
    let spill = settings.spill.unwrap_or_default();
    let laps = within("--laps", count(settings.laps, 1), 1..=1_000_000)? as u32;
    if laps > 1 && settings.schedule.is_some() {
        return usage(
            "--laps with --schedule: a recorded flow is played once. Leave one of the two out".into(),
        );
    }
    let has_journal = settings.journal.is_some_and(|journal| journal != Journalling::None);
    // What comes back needs a process that can be killed alone.
    let comes_back = has_journal && on_death == OnDeath::Restart && isolation != Isolation::Thread;
    let exchange = settings.exchange.unwrap_or(match comes_back {
        true => ExchangePlacement::Process,
        false => ExchangePlacement::Gateway,
    });
    let kind_of = |index: u16| &venue.0[usize::from(index) % venue.0.len()];
    let is_exchange = |index: u16| u64::from(index) < venues && is_book(kind_of(index));
    faults::check_exchanges(&faults, is_exchange, exchange)?;
    faults::check_gateways(&faults, venues * credentials, placement)?;
    let input = input(&settings, orders, window_ns)?;
    let sequence =
        settings.sequence.unwrap_or_else(|| default_sequence(settings.book.is_some(), &input, &strategy));
    if sequence == Sequence::Recorded && !matches!(input, Input::Recorded { .. }) {
        return usage("--sequence recorded is for a recorded flow: give it with --schedule".into());
    }
    if sequence == Sequence::Recorded && !plays_all(&strategy) {
        return usage(format!(
            "--sequence recorded waits for each order of the recording, and --strategy {} does not send them all: leave one of \
             the two out",
            strategy.names().join(",")
        ));
    }
    let open = default_open(&input, delay.max_ns, strategies);
    Ok(Resolved {
        technique,
        isolation,
        threading: threading(&settings, roles, strategies, venues, (whole, cores.len()))?,
        placement,
        idle: settings.idle.unwrap_or_default(),
        priority: settings.priority,
        cores,
        cores_named,
        strategies: strategies as u16,
        venues: venues as u16,
        strategy: strategy.clone(),
        venue: venue.clone(),
        credentials: credentials as u16,
        exchange,
        journal: settings.journal.unwrap_or(Journalling::None),
        book: settings.book.clone(),
        sequence,
        market_data: settings
            .market_data
            .map_or_else(|| default_market_data(&venue, &strategy), |switch| switch == Switch::On),
        capacity: capacity(count(settings.capacity, 8192))?,
        max_open: within("--max-open", count(settings.max_open, open), 1..=MAX_OPEN)? as u32,
        venue_timeout_ns: match settings.venue_timeout {
            Some(Nanos(ns)) if !(1_000_000..=MAX_WINDOW_NS).contains(&ns) => {
                return usage(format!("--venue-timeout {}: give a time from 1ms to 60m", Nanos(ns)));
            }
            Some(Nanos(ns)) => ns,
            None => 0,
        },
        venue_limit: settings.venue_limit,
        max_waiting: match settings.max_waiting {
            Some(Count(orders)) => Some(within("--max-waiting", orders, 1..=MAX_OPEN)? as u32),
            None => None,
        },
        input,
        delay,
        work_ns,
        stamps: settings.stamps.unwrap_or(Stamps::All),
        seed: count(settings.seed, 1),
        on_death,
        liveness_ns,
        faults,
        instruments: settings.instruments.clone(),
        limits,
        laps,
        spill,
        repeats: within("--repeats", count(settings.repeats, 1), 1..=10_000)? as u32,
        out: settings.out.unwrap_or_else(|| PathBuf::from("runs")),
    })
}

/// Limits are for strategies that there are. Instruments and credentials the layout knows.
fn check_limits(limits: &[LimitSetting], strategies: u64) -> Result<(), UsageError> {
    let missing = limits
        .iter()
        .find(|limit| matches!(limit.scope, Scope::Strategy(index) if u64::from(index) >= strategies));
    match missing {
        Some(limit) => usage(format!(
            "--limits {}: the run has strategies 0 to {}",
            limits::limit_text(limit),
            strategies - 1
        )),
        None => Ok(()),
    }
}

/// How many open orders a strategy is allowed unless the user says so: what the load keeps open, and half as much again, so
/// that the limit does not hold the senders back; at least 65,536, or a share of eight times that where there are many
/// strategies (the engine keeps room for every open order's report).
fn default_open(input: &Input, max_delay_ns: u64, strategies: u64) -> u64 {
    let open = match input {
        Input::Drawn { arrivals, orders, window_ns } if *arrivals != Arrivals::Stress && *window_ns > 0 => {
            *orders as f64 / strategies as f64 * (max_delay_ns as f64 / *window_ns as f64).min(1.0) * 1.5
        }
        _ => 0.0,
    };
    let least = (8 * 65_536 / strategies).clamp(4_096, 65_536);
    (open as u64).clamp(least, MAX_OPEN)
}

fn usage<T>(message: String) -> Result<T, UsageError> {
    Err(UsageError(message))
}

fn within(flag: &str, value: u64, range: RangeInclusive<u64>) -> Result<u64, UsageError> {
    if range.contains(&value) {
        return Ok(value);
    }
    usage(format!("{flag} {value}: give a number from {} to {}", range.start(), range.end()))
}

/// The allowed cores, or those of them that the user named.
fn usable_cores(settings: &Settings, machine: &Machine) -> Result<(Vec<u32>, bool), UsageError> {
    let allowed = &machine.cores_allowed;
    let Some(CoreList(named)) = &settings.cores else {
        return Ok((allowed.clone(), false));
    };
    let foreign: Vec<u32> = named.iter().copied().filter(|core| !allowed.contains(core)).collect();
    if foreign.is_empty() {
        return Ok((named.clone(), true));
    }
    let (foreign, allowed) = (lists::format(&foreign), lists::format(allowed));
    let allowed = if allowed.is_empty() { "none, as far as can be seen".into() } else { allowed };
    usage(format!(
        "--cores: this process may not use {foreign}. Allowed: {allowed}.\n\
         Name allowed ones, or widen the mask (taskset -c, the container's cpuset)"
    ))
}

fn threading(
    settings: &Settings,
    roles: usize,
    strategies: u64,
    venues: u64,
    (whole, available): (usize, usize),
) -> Result<Threading, UsageError> {
    match settings.threading.unwrap_or_default() {
        Choice::Auto if roles + SPARE_CORES <= whole => Ok(Threading::Dedicated),
        Choice::Auto | Choice::Fixed(Threading::Shared) => Ok(Threading::Shared),
        Choice::Fixed(Threading::Dedicated) if roles <= available => Ok(Threading::Dedicated),
        Choice::Fixed(Threading::Dedicated) => usage(format!(
            "--threading dedicated needs {roles} cores (strategies {strategies} + venues {venues} + orchestrator), \
             there {}.\nUse --threading shared, or fewer --strategies and --venues",
            if available == 1 { "is 1".into() } else { format!("are {available}") },
        )),
    }
}

/// Paths that every process can be told: plan, records and config are text.
fn check_paths(settings: &Settings) -> Result<(), UsageError> {
    let paths = [
        ("--out", &settings.out),
        ("--schedule", &settings.schedule),
        ("--book", &settings.book),
        ("--instruments", &settings.instruments),
    ];
    for (flag, path) in paths {
        if let Some(path) = path.as_ref().filter(|path| path.to_str().is_none()) {
            return usage(format!(
                "{flag} {}: the name is not UTF-8, and the plan of a run is text: go into that folder and name it from there, or \
                 rename it",
                path.display()
            ));
        }
    }
    Ok(())
}

fn capacity(slots: u64) -> Result<u32, UsageError> {
    let max = u64::from(Plan::MAX_CAPACITY);
    if slots.is_power_of_two() && (2..=max).contains(&slots) {
        return Ok(slots as u32);
    }
    let near = slots.clamp(2, max).next_power_of_two();
    usage(format!("--capacity {slots}: rings have a power of two from 2 to {max} slots, for example {near}"))
}

fn input(settings: &Settings, orders: u64, window_ns: u64) -> Result<Input, UsageError> {
    if let Some(path) = &settings.schedule {
        for (given, flag) in [
            (settings.orders.is_some(), "--orders"),
            (settings.window.is_some(), "--window"),
            (settings.arrivals.is_some(), "--arrivals"),
        ] {
            if given {
                return usage(format!(
                    "{flag} with --schedule: the recorded flow says how many orders come and when.\n\
                     Leave {flag} out; --speed plays it faster or slower"
                ));
            }
        }
        let speed = settings.speed.map_or(1.0, |speed| speed.0);
        if !(0.001..=1_000_000.0).contains(&speed) {
            return usage(format!("--speed {speed}: give a factor from 0.001 to 1000000"));
        }
        return Ok(Input::Recorded { path: path.clone(), speed, span_ns: None });
    }
    if settings.speed.is_some() {
        return usage(
            "--speed plays a recorded flow: give one with --schedule FILE, or leave --speed out".into(),
        );
    }
    let window_ns = settings.window.map_or(window_ns, |window| window.0);
    if !(1_000_000..=MAX_WINDOW_NS).contains(&window_ns) {
        return usage(format!("--window {}: give a time from 1ms to 60m", Nanos(window_ns)));
    }
    let orders = within("--orders", settings.orders.map_or(orders, |orders| orders.0), 1..=1_000_000_000)?;
    Ok(Input::Drawn { arrivals: settings.arrivals.unwrap_or(Arrivals::Uniform), orders, window_ns })
}

#[cfg(test)]
mod tests;
