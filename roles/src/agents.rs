//! Agents behind dynamic calls: one a thread where a thread's loop is monomorphised, one for each
//! role and duty cycle where the roles of a thread are an unusual mixture, or are not measured.

use super::runner::Runner;
use anyhow::Result;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::stamps::StampLog;
use shm::idle;
use system::clock::{self, Tsc};

/// An agent behind a dynamic call a duty cycle: on whichever clock, compiled once.
pub trait AnyAgent: Agent<clock::Chosen> + Send {}

impl<A: Agent<clock::Chosen> + Send> AnyAgent for A {}

/// An agent with loops of its own: what this is made of takes the compiler as long as all its
/// loops.
pub trait RoleAgent: AnyAgent {
    /// Runs it on the calling thread, which idles like that, until the run ends.
    ///
    /// # Errors
    /// What kept the thread from starting.
    fn run(self: Box<Self>, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()>;
}

impl<A: AnyAgent + Agent<Tsc>> RoleAgent for A {
    fn run(mut self: Box<Self>, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()> {
        runner.run(&mut *self, idle)
    }
}

/// The roles of a thread, each behind a dynamic call.
pub struct Mixed(pub Vec<Box<dyn AnyAgent>>);

impl RoleAgent for Mixed {
    fn run(mut self: Box<Self>, runner: Runner<'_>, idle: idle::IdleStrategy) -> Result<()> {
        runner.run_any(&mut *self, idle)
    }
}

impl Agent<clock::Chosen> for Mixed {
    fn duty_cycle(&mut self, cycle: &mut Cycle<clock::Chosen>) -> usize {
        self.0.iter_mut().map(|agent| agent.duty_cycle(cycle)).sum()
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.0.iter().map(|agent| agent.next_deadline(draining)).min().unwrap_or(u64::MAX)
    }

    fn finished(&self, draining: bool) -> bool {
        self.0.iter().all(|agent| agent.finished(draining))
    }

    fn failure(&self) -> Option<&str> {
        self.0.iter().find_map(|agent| agent.failure())
    }

    fn seal(&self, log: &mut StampLog) {
        self.0.iter().for_each(|agent| agent.seal(log));
    }

    fn keep_warm(&self, round: usize) {
        if let Some(agent) = round.checked_rem(self.0.len()).map(|turn| &self.0[turn]) {
            agent.keep_warm(round / self.0.len());
        }
    }

    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.0.iter_mut().for_each(|agent| agent.publish(slots));
    }
}
