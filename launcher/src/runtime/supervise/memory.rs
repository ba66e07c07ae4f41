//! How much memory the processes of a run take, together and each.

use super::Supervisor;
use crate::runtime::process::Process;

impl Supervisor<'_> {
    /// The proportional set size of all processes together, in bytes. `None` if one has gone, or the kernel tells none.
    pub(super) fn proportional_memory(&self) -> Option<u64> {
        let of = |pid: u32| {
            let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        };
        self.processes.all.iter().map(|process| of(process.pid())).sum()
    }

    /// Looks at the memory of each.
    pub(super) fn see_memory(&mut self) {
        self.processes.all.iter_mut().for_each(Process::see_memory);
    }
}
