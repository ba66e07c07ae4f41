//! Agents and their runner: a role is one method that does what there is to do now and returns how
//! much it did (Agrona's `Agent`). The runner owns a thread and hands the count to an idle
//! strategy.

use crate::control::{Control, RunState};
use crate::counters::Slots;
use crate::gaps;
use crate::stamps::{Point, StampLog, Switches};
use crate::status::{Field, StatusWriter, ThreadState};
use crate::wire::OrderId;
use shm::idle::Idle;
use system::alloc;
use system::clock::{Clock, Timebase};
use system::usage::Usage;

/// What a duty cycle works with: its thread's clock and stamp log.
pub struct Cycle<C> {
    /// The run's clock.
    pub clock: C,
    /// The time when this cycle began, in ticks (unordered; for what is due, not for stamps).
    pub now: u64,
    /// Turns nanoseconds of the schedule into ticks.
    pub time: Timebase,
    /// The run is draining: nothing new is sent.
    pub draining: bool,
    /// The thread's stamp log.
    pub log: StampLog,
}

impl<C: Clock> Cycle<C> {
    /// Takes a stamp now and logs it; returns it.
    #[inline(always)]
    pub fn stamp(&mut self, point: Point, id: OrderId) -> u64 {
        let ticks = self.clock.now();
        self.log.append(point, id, ticks);
        ticks
    }

    /// The same with a detail: the venue, or the number of the report.
    #[inline(always)]
    pub fn stamp_with(&mut self, point: Point, id: OrderId, detail: u8) -> u64 {
        let ticks = self.clock.now();
        self.log.append_with(point, id, detail, ticks);
        ticks
    }

    /// Takes and logs the stamp of a point between the ends of the engine's way, unless the run
    /// stamps only the ends.
    #[inline(always)]
    pub fn pass(&mut self, point: Point, id: OrderId) {
        self.pass_with(point, id, 0);
    }

    /// The same with a detail.
    #[inline(always)]
    pub fn pass_with(&mut self, point: Point, id: OrderId, detail: u8) {
        if self.log.takes_all() {
            self.stamp_with(point, id, detail);
        }
    }
}

/// A role.
pub trait Agent<C: Clock> {
    /// Does what there is to do now, in bounded time, and returns how much that was; 0 lets the
    /// thread idle.
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize;

    /// When the agent next has something to do of its own accord, in ticks; `u64::MAX` if only a
    /// message can bring it something. Parked threads sleep no longer than that: one that names a
    /// time at which it can do nothing keeps its core busy.
    fn next_deadline(&self, draining: bool) -> u64 {
        let _ = draining;
        u64::MAX
    }

    /// Whether the agent has done all that it ever will.
    fn finished(&self, draining: bool) -> bool {
        let _ = draining;
        false
    }

    /// Why the agent cannot go on, if it cannot: its thread ends and says so. Asked only after a
    /// turn without work.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Writes into the log what is known only at the end; called once, after the last duty cycle.
    fn seal(&self, log: &mut StampLog) {
        let _ = log;
    }

    /// Asks the processor for the memory that the next message will need, and changes nothing.
    /// Called after some turns in which there was nothing to do: what a thread does not use leaves
    /// its caches, and on a machine that others share within a millisecond. `round` counts the
    /// calls: who serves many asks for the part of one, so that no call takes long.
    fn keep_warm(&self, round: usize) {
        let _ = round;
    }

    /// Takes its place among the thread's counters and stores its own there; called after each duty
    /// cycle with work.
    fn publish(&mut self, slots: &mut Slots<'_>) {
        let _ = slots.take();
    }
}

