//! Idle strategies: what an agent's thread does when a duty cycle found nothing to do (after
//! Agrona).

use crate::bell::Listener;
use core::time::Duration;

/// A way for a thread to wait after a duty cycle that found no work: spin, yield, sleep or park.
pub trait Idle {
    /// Whether the idle strategy can yield the core at all.
    const CAN_YIELD: bool = true;

    /// Returns `true` if the next [`Idle::idle`] yields the core. Then the thread may be
    /// descheduled for an unbounded time.
    #[inline(always)]
    fn can_yield(&self) -> bool {
        true
    }

    /// Spins, yields, sleeps or parks after a duty cycle without work, for at most `max_ns`
    /// nanoseconds, often far less. 0 means to retry at once (a ring is full). After many empty
    /// cycles, strategies that sleep do so for some microseconds even then: the consumer may need
    /// the core.
    fn idle(&mut self, max_ns: u64);

    /// Resets the strategy to its first step, after a duty cycle with work.
    fn reset(&mut self) {}
}

/// An idle strategy that polls again at once: the lowest latency, a whole core. Executes a PAUSE in
/// one idle cycle of [`Spin::CYCLES_A_PAUSE`]: a PAUSE takes longer than most empty duty cycles,
/// and delays a message that arrives during it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin {
    idle_cycles: u32,
}

/// An idle strategy that yields the core to other threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Yield;

/// An idle strategy that spins, then yields, then sleeps from 1 µs on, doubling up to 1 ms
/// (Agrona's). A message that arrives during a sleep waits until its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backoff {
    idle_cycles: u32,
}

/// An idle strategy that sleeps until a sender rings the thread's doorbell, for at most 10 ms at a
/// time.
pub struct Park {
    listener: Listener,
    armed: bool,
    /// Waits of no time, since there was last something to do.
    empty_waits: u32,
}

/// Length in nanoseconds of a wait for zero time, after `idle_cycles` empty cycles: the thread that
/// frees a slot does not ring, and may need this core.
#[inline]
const fn nap_ns(idle_cycles: u32) -> u64 {
    const TRIES: u32 = 64;
    const NAP_NS: u64 = 50_000;
    if idle_cycles < TRIES { 0 } else { NAP_NS }
}

impl Spin {
    /// The number of idle duty cycles between two `PAUSE` instructions.
    pub const CYCLES_A_PAUSE: u32 = 8;
}

impl Idle for Spin {
    const CAN_YIELD: bool = false;

    #[inline(always)]
    fn can_yield(&self) -> bool {
        false
    }

    #[inline(always)]
    fn idle(&mut self, _at_most_ns: u64) {
        self.idle_cycles = self.idle_cycles.wrapping_add(1);
        if self.idle_cycles.is_multiple_of(Self::CYCLES_A_PAUSE) {
            core::hint::spin_loop();
        }
    }
}

impl Idle for Yield {
    #[inline(always)]
    fn idle(&mut self, _at_most_ns: u64) {
        std::thread::yield_now();
    }
}

impl Backoff {
    const SPINS: u32 = 100;
    const YIELDS: u32 = 20;
    const MAX_SLEEP_NS: u64 = 1_000_000;
}

impl Idle for Backoff {
    #[inline]
    fn can_yield(&self) -> bool {
        self.idle_cycles >= Self::SPINS
    }

    fn idle(&mut self, max_ns: u64) {
        self.idle_cycles = self.idle_cycles.saturating_add(1);
        if self.idle_cycles <= Self::SPINS {
            core::hint::spin_loop();
        } else if self.idle_cycles <= Self::SPINS + Self::YIELDS {
            std::thread::yield_now();
        } else {
            let doublings = (self.idle_cycles - Self::SPINS - Self::YIELDS).min(10);
            let max_ns = if max_ns == 0 { nap_ns(self.idle_cycles) } else { max_ns };
            let sleep_ns = (1_000 << doublings).min(Self::MAX_SLEEP_NS).min(max_ns);
            std::thread::sleep(Duration::from_nanos(sleep_ns));
        }
    }

    #[inline]
    fn reset(&mut self) {
        self.idle_cycles = 0;
    }
}

impl Park {
    /// No wait is longer than this, so that a stop of the run is noticed and a bell that a peer
    /// failed to ring costs a bounded delay.
    const MAX_SLEEP_NS: u64 = 10_000_000;

    /// Creates an idle strategy that sleeps on `listener`, the receiving end of the thread's
    /// doorbell, until a sender rings or 10 ms have passed.
    pub fn new(listener: Listener) -> Self {
        Self { listener, armed: false, empty_waits: 0 }
    }
}

impl Idle for Park {
    #[inline]
    fn can_yield(&self) -> bool {
        self.armed
    }

