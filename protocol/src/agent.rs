//! Agents and their runner. A role is one method that does the work available now and returns its
//! amount (Agrona's `Agent`); the runner owns a thread and idles after cycles without work.

mod group;

use crate::control::{Control, RunState};
use crate::counters::{AgentSlot, CounterSlots};
use crate::gaps;
use crate::stamps::{KernelEvents, Point, StampLog};
use crate::status::{StatusField, StatusWriter, ThreadState};
use crate::wire::OrderId;
use shm::idle::Idle;
use system::alloc;
use system::clock::{Clock, Timebase};
use system::usage::{ThreadUsage, thread_cpu_ns};

/// The context of an agent's duty cycle (one pass over its inputs): clock, current time, stamp log,
/// and whether new orders are still sent.
pub struct Cycle<C> {
    /// The clock of the run.
    pub clock: C,
    /// The time at which this cycle began, in ticks (unordered: for deadlines, not for stamps).
    pub now: u64,
    /// Converts nanoseconds of the schedule to ticks.
    pub time: Timebase,
    /// `true` if the run is draining: no new orders are sent.
    pub draining: bool,
    /// The thread's stamp log.
    pub log: StampLog,
}

impl<C: Clock> Cycle<C> {
    /// Appends the current time, in ticks, to the stamp log for a point of an order's path, and
    /// returns that time.
    #[inline(always)]
    pub fn stamp(&mut self, point: Point, id: OrderId) -> u64 {
        let ticks = self.clock.now();
        self.log.append(point, id, ticks);
        ticks
    }

    /// Stamps a point of an order's path with a detail byte, such as which of the order's reports
    /// passed; returns the time in ticks.
    #[inline(always)]
    pub fn stamp_with(&mut self, point: Point, id: OrderId, detail: u8) -> u64 {
        let ticks = self.clock.now();
        self.log.append_with(point, id, detail, ticks);
        ticks
    }

    /// Stamps an inner point (t2 to t7) of an order's path with a byte of further information, such
    /// as a report's number. Does nothing if the run stamps only t1 and t8.
    #[inline(always)]
    pub fn stamp_inner_with(&mut self, point: Point, id: OrderId, detail: u8) {
        if self.log.has_inner_stamps() {
            self.stamp_with(point, id, detail);
        }
    }
}

/// A unit of work that a thread calls in a loop, such as a strategy, the orchestrator or a gateway.
pub trait Agent<C: Clock> {
    /// Does the work available now, in bounded time. Returns its amount; 0 lets the thread idle.
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize;

    /// Returns the tick at which the agent has work without a message; `u64::MAX` if it only reacts
    /// to messages. A parked thread sleeps no longer than that.
    fn next_deadline(&self, draining: bool) -> u64 {
        let _ = draining;
        u64::MAX
    }

    /// Returns `true` if the agent has no more work to do in this run.
    fn finished(&self, draining: bool) -> bool {
        let _ = draining;
        false
    }

    /// Returns why the agent cannot continue, if so. Called only after a cycle without work.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Appends the agent's final records, such as checksums. Called once, after the last cycle.
    fn seal(&self, log: &mut StampLog) {
        let _ = log;
    }

    /// Prefetches the memory that the next message will need: unused lines are evicted within a
    /// millisecond on a shared machine. `round` counts the calls: an agent with many peers
    /// prefetches for one of them per call.
    fn prefetch_hot(&self, round: usize) {
        let _ = round;
    }

    /// Publishes the agent's counters in the thread's segment, after each duty cycle with work.
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        let _ = slots.next_agent();
    }
}

/// The run's state is polled after this many cycles with work, and after every cycle without work.
const BUSY_POLL_INTERVAL: u64 = 256;
/// Maximum polls with work of a thread whose run is stopped: messages in flight are handed over.
const MAX_STOPPED_POLLS: u32 = 64;

/// Idle cycles per prefetch: one every two to six microseconds where threads spin.
const PREFETCH_INTERVAL: u64 = 128;

/// The outcome of an agent's duty cycle (one pass over its inputs): work, no work, or the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleOutcome {
    /// There was work; the next cycle follows at once.
    Busy,
    /// No work; the next cycle is due within this time in nanoseconds (`u64::MAX`: with a message).
    Idle(u64),
    /// The agent has finished, or the run is stopped.
    Finished,
}

