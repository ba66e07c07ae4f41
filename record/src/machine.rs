//! Description of the machine on which a figure was measured.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// Size of the machine's memory in bytes.
    pub memory_bytes: u64,
    /// Free space in /dev/shm, in bytes.
    pub shm_free_bytes: u64,
    /// Size of /dev/shm, in bytes.
    pub shm_total_bytes: u64,
    /// What a switch to another address space does; empty in records of older builds.
    #[serde(default, skip_serializing_if = "Switching::is_unknown")]
    pub switching: Switching,
}

/// CPU and kernel settings that affect context switches to another process: mitigations, PCID, huge
/// pages, SMT, and the scheduler's slice. They decide what a process costs more than a thread on a
/// shared core.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Switching {
    /// The kernel's mitigations by the name of the weakness, for example `spectre_v2` with
    /// `Mitigation: Retpolines; IBPB: conditional; STIBP: disabled`; those that do not affect the
    /// machine are left out.
    pub mitigations: BTreeMap<String, String>,
    /// The kernel's report about indirect branch speculation of this process: `conditional …` where
    /// a process may close its own, as `--speculation closed` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch_speculation: Option<String>,
    /// Whether entries of the TLB have the id of their address space (PCID), so that a switch does
    /// not flush them.
    pub pcid: bool,
    /// The mode of transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// The state of simultaneous multithreading (SMT, hardware threads): `on`, `off`, `forceoff` or
    /// `notsupported`.
    pub smt: Option<String>,
    /// The scheduler's slice in nanoseconds, after which a thread that has waited gets the core;
    /// only root may read it.
    pub slice_ns: Option<u64>,
}

impl Switching {
    fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
