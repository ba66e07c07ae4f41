//! Agents behind dynamic calls: one a thread where a thread's loop is monomorphised, one for each role and duty cycle where the
//! roles of a thread are an unusual mixture.

use super::runner::Runner;
use anyhow::Result;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::stamps::StampLog;
use shm::clock::{Monotonic, Tsc, Virtual};

/// An agent on whatever clock.
pub trait RoleAgent: Agent<Tsc> + Agent<Monotonic> + Agent<Virtual> + Send {
    /// Runs it on the calling thread, until the run ends.
    ///
    /// # Errors
    /// What kept the thread from starting.
    fn run(self: Box<Self>, runner: Runner<'_>) -> Result<()>;
}

impl<A: Agent<Tsc> + Agent<Monotonic> + Agent<Virtual> + Send> RoleAgent for A {
    fn run(mut self: Box<Self>, runner: Runner<'_>) -> Result<()> {
        runner.run(&mut *self)
    }
}

/// A role behind a dynamic call, among others on a thread.
macro_rules! boxed_role {
    ($($clock:ty),+) => {
        $(impl Agent<$clock> for Box<dyn RoleAgent> {
            fn duty_cycle(&mut self, cycle: &mut Cycle<$clock>) -> usize {
                Agent::<$clock>::duty_cycle(&mut **self, cycle)
            }

            fn next_deadline(&self) -> u64 {
                Agent::<$clock>::next_deadline(&**self)
            }

            fn finished(&self, draining: bool) -> bool {
                Agent::<$clock>::finished(&**self, draining)
            }

            fn seal(&self, log: &mut StampLog) {
                Agent::<$clock>::seal(&**self, log);
            }

            fn publish(&mut self, slots: &mut Slots<'_>) {
                Agent::<$clock>::publish(&mut **self, slots);
            }
        })+
    };
}

boxed_role!(Tsc, Monotonic, Virtual);