/// The state of an agent's duty-cycle loop, such as cycle counts; [`run`] drives the loop on a
/// thread, and a simulation drives it directly. Each cycle reads the clock once (unordered), a busy
/// one twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct DutyCycle {
    cycles: u64,
    busy_cycles: u64,
    busy_ticks: u64,
    longest_gap: u64,
    /// Polls between cycles with work that found the run stopped.
    stopped_polls: u32,
}

impl DutyCycle {
    /// Begins an agent's duty cycles: publishes the agent's counters, which after a restart do not
    /// start at zero, and its state.
    pub fn begin<C: Clock>(
        agent: &mut (impl Agent<C> + ?Sized),
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
    ) -> Self {
        agent.publish(&mut status.slots());
        cycle.now = cycle.clock.peek();
        Self::begin_at(cycle.now, status)
    }

    /// The part of the beginning that is the same for all agents: compiled once.
    #[inline(never)]
    fn begin_at(now: u64, status: &StatusWriter) -> Self {
        status.set(StatusField::StartedTicks, now);
        // Before the state: a reader that sees `Running` sees a heartbeat.
        status.set(StatusField::HeartbeatTicks, now);
        status.set_state(ThreadState::Running);
        Self::default()
    }

    /// Runs one duty cycle of the thread's agent, and returns whether it worked, waits or is done.
    #[inline(always)]
    pub fn run_once<C: Clock>(
        &mut self,
        agent: &mut (impl Agent<C> + ?Sized),
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
        control: &Control,
    ) -> CycleOutcome {
        let now = cycle.clock.peek();
        // Saturating: the counters of two cores may differ by a tick if the thread was migrated.
        let gap = now.saturating_sub(cycle.now);
        if gap > self.longest_gap {
            self.longest_gap = gap;
            status.set(StatusField::LongestGapTicks, gap);
        }
        cycle.now = now;
        status.set(StatusField::HeartbeatTicks, now);
        let work = agent.duty_cycle(cycle);
        self.cycles += 1;
        if work > 0 {
            self.busy_cycles += 1;
            self.busy_ticks += cycle.clock.peek().saturating_sub(now);
            agent.publish(&mut status.slots());
            status.set(StatusField::BusyTicks, self.busy_ticks);
            return if self.busy_cycles.is_multiple_of(BUSY_POLL_INTERVAL) && self.try_stop(control) {
                CycleOutcome::Finished
            } else {
                CycleOutcome::Busy
            };
        }
        if self.cycles.is_multiple_of(PREFETCH_INTERVAL) {
            self.prefetch_hot(agent, cycle);
        }
        let state = control.state();
        cycle.draining = state == RunState::Drain;
        if state == RunState::Stop || agent.finished(cycle.draining) || agent.failure().is_some() {
            return CycleOutcome::Finished;
        }
        let ticks_left = agent.next_deadline(cycle.draining).saturating_sub(now);
        CycleOutcome::Idle(if ticks_left == 0 { 0 } else { cycle.time.ns(ticks_left) })
    }

    /// Not inlined: the idle loop stays small.
    #[cold]
    #[inline(never)]
    fn prefetch_hot<C: Clock>(&self, agent: &(impl Agent<C> + ?Sized), cycle: &Cycle<C>) {
        agent.prefetch_hot((self.cycles / PREFETCH_INTERVAL) as usize);
        cycle.log.prefetch_next();
    }

    /// Ends an agent that always finds work, such as a flood, some polls after the run was stopped.
    #[cold]
    fn try_stop(&mut self, control: &Control) -> bool {
        self.stopped_polls += u32::from(control.state() == RunState::Stop);
        self.stopped_polls >= MAX_STOPPED_POLLS
    }

    /// Appends the agent's final records, such as checksums, to its stamp log and stores its final
    /// counters. The caller sets `Done` after.
    pub fn end<C: Clock>(
        self,
        agent: &mut (impl Agent<C> + ?Sized),
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
    ) {
        agent.seal(&mut cycle.log);
        agent.publish(&mut status.slots());
        self.store(cycle.clock.peek(), cycle.log.dropped(), status);
    }

