//! Description of the machine on which a figure was measured.

use serde::{Deserialize, Serialize};

/// The machine on which a figure was measured, as saved in every summary.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub hostname: String,
    /// CPU model name.
    pub cpu_model: String,
    /// Hypervisor, if the CPU reports one.
    pub hypervisor: Option<String>,
    /// Number of logical CPUs online.
    pub cores_online: u32,
    /// CPUs that this process may use (its affinity mask), ascending.
    pub cores_allowed: Vec<u32>,
    /// Groups of allowed hardware threads that share a core; only groups of two or more.
    pub smt_siblings: Vec<Vec<u32>>,
    /// Groups of allowed CPUs that share a last-level cache.
    pub llc_groups: Vec<Vec<u32>>,
    /// Groups of allowed CPUs by NUMA node.
    pub numa_nodes: Vec<Vec<u32>>,
    /// CPUs that the kernel keeps free of other work (`isolcpus`).
    pub isolated: Vec<u32>,
    /// CPUs without a scheduler tick (`nohz_full`).
    pub nohz_full: Vec<u32>,
    /// Frequency governor of the allowed CPUs, if the kernel reports one.
    pub governor: Option<String>,
    /// Clock source of the kernel.
    pub clocksource: String,
    /// Whether both the CPU and the kernel report an invariant TSC.
    pub tsc_invariant: bool,
    /// Kernel release.
    pub kernel: String,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Free space in /dev/shm, in bytes.
    pub shm_free_bytes: u64,
    /// Size of /dev/shm, in bytes.
    pub shm_total_bytes: u64,
}
