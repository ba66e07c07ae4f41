//! Runs the measured loops of a benchmark from the barrier to their end.
//!
//! ```text
//! Go ── interrupted ─▶ Drain: a writer stops ──┐
//!  └─── every source is done or has ended ─────┴─▶ Stop: the others take what is left, and end
//! ```
//!
//! A measured loop has no heartbeat: that a benchmark hangs shows in its counters.

use super::{Supervisor, failure};
use crate::runtime::restart_policy::ProcessControl;
use analysis::record::{RoleRestart, RunOutcome};
use anyhow::Result;
use protocol::control::RunState;
use protocol::plan::{BoardWork, EventCost, Role, Workload};
use protocol::status::{self, COUNTERS_OFFSET, LOG_OFFSET, ThreadState};
use std::time::{Duration, Instant};
use system::clock::Clock;

/// Poll interval of the launcher, which may share a core with a measured loop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long the ends of a queue may make no progress, in addition to their pace.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a board's writer may be late, and readers may take to read the last values.
const BOARD_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest number of successors of a dead writer.
const MAX_SUCCESSORS: usize = 3;

impl Supervisor<'_> {
    /// Drives a benchmark until all its processes have ended, or something ends the run.
    pub(super) fn play_measured(&mut self) -> Result<RunOutcome> {
        let mut state = RunState::Go;
        let (mut progress, mut since) = (self.measured_progress(), Instant::now());
        loop {
            self.handle_board_deaths(state)?;
            let next = match (self.have_sources_ended(), self.interrupts) {
                (true, _) => RunState::Stop,
                (false, 0) => RunState::Go,
                (false, _) => RunState::Drain,
            };
            if next > state {
                state = next;
                self.segments.control.set_state(state);
            }
            if self.processes.all.iter().all(|process| process.status.is_some()) {
                let is_whole = self.interrupts == 0;
                return Ok(if is_whole { RunOutcome::Complete } else { RunOutcome::Interrupted });
            }
            let (now, limit) = (self.measured_progress(), self.measured_limit(state));
            if now != progress {
                (progress, since) = (now, Instant::now());
            } else if since.elapsed() > limit {
                let what = format!("no progress for {limit:?}: {}", self.unfinished().join(", "));
                return Ok(failure("launcher", self.plan.launcher_pid, what));
            }
            if let Some(outcome) = self.poll_within(POLL_INTERVAL)? {
                return Ok(outcome);
            }
        }
    }

    /// Returns `true` if nothing more is produced: each source is done or its process has ended.
    /// Not before every other end has begun: a run that is stopped begins no more.
    fn have_sources_ended(&self) -> bool {
        self.plan.threads.iter().enumerate().all(|(index, thread)| {
            let has_exited = self.owner_of(index).is_some_and(|process| process.status.is_some());
            let is_source = thread.roles[0].is_source();
            let awaited = if is_source { ThreadState::Done } else { ThreadState::Running };
            has_exited || self.state(index) >= awaited
        })
    }

    /// Records the deaths of a board's ends, and starts a successor of a dead writer.
    fn handle_board_deaths(&mut self, state: RunState) -> Result<()> {
        for (index, planned) in self.plan.processes.iter().enumerate() {
            let process = &self.processes.all[index];
            let pid = process.pid();
            let is_known = self.board_deaths.iter().any(|death| death.pid == pid);
            if is_known || process.status.is_none_or(|status| status.success()) {
                continue;
            }
            let cause = match process.stderr_tail() {
                words if words.is_empty() => process.exit_text(),
                words => format!("{}: {words}", process.exit_text()),
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
                // Its counters stay: the successor continues them.
                self.segments.reset_status(thread, COUNTERS_OFFSET..LOG_OFFSET);
                self.liveness.reset_thread(thread, self.plan.clock.now());
                self.processes.restart(self.segments, index)?;
            }
            self.board_deaths.push(RoleRestart {
                role,
                pid,
                cause,
                fault_ns: None,
                detected_ns,
                recovered_ns: has_successor.then_some(detected_ns),
                records: 0,
                replayed: 0,
            });
        }
        Ok(())
    }

    /// Returns a number that changes whenever a measured loop makes progress.
    fn measured_progress(&self) -> u64 {
        let running = self.processes.all.iter().filter(|process| process.status.is_none()).count() as u64;
        self.segments.threads.iter().zip(&self.plan.threads).fold(running, |sum, (words, thread)| {
            let role = thread.roles[0];
            let counters = status::counters_of(words, &thread.roles, role);
            // The first counter of each end counts its events.
            let count = counters.labeled().next().map_or(0, |(_, count)| count);
            sum.wrapping_add(count).wrapping_add(status::state(words) as u64)
        })
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

    fn unfinished(&self) -> Vec<&str> {
        let threads = self.plan.threads.iter().enumerate();
        let left = threads.filter(|(thread, _)| self.state(*thread) != ThreadState::Done);
        left.map(|(_, thread)| thread.name.as_str()).collect()
    }
}
