//! Standstills: a thread of a simulated run that gets no turns for a time, a process that loses
//! memory, and a disk that stalls, with what the kernel then reports.

use super::{SimulatedProcesses, SimulatedThread, ThreadMode};
use crate::START_TICKS;
use crate::surroundings::{StandstillCause, SurroundingEvent};
use protocol::plan::{FaultKind, Role};
use std::time::Duration;
use supervision::stuck::{CpuAccount, CpuSample, Debugger};
use system::clock::Clock as _;

/// Process id of the debugger of simulated strategies.
const DEBUGGER_PID: u32 = 2_000_000_000;

/// A thread that gets no turns for a time. It ends with the process that has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standstill {
    /// The thread and the process, as indices in the plan.
    thread: usize,
    process: usize,
    /// Process id of the incarnation that stands still.
    pid: u32,
    cause: StandstillCause,
    /// Tick at which the standstill began.
    pub since: u64,
    /// When it ends, in ticks; `u64::MAX`: never.
    until: u64,
    /// When its process was first found to be killed, in ticks.
    killed: Option<u64>,
    /// Epoch of the strategy that stands still; 0 for another role.
    pub epoch: u16,
}

/// The event in the surroundings of a simulated run, as far as it concerns processes.
#[derive(Debug, Default)]
pub(super) struct ProcessEvents {
    /// The event that is still to come.
    pending: Option<SurroundingEvent>,
    standstill: Option<Standstill>,
    /// Until when no journal reaches the disk, in ticks.
    disk_stalls_until: u64,
    has_lost_memory: bool,
}

impl ProcessEvents {
    /// Creates the state of a simulated run's external event, which is still pending; `None` if the
    /// run has no such event.
    pub fn new(pending: Option<SurroundingEvent>) -> Self {
        Self { pending, ..Self::default() }
    }
}

