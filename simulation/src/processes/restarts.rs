//! External kills of simulated processes, and restarted processes, which recover some turns after
//! their start.

use super::{SimulatedProcesses, SimulatedThread, message};
use crate::START_TICKS;
use crate::fuse::{self, InjectedUnwind};
use anyhow::{Context, Result, bail};
use protocol::plan::{FaultKind, Role};
use std::panic::{AssertUnwindSafe, catch_unwind};
use system::clock::Clock as _;

/// With bursts of deaths, a process that was started attaches after fewer turns than this.
pub(super) const MAX_START_TURNS: u64 = 12;

impl SimulatedProcesses<'_> {
    /// Returns the tick of the simulated run's next external kill or other external event.
    pub fn next_kill(&self) -> u64 {
        let kill = self.bursts.first().map_or(u64::MAX, |(ns, _)| START_TICKS + ns);
        kill.min(self.next_event())
    }

    /// Kills the simulated processes whose external kills are due: at once, or within their next
    /// duty cycles.
    pub fn kill_due(&mut self, now: u64) {
        while let Some(((ns, role), rest)) = self.bursts.split_first()
            && START_TICKS + ns <= now
        {
            self.bursts = rest;
            self.kill_role(*role);
        }
    }

    /// Kills the simulated process of a role from outside the run: at once, or within its next duty
    /// cycles.
    pub fn kill_role(&mut self, role: Role) {
        let plan = &self.scenario.plan;
        let (Some(process), Some(thread)) = (plan.process_of(role), plan.thread_of(role)) else { return };
        let is_exiting = self.processes[process].turns_until_exit.is_some();
        let is_over = |thread_state: &SimulatedThread| thread_state.mode.is_over() && !is_exiting;
        if self.processes[process].exit.is_some()
            || self.processes[process].dying.is_some()
            || self.threads[thread].as_ref().is_none_or(is_over)
        {
            return;
        }
        self.fired_faults.push(FaultKind::Kill);
        if self.draws.below(2) == 0 {
            self.die(process, "signal 9 (SIGKILL)");
        } else {
            self.kill(process);
        }
    }

    /// Returns `true` if processes attach some turns after their start, as real ones do.
    pub(super) const fn is_attached_later(&self) -> bool {
        !self.scenario.bursts.is_empty()
    }

    /// Lets a started process attach to its memory, unless it needs more turns until then.
    pub(super) fn attach_later(&mut self, process: usize) -> Result<(), String> {
        let simulated = &mut self.processes[process];
        if simulated.turns_after_kill.take_if(|turns| *turns == 0).is_some() {
            simulated.exit = Some((false, "signal 9 (SIGKILL)".into()));
            return Ok(());
        }
        if let Some(turns) = &mut simulated.turns_after_kill {
            *turns -= 1;
        }
        if let Some(turns @ 1..) = &mut simulated.turns_until_attach {
            *turns -= 1;
            return Ok(());
        }
        simulated.turns_until_attach = None;
        self.attach_as_successor(process).map_err(|error| format!("{error:#}"))
    }

    /// Lets a restarted process recover. It may be killed before it has, or soon after.
    pub(super) fn attach_as_successor(&mut self, process: usize) -> Result<()> {
        let standby = self.standbys.promote(process);
        // One in four dies during recovery, and one in four soon after.
        let fate = self.draws.below(4);
        fuse::set_virtual_now(self.clock.peek());
        fuse::arm(if fate == 0 { 1 + self.draws.below(4) } else { 0 });
        let built = catch_unwind(AssertUnwindSafe(|| self.build_process(process, standby)));
        fuse::disarm();
        match built.map_err(|payload| payload.downcast::<InjectedUnwind>()) {
            Ok(built) => {
                built.context("cannot start a process again")?;
                if fate == 1 {
                    self.kill(process);
                }
            }
            Err(Ok(_)) => self.processes[process].exit = Some((false, "signal 9 (SIGKILL)".into())),
            Err(Err(payload)) => bail!("panicked while it came back: {}", message(&*payload)),
        }
        Ok(())
    }
}
