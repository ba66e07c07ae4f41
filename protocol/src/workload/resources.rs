//! Resources of strategies' processes: the limits of each, and the user that it runs as.

use core::fmt;
use serde::{Deserialize, Serialize};
use system::named_enum;

named_enum! {
    /// The part of the kernel that enforces a limit.
    LimitKeeper {
        /// A cgroup (version 2) of the strategy's processes together.
        CgroupV2 = "cgroup v2",
        /// A cgroup (version 1) of the strategy's processes together.
        CgroupV1 = "cgroup v1",
        /// A resource limit of each process.
        Rlimit = "rlimit",
    }
}

/// A resource limit of a strategy, and the part of the kernel that enforces the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimit {
    /// Maximum of the resource, in its own unit, such as bytes.
    pub max: u64,
    /// The part of the kernel that enforces the limit.
    pub keeper: LimitKeeper,
}

impl ResourceLimit {
    /// Creates a limit of `max` (in the resource's unit), enforced by an rlimit until another part
    /// of the kernel is chosen.
    pub const fn new(max: u64) -> Self {
        Self { max, keeper: LimitKeeper::Rlimit }
    }
}

/// The user that a strategy's process runs as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyUser {
    /// Name or number of the user, as the setting gave it.
    pub name: String,
    /// Numeric user id.
    pub user: u32,
    /// Group id; the process has no further groups.
    pub group: u32,
}

/// The resource limits that a user has set for a strategy; `None` for the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyResources {
    /// Limit of the strategy's memory, in bytes. In a cgroup: of all its processes; otherwise:
    /// private memory that a process maps after its setup.
    pub memory: Option<ResourceLimit>,
    /// Limit of the strategy's CPU time, in thousandths of a CPU.
    pub cpu: Option<ResourceLimit>,
    /// Maximum number of open files of each of the strategy's processes.
    pub files: Option<u64>,
    /// Maximum number of processes and threads of the strategy.
    pub processes: Option<ResourceLimit>,
    /// The user that the strategy runs as; `None`: the launcher's.
    pub user: Option<StrategyUser>,
}

impl StrategyResources {
    /// The resources of a strategy without limits and without a user of its own.
    pub const NONE: Self = Self { memory: None, cpu: None, files: None, processes: None, user: None };

    /// Returns the limit, in bytes, of private memory that each process may map after its setup;
    /// `None` if a cgroup limits it. `default` applies if no limit is set.
    pub const fn memory_growth(&self, default: u64) -> Option<u64> {
        match self.memory {
            None => Some(default),
            Some(ResourceLimit { max, keeper: LimitKeeper::Rlimit }) => Some(max),
            Some(_) => None,
        }
    }

    /// Returns `true` if a cgroup enforces one of the limits.
    pub fn needs_cgroup(&self) -> bool {
        let is_in_cgroup = |limit: &ResourceLimit| limit.keeper != LimitKeeper::Rlimit;
        [self.memory, self.cpu, self.processes].iter().flatten().any(is_in_cgroup)
    }
}

/// Writes the limits that are set, each with what enforces it: `memory 512MiB (cgroup v2)`.
impl fmt::Display for StrategyResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limits = [
            self.memory.map(|limit| (format!("memory {}", size(limit.max)), limit.keeper)),
            self.cpu.map(|limit| (format!("cpu {}", thousandths(limit.max)), limit.keeper)),
            self.files.map(|max| (format!("files {max}"), LimitKeeper::Rlimit)),
            self.processes.map(|limit| (format!("processes {}", limit.max), limit.keeper)),
        ];
        let limits = limits.into_iter().flatten().map(|(limit, keeper)| format!("{limit} ({keeper})"));
        let user = self.user.as_ref().map(|user| format!("user {}", user.name));
        f.write_str(&limits.chain(user).collect::<Vec<_>>().join(", "))
    }
}

fn size(bytes: u64) -> String {
    let units = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let exact = units.iter().find(|(_, scale)| bytes > 0 && bytes.is_multiple_of(*scale));
    exact.map_or_else(|| format!("{bytes} B"), |(unit, scale)| format!("{}{unit}", bytes / scale))
}

/// Formats thousandths as a decimal number: `1500` as `1.5`.
pub fn thousandths(value: u64) -> String {
    let text = format!("{}.{:03}", value / 1000, value % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_described_with_their_keepers() {
        let all = StrategyResources {
            memory: Some(ResourceLimit { max: 512 << 20, keeper: LimitKeeper::CgroupV2 }),
            cpu: Some(ResourceLimit { max: 1500, keeper: LimitKeeper::CgroupV1 }),
            files: Some(64),
            processes: Some(ResourceLimit::new(8)),
            user: Some(StrategyUser { name: "desk".into(), user: 1001, group: 1001 }),
        };
        assert_eq!(
            all.to_string(),
            "memory 512MiB (cgroup v2), cpu 1.5 (cgroup v1), files 64 (rlimit), processes 8 (rlimit), user desk"
        );
        assert!(all.needs_cgroup() && all.memory_growth(7).is_none());
        assert!(!StrategyResources::NONE.needs_cgroup());
        assert_eq!(StrategyResources::NONE.memory_growth(7), Some(7));
        let rlimit = StrategyResources { memory: Some(ResourceLimit::new(1001)), ..StrategyResources::NONE };
        assert_eq!(
            (rlimit.memory_growth(7), rlimit.to_string().as_str()),
            (Some(1001), "memory 1001 B (rlimit)")
        );
        assert_eq!([0, 1, 250, 2000, 12_340].map(thousandths), ["0", "0.001", "0.25", "2", "12.34"]);
    }
}