/// Several agents on one thread are one agent: each has its turn in each cycle. The first hands
/// over to the second, which takes it in the same cycle; what the second hands back the first takes
/// in a second turn, before counters are published and the clock is read again: else an order would
/// wait for both on its way home.
impl<C: Clock, A: Agent<C>, B: Agent<C>> Agent<C> for (A, B) {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let (mut work, mut came_back) = (0, false);
        // A loop, so that the first one's turn is compiled once.
        loop {
            work += self.0.duty_cycle(cycle);
            if came_back {
                return work;
            }
            let handed_back = self.1.duty_cycle(cycle);
            if handed_back == 0 {
                return work;
            }
            work += handed_back;
            came_back = true;
        }
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.0.next_deadline(draining).min(self.1.next_deadline(draining))
    }

    fn finished(&self, draining: bool) -> bool {
        self.0.finished(draining) && self.1.finished(draining)
    }

    fn failure(&self) -> Option<&str> {
        self.0.failure().or_else(|| self.1.failure())
    }

    fn seal(&self, log: &mut StampLog) {
        self.0.seal(log);
        self.1.seal(log);
    }

    fn keep_warm(&self, round: usize) {
        self.0.keep_warm(round);
        self.1.keep_warm(round);
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.0.publish(slots);
        self.1.publish(slots);
    }
}

/// As the pair.
impl<C: Clock, A: Agent<C>> Agent<C> for Vec<A> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        self.iter_mut().map(|agent| agent.duty_cycle(cycle)).sum()
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.iter().map(|agent| agent.next_deadline(draining)).min().unwrap_or(u64::MAX)
    }

    fn finished(&self, draining: bool) -> bool {
        self.iter().all(|agent| agent.finished(draining))
    }

    fn failure(&self) -> Option<&str> {
        self.iter().find_map(Agent::failure)
    }

    fn seal(&self, log: &mut StampLog) {
        self.iter().for_each(|agent| agent.seal(log));
    }

    fn keep_warm(&self, round: usize) {
        if let Some(agent) = round.checked_rem(self.len()).map(|turn| &self[turn]) {
            agent.keep_warm(round / self.len());
        }
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.iter_mut().for_each(|agent| agent.publish(slots));
    }
}

/// After so many turns with work it is looked whether the run is stopped; after one without it
/// always is.
const BUSY_LOOK: u64 = 256;
/// So many such looks find it stopped before a thread ends that still finds work: what is on its
/// way is handed over first, and the launcher waits for seconds.
const STOPPED_LOOKS: u32 = 64;

/// Each so manyth turn, if it finds nothing to do, asks for what the next message will need: every
/// two to six microseconds where threads spin.
const WARM: u64 = 128;

/// What one turn of an agent's loop came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleOutcome {
    /// There was work; the next turn follows at once.
    Busy,
    /// There was none; the agent wants its next turn within so many nanoseconds (0: at once,
    /// `u64::MAX`: when a message comes).
    Idle(u64),
    /// The agent has finished, or the run is stopped.
    Over,
}

/// An agent's loop, one turn at a time: what [`run`] repeats on a thread of its own, and a
/// simulation in an order of its choice.
///
/// Each turn reads the clock once (unordered), which gives heartbeat, longest gap and utilisation.
/// A busy one reads it once more.
#[derive(Clone, Copy, Debug, Default)]
pub struct DutyCycle {
    cycles: u64,
    busy_cycles: u64,
    busy_ticks: u64,
    longest_gap: u64,
    /// Looks in the middle of work that found the run stopped.
    stopped: u32,
}

impl DutyCycle {
    /// Says that the agent runs, behind what it counts: one that comes back has counted before.
    pub fn begin<C: Clock>(
        agent: &mut (impl Agent<C> + ?Sized),
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
    ) -> Self {
        agent.publish(&mut status.slots());
        cycle.now = cycle.clock.peek();
        status.set(Field::StartedTicks, cycle.now);
        // Before the state: who sees `Running` sees a heartbeat.
        status.set(Field::HeartbeatTicks, cycle.now);
        status.set_state(ThreadState::Running);
        Self::default()
    }

