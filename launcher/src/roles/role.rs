//! One process of a run: finds its part in the plan, composes its agents, and runs each on its thread.
//!
//! A child is told its name and the run's id; everything else it derives from the plan in the control segment.

use super::compose::compose;
use super::runner::Runner;
use crate::faults::own;
use crate::runtime::{orphan, setup};
use anyhow::{Context, Result, anyhow, bail};
use protocol::control::Control;
use protocol::plan::{Idle, Isolation, Plan, ProcessPlan};
use protocol::role::Trust;
use protocol::segments;
use protocol::status::StatusWriter;
use shm::attached::Attached;
use shm::os::{memory, process, sandbox};
use shm::ring::Link;
use shm::with_link;

/// Runs the process of that name of that run, until the run ends.
///
/// # Errors
/// What kept it from starting; the launcher is told through the status block as well.
pub fn run(name: &str, run: &str) -> Result<()> {
    let (control, plan) = setup::open_control(run)?;
    let me = plan.processes.iter().find(|process| process.name == name);
    let me = me.ok_or_else(|| anyhow!("run {} has no process {name}", plan.run))?;
    orphan::watch(&plan, &control).context("cannot watch the launcher")?;
    process::set_thread_name(name);
    exit_on_panic();
    // The technique table: from a name to monomorphised loops.
    let mut attached = segments::attach_with(&plan, Some(me), &control);
    let result = with_link!(plan.technique, T => run_process::<T>(&plan, me, &control, &mut attached));
    if let Err(error) = &result {
        report_failure(&plan, me, error, &mut attached);
    } else if control.is_abandoned() {
        bail!(orphan::message(&plan));
    }
    result
}

/// A panic on any thread ends the process: half an engine is no engine. The launcher sees the exit code and shows what
/// was printed.
fn exit_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        print(info);
        std::process::exit(101);
    }));
}

/// Tells the launcher why through every status block of ours that is there.
fn report_failure(plan: &Plan, me: &ProcessPlan, error: &anyhow::Error, attached: &mut Attached<'_>) {
    for thread in &me.threads {
        if let Ok(segment) = segments::thread(attached, &plan.threads[*thread as usize].name) {
            StatusWriter::new(&segment).fail(&format!("{error:#}"));
        }
    }
}

fn run_process<T: Link>(
    plan: &Plan,
    me: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<()> {
    let mut threads = Vec::new();
    // The engine's threads come last in a plan and are composed first: consumers before producers.
    for &index in me.threads.iter().rev() {
        let thread = &plan.threads[index as usize];
        let bell = match thread.idle {
            Idle::Park => Some(segments::bell(attached, plan, thread.roles[0])?),
            Idle::Spin | Idle::Yield | Idle::Backoff => None,
        };
        threads.push((
            thread,
            compose::<T>(plan, thread, control, attached, own::act)?,
            segments::thread(attached, &thread.name)?,
            bell,
        ));
    }
    for (_, agent, segment, _) in &mut threads {
        agent.arm(attached, segment);
    }
    let is_confined = plan.roles_of(me).all(|role| role.record().trust == Trust::Confined);
    if is_confined {
        let room = memory::STRATEGY_ROOM * threads.len() as u64;
        memory::limit(room).context("cannot limit this process's memory")?;
    }
    let sandboxed = plan.isolation == Isolation::Sandbox && is_confined;
    if sandboxed {
        sandbox::restrict_thread(plan.weaker_sandbox)?;
    }
    std::thread::scope(|scope| {
        let running: Vec<_> = threads
            .into_iter()
            .map(|(thread, agent, segment, bell)| {
                scope.spawn(move || agent.run(Runner { plan, thread, segment, bell, control, sandboxed }))
            })
            .collect();
        running.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}
