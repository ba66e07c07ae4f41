//! The kernel's own account of the cores while a run went on: what it says of times in which a
//! thread could not run.

use serde::{Deserialize, Serialize};

/// From the start of a run to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelAccount {
    /// The cores of the run, ascending.
    pub cores: Vec<CoreAccount>,
    /// How often, and for how long, the control group was out of CPU time; null: the kernel does
    /// not tell.
    pub throttled: Option<Throttled>,
    /// What this kernel does not tell, and what would. One line each.
    pub absent: Vec<String>,
    /// What the launcher itself took of the machine while orders were sent; null: the kernel does
    /// not tell, or an older launcher did not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<WakeUps>,
}

/// Sleeps that ended, or will: the voluntary context switches of all threads of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeUps {
    /// How many.
    pub times: u64,
    /// In so many nanoseconds.
    pub ns: u64,
}

/// One core. Times in nanoseconds; null: the kernel does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreAccount {
    /// Its number.
    pub core: u32,
    /// The hypervisor ran somebody else (`/proc/stat`, counted in hundredths of a second on most
    /// kernels).
    pub steal_ns: Option<u64>,
    /// In interrupts (the same).
    pub irq_ns: Option<u64>,
    /// In what interrupts leave to do (the same).
    pub softirq_ns: Option<u64>,
    /// Threads that could run waited for the core, all together (`/proc/schedstat`).
    pub run_delay_ns: Option<u64>,
    /// Interrupts (`/proc/interrupts`).
    pub interrupts: Option<u64>,
    /// The most frequent of them, with their numbers.
    pub most: Vec<(String, u64)>,
}

/// What a control group was kept from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// How often.
    pub times: u64,
    /// For how long together, in nanoseconds.
    pub ns: u64,
}
