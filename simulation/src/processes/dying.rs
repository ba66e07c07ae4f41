//! Simulated deaths that take several turns, as real ones do: threads release their memory one
//! after the other, and the kernel dismantles the process later. Until then it has not exited.
//!
//! A process has one thread more than the plan: its first one, which holds no lock.

use super::{SimulatedProcess, SimulatedProcesses};
use protocol::plan::FaultKind;
use supervision::observations::ExitingObservation;

/// The kernel dismantles a process within fewer turns than this.
const MAX_TURNS_TO_DISMANTLE: u64 = 24;

/// A process that has got a deadly signal, or has asked for its end.
#[derive(Debug)]
pub(super) struct DyingProcess {
    /// How it ends.
    how: String,
    /// The threads of the plan that have left their memory.
    left: Vec<usize>,
    /// So has the first thread.
    has_first_left: bool,
    /// Turns until the kernel has dismantled it.
    turns: u64,
}

impl SimulatedProcesses<'_> {
    /// Lets a process end: at once, or step by step.
    pub(super) fn die(&mut self, process: usize, how: &str) {
        let has_threads = self.threads.iter().flatten().any(|thread| thread.process == process);
        let simulated = &mut self.processes[process];
        if self.scenario.has_slow_exits && has_threads {
            let turns = self.death_draws.below(MAX_TURNS_TO_DISMANTLE);
            let dying = DyingProcess { how: how.into(), left: Vec::new(), has_first_left: false, turns };
            simulated.dying.get_or_insert(dying);
        } else {
            self.finish(process, how, false);
        }
    }

    fn finish(&mut self, process: usize, how: &str, is_early: bool) {
        let simulated = &mut self.processes[process];
        (simulated.exit, simulated.has_exited_early) = (Some((false, how.into())), is_early);
        if std::mem::take(&mut simulated.killed_by_fault) {
            self.fired_faults.push(FaultKind::Kill);
        }
    }

    /// Runs the turn of a thread whose process is dying. Returns `false` if it is not.
    pub(super) fn try_die(&mut self, thread: usize) -> bool {
        let Some(process) = self.threads[thread].as_ref().map(|thread| thread.process) else { return false };
        let simulated = &mut self.processes[process];
        let Some(dying) = simulated.dying.as_mut().filter(|_| simulated.exit.is_none()) else { return false };
        if !dying.left.contains(&thread) {
            dying.left.push(thread);
        } else if !dying.has_first_left {
            dying.has_first_left = self.death_draws.below(3) > 0;
        } else if dying.turns > 0 {
            dying.turns -= 1;
        } else {
            let how = std::mem::take(&mut dying.how);
            self.finish(process, &how, false);
        }
        true
    }

    /// Returns the names of simulated processes that have received a deadly signal which the
    /// launcher has not observed yet.
    pub fn unseen_deaths(&self) -> Vec<String> {
        let is_unseen = |it: &&SimulatedProcess| it.dying.is_some() && it.exit.is_none() && !it.is_fenced;
        self.processes.iter().filter(is_unseen).map(|it| it.name.clone()).collect()
    }

    /// Draws whether a thread that hangs has overwritten the word of its lock.
    pub(super) fn draw_forged_lock(&mut self, process: usize) {
        if self.scenario.has_slow_exits {
            self.processes[process].is_lock_forged = self.death_draws.below(2) == 0;
        }
    }

    /// Returns `true` if the locks of a process's threads are free: all of them have died, or it
    /// has overwritten the words.
    pub(super) fn is_lock_free(&self, process: usize) -> bool {
        let mut own = self.threads.iter().enumerate().filter_map(|(index, thread)| {
            thread.as_ref().filter(|thread| thread.process == process).map(|thread| (index, thread))
        });
        let simulated = &self.processes[process];
        let has_died = |index: usize| simulated.dying.as_ref().is_some_and(|it| it.left.contains(&index));
        let is_dead = own.all(|(index, thread)| thread.alone.is_none() && has_died(index));
        simulated.exit.is_none() && (simulated.is_lock_forged || (simulated.dying.is_some() && is_dead))
    }

    /// Returns the threads of a process as its kernel lists them. Before the launcher has killed
    /// it, a thread that was started during the listing is not in it.
    pub(super) fn exiting(&self, process: usize) -> ExitingObservation {
        let simulated = &self.processes[process];
        let planned = self.scenario.plan.processes[process].threads.len();
        let left = simulated.dying.as_ref().map_or(0, |it| it.left.len());
        if !simulated.is_fenced {
            return ExitingObservation { count: left.max(1), exiting: left.max(1) };
        }
        let first = usize::from(simulated.dying.as_ref().is_some_and(|it| it.has_first_left));
        ExitingObservation { count: planned + 1, exiting: left + first }
    }

    /// Kills a simulated process for the launcher, and marks it as killed by the launcher; it may
    /// still run some duty cycles.
    pub fn fence(&mut self, process: usize) {
        self.processes[process].is_fenced = true;
        self.kill(process);
    }

    /// Marks a simulated process as exited, for the launcher, when all its threads are exiting but
    /// the kernel has not reported its exit.
    ///
    /// # Errors
    /// A thread of it may still run.
    pub fn conclude_exit(&mut self, process: usize) -> Result<(), String> {
        let simulated = &mut self.processes[process];
        if simulated.exit.is_some() {
            return Ok(());
        }
        let name = simulated.name.clone();
        if !simulated.is_fenced {
            return Err(format!("{name} was taken for dead before it was killed"));
        }
        let threads = self.exiting(process);
        let dying = self.processes[process].dying.as_mut().filter(|_| threads.is_all());
        let Some(dying) = dying else {
            let ExitingObservation { count, exiting } = threads;
            return Err(format!("{name} was taken for dead while {exiting} of {count} threads were exiting"));
        };
        let how = std::mem::take(&mut dying.how);
        self.finish(process, &how, true);
        Ok(())
    }
}
