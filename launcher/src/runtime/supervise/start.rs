//! The start of a run: until every thread says that it is ready, within a time.

use super::{LOOK, Phase, Supervisor};
use anyhow::Result;
use protocol::status::ThreadState;
use std::time::{Duration, Instant};

impl Supervisor<'_> {
    pub(super) fn wait_until_ready(&mut self, timeout: Duration) -> Result<Phase> {
        let began = Instant::now();
        let mut patience = self.patience(timeout);
        loop {
            self.note_who_is_ready();
            let late = (0..self.threads.len()).find(|thread| self.state(*thread) < ThreadState::Ready);
            let Some(late) = late else { return Ok(Phase::Over) };
            if self.signals.take() > 0 {
                return Ok(Phase::Interrupted);
            }
            if self.has_waited(&mut patience) {
                let what =
                    format!("hangs at the start: not ready after {timeout:?}{}", self.unattached(late));
                return Ok(Phase::Failed(self.failure_of(late, what)));
            }
            // The longer it takes, the more rarely: each start-up is known to within a twentieth.
            let pause = (began.elapsed() / 20).clamp(Duration::from_millis(1), LOOK);
            if let Some(outcome) = self.look_within(pause)? {
                return Ok(Phase::Failed(outcome));
            }
        }
    }

    /// Takes note of the processes whose threads have all come to the barrier.
    fn note_who_is_ready(&mut self) {
        for (index, process) in self.plan.processes.iter().enumerate() {
            let is_there = |thread: &u32| self.state(*thread as usize) >= ThreadState::Ready;
            if !self.processes.all[index].is_ready() && process.threads.iter().all(is_there) {
                self.processes.all[index].ready();
            }
        }
    }

    /// What to say of a thread that never came to be ready, if it is that of somebody else's program.
    pub(super) fn unattached(&self, thread: usize) -> String {
        let owner = self.plan.processes.iter().find(|process| process.threads.contains(&(thread as u32)));
        let program = owner.and_then(|process| self.plan.program_of(process));
        program.map_or_else(String::new, |program| format!(": {program} has not attached (bh_attach)"))
    }
}
