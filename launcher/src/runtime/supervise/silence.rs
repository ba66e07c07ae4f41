//! Of a silent thread, the kernel's account: does it hang, or does it wait for a core?

use super::Supervisor;
use crate::runtime::cpu::CpuAccount;

impl Supervisor<'_> {
    /// Takes the account of every thread that has been silent for half of its deadline.
    pub(super) fn ask_the_kernel(&mut self) {
        let silent: Vec<usize> =
            (0..self.threads.len()).filter(|thread| self.liveness.asks_the_kernel(*thread)).collect();
        for thread in silent {
            let owner = self.plan.processes.iter().position(|owner| owner.threads.contains(&(thread as u32)));
            let process = owner.map(|owner| &self.processes.all[owner]);
            // Only one that still lives: its number may be another's else.
            let process = process.filter(|process| process.status.is_none());
            let tid = self.liveness.tid(thread);
            let account = process.and_then(|process| CpuAccount::of(process.pid(), tid));
            self.liveness.account(thread, account);
        }
    }
}
