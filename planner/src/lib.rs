//! Converts settings into a plan: [`resolve()`] makes every setting concrete, [`layout()`] gives
//! every thread its core.
//!
//! Between the two the schedule is made, since the logs are sized by the orders that it holds. Both
//! are pure functions of their arguments: the machine comes in as a value, so plans for other
//! machines can be tested here.
#![forbid(unsafe_code)]

pub mod command_line;
mod compatibility;
pub mod config;
mod cores;
mod faults;
pub mod host;
mod layout;
pub mod memory_check;
pub mod priority;
pub mod realtime;
mod resolve;
mod resolved;
mod resources;
pub mod result_folder;
mod shm_space;
mod show;
mod warnings;

// `check_reach`: whether a technique's hand-offs reach strategies at an isolation level.
pub use compatibility::{check_reach, is_supported};
pub use layout::{OrderCounts, RunIdentity, layout, preview};
pub use resolve::resolve;
pub use resolved::{Input, Resolved};
pub use shm_space::{allow_descriptors, bytes_needed, check_shm_space, descriptors_needed};
pub use show::{show, show_brief};
pub use show::{table, trimmed};

use crate::host::Machine;

/// Picks `count` CPU cores for a benchmark's threads; the last core returned is the one that a run
/// would give its engine. Returns fewer on a machine that has fewer.
pub fn pick_cores(count: usize, machine: &Machine) -> Vec<u32> {
    cores::pick(count, &machine.cores_allowed, machine)
}

/// Returns the number of physical cores of which this process may use at least one hyperthread.
pub fn count_physical_cores(machine: &Machine) -> usize {
    cores::count_physical(&machine.cores_allowed, machine)
}

/// Test helpers that create a run's plan from a text of settings, such as `venues=2`.
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures {
    use super::*;
    use crate::config::{Settings, UsageError};
    use protocol::plan::Plan;

    /// Parses settings from a text of `key=value` words; a value with blanks is in single quotes.
    pub fn settings(settings_text: &str) -> Settings {
        let mut settings = Settings::default();
        let mut rest = settings_text.trim();
        while let Some((key, after)) = rest.split_once('=') {
            let (text, left) = match after.strip_prefix('\'') {
                Some(quoted) => quoted.split_once('\'').unwrap(),
                None => after.split_once(' ').unwrap_or((after, "")),
            };
            settings.set(key, text).unwrap().unwrap();
            rest = left.trim_start();
        }
        settings
    }

    /// Returns the resolved settings and the plan that a settings text gives on a machine, and the
    /// plan's warnings.
    pub fn planned(
        settings_text: &str,
        machine: &Machine,
    ) -> Result<(Resolved, Plan, Vec<String>), UsageError> {
        let resolved = resolve(&settings(settings_text), machine)?;
        let (plan, warnings) = preview(&resolved, machine)?;
        assert_eq!(plan.validate(), Ok(()));
        Ok((resolved, plan, warnings))
    }

    /// Returns the printed text of the plan that a settings text gives on a machine.
    pub fn shown(settings_text: &str, machine: &Machine) -> String {
        let (resolved, plan, warnings) = planned(settings_text, machine).unwrap();
        show(&plan, &resolved, machine, &warnings)
    }

    /// Asserts that a settings text is refused on a machine with an error that contains `expected`.
    #[track_caller]
    pub fn refuses(settings_text: &str, expected: &str, machine: &Machine) {
        let message = planned(settings_text, machine).unwrap_err().to_string();
        assert!(message.lines().count() <= 2 && message.contains(expected), "{settings_text}: {message}");
    }
}
