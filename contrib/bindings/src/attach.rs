//! Attaches a program that the launcher has started to its run.

use crate::inbox::Inbox;
use crate::session::{AttachedSession, AttachedStrategy, RunInfo};
use core::mem::MaybeUninit;
use core::time::Duration;
use protocol::barrier::{self, ArriveError, ArrivedThread};
use protocol::control::Control;
use protocol::index::StrategyIndex;
use protocol::launcher_watch::LauncherWatch;
use protocol::plan::{ClockSource, Plan, PlanError, Role, Technique};
use protocol::segments::{self, submit_link};
use protocol::status::StatusWriter;
use protocol::trading::{PROCESS_VARIABLE, RUN_VARIABLE};
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::Link;
use std::io;
use strategy::StrategyAgent;
use system::clock::{Monotonic, Tsc};
use system::container;
use system::memory;
use thiserror::Error;

/// Maximum time until the launcher has published the PID of the started process.
const STARTED_WITHIN: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_millis(1);

#[derive(Debug, Error)]
pub(crate) enum AttachError {
    #[error("{0} is not set: the launcher starts this program, with --strategy exec:COMMAND")]
    Unset(&'static str),
    #[error("cannot open the run: {0}")]
    Run(#[source] RegionError),
    #[error("invalid run: {0}")]
    Plan(#[from] PlanError),
    #[error("run {run} has no process {process} that is a program")]
    NoProcess { run: String, process: String },
    #[error(
        "a script that starts the program must become it (exec): the launcher has started process {started} as {process}, and this is \
         process {own}"
    )]
    Stranger { process: String, started: u32, own: u32 },
    #[error("this library does not know the technique {0}: it was added to that launcher")]
    Technique(Technique),
    #[error("cannot watch the launcher: {0}")]
    Launcher(#[source] io::Error),
    #[error("cannot limit this process's memory: {0}")]
    Memory(#[source] io::Error),
    #[error(transparent)]
    Segment(#[from] RegionError),
    #[error(transparent)]
    Strategy(#[from] strategy::attach::AttachError),
    #[error(transparent)]
    Arrive(#[from] ArriveError),
}

/// Attaches the calling thread as the strategy that the environment names, and waits at the start
/// barrier; `None`: the run was stopped before it began. Once the strategy is known, an error is
/// also published to the launcher.
pub(crate) fn attach() -> Result<Option<Box<dyn AttachedSession>>, AttachError> {
    let variable = |name| std::env::var(name).map_err(|_| AttachError::Unset(name));
    let (address, process) = (variable(RUN_VARIABLE)?, variable(PROCESS_VARIABLE)?);
    let (control, plan) = segments::control_at(&address).map_err(AttachError::Run)?;
    plan.validate()?;
    let own_process = StrategyProcess::find(&plan, &process)
        .ok_or_else(|| AttachError::NoProcess { run: plan.run.clone(), process: process.clone() })?;
    own_process.confirm(&plan, &control, &process)?;
    let mut attached = segments::attach_with(&plan, Some(&plan.processes[own_process.process]), &control);
    let result = own_process.attach_session(&plan, &control, &mut attached);
    if let Err(error) = &result
        && let Ok(segment) = segments::attach_thread(&mut attached, &plan.threads[own_process.thread].name)
    {
        StatusWriter::new(&segment).fail(&error.to_string());
    }
    result
}

struct StrategyProcess {
    process: usize,
    thread: usize,
    strategy: u16,
}

impl StrategyProcess {
    /// Finds the strategy of the process `name`; `None`: no such process is a program.
    fn find(plan: &Plan, name: &str) -> Option<Self> {
        let process = plan.processes.iter().position(|process| process.name == name)?;
        plan.program_of(&plan.processes[process])?;
        let [thread] = plan.processes[process].threads[..] else { return None };
        let thread = usize::try_from(thread).ok()?;
        let [Role::Strategy(strategy)] = plan.threads.get(thread)?.roles[..] else { return None };
        Some(Self { process, thread, strategy: strategy.0 })
    }

    /// Confirms that this process is the one that the launcher has started and supervises.
    fn confirm(&self, plan: &Plan, control: &Control, process: &str) -> Result<(), AttachError> {
        let own = std::process::id();
        // In a container the PID differs from the one in the launcher's namespace.
        let contained = plan.is_contained(&plan.processes[self.process]).then_some(container::PROGRAM);
        let started = || control.pid(self.process).map(|pid| contained.unwrap_or(pid));
        // The PID is published after the start: this process may be faster.
        for _ in 0..STARTED_WITHIN.as_millis() / POLL_INTERVAL.as_millis() {
            if started() == Some(own) {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        let started = started().unwrap_or(0);
        Err(AttachError::Stranger { process: process.to_owned(), started, own })
    }

    fn attach_session(
        &self,
        plan: &Plan,
        control: &Control,
        attached: &mut Attached<'_>,
    ) -> Result<Option<Box<dyn AttachedSession>>, AttachError> {
        let technique = plan.technique;
        if !Technique::built_in().contains(&technique) {
            return Err(AttachError::Technique(technique));
        }
        techniques::with_link!(technique, T => self.attach_session_with::<T>(plan, control, attached))
    }

    fn attach_session_with<T: Link>(
        &self,
        plan: &Plan,
        control: &Control,
        attached: &mut Attached<'_>,
    ) -> Result<Option<Box<dyn AttachedSession>>, AttachError> {
        let watch = LauncherWatch::new(plan, &plan.processes[self.process]).map_err(AttachError::Launcher)?;
        let thread = &plan.threads[self.thread];
        let epoch = control.incarnation(StrategyIndex(self.strategy)).epoch;
        let context = strategy::attach::context(plan, StrategyIndex(self.strategy), epoch, attached)?;
        let submit = attached.producer::<T>(&submit_link(plan), self.strategy.into())?;
        let session = strategy::attach::session(plan, &context, submit, attached)?;
        let market = segments::attach_market(attached, plan)?;
        let agent = StrategyAgent::new(Inbox::new(), session).with_market_data(market);
        let idle = barrier::idle_strategy(attached, plan, thread)?;
        let segment = segments::attach_thread(attached, &thread.name)?;
        let log = segments::stamp_log(plan, thread, &segment);
        let resources = plan.trading().resources_of(StrategyIndex(self.strategy));
        if let Some(bytes) = resources.memory_growth(memory::program_memory_bytes()) {
            memory::limit_growth(bytes).map_err(AttachError::Memory)?;
        }
        if let Some(files) = resources.files {
            memory::limit_files(files).map_err(AttachError::Memory)?;
        }
        watch.start(plan, control).map_err(AttachError::Launcher)?;
        let arrived = ArrivedThread::new(plan, thread, &segment, log)?;
        let run_info = RunInfo::new(plan, context);
        Ok(match plan.clock {
            ClockSource::Tsc => arrived
                .wait(Tsc, plan, control)
                .map(|go| boxed(|| AttachedStrategy::begin(agent, go, idle, control, run_info))),
            ClockSource::Monotonic => arrived
                .wait(Monotonic, plan, control)
                .map(|go| boxed(|| AttachedStrategy::begin(agent, go, idle, control, run_info))),
        })
    }
}

/// Boxes the session that `begin` creates in memory allocated before: none is after the start.
fn boxed<L: AttachedSession + 'static>(begin: impl FnOnce() -> L) -> Box<dyn AttachedSession> {
    let memory_slot = Box::<L>::new_uninit();
    Box::<MaybeUninit<L>>::write(memory_slot, begin())
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::plan::Trading;

    #[test]
    fn only_program_processes_are_attachable() {
        let mut trading = Trading::new(2, 1);
        trading.strategy_kinds = vec!["player".into(), "exec:./mine".into()];
        let plan = Plan::for_trading(trading).arranged();
        assert_eq!(plan.validate(), Ok(()));
        let own_process = StrategyProcess::find(&plan, "strategy-1").unwrap();
        assert_eq!((own_process.strategy, plan.threads[own_process.thread].name.as_str()), (1, "strategy-1"));
        for name in ["strategy-0", "engine", "strategy-2", ""] {
            assert!(StrategyProcess::find(&plan, name).is_none(), "{name}");
        }
    }
}
