//! From the roles of a thread to one agent.
//!
//! A thread runs its agent behind one dynamic call: the loop behind it is monomorphised for the agent, the clock and the idle
//! strategy. That holds for a single role, for the orchestrator with gateways, and for gateways; only a thread with another
//! mixture of roles makes a dynamic call for each role in each duty cycle.

use super::agents::RoleAgent;
use super::build::{Parts, WhenAttached, builder, gateway, orchestrator};
use super::runner::Runner;
use crate::faults::own::Act;
use anyhow::Result;
use protocol::agent::Agent;
use protocol::control::Control;
use protocol::plan::{Plan, Role, ThreadPlan};
use protocol::status::StatusWriter;
use shm::attached::Attached;
use shm::clock::Virtual;
use shm::memory::Words;
use shm::ring::Link;

/// A thread's agent, ready to run.
pub struct Composed {
    agent: Box<dyn RoleAgent>,
    when_attached: Vec<WhenAttached>,
}

impl Composed {
    /// Tells faulty agents what their process can write, once all of it is attached, and where their thread's
    /// status is.
    pub fn arm(&mut self, attached: &Attached<'_>, thread: &Words) {
        self.when_attached.drain(..).for_each(|arm| arm(attached.writable(), StatusWriter::new(thread)));
    }

    /// Runs it on the calling thread, until the run ends.
    ///
    /// # Errors
    /// What kept the thread from starting.
    pub(super) fn run(self, runner: Runner<'_>) -> Result<()> {
        self.agent.run(runner)
    }

    /// The agent on a virtual clock, behind one dynamic call a turn: for who steps agents instead of giving each a thread.
    pub fn boxed(self) -> Box<dyn Agent<Virtual>> {
        self.agent
    }
}

/// Builds the agent of a thread from its roles; `act` is how faults are carried out.
///
/// # Errors
/// A segment that is missing or not what it should be.
pub fn compose<T: Link>(
    plan: &Plan,
    thread: &ThreadPlan,
    control: &Control,
    attached: &mut Attached<'_>,
    act: Act,
) -> Result<Composed> {
    let mut parts = Parts { plan, thread, control, attached, act, when_attached: Vec::new() };
    let is_gateway = |role: &Role| matches!(role, Role::Gateway(_));
    let agent: Box<dyn RoleAgent> = match thread.roles.as_slice() {
        [role] => builder::<T>(role.kind())(&mut parts, role.index())?,
        [Role::Orchestrator, gateways @ ..] if gateways.iter().all(is_gateway) => {
            // The consumer of the completions is attached before their producers.
            let orchestrator = orchestrator::<T>(&mut parts)?;
            let gateways: Result<Vec<_>> =
                gateways.iter().map(|role| gateway::<T>(&mut parts, role.index())).collect();
            Box::new((orchestrator, gateways?))
        }
        gateways if gateways.iter().all(is_gateway) => {
            let gateways: Result<Vec<_>> =
                gateways.iter().map(|role| gateway::<T>(&mut parts, role.index())).collect();
            Box::new(gateways?)
        }
        roles => {
            let all: Result<Vec<_>> =
                roles.iter().map(|role| builder::<T>(role.kind())(&mut parts, role.index())).collect();
            Box::new(all?)
        }
    };
    Ok(Composed { agent, when_attached: parts.when_attached })
}