    /// One duty cycle.
    #[inline(always)]
    pub fn turn<C: Clock>(
        &mut self,
        agent: &mut (impl Agent<C> + ?Sized),
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
        control: &Control,
    ) -> CycleOutcome {
        let now = cycle.clock.peek();
        // Saturating: the counters of two cores may differ by a tick if the thread was moved.
        let gap = now.saturating_sub(cycle.now);
        if gap > self.longest_gap {
            self.longest_gap = gap;
            status.set(Field::LongestGapTicks, gap);
        }
        cycle.now = now;
        status.set(Field::HeartbeatTicks, now);
        let work = agent.duty_cycle(cycle);
        self.cycles += 1;
        if work > 0 {
            self.busy_cycles += 1;
            self.busy_ticks += cycle.clock.peek().saturating_sub(now);
            agent.publish(&mut status.slots());
            status.set(Field::BusyTicks, self.busy_ticks);
            return if self.busy_cycles.is_multiple_of(BUSY_LOOK) && self.ends_busy(control) {
                CycleOutcome::Over
            } else {
                CycleOutcome::Busy
            };
        }
        if self.cycles.is_multiple_of(WARM) {
            self.keep_warm(agent, cycle);
        }
        let state = control.state();
        cycle.draining = state == RunState::Drain;
        if state == RunState::Stop || agent.finished(cycle.draining) || agent.failure().is_some() {
            return CycleOutcome::Over;
        }
        let ticks_left = agent.next_deadline(cycle.draining).saturating_sub(now);
        CycleOutcome::Idle(if ticks_left == 0 { 0 } else { cycle.time.ns(ticks_left) })
    }

    /// A call of its own: the idle loop is to be small.
    #[cold]
    #[inline(never)]
    fn keep_warm<C: Clock>(&self, agent: &(impl Agent<C> + ?Sized), cycle: &Cycle<C>) {
        agent.keep_warm((self.cycles / WARM) as usize);
        cycle.log.keep_warm();
    }

    /// Whether one that always finds something, a flood for example, ends all the same.
    #[cold]
    fn ends_busy(&mut self, control: &Control) -> bool {
        self.stopped += u32::from(control.state() == RunState::Stop);
        self.stopped >= STOPPED_LOOKS
    }

    /// Seals the log and stores the final counters; [`ThreadState::Done`] is for the caller to say,
    /// behind what it has to add.
    pub fn end<C: Clock>(
        self,
        agent: &mut (impl Agent<C> + ?Sized),
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
    ) {
        agent.seal(&mut cycle.log);
        agent.publish(&mut status.slots());
        for (field, value) in [
            (Field::EndedTicks, cycle.clock.peek()),
            (Field::Cycles, self.cycles),
            (Field::BusyCycles, self.busy_cycles),
            (Field::BusyTicks, self.busy_ticks),
            (Field::RecordsDropped, cycle.log.dropped()),
        ] {
            status.set(field, value);
        }
    }
}

/// Writes down when the thread was away. Looks after each turn, and asks the kernel only after a
/// gap that is kept.
struct Gaps {
    least_ticks: [u64; gaps::PARTS],
    last: u64,
    usage: Usage,
}

impl Gaps {
    fn new<C>(cycle: &Cycle<C>) -> Self {
        let least_ticks = gaps::LEAST_NS.map(|ns| cycle.time.ticks(ns));
        Self { least_ticks, last: cycle.now, usage: Usage::of_this_thread() }
    }

    /// After a turn that began at `cycle.now`.
    #[inline(always)]
    fn look<C>(&mut self, cycle: &mut Cycle<C>) {
        let ticks = cycle.now.saturating_sub(self.last);
        self.last = cycle.now;
        if ticks > self.least_ticks[0] {
            self.record(cycle, ticks);
        }
    }

    /// Until then the thread had given its core away, which is no gap; how long that was.
    fn slept_until(&mut self, woke: u64) -> u64 {
        woke.saturating_sub(core::mem::replace(&mut self.last, woke))
    }

    #[cold]
    fn record<C>(&mut self, cycle: &mut Cycle<C>, ticks: u64) {
        let switches = || {
            let usage = Usage::of_this_thread();
            let since = usage.since(self.usage);
            self.usage = usage;
            let bit = |count: u64, bit: u8| if count > 0 { bit } else { 0 };
            Switches(
                bit(since.involuntary_switches, Switches::INVOLUNTARY)
                    | bit(since.voluntary_switches, Switches::VOLUNTARY)
                    | bit(since.minor_faults, Switches::MINOR_FAULT)
                    | bit(since.major_faults, Switches::MAJOR_FAULT),
            )
        };
        cycle.log.offer_gap(cycle.now, ticks, &self.least_ticks, switches);
    }
}

