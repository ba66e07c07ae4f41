//! The facts of a host that a figure is quoted with.

use serde::{Deserialize, Serialize};

/// The machine, as it stands in every summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The host's name.
    pub hostname: String,
    /// The processor's model name.
    pub cpu_model: String,
    /// The hypervisor, if the processor says that it runs under one.
    pub hypervisor: Option<String>,
    /// Logical processors online.
    pub cores_online: u32,
    /// The ones that this process may use (its affinity mask), ascending.
    pub cores_allowed: Vec<u32>,
    /// Groups of hardware threads that share a core, among the allowed ones; only groups of two or
    /// more.
    pub smt_siblings: Vec<Vec<u32>>,
    /// Groups of allowed cores that share a last-level cache.
    pub llc_groups: Vec<Vec<u32>>,
    /// Groups of allowed cores by NUMA node.
    pub numa_nodes: Vec<Vec<u32>>,
    /// Cores that the kernel keeps free of other work (`isolcpus`).
    pub isolated: Vec<u32>,
    /// Cores without a scheduler tick (`nohz_full`).
    pub nohz_full: Vec<u32>,
    /// The frequency governor of the allowed cores, if the kernel shows one.
    pub governor: Option<String>,
    /// The kernel's clock source.
    pub clocksource: String,
    /// Whether the processor and the kernel both say that the TSC is invariant.
    pub tsc_invariant: bool,
    /// Kernel release.
    pub kernel: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Room left in /dev/shm, in bytes.
    pub shm_free_bytes: u64,
    /// Size of /dev/shm, in bytes.
    pub shm_total_bytes: u64,
}