    fn idle(&mut self, max_ns: u64) {
        if self.armed {
            let mut max_ns = max_ns.min(Self::MAX_SLEEP_NS);
            if max_ns == 0 {
                max_ns = nap_ns(self.empty_waits);
                self.empty_waits = self.empty_waits.saturating_add(1);
            }
            // The duty cycle since `arm` found nothing: no sender can have sent without seeing the
            // doorbell armed.
            self.listener.wait(Duration::from_nanos(max_ns));
            self.armed = false;
        } else {
            self.listener.arm();
            self.armed = true;
        }
    }

    #[inline]
    fn reset(&mut self) {
        self.empty_waits = 0;
        if self.armed {
            self.listener.disarm();
            self.armed = false;
        }
    }
}

/// An idle strategy that is chosen at run time, at the cost of one branch for each wait. Loops that
/// spin are compiled for [`Spin`] alone; the others share this type, so that each agent is compiled
/// only twice.
pub enum IdleStrategy {
    /// Polls without a pause: see [`Spin`].
    Spin(Spin),
    /// Yields the core to other threads: see [`Yield`].
    Yield(Yield),
    /// Waits longer step by step: see [`Backoff`].
    Backoff(Backoff),
    /// Sleeps until a sender rings: see [`Park`].
    Park(Park),
}

impl Idle for IdleStrategy {
    #[inline]
    fn can_yield(&self) -> bool {
        match self {
            IdleStrategy::Spin(spin) => spin.can_yield(),
            IdleStrategy::Yield(give) => give.can_yield(),
            IdleStrategy::Backoff(backoff) => backoff.can_yield(),
            IdleStrategy::Park(park) => park.can_yield(),
        }
    }

    #[inline]
    fn idle(&mut self, max_ns: u64) {
        match self {
            IdleStrategy::Spin(spin) => spin.idle(max_ns),
            IdleStrategy::Yield(give) => give.idle(max_ns),
            IdleStrategy::Backoff(backoff) => backoff.idle(max_ns),
            IdleStrategy::Park(park) => park.idle(max_ns),
        }
    }

    #[inline]
    fn reset(&mut self) {
        match self {
            IdleStrategy::Spin(_) | IdleStrategy::Yield(_) => {}
            IdleStrategy::Backoff(backoff) => backoff.reset(),
            IdleStrategy::Park(park) => park.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bell::{BELL_WORDS, Doorbell};
    use crate::memory::Region;
    use std::time::Instant;

    #[test]
    #[cfg_attr(miri, ignore = "Miri does not implement shared futexes by syscall number")]
    fn parked_thread_wakes_when_bell_rings() {
        let words = Region::heap(BELL_WORDS).words();
        let bell = Doorbell::from_outside(&words);
        let mut park = Park::new(Listener::new(&words).with_outside(&words));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..1000 {
                    bell.ring();
                    std::thread::yield_now();
                }
            });
            for _ in 0..100 {
                park.idle(1_000_000);
            }
        });
        let start = Instant::now();
        (0..2).for_each(|_| park.idle(2_000_000));
        assert!(start.elapsed() >= Duration::from_millis(1), "without a ring it sleeps until its timeout");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's sleep is not for measuring")]
    fn backoff_sleeps_no_longer_than_allowed() {
        let mut backoff = Backoff { idle_cycles: u32::MAX - 1 };
        let start = Instant::now();
        (0..4).for_each(|_| backoff.idle(10));
        backoff.reset();
        assert_eq!(backoff.idle_cycles, 0);
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's sleep is not for measuring")]
    fn zero_wait_retries_at_once_then_naps() {
        assert_eq!((nap_ns(0), nap_ns(63)), (0, 0));
        let elapsed = |idle: &mut dyn FnMut(), calls| {
            let start = Instant::now();
            (0..calls).for_each(|_| idle());
            start.elapsed()
        };
        // Half of a hundred naps, of which a signal may cut some short; at each other call a bell
        // is armed.
        let naps = Duration::from_nanos(50 * nap_ns(64));
        let mut park = Park::new(Listener::new(&Region::heap(BELL_WORDS).words()));
        assert!(elapsed(&mut || park.idle(0), 2 * 164) >= naps);
        park.reset();
        assert_eq!(park.empty_waits, 0);
        let mut backoff = Backoff { idle_cycles: 200 };
        assert!(elapsed(&mut || backoff.idle(0), 100) >= naps);
    }

    #[test]
    fn spinning_or_arming_does_not_yield_the_core() {
        let mut backoff = Backoff::default();
        for cycle in 0..Backoff::SPINS + 1 {
            assert_eq!(backoff.can_yield(), cycle >= Backoff::SPINS, "{cycle}");
            backoff.idle(1);
        }
        backoff.reset();
        assert!(!backoff.can_yield() && !Spin::default().can_yield() && Yield.can_yield());
        let mut park = Park::new(Listener::new(&Region::heap(BELL_WORDS).words()));
        assert!(!park.can_yield());
        park.idle(1);
        assert!(park.can_yield(), "the next one waits");
        park.reset();
        assert!(!park.can_yield());
    }
}