    /// The part of the end that is the same for all agents: compiled once.
    #[inline(never)]
    fn store(self, ended_ticks: u64, records_dropped: u64, status: &StatusWriter) {
        for (field, value) in [
            (StatusField::EndedTicks, ended_ticks),
            (StatusField::Cycles, self.cycles),
            (StatusField::BusyCycles, self.busy_cycles),
            (StatusField::BusyTicks, self.busy_ticks),
            (StatusField::RecordsDropped, records_dropped),
        ] {
            status.set(field, value);
        }
    }
}

/// Logs times without a duty cycle; reads the kernel's counters only for a gap that is kept.
struct GapDetector {
    min_ticks: [u64; gaps::LEVELS],
    last: u64,
    usage: ThreadUsage,
}

impl GapDetector {
    #[inline(never)]
    fn new(time: Timebase, now: u64) -> Self {
        let least_ticks = gaps::MIN_NS.map(|ns| time.ticks(ns));
        Self { min_ticks: least_ticks, last: now, usage: ThreadUsage::current_thread() }
    }

    /// Checks the time between the last two cycles; the last one began at `cycle.now`.
    #[inline(always)]
    fn check<C>(&mut self, cycle: &mut Cycle<C>) {
        let ticks = cycle.now.saturating_sub(self.last);
        self.last = cycle.now;
        if ticks > self.min_ticks[0] {
            self.record(&mut cycle.log, cycle.now, ticks);
        }
    }

    /// Excludes a sleep that ended at `woke`, which is not a gap. Returns its length in ticks.
    fn skip_sleep(&mut self, woke: u64) -> u64 {
        woke.saturating_sub(core::mem::replace(&mut self.last, woke))
    }

    #[cold]
    #[inline(never)]
    fn record(&mut self, log: &mut StampLog, now: u64, ticks: u64) {
        let switches = || {
            let usage = ThreadUsage::current_thread();
            let since = usage.since(self.usage);
            self.usage = usage;
            let bit = |count: u64, bit: u8| if count > 0 { bit } else { 0 };
            KernelEvents(
                bit(since.involuntary_switches, KernelEvents::INVOLUNTARY)
                    | bit(since.voluntary_switches, KernelEvents::VOLUNTARY)
                    | bit(since.minor_faults, KernelEvents::MINOR_FAULT)
                    | bit(since.major_faults, KernelEvents::MAJOR_FAULT),
            )
        };
        log.offer_gap(now, ticks, &self.min_ticks, switches);
    }
}

/// An agent on its thread, from the start barrier to its end, driven by [`run`] or by its owner.
pub struct AgentRunner {
    duty_cycle: DutyCycle,
    gaps: GapDetector,
    /// When the idle strategy returned, and for how long it had yielded the core (ticks; 0: not).
    slept: (u64, u64),
    usage_before: ThreadUsage,
    /// `None` if this program's allocator does not count.
    allocations_before: Option<u64>,
}

impl AgentRunner {
    /// Starts the agent on the calling thread, which must also call all other methods. Not
    /// generic over the agent, and neither is the end: both are compiled once for each clock.
    #[inline(never)]
    pub fn begin<C: Clock>(agent: &mut dyn Agent<C>, cycle: &mut Cycle<C>, status: &StatusWriter) -> Self {
        let usage_before = ThreadUsage::current_thread();
        let allocations_before = alloc::is_counted().then(alloc::allocations);
        let turns = DutyCycle::begin(agent, cycle, status);
        let gaps = GapDetector::new(cycle.time, cycle.now);
        Self { duty_cycle: turns, gaps, slept: (0, 0), usage_before, allocations_before }
    }

    /// Runs one duty cycle and returns its outcome; logs the pause before it if that is long enough
    /// to be a gap.
    #[inline(always)]
    pub fn run_once<C: Clock>(
        &mut self,
        agent: &mut impl Agent<C>,
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
        control: &Control,
    ) -> CycleOutcome {
        let turn = self.duty_cycle.run_once(agent, cycle, status, control);
        self.gaps.check(cycle);
        turn
    }

