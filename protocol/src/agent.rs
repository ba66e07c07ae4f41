//! Agents and their runner: a role is one method that does what there is to do now and returns how much it did
//! (Agrona's `Agent`). The runner owns a thread and hands the count to an idle strategy.

use crate::control::{Control, RunState};
use crate::stamps::{Point, StampLog};
use crate::status::{Field, State, StatusWriter};
use crate::wire::OrderId;
use shm::clock::{Clock, Timebase};
use shm::idle::Idle;
use shm::os::usage::Usage;

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
}

/// A role.
pub trait Agent<C: Clock> {
    /// Does what there is to do now, in bounded time, and returns how much that was; 0 lets the thread idle.
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize;

    /// When the agent next has something to do of its own accord, in ticks; `u64::MAX` if only a message can bring
    /// it something. Parked threads sleep no longer than that.
    fn next_deadline(&self) -> u64 {
        u64::MAX
    }

    /// Whether the agent has done all that it ever will.
    fn finished(&self, draining: bool) -> bool {
        let _ = draining;
        false
    }

    /// Stores its counters into the thread's status block; called after each duty cycle with work.
    fn publish(&self, status: &StatusWriter) {
        let _ = status;
    }
}

/// Several agents on one thread are one agent: each has its turn in each cycle.
impl<C: Clock, A: Agent<C>, B: Agent<C>> Agent<C> for (A, B) {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        self.0.duty_cycle(cycle) + self.1.duty_cycle(cycle)
    }

    fn next_deadline(&self) -> u64 {
        self.0.next_deadline().min(self.1.next_deadline())
    }

    fn finished(&self, draining: bool) -> bool {
        self.0.finished(draining) && self.1.finished(draining)
    }

    /// The first one speaks for the thread: two would overwrite each other's counters.
    fn publish(&self, status: &StatusWriter) {
        self.0.publish(status);
    }
}

/// As the pair.
impl<C: Clock, A: Agent<C>> Agent<C> for Vec<A> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        self.iter_mut().map(|agent| agent.duty_cycle(cycle)).sum()
    }

    fn next_deadline(&self) -> u64 {
        self.iter().map(Agent::next_deadline).min().unwrap_or(u64::MAX)
    }

    fn finished(&self, draining: bool) -> bool {
        self.iter().all(|agent| agent.finished(draining))
    }
}

/// Runs an agent on the calling thread, from the open barrier until it has finished or the run is stopped.
///
/// Each cycle reads the clock once (unordered), which gives heartbeat, longest gap and utilisation. A busy cycle
/// reads it once more.
pub fn run<C: Clock>(
    agent: &mut impl Agent<C>,
    idle: &mut impl Idle,
    cycle: &mut Cycle<C>,
    status: &StatusWriter,
    control: &Control,
) {
    let usage_before = Usage::of_this_thread();
    #[cfg(feature = "count-alloc")]
    let allocations_before = shm::alloc::allocations();
    let (mut cycles, mut busy_cycles, mut busy_ticks, mut longest_gap) = (0u64, 0u64, 0u64, 0u64);
    cycle.now = cycle.clock.peek();
    status.set(Field::StartedTicks, cycle.now);
    status.set_state(State::Running);

    loop {
        let now = cycle.clock.peek();
        // Saturating: the counters of two cores may differ by a tick if the thread was moved.
        let gap = now.saturating_sub(cycle.now);
        if gap > longest_gap {
            longest_gap = gap;
            status.set(Field::LongestGapTicks, gap);
        }
        cycle.now = now;
        status.set(Field::HeartbeatTicks, now);
        let work = agent.duty_cycle(cycle);
        cycles += 1;
        if work > 0 {
            busy_cycles += 1;
            busy_ticks += cycle.clock.peek().saturating_sub(now);
            agent.publish(status);
            status.set(Field::BusyTicks, busy_ticks);
            idle.reset();
            continue;
        }
        let state = control.state();
        cycle.draining = state == RunState::Drain;
        if state == RunState::Stop || agent.finished(cycle.draining) {
            break;
        }
        let ticks_left = agent.next_deadline().saturating_sub(now);
        idle.idle(if ticks_left == 0 { 0 } else { cycle.time.ns(ticks_left) });
    }

    // Before anything below allocates or faults.
    #[cfg(feature = "count-alloc")]
    status.set(Field::AllocationsPlusOne, shm::alloc::allocations() - allocations_before + 1);
    let usage = Usage::of_this_thread().since(usage_before);
    agent.publish(status);
    for (field, value) in [
        (Field::EndedTicks, cycle.clock.peek()),
        (Field::Cycles, cycles),
        (Field::BusyCycles, busy_cycles),
        (Field::BusyTicks, busy_ticks),
        (Field::RecordsDropped, cycle.log.dropped()),
        (Field::VoluntarySwitches, usage.voluntary_switches),
        (Field::InvoluntarySwitches, usage.involuntary_switches),
        (Field::MinorFaults, usage.minor_faults),
        (Field::MajorFaults, usage.major_faults),
        (Field::CpuNs, usage.cpu_ns),
    ] {
        status.set(field, value);
    }
    status.set_state(State::Done);
}
