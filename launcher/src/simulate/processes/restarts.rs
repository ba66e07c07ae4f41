//! Kills of an outsider, and restarted processes, which recover some turns after their start.

use super::{SimulatedProcesses, SimulatedThread, ThreadMode, message};
use crate::simulate::START_TICKS;
use crate::simulate::fuse::{self, InjectedUnwind};
use anyhow::{Context, Result, bail};
use protocol::plan::FaultKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use system::clock::Clock as _;

/// With bursts of deaths, a process that was started attaches after fewer turns than this.
pub(super) const MAX_START_TURNS: u64 = 12;

impl SimulatedProcesses<'_> {
    /// Returns the tick of an outsider's next kill.
    pub fn next_kill(&self) -> u64 {
        self.bursts.first().map_or(u64::MAX, |(ns, _)| START_TICKS + ns)
    }

    /// Kills the processes whose turn it is, as an outsider: at once, or within their next turns.
    pub fn kill_due(&mut self, now: u64) {
        while let Some(((ns, role), rest)) = self.bursts.split_first()
            && START_TICKS + ns <= now
        {
            self.bursts = rest;
            let plan = &self.scenario.plan;
            let (Some(process), Some(thread)) = (plan.process_of(*role), plan.thread_of(*role)) else {
                continue;
            };
            let is_over = |actor: &SimulatedThread| matches!(actor.mode, ThreadMode::Over);
            if self.children[process].ended.is_some() || self.actors[thread].as_ref().is_none_or(is_over) {
                continue;
            }
            self.struck.push(FaultKind::Kill);
            if self.draws.below(2) == 0 {
                self.children[process].ended = Some((false, "signal 9 (SIGKILL)".into()));
            } else {
                self.kill(process);
            }
        }
    }

    /// Returns `true` if processes attach some turns after their start, as real ones do.
    pub(super) const fn is_attached_later(&self) -> bool {
        !self.scenario.bursts.is_empty()
    }

    /// Lets a started process attach to its memory, unless it needs more turns until then.
    pub(super) fn attach_later(&mut self, process: usize) -> Result<(), String> {
        let child = &mut self.children[process];
        if child.killed.take_if(|turns| *turns == 0).is_some() {
            child.ended = Some((false, "signal 9 (SIGKILL)".into()));
            return Ok(());
        }
        if let Some(turns) = &mut child.killed {
            *turns -= 1;
        }
        if let Some(turns @ 1..) = &mut child.unattached {
            *turns -= 1;
            return Ok(());
        }
        child.unattached = None;
        self.attach_as_successor(process).map_err(|error| format!("{error:#}"))
    }

    /// Lets a restarted process recover. It may be killed before it has, or soon after.
    pub(super) fn attach_as_successor(&mut self, process: usize) -> Result<()> {
        let spare = self.spares.promote(process);
        // One in four dies during recovery, and one in four soon after.
        let fate = self.draws.below(4);
        fuse::set_now(self.clock.peek());
        fuse::set(if fate == 0 { 1 + self.draws.below(4) } else { 0 });
        let begun = catch_unwind(AssertUnwindSafe(|| self.begin(process, spare)));
        fuse::take();
        match begun.map_err(|payload| payload.downcast::<InjectedUnwind>()) {
            Ok(begun) => {
                begun.context("cannot start a process again")?;
                if fate == 1 {
                    self.kill(process);
                }
            }
            Err(Ok(_)) => self.children[process].ended = Some((false, "signal 9 (SIGKILL)".into())),
            Err(Err(payload)) => bail!("panicked while it came back: {}", message(&*payload)),
        }
        Ok(())
    }
}