    /// Waits after a duty cycle without work, for at most `max_ns` nanoseconds.
    #[inline(always)]
    pub fn idle<C: Clock, I: Idle>(&mut self, idle: &mut I, max_ns: u64, clock: &C) {
        let gives_core = I::CAN_YIELD && idle.can_yield();
        idle.idle(max_ns);
        if gives_core {
            // The caller's own work between two cycles is not idling.
            let woke = clock.peek();
            self.slept = (woke, self.gaps.skip_sleep(woke));
        } else if I::CAN_YIELD {
            self.slept = (0, 0);
        }
    }

    /// Resets the idle strategy after a cycle with work, and logs the sleep before that cycle if
    /// the sleep exceeds the log's minimum length.
    #[inline(always)]
    pub fn on_busy<C, I: Idle>(&mut self, idle: &mut I, cycle: &mut Cycle<C>) {
        if I::CAN_YIELD {
            let (woke, ticks) = core::mem::take(&mut self.slept);
            if ticks > self.gaps.min_ticks[0] {
                cycle.log.offer_sleep(woke, ticks, &self.gaps.min_ticks);
            }
        }
        idle.reset();
    }

    /// Stores the agent's final records (such as checksums) and counters and the thread's resource
    /// use, and publishes that the thread is done or has failed.
    #[inline(never)]
    pub fn end<C: Clock>(self, agent: &mut dyn Agent<C>, cycle: &mut Cycle<C>, status: &StatusWriter) {
        let usage = self.used(status);
        self.duty_cycle.end(agent, cycle, status);
        store_end(usage, agent.failure(), status);
    }

    /// Returns what the thread has used before its end allocates or faults; stores allocations.
    #[inline(never)]
    fn used(&self, status: &StatusWriter) -> ThreadUsage {
        if let Some(before) = self.allocations_before {
            status.set(StatusField::AllocationsPlusOne, alloc::allocations() - before + 1);
        }
        ThreadUsage::current_thread().since(self.usage_before)
    }
}

/// Stores resource usage, and that the thread is done or why it failed. Compiled once.
#[inline(never)]
fn store_end(usage: ThreadUsage, failure: Option<&str>, status: &StatusWriter) {
    for (field, value) in [
        (StatusField::VoluntarySwitches, usage.voluntary_switches),
        (StatusField::InvoluntarySwitches, usage.involuntary_switches),
        (StatusField::MinorFaults, usage.minor_faults),
        (StatusField::MajorFaults, usage.major_faults),
        (StatusField::CpuNs, usage.cpu_ns),
    ] {
        status.set(field, value);
    }
    match failure {
        Some(why) => status.fail(why),
        None => status.set_state(ThreadState::Done),
    }
}

/// Runs an agent on the calling thread until it has finished or the run is stopped.
pub fn run<C: Clock, I: Idle>(
    agent: &mut impl Agent<C>,
    idle: &mut I,
    cycle: &mut Cycle<C>,
    status: &StatusWriter,
    control: &Control,
) {
    let mut running = AgentRunner::begin(agent, cycle, status);
    loop {
        match running.run_once(agent, cycle, status, control) {
            CycleOutcome::Busy => running.on_busy(idle, cycle),
            CycleOutcome::Idle(ns) => running.idle(idle, ns, &cycle.clock),
            CycleOutcome::Finished => break,
        }
    }
    if control.is_revoked() {
        // No final records: what the engine has of this incarnation ended with the fence.
        return status.fail("found itself fenced when it ran again");
    }
    running.end(agent, cycle, status);
}

/// Runs a benchmark's own loop instead of duty cycles on the calling thread, and publishes the
/// thread's resource usage. The loop gets the counters of the thread's only role.
pub fn run_measured(clock: &impl Clock, status: &StatusWriter, measured: impl FnOnce(AgentSlot<'_>)) {
    let (usage, cpu_ns) = (ThreadUsage::current_thread(), thread_cpu_ns());
    DutyCycle::begin_at(clock.now(), status);
    measured(status.slots().next_agent());
    status.set(StatusField::EndedTicks, clock.now());
    let cpu_ns = thread_cpu_ns().saturating_sub(cpu_ns);
    store_end(ThreadUsage { cpu_ns, ..ThreadUsage::current_thread().since(usage) }, None, status);
}

#[cfg(all(test, not(loom)))]
mod tests;
