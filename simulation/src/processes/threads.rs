//! Strategies that are threads of the engine's process, and end alone: the simulated counterpart of
//! `roles::threads`. The fault `exit` of such a strategy stands for a panic of its thread.

use super::{SimulatedProcesses, SimulatedThread, ThreadMode};
use anyhow::{Context, Result};
use protocol::control::RunState;
use roles::RecoveredRoles;
use supervision::observations::Observations;

impl SimulatedThread {
    /// Ends the thread by a panic, which was caught: it has unwound, and what it had is dropped.
    pub(super) fn panic(&mut self) {
        self.agent = None;
        self.status.fail("panicked: a fault of the simulation");
        self.mode = ThreadMode::Over;
    }
}

impl SimulatedProcesses<'_> {
    /// Starts a strategy's next incarnation on a thread, once the launcher has published its epoch.
    /// Returns `true` if there was something to do.
    pub(super) fn start_again(&mut self, thread: usize) -> Result<bool> {
        let Some(SimulatedThread { process, alone: Some((strategy, epoch)), .. }) = &self.threads[thread]
        else {
            return Ok(false);
        };
        let (process, life) = (*process, self.control.incarnation(*strategy));
        if life.fenced || life.epoch <= *epoch || self.control.state() == RunState::Stop {
            return Ok(false);
        }
        let mut attached =
            self.attached[process].take().context("a process with threads keeps its memory")?;
        let built =
            self.build_threads(process, &[thread as u32], &mut attached, &mut RecoveredRoles::default());
        self.attached[process] = Some(attached);
        built.context("cannot start a thread again")?;
        Ok(true)
    }

    /// Returns `true` if all threads of a process have ended, or are abandoned.
    pub(super) fn has_process_ended(&self, process: usize) -> bool {
        let is_abandoned = |thread: &SimulatedThread| {
            thread.alone.is_some_and(|(strategy, _)| self.control.incarnation(strategy).fenced)
        };
        let mut own = self.threads.iter().flatten().filter(|thread| thread.process == process);
        own.all(|thread| thread.mode.is_over() || is_abandoned(thread))
    }

    /// Writes into `observations` which simulated strategy threads have ended while their process
    /// goes on. After their memory.
    pub fn observe_threads(&self, observations: &mut Observations) {
        for (thread, found) in self.threads.iter().zip(&mut observations.threads) {
            let is_gone = |thread: &SimulatedThread| {
                let has_ended = self.processes[thread.process].exit.is_some();
                // Its process may not have started the published incarnation yet.
                let is_current = thread
                    .alone
                    .is_some_and(|(strategy, epoch)| self.control.incarnation(strategy).epoch == epoch);
                is_current && thread.mode.is_over() && !has_ended
            };
            found.is_gone = thread.as_ref().is_some_and(is_gone);
        }
    }
}
