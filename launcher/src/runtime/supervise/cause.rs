//! Why a process failed: what the kernel says of it, and what it says itself.

use super::Supervisor;
use crate::runtime::incidents::with_own_words;
use anyhow::Result;
use core::time::Duration;
use protocol::role::RoleKind;
use protocol::status::{Status, ThreadState};

/// How long a strategy that gives up has to end, so that the kernel can say how.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Supervisor<'_> {
    /// Why the process at this place of the plan failed, in words. `failed`: what a thread of it says that gave up. Where a strategy
    /// can have written that, it comes last.
    pub(super) fn cause(&mut self, process: usize, failed: Option<Status>) -> Result<String> {
        let words = failed.map(|status| status.error()).filter(|error| !error.is_empty());
        let mut roles = self.plan.processes[process]
            .threads
            .iter()
            .flat_map(|thread| &self.plan.threads[*thread as usize].roles);
        let has_strategy = roles.any(|role| role.kind() == RoleKind::Strategy);
        let thread = self.plan.processes[process].threads.first().map_or(0, |thread| *thread as usize);
        let is_ready = self.state(thread) >= ThreadState::Ready;
        let unattached = if is_ready { String::new() } else { self.unattached(thread) };
        let child = &mut self.processes.all[process];
        if has_strategy {
            child.await_end(LAST_WORDS)?;
            let how = match child.status {
                Some(status) if status.success() => format!("{} before it had finished", child.how()),
                Some(_) => child.how(),
                None => "gave up".into(),
            } + &unattached;
            return Ok(with_own_words(&how, &words.unwrap_or_else(|| child.last_words())));
        }
        let what = words.unwrap_or_else(|| child.how());
        Ok(match child.last_words() {
            words if words.is_empty() || words.contains(&what) => what,
            words => format!("{what}: {words}"),
        })
    }
}
