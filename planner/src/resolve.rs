//! Resolves every setting to a concrete value, or reports why that is impossible.

use super::compatibility;
use super::resolved::{Input, Resolved};
use crate::config::{Choice, CoreList, Factor, Settings, UsageError};
use crate::host::Machine;
use protocol::plan::Threading;
use record::cpu_list;
use record::numbers::counted;
use record::units::{Count, Nanos};

/// Cores that dedicated threading leaves: for the launcher and for the operating system.
const SPARE_CORES: u64 = 2;
/// Maximum open orders of a strategy, unless the user requests more.
const MAX_OPEN: u64 = 1 << 20;

/// Gives every setting of a run a concrete value for a machine, and returns the resolved settings.
///
/// What is not set takes the numbers of the benchmark that this project started from, where every
/// role can have a whole core of its own and two are left. Else it takes what a small machine can
/// carry in about 15 seconds: 1 strategy, 100,000 orders over 5 seconds.
pub fn resolve(settings: &Settings, machine: &Machine) -> Result<Resolved, UsageError> {
    let mut settings = settings.clone().with_preset();
    settings.check()?;
    let cores = usable_cores(&settings, machine)?;
    // A role on the second hardware thread of another's core is not alone: only whole cores count
    // here.
    let physical_cores = super::cores::count_physical(&cores, machine) as u64;

    if let Some(Count(wanted)) =
        settings.strategy_cores.filter(|Count(wanted)| *wanted > cores.len().max(1) as u64)
    {
        return Err(UsageError(format!(
            "--strategy-cores {wanted}: {} may be used.\nUse --strategy-cores {} and leave the engine its own core, or allow \
             more cores",
            counted(cores.len() as u64, "core"),
            cores.len().saturating_sub(1).max(1)
        )));
    }
    let count = |setting: Option<Count>, default| setting.map_or(default, |Count(count)| count);
    let roles = count(settings.strategies, 8) + settings.venues().0 * settings.credentials().0 + 1;
    let (strategies, orders, window) = match roles + SPARE_CORES <= physical_cores {
        true => (8, 4_000_000, Nanos(10_000_000_000)),
        false => (1, 100_000, Nanos(5_000_000_000)),
    };
    settings.strategies.get_or_insert(Count(strategies.max(settings.credentials().0)));
    compatibility::check_settings(&settings)?;
    if settings.schedule.is_some() {
        settings.speed.get_or_insert(Factor(1.0));
    } else {
        settings.orders.get_or_insert(Count(orders));
        settings.window.get_or_insert(window);
        settings.arrivals.get_or_insert(settings.arrivals());
    }
    settings.max_open.get_or_insert(Count(default_open(&settings)));
    settings.threading = Some(Choice::Fixed(threading(&settings, physical_cores, cores.len() as u64)?));
    settings.fill();
    let resolved = Resolved::new(settings, cores);
    compatibility::check(&resolved)?;
    Ok(resolved)
}

/// Returns the default limit of a strategy's open orders: what the load keeps open, and half as
/// much again, so that the limit does not throttle the senders; at least 65,536, or a share of
/// eight times that with many strategies (the engine reserves memory for every open order's
/// report).
fn default_open(settings: &Settings) -> u64 {
    let (input, strategies, delay_ns) =
        (Input::from_settings(settings), settings.all_strategies().0, settings.delay().max_ns);
    // In a crossover one level at a time has all orders.
    let groups = settings.crossover.map_or(1, |_| settings.isolation().as_slice().len()) as f64;
    let open = match (&input, input.window_ns()) {
        (Input::Drawn { orders, .. }, window_ns @ 1..) => {
            let delays = (delay_ns as f64 / window_ns as f64 * groups).min(1.0);
            *orders as f64 / strategies as f64 * delays * 1.5
        }
        _ => 0.0,
    };
    let min_orders = (8 * 65_536 / strategies).clamp(4_096, 65_536);
    (open as u64).clamp(min_orders, MAX_OPEN)
}

/// The allowed cores, or those of them that the user named.
fn usable_cores(settings: &Settings, machine: &Machine) -> Result<Vec<u32>, UsageError> {
    let allowed = &machine.cores_allowed;
    let Some(CoreList(named)) = &settings.cores else { return Ok(allowed.clone()) };
    let foreign: Vec<u32> = named.iter().copied().filter(|core| !allowed.contains(core)).collect();
    if foreign.is_empty() {
        return Ok(named.clone());
    }
    let (foreign, allowed) = (cpu_list::format(&foreign), cpu_list::format(allowed));
    let allowed = if allowed.is_empty() { "none, as far as can be seen".into() } else { allowed };
    Err(UsageError(format!(
        "--cores: this process may not use {foreign}. Allowed: {allowed}.\n\
         Name allowed ones, or widen the mask (taskset -c, the container's cpuset)"
    )))
}

fn threading(settings: &Settings, physical_cores: u64, available: u64) -> Result<Threading, UsageError> {
    let (Count(strategies), Count(venues)) = (settings.all_strategies(), settings.venues());
    // Several strategies on one core need one core.
    let strategies = settings.strategy_cores.map_or(strategies, |Count(cores)| cores.min(strategies));
    let gateways = venues * settings.credentials().0;
    let roles = strategies + gateways + 1;
    match settings.threading() {
        Choice::Auto if roles + SPARE_CORES <= physical_cores => Ok(Threading::Dedicated),
        Choice::Auto | Choice::Fixed(Threading::Shared) => Ok(Threading::Shared),
        Choice::Fixed(Threading::Dedicated) if roles <= available => Ok(Threading::Dedicated),
        Choice::Fixed(Threading::Dedicated) => Err(UsageError(format!(
            "--threading dedicated needs {roles} cores (strategies {strategies} + venues {venues} + orchestrator), \
             there {}.\nUse --threading shared, or fewer --strategies and --venues",
            if available == 1 { "is 1".into() } else { format!("are {available}") },
        ))),
    }
}

#[cfg(test)]
mod tests;
