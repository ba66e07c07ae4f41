//! The simulated kernel, as observed by a run's launcher: the counterpart of what the runtime reads
//! in `/proc`. Also what fails in the launcher itself.

use super::START_TICKS;
use super::processes::SimulatedProcesses;
use super::scenario::Scenario;
use super::surroundings::SurroundingEvent;
use protocol::plan::Role;
use protocol::status::LivenessSample;
use supervision::observations::{Observations, StallExemptions, StrategyObservation};
use supervision::{Supervisor, has_journal};

/// Why an action of the launcher cannot be performed, in a simulated run.
pub(super) const LAUNCHER_ERROR: &str = "cannot watch a process: too many open files";
/// Why a process cannot be started, in a simulated run.
pub(super) const START_ERROR: &str = "cannot fork: resource temporarily unavailable";

/// What the supervisor was shown of the event in the surroundings.
#[derive(Debug, Default)]
pub(super) struct SurroundingSightings {
    /// Number of failed process starts that the launcher has observed.
    pub failed_starts: u32,
    /// Tick at which the launcher first observed the event that ends the run.
    pub ended: Option<u64>,
}

/// The kernel of a simulated run, as its launcher uses it.
pub(super) struct SimulatedKernel<'a> {
    scenario: &'a Scenario,
    /// Why processes could not be restarted.
    failed_starts: Vec<Option<String>>,
    /// The process whose starts fail, and how many of them are still to come.
    failing_starts: Option<(usize, u32)>,
    /// Failed starts that no step has been shown.
    unseen_starts: u32,
    pub seen: SurroundingSightings,
}

impl<'a> SimulatedKernel<'a> {
    /// Creates the simulated kernel of a scenario (a run to simulate).
    pub fn new(scenario: &'a Scenario) -> Self {
        let failing_starts = match scenario.surroundings {
            Some(SurroundingEvent::FailedStarts { role, failures }) => {
                scenario.plan.process_of(role).map(|process| (process, failures))
            }
            _ => None,
        };
        let failed_starts = scenario.plan.processes.iter().map(|_| None).collect();
        let seen = SurroundingSightings::default();
        Self { scenario, failed_starts, failing_starts, unseen_starts: 0, seen }
    }

    /// Attempts to start a process (index in the plan); returns `false` if the scenario makes this
    /// start fail.
    pub fn try_start(&mut self, process: usize) -> bool {
        let failing = self.failing_starts.as_mut().filter(|(failing, left)| *failing == process && *left > 0);
        let fails = failing.is_some();
        if let Some((_, left)) = failing {
            *left -= 1;
            self.unseen_starts += 1;
        }
        self.failed_starts[process] = fails.then(|| START_ERROR.into());
        !fails
    }

    /// Returns the tick of the event that concerns the launcher alone.
    fn own_event(&self) -> Option<u64> {
        match self.scenario.surroundings {
            Some(
                SurroundingEvent::LauncherError { at_ns }
                | SurroundingEvent::LauncherLostMemory { at_ns, .. },
            ) => Some(START_TICKS + at_ns),
            _ => None,
        }
    }

    /// Adds what the simulated kernel reports at tick (nanosecond) `now`, such as failed process
    /// starts and threads' waits for a core, to the supervisor's observations. Called after
    /// processes and memory were observed. `is_ending`: the processes were ended.
    pub fn observe(
        &mut self,
        supervisor: &Supervisor<'_>,
        processes: &SimulatedProcesses<'_>,
        (now, is_ending): (u64, bool),
        observed: &mut Observations,
    ) {
        for (found, failed) in observed.processes.iter_mut().zip(&self.failed_starts) {
            found.failed_start.clone_from(failed);
        }
        observe_accounts(self.scenario, supervisor, processes, now, observed);
        observed.has_process_lost_memory = processes.has_lost_memory();
        if self.own_event().is_some_and(|at| at <= now) {
            match self.scenario.surroundings {
                Some(SurroundingEvent::LauncherLostMemory { strategy, .. }) => {
                    observed.has_launcher_lost_memory = true;
                    observed.strategies[strategy.as_usize()] = StrategyObservation::default();
                    if let Some(thread) = self.scenario.plan.thread_of(Role::Strategy(strategy)) {
                        let zeros = LivenessSample { state: 0, tid: 0, heartbeat_ticks: 0 };
                        observed.threads[thread].pulse = zeros;
                    }
                }
                _ => observed.launcher_error = Some(LAUNCHER_ERROR.into()),
            }
        }
        if is_ending {
            // It has its outcome.
            return;
        }
        if supervisor.failing_process().is_some() {
            // So has a run that waits for last words, unless they may be read from lost memory.
            if observed.has_launcher_lost_memory {
                self.seen.ended.get_or_insert(now);
            }
            return;
        }
        self.seen.failed_starts += std::mem::take(&mut self.unseen_starts);
        let is_over = observed.launcher_error.is_some()
            || observed.has_launcher_lost_memory
            || observed.has_process_lost_memory;
        if is_over {
            self.seen.ended.get_or_insert(now);
        }
    }
}

/// Asks about killed processes, silent threads, and a run without progress.
fn observe_accounts(
    scenario: &Scenario,
    supervisor: &Supervisor<'_>,
    processes: &SimulatedProcesses<'_>,
    now: u64,
    observed: &mut Observations,
) {
    let plan = &scenario.plan;
    let (liveness, containment) = (supervisor.liveness(), supervisor.containment());
    let is_still = supervisor.needs_exemptions(now);
    for (index, process) in plan.processes.iter().enumerate() {
        let is_strategy = plan.roles_of(process).all(|role| matches!(role, Role::Strategy(_)));
        let is_running = processes.running_pid(index).is_some();
        let own = || process.threads.iter().map(|thread| *thread as usize);
        if is_running && containment.awaits_exit(index) {
            observed.processes[index].cpu = own().next().map(|thread| processes.cpu_of(thread, now));
        }
        for thread in own().filter(|thread| !containment.is_thread_down(*thread)) {
            let found = &mut observed.threads[thread];
            if liveness.needs_cpu_account(thread, &found.pulse, now) {
                found.cpu = Some(is_running.then(|| processes.cpu_of(thread, now)));
                found.waits_for_disk =
                    liveness.has_journal(thread) && is_running && processes.waits_for_disk(index);
            }
            if is_strategy && (is_still || liveness.needs_debugger(thread, &found.pulse, now)) {
                found.debugger = Some(processes.debugger_of(index));
            }
        }
    }
    observed.exemptions = is_still.then(|| {
        let all = || 0..plan.processes.len();
        let running = |index: &usize| processes.running_pid(*index).is_some();
        let writes = |index: &usize| has_journal(plan, *index) && processes.waits_for_disk(*index);
        let account = |index: usize| {
            let thread = *plan.processes[index].threads.first()? as usize;
            Some((processes.running_pid(index)?, processes.cpu_of(thread, now).account))
        };
        StallExemptions {
            disk_writer: all().filter(running).find(writes),
            accounts: supervisor.needs_process_accounts(now).then(|| all().filter_map(account).collect()),
        }
    });
}
