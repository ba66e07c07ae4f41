//! Agents behind dynamic calls: one a thread where a thread's loop is monomorphised, one for each role and duty cycle where the
//! roles of a thread are an unusual mixture.

use super::runner::Runner;
use anyhow::Result;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::stamps::StampLog;
use shm::clock::{Monotonic, Tsc, Virtual};
use shm::idle::Chosen;

/// An agent on whatever clock.
pub trait AnyClock: Agent<Tsc> + Agent<Monotonic> + Agent<Virtual> + Send {}

impl<A: Agent<Tsc> + Agent<Monotonic> + Agent<Virtual> + Send> AnyClock for A {}

/// An agent with loops of its own: what this is made of takes the compiler as long as all its loops.
pub trait RoleAgent: AnyClock {
    /// Runs it on the calling thread, which idles like that, until the run ends.
    ///
    /// # Errors
    /// What kept the thread from starting.
    fn run(self: Box<Self>, runner: Runner<'_>, idle: Chosen) -> Result<()>;
}

impl<A: AnyClock> RoleAgent for A {
    fn run(mut self: Box<Self>, runner: Runner<'_>, idle: Chosen) -> Result<()> {
        runner.run(&mut *self, idle)
    }
}

/// A role behind a dynamic call: among others on a thread, or one that is not measured.
macro_rules! boxed_role {
    ($agent:ident: $($clock:ty),+) => {
        $(impl Agent<$clock> for Box<dyn $agent> {
            fn duty_cycle(&mut self, cycle: &mut Cycle<$clock>) -> usize {
                Agent::<$clock>::duty_cycle(&mut **self, cycle)
            }

            fn next_deadline(&self) -> u64 {
                Agent::<$clock>::next_deadline(&**self)
            }

            fn finished(&self, draining: bool) -> bool {
                Agent::<$clock>::finished(&**self, draining)
            }

            fn failure(&self) -> Option<&str> {
                Agent::<$clock>::failure(&**self)
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

boxed_role!(RoleAgent: Tsc, Monotonic, Virtual);
boxed_role!(AnyClock: Tsc, Monotonic, Virtual);