/// An agent on its thread, from the open barrier to its end: what [`run`] repeats, and what a
/// program that has a loop of its own calls turn by turn.
pub struct Running {
    turns: DutyCycle,
    gaps: Gaps,
    /// When the idle strategy before the last turn came back, and for how long it had given the
    /// core away; 0: it had not.
    slept: (u64, u64),
    usage_before: Usage,
    /// `None`: this program's allocator does not count.
    allocations_before: Option<u64>,
}

impl Running {
    /// Begins on the calling thread, on which all the rest is called as well.
    pub fn begin<C: Clock>(agent: &mut impl Agent<C>, cycle: &mut Cycle<C>, status: &StatusWriter) -> Self {
        let usage_before = Usage::of_this_thread();
        let allocations_before = alloc::is_counted().then(alloc::allocations);
        let turns = DutyCycle::begin(agent, cycle, status);
        let gaps = Gaps::new(cycle);
        Self { turns, gaps, slept: (0, 0), usage_before, allocations_before }
    }

    /// One duty cycle, and a look at when the thread was away before it.
    #[inline(always)]
    pub fn turn<C: Clock>(
        &mut self,
        agent: &mut impl Agent<C>,
        cycle: &mut Cycle<C>,
        status: &StatusWriter,
        control: &Control,
    ) -> CycleOutcome {
        let turn = self.turns.turn(agent, cycle, status, control);
        self.gaps.look(cycle);
        turn
    }

    /// Idles after a [`Turn::Idle`], for no longer than that many nanoseconds.
    #[inline(always)]
    pub fn idle<C: Clock, I: Idle>(&mut self, idle: &mut I, at_most_ns: u64, clock: &C) {
        let gives_core = I::CAN_YIELD && idle.can_yield();
        idle.idle(at_most_ns);
        if gives_core {
            // What a caller of one turn does before its next one is no idling.
            let woke = clock.peek();
            self.slept = (woke, self.gaps.slept_until(woke));
        } else if I::CAN_YIELD {
            self.slept = (0, 0);
        }
    }

    /// After a [`Turn::Busy`]. If the thread had given its core away before it, somebody may have
    /// waited: that is logged, and nothing where it came back for nothing.
    #[inline(always)]
    pub fn busy<C, I: Idle>(&mut self, idle: &mut I, cycle: &mut Cycle<C>) {
        if I::CAN_YIELD {
            let (woke, ticks) = core::mem::take(&mut self.slept);
            if ticks > self.gaps.least_ticks[0] {
                cycle.log.offer_sleep(woke, ticks, &self.gaps.least_ticks);
            }
        }
        idle.reset();
    }

    /// Seals the log, stores the final counters and says that the thread is done, or why it failed.
    pub fn end<C: Clock>(self, agent: &mut impl Agent<C>, cycle: &mut Cycle<C>, status: &StatusWriter) {
        // Before anything below allocates or faults.
        if let Some(before) = self.allocations_before {
            status.set(Field::AllocationsPlusOne, alloc::allocations() - before + 1);
        }
        let usage = Usage::of_this_thread().since(self.usage_before);
        self.turns.end(agent, cycle, status);
        for (field, value) in [
            (Field::VoluntarySwitches, usage.voluntary_switches),
            (Field::InvoluntarySwitches, usage.involuntary_switches),
            (Field::MinorFaults, usage.minor_faults),
            (Field::MajorFaults, usage.major_faults),
            (Field::CpuNs, usage.cpu_ns),
        ] {
            status.set(field, value);
        }
        match agent.failure() {
            Some(why) => status.fail(why),
            None => status.set_state(ThreadState::Done),
        }
    }
}

/// Runs an agent on the calling thread, from the open barrier until it has finished or the run is
/// stopped.
pub fn run<C: Clock, I: Idle>(
    agent: &mut impl Agent<C>,
    idle: &mut I,
    cycle: &mut Cycle<C>,
    status: &StatusWriter,
    control: &Control,
) {
    let mut running = Running::begin(agent, cycle, status);
    loop {
        match running.turn(agent, cycle, status, control) {
            CycleOutcome::Busy => running.busy(idle, cycle),
            CycleOutcome::Idle(ns) => running.idle(idle, ns, &cycle.clock),
            CycleOutcome::Over => break,
        }
    }
    running.end(agent, cycle, status);
}

#[cfg(all(test, not(loom)))]
mod tests;
