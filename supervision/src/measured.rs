//! Supervises the measured loops of a benchmark, from the start barrier to the loops' end.
//!
//! ```text
//! Go ── interrupted ─▶ Drain: a writer stops ──┐
//!  └─── every source is done or has ended ─────┴─▶ Stop: the others take what is left, and end
//! ```
//!
//! A measured loop has no heartbeat: that a benchmark hangs shows in its counters.

use super::actions::{Action, Actions};
use super::failures::failure;
use super::observations::Observations;
use super::{NextPhase, Phase, Supervisor};
use protocol::control::RunState;
use protocol::plan::{BoardWork, EventCost, Role, Workload};
use protocol::status::ThreadState;
use record::run::{RestartSteps, RoleRestart, RunOutcome};
use std::time::Duration;

/// How long the ends of a queue may make no progress, in addition to their pace.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a board's writer may be late, and readers may take to read the last values.
const BOARD_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest number of successors of a dead writer.
const MAX_SUCCESSORS: usize = 3;

/// A benchmark in progress.
pub(super) struct MeasuredLoops {
    state: RunState,
    /// A number that changes whenever a loop makes progress, and since when it has not changed.
    progress: u64,
    since_ns: u64,
}

impl MeasuredLoops {
    /// Creates the watch that detects a benchmark without progress; its threads started to measure
    /// at `now_ns`, in nanoseconds since the run's start.
    pub fn new(now_ns: u64) -> Self {
        Self { state: RunState::Go, progress: 0, since_ns: now_ns }
    }
}

impl Supervisor<'_> {
    /// Waits until all processes of a benchmark have ended.
    pub(super) fn measure(
        &mut self,
        mut loops: MeasuredLoops,
        observed: &Observations,
        out: &mut dyn Actions,
    ) -> NextPhase {
        if let Some(failed) = self.record_board_deaths(loops.state, observed, out) {
            return NextPhase::End(failed);
        }
        let is_restarting = self.is_writer_restarting(observed);
        let next = match (!is_restarting && self.have_sources_ended(observed), self.requests) {
            (true, _) => RunState::Stop,
            (false, 0) => RunState::Go,
            (false, _) => RunState::Drain,
        };
        if next > loops.state {
            loops.state = next;
            out.perform(Action::SetRunState(next));
        }
        if !is_restarting && observed.processes.iter().all(|process| process.exit.is_some()) {
            let is_whole = self.requests == 0;
            return NextPhase::End(if is_whole { RunOutcome::Complete } else { RunOutcome::Interrupted });
        }
        let (now_ns, progress) = (self.now_ns(), measured_progress(observed));
        let limit = self.measured_limit(loops.state);
        if progress != loops.progress {
            (loops.progress, loops.since_ns) = (progress, now_ns);
        } else if Duration::from_nanos(now_ns.saturating_sub(loops.since_ns)) > limit {
            let what = format!("no progress for {limit:?}: {}", self.unfinished(observed).join(", "));
            return NextPhase::End(failure("launcher", self.plan.launcher_pid, what));
        }
        NextPhase::Wait(Phase::Measuring(loops))
    }

    /// Returns `true` while a dead writer is still observed: its successor is started after this
    /// step, or once the kernel confirms the death.
    fn is_writer_restarting(&self, observed: &Observations) -> bool {
        let has_successor =
            |pid| self.board_deaths.iter().any(|death| death.pid == pid && death.recovered_ns.is_some());
        observed.processes.iter().any(|process| {
            let has_died = process.exit.as_ref().is_some_and(|exit| !exit.is_success);
            has_died && (!process.is_proven_dead || has_successor(process.pid))
        })
    }

    /// Returns `true` if nothing more is produced: each source is done or its process has ended.
    /// Not before every other end has begun: a run that is stopped begins no more.
    fn have_sources_ended(&self, observed: &Observations) -> bool {
        self.plan.threads.iter().enumerate().all(|(index, thread)| {
            let is_source = thread.roles[0].is_source();
            let awaited = if is_source { ThreadState::Done } else { ThreadState::Running };
            observed.processes[self.owner_index(index)].exit.is_some() || observed.state(index) >= awaited
        })
    }

    /// Records the deaths of a board's ends, and starts a successor of a dead writer. Returns the
    /// failure of one that cannot be started.
    fn record_board_deaths(
        &mut self,
        state: RunState,
        observed: &Observations,
        out: &mut dyn Actions,
    ) -> Option<RunOutcome> {
        for (index, planned) in self.plan.processes.iter().enumerate() {
            let process = &observed.processes[index];
            if let Some(why) = &process.failed_start {
                return Some(failure("launcher", self.plan.launcher_pid, why.clone()));
            }
            let is_known = self.board_deaths.iter().any(|death| death.pid == process.pid);
            let Some(exit) = process.exit.as_ref().filter(|exit| !exit.is_success && !is_known) else {
                continue;
            };
            if !process.is_proven_dead {
                continue;
            }
            let cause = match exit.last_words.as_str() {
                "" => exit.text.clone(),
                words => format!("{}: {words}", exit.text),
            };
            let thread = planned.threads[0] as usize;
            let role = self.plan.threads[thread].roles[0];
            let successors = self.board_deaths.iter().filter(|death| death.recovered_ns.is_some()).count();
            let has_successor = role == Role::Writer
                && planned.threads.len() == 1
                && state == RunState::Go
                && successors < MAX_SUCCESSORS;
            let detected_ns = self.now_ns();
            if has_successor {
                self.liveness.reset_thread(thread, self.now);
                out.perform(Action::Restart(index));
            }
            self.board_deaths.push(RoleRestart {
                role,
                pid: process.pid,
                cause,
                fault_ns: None,
                detected_ns,
                recovered_ns: has_successor.then_some(detected_ns),
                steps: RestartSteps::default(),
                records: 0,
                replayed: 0,
            });
        }
        None
    }

    /// Returns how long a benchmark may make no progress.
    fn measured_limit(&self, state: RunState) -> Duration {
        match &self.plan.workload {
            Workload::Queue(work) => {
                let costs = [work.producer_cost, work.consumer_cost].into_iter().flatten();
                let cost = costs.map(EventCost::ns).max().unwrap_or(0);
                QUEUE_TIMEOUT + Duration::from_nanos(cost.saturating_mul(20))
            }
            Workload::Board(work) if state < RunState::Stop => {
                BOARD_TIMEOUT + Duration::from_nanos(work.duration_ns.saturating_add(BoardWork::LATE_NS))
            }
            _ => BOARD_TIMEOUT,
        }
    }

    fn unfinished(&self, observed: &Observations) -> Vec<&str> {
        let threads = self.plan.threads.iter().enumerate();
        let left = threads.filter(|(thread, _)| observed.state(*thread) != ThreadState::Done);
        left.map(|(_, thread)| thread.name.as_str()).collect()
    }
}

/// Returns a number that changes whenever a measured loop makes progress.
fn measured_progress(observed: &Observations) -> u64 {
    let running = observed.processes.iter().filter(|process| process.exit.is_none()).count() as u64;
    observed.threads.iter().fold(running, |sum, thread| {
        sum.wrapping_add(thread.measured_events).wrapping_add(thread.state() as u64)
    })
}