impl SimulatedProcesses<'_> {
    /// Returns the tick at which the event in the surroundings comes.
    pub(super) fn next_event(&self) -> u64 {
        let at_ns = self.events.pending.and_then(|event| event.at_ns());
        at_ns.map_or(u64::MAX, |ns| START_TICKS + ns)
    }

    /// Begins or ends the external event of the simulated run if that is due at the tick `now`.
    pub fn play_event(&mut self, now: u64) {
        if self.next_event() <= now {
            match self.events.pending.take() {
                Some(SurroundingEvent::Standstill { role, cause, lasts_ns, .. }) => {
                    let until = lasts_ns.map_or(u64::MAX, |ns| now + ns);
                    self.begin_standstill(role, cause, now, until);
                }
                Some(SurroundingEvent::ProcessLostMemory { role, .. }) => self.lose_memory(role),
                Some(SurroundingEvent::DiskStall { lasts_ns, .. }) => {
                    self.events.disk_stalls_until = now + lasts_ns;
                }
                _ => {}
            }
        }
        self.machine.set_stalled(now < self.events.disk_stalls_until);
    }

    /// Returns `true` if the process of a role runs, was not killed, and has something left to do.
    fn is_working(&self, process: usize, thread: usize) -> bool {
        let simulated = &self.processes[process];
        let is_untouched = simulated.exit.is_none()
            && simulated.turns_after_kill.is_none()
            && simulated.dying.is_none()
            && simulated.turns_until_attach.is_none();
        // One that has not begun its duty cycle is starting, for which it has minutes.
        let works =
            |thread: &SimulatedThread| matches!(thread.mode, ThreadMode::Duty) && thread.duty_cycle.is_some();
        is_untouched && self.threads[thread].as_ref().is_some_and(works)
    }

    fn begin_standstill(&mut self, role: Role, cause: StandstillCause, since: u64, until: u64) {
        let plan = &self.scenario.plan;
        let (Some(process), Some(thread)) = (plan.process_of(role), plan.thread_of(role)) else { return };
        if !self.is_working(process, thread) {
            return;
        }
        let epoch = match role {
            Role::Strategy(strategy) => self.control.incarnation(strategy).epoch,
            _ => 0,
        };
        let (pid, killed) = (self.processes[process].pid, None);
        self.events.standstill =
            Some(Standstill { thread, process, pid, cause, since, until, killed, epoch });
        if until == u64::MAX {
            self.fired_faults.push(FaultKind::Hang);
        }
    }

    /// Lets the process of a role die of an access to lost memory.
    fn lose_memory(&mut self, role: Role) {
        let plan = &self.scenario.plan;
        let (Some(process), Some(thread)) = (plan.process_of(role), plan.thread_of(role)) else { return };
        if self.is_working(process, thread) {
            self.processes[process].exit = Some((false, "signal 7 (SIGBUS)".into()));
            self.events.has_lost_memory = true;
        }
    }

    /// Returns `true` if some simulated process was ended by SIGBUS because it accessed memory that
    /// was lost.
    pub fn has_lost_memory(&self) -> bool {
        self.events.has_lost_memory
    }

    /// Returns the standstill of the simulated run (a time in which one thread runs no duty
    /// cycles); `None` if none has begun.
    pub fn standstill(&self) -> Option<Standstill> {
        self.events.standstill
    }

    /// Returns the present standstill of a thread.
    fn standstill_of(&self, thread: usize) -> Option<&Standstill> {
        let now = self.clock.peek();
        self.events.standstill.as_ref().filter(|still| {
            let process = &self.processes[still.process];
            still.thread == thread && still.pid == process.pid && process.exit.is_none() && now < still.until
        })
    }

    /// Returns the starvation of a thread that is over, if the thread has had no turn since: it
    /// still waits for a core.
    fn starvation_before_turn(&self, thread: usize) -> Option<&Standstill> {
        self.events.standstill.as_ref().filter(|still| {
            let process = &self.processes[still.process];
            let has_had_no_turn =
                self.threads[thread].as_ref().is_some_and(|thread| thread.cycle.now <= still.since);
            still.thread == thread
                && still.pid == process.pid
                && process.exit.is_none()
                && still.cause == StandstillCause::Starved
                && has_had_no_turn
        })
    }

    /// Returns `true` if a thread stands still.
    pub(super) fn stands_still(&self, thread: usize) -> bool {
        self.standstill_of(thread).is_some()
    }

    /// Returns the tick at which a thread that stands still needs its next turn.
    pub(super) fn wake_time_of_standstill(&self, thread: usize) -> Option<u64> {
        let still = self.standstill_of(thread)?;
        let exit = still.killed.map_or(u64::MAX, |killed| still.exit_tick(killed));
        let is_killed = self.processes[still.process].turns_after_kill.is_some();
        Some(if is_killed && still.killed.is_none() { 0 } else { exit.min(still.until) })
    }

    /// Lets the process of a thread that stands still exit if it was killed. Returns `true` if it
    /// has exited.
    pub(super) fn try_end_standing(&mut self, thread: usize) -> bool {
        let now = self.clock.peek();
        let Some(still) = self.events.standstill.as_mut().filter(|still| still.thread == thread) else {
            return false;
        };
        let simulated = &mut self.processes[still.process];
        if simulated.turns_after_kill.is_none() {
            return false;
        }
        let killed = *still.killed.get_or_insert(now);
        if now < still.exit_tick(killed) {
            return false;
        }
        simulated.exit = Some((false, "signal 9 (SIGKILL)".into()));
        if simulated.killed_by_fault {
            self.fired_faults.push(FaultKind::Kill);
        }
        true
    }

    /// Ends a standstill that would end by itself.
    pub(super) fn release_standstill(&mut self) {
        if let Some(still) = self.events.standstill.as_mut().filter(|still| still.until < u64::MAX) {
            still.until = 0;
        }
    }

    /// Returns the simulated kernel's account of the CPU time of a thread at the tick `now`.
    pub fn cpu_of(&self, thread: usize, now: u64) -> CpuSample {
        let still = self.standstill_of(thread).or_else(|| self.starvation_before_turn(thread));
        let (is_runnable, is_in_kernel, state) = match still.map(|still| still.cause) {
            Some(StandstillCause::Starved) => (true, false, 'R'),
            Some(StandstillCause::Debugger) => (false, false, 't'),
            Some(StandstillCause::Kernel { .. }) => (false, true, 'D'),
            Some(StandstillCause::Disk) | None => (false, false, 'S'),
        };
        let waited = still.filter(|_| is_runnable).map_or(0, |still| now.saturating_sub(still.since));
        let waited = Duration::from_nanos(waited);
        let account = CpuAccount { is_runnable, is_in_kernel, ran: Duration::ZERO, waited };
        CpuSample {
            account,
            at: Duration::from_nanos(now),
            state: Some(state),
            cpus: 2,
            ..CpuSample::default()
        }
    }

    /// Returns the process id and the name of the debugger that has stopped a simulated process;
    /// `None` if none has.
    pub fn debugger_of(&self, process: usize) -> Option<Debugger> {
        let still = self.present_standstill(process)?;
        let debugger = Debugger { pid: Some(DEBUGGER_PID), name: "gdb".into() };
        (still.cause == StandstillCause::Debugger).then_some(debugger)
    }

    /// Returns `true` if a journal thread of a simulated process waits for the disk.
    pub fn waits_for_disk(&self, process: usize) -> bool {
        let waits = |still: &Standstill| still.cause == StandstillCause::Disk;
        self.clock.peek() < self.events.disk_stalls_until
            || self.present_standstill(process).is_some_and(waits)
    }

    fn present_standstill(&self, process: usize) -> Option<&Standstill> {
        let threads = &self.scenario.plan.processes[process].threads;
        threads.iter().find_map(|thread| self.standstill_of(*thread as usize))
    }

    /// Returns the process id of a running simulated process; `None` if it does not run.
    pub fn running_pid(&self, process: usize) -> Option<u32> {
        let simulated = &self.processes[process];
        simulated.exit.is_none().then_some(simulated.pid)
    }
}

impl Standstill {
    /// Returns the tick at which its process exits that was killed at the tick `killed`.
    const fn exit_tick(&self, killed: u64) -> u64 {
        match self.cause {
            StandstillCause::Kernel { exits_after_ns } => killed + exits_after_ns,
            _ => killed,
        }
    }
}
