//! The main function of a benchmark's child process: attaches, confines and pins itself, and runs
//! the loops of its agents.

use super::plan::BenchPlan;
use super::{BenchWork, LoopContext, MeasuredLoop};
use anyhow::{Context, Result, anyhow};
use roles::bench::account::{AgentAccount, DONE, Field, READY};
use roles::bench::control::{ControlView, PREPARE, STOP};
use roles::role::exit_on_panic;
use std::time::Duration;
use system::clock::{Clock, Timebase};
use system::sandbox::STRATEGY;
use system::usage::{ThreadUsage, thread_cpu_ns};
use system::{pin, process};

/// Runs a child process of a benchmark until its loops have ended.
pub fn run<W: BenchWork>(name: &str, address: &str) -> Result<()> {
    let (control, plan) = BenchPlan::<W>::open(address).context("this command is started by the launcher")?;
    // Nothing that the processes share outlives the launcher.
    process::die_with_parent(plan.launcher_pid)?;
    process::set_thread_name(name);
    exit_on_panic();
    let processes = plan.processes();
    let mine = processes.iter().find(|(own, _)| own == name).map(|(_, agents)| agents.as_slice());
    let mine = mine.ok_or_else(|| anyhow!("this run has no process {name}"))?;
    let mut attached = plan.attach(mine, &control);
    let mut parts = Vec::new();
    // Sources come first in a plan and attach last: a socket is bound by its consumer.
    for agent in mine.iter().rev() {
        let account = AgentAccount::attach(&mut attached, *agent)?;
        let work = W::attach(&plan, *agent, &mut attached, &account)?;
        parts.push(AttachedAgent { agent: *agent, account, work });
    }
    if plan.is_confined(mine) {
        STRATEGY.confine(plan.weaker_sandbox)?;
    }
    // The sandbox's process has one agent: no thread starts after its system calls are restricted.
    if let [_] = mine {
        return parts.into_iter().try_for_each(|part| part.run(&plan, &control));
    }
    std::thread::scope(|scope| {
        let (plan, control) = (&plan, &control);
        let threads: Vec<_> =
            parts.into_iter().map(|part| scope.spawn(move || part.run(plan, control))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
    })
}

struct AttachedAgent {
    agent: usize,
    account: AgentAccount,
    work: MeasuredLoop,
}

impl AttachedAgent {
    fn run<W: BenchWork>(self, plan: &BenchPlan<W>, control: &ControlView) -> Result<()> {
        let Self { agent, account, work } = self;
        process::set_timer_slack(plan.slack_ns);
        if let Some(core) = plan.cores[agent] {
            pin::pin_to(core).with_context(|| format!("cannot run on core {core}"))?;
        }
        if plan.is_confined(&[agent]) {
            STRATEGY.restrict_calls(plan.work.uses_kernel())?;
        }
        account.set_state(READY);
        let clock = plan.clock;
        let Some(start_ticks) = await_start(control, &clock) else { return Ok(()) };
        let time = Timebase { start_ticks, ns_per_tick: plan.ns_per_tick };
        let (cpu_ns, before) = (thread_cpu_ns(), ThreadUsage::current_thread());
        work(&LoopContext { control, account: &account, clock, time });
        account.set(Field::Cpu, thread_cpu_ns().saturating_sub(cpu_ns));
        let used = ThreadUsage::current_thread().since(before);
        account.set(Field::Voluntary, used.voluntary_switches);
        account.set(Field::Involuntary, used.involuntary_switches);
        account.set(Field::Faults, used.minor_faults + used.major_faults);
        account.set_state(DONE);
        Ok(())
    }
}

/// Waits for the start tick. Returns `None` if the run ends before.
fn await_start(control: &ControlView, clock: &impl Clock) -> Option<u64> {
    loop {
        match control.phase() {
            PREPARE => std::thread::sleep(Duration::from_micros(50)),
            STOP => return None,
            _ => break,
        }
    }
    let start = control.start_ticks();
    while clock.peek() < start {
        std::thread::yield_now();
    }
    Some(start)
}
