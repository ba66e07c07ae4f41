//! Converts settings into a plan: [`resolve`] makes every setting concrete, [`layout`] gives every
//! thread its core.
//!
//! Between the two the schedule is made, since the logs are sized by the orders that it holds. Both
//! are pure functions of their arguments: the machine comes in as a value, so plans for other
//! machines can be tested here.

mod compatibility;
mod cores;
mod faults;
mod layout;
pub mod priority;
mod resolve;
mod resolved;
mod shm_space;
mod show;
mod warnings;

pub use compatibility::{check_reach, is_supported};
pub use layout::{OrderCounts, RunIdentity, layout};
pub use resolve::resolve;
pub use resolved::{Input, Resolved};
pub use shm_space::{allow_descriptors, bytes_needed, check_shm_space, descriptors_needed};
pub use show::show;
pub(crate) use show::{table, trimmed};

use crate::host::Machine;

/// Picks `wanted` cores for a benchmark's threads, the engine's last; fewer if there are fewer.
pub(crate) fn pick_cores(wanted: usize, machine: &Machine) -> Vec<u32> {
    cores::pick(wanted, &machine.cores_allowed, machine)
}

/// Returns how many physical cores this process may use.
pub(crate) fn count_whole_cores(machine: &Machine) -> usize {
    cores::count_physical(&machine.cores_allowed, machine)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::config::{Settings, UsageError};
    use protocol::plan::{ClockSource, Plan};

    /// Settings from `key=value` words, and faults, which have spaces.
    pub(crate) fn settings_with(words: &str, faults: &str) -> Settings {
        let mut settings = settings(words);
        if !faults.is_empty() {
            settings.set("fault", faults).unwrap().unwrap();
        }
        settings
    }

    /// Returns the plan that these settings give on a machine, and its text.
    pub(crate) fn planned_with(
        words: &str,
        faults: &str,
        machine: &Machine,
    ) -> Result<(Plan, String), UsageError> {
        let (resolved, plan, warnings) = plan_of(&settings_with(words, faults), machine)?;
        let text = show(&plan, &resolved, machine, &warnings);
        Ok((plan, text))
    }

    /// Returns the error of an invalid plan.
    pub(crate) fn refused_with(words: &str, faults: &str, machine: &Machine) -> String {
        let message = planned_with(words, faults, machine).unwrap_err().to_string();
        assert!(message.lines().count() <= 2, "{message}");
        message
    }

    /// Settings from `key=value` words.
    pub(crate) fn settings(words: &str) -> Settings {
        let mut settings = Settings::default();
        for word in words.split_whitespace() {
            let (key, text) = word.split_once('=').unwrap();
            settings.set(key, text).unwrap().unwrap();
        }
        settings
    }

    /// Returns the plan that these settings give on a machine.
    pub(crate) fn planned(
        words: &str,
        machine: &Machine,
    ) -> Result<(Resolved, Plan, Vec<String>), UsageError> {
        plan_of(&settings(words), machine)
    }

    fn plan_of(settings: &Settings, machine: &Machine) -> Result<(Resolved, Plan, Vec<String>), UsageError> {
        let resolved = resolve(settings, machine)?;
        let orders = match &resolved.input {
            Input::Drawn { orders, .. } => *orders,
            Input::Recorded { .. } => 1000,
        };
        let counts = OrderCounts::estimated(orders, &resolved);
        let identity = RunIdentity { run: "test-1".into(), pid: 7, start: 8 };
        let clock = if machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
        let (plan, warnings) = layout(&resolved, machine, &counts, identity, clock)?;
        assert_eq!(plan.validate(), Ok(()));
        Ok((resolved, plan, warnings))
    }

    /// Returns the error of an invalid plan.
    pub(crate) fn refused(words: &str, machine: &Machine) -> String {
        refused_with(words, "", machine)
    }
}
