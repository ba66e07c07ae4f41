//! Ticks: one clock for all processes of a run, read in a few nanoseconds.
//!
//! Ticks are the CPU's counter if the kernel itself trusts it (the invariant TSC of x86-64, the
//! generic timer of aarch64), else CLOCK_MONOTONIC. Libraries that calibrate in each process differ
//! by some 20 ppm between processes (200 µs after ten seconds), so stamps are raw ticks and the
//! launcher calibrates once, over the run.

use crate::named_enum;
use std::rc::Rc;
use std::time::Duration;

named_enum! {
    /// The source of ticks, chosen once for a run.
    ClockSource {
        /// The CPU's own counter, if the kernel itself trusts it: the invariant TSC; on aarch64
        /// CNTVCT.
        Tsc = "tsc",
        /// `clock_gettime(CLOCK_MONOTONIC)`: a tick is a nanosecond.
        Monotonic = "monotonic",
    }
}

/// A source of time in ticks (units of the clock's counter), for the time stamps of orders and for
/// deadlines. Cloned into each agent's thread; monomorphized.
pub trait Clock: Clone {
    /// Returns the current tick for a stamp. Ordered after every earlier load of this thread: a
    /// message has been seen when it is stamped, so t(n+1) ≥ t(n) holds across cores.
    fn now(&self) -> u64;

    /// Returns the current tick for deadlines, by default [`Clock::now`]. May be cheaper: it is not
    /// ordered with the loads and stores around it.
    #[inline(always)]
    fn peek(&self) -> u64 {
        self.now()
    }
}

/// The clock that reads the CPU's time stamp counter: TSC on x86-64, CNTVCT on aarch64.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tsc;

/// The clock `CLOCK_MONOTONIC`, whose ticks are nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

/// A clock that a test or a simulation sets, for one thread.
#[derive(Clone, Debug, Default)]
pub struct VirtualClock {
    ticks: Rc<core::cell::Cell<u64>>,
    /// Called before each read.
    on_read: Option<fn()>,
}

/// A clock that is real or virtual by choice at run time, so that code outside measured loops is
/// compiled only once.
#[derive(Clone, Debug)]
pub enum AnyClock {
    /// The machine's clock with this source of ticks.
    Real(ClockSource),
    /// The simulation's clock: see [`VirtualClock`].
    Virtual(VirtualClock),
}

impl From<ClockSource> for AnyClock {
    fn from(source: ClockSource) -> Self {
        Self::Real(source)
    }
}

impl Clock for AnyClock {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            Self::Real(source) => source.now(),
            Self::Virtual(clock) => clock.now(),
        }
    }

    #[inline]
    fn peek(&self) -> u64 {
        match self {
            Self::Real(source) => source.peek(),
            Self::Virtual(clock) => clock.peek(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Clock for Tsc {
    #[inline(always)]
    fn now(&self) -> u64 {
        // The kernel's `rdtsc_ordered`: LFENCE waits for all earlier loads, so the counter is read
        // after the message was seen. RDTSCP orders the same way; in our measurements this pair was
        // cheaper. SAFETY: LFENCE and RDTSC are part of every x86-64 (SSE2), and the kernel leaves
        // RDTSC enabled for user space wherever it names the TSC as its clock source, which is
        // checked before this clock is chosen.
        unsafe {
            core::arch::x86_64::_mm_lfence();
            core::arch::x86_64::_rdtsc()
        }
    }

    #[inline(always)]
    fn peek(&self) -> u64 {
        // SAFETY: as above.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

#[cfg(target_arch = "aarch64")]
impl Clock for Tsc {
    #[inline(always)]
    fn now(&self) -> u64 {
        let ticks: u64;
        // The kernel's sequence. ISB: the counter is not read before the branch on the message is
        // decided, and so not before the message was loaded. Later instructions are not ordered
        // after the read; neither are they on x86-64. SAFETY: ISB has no operands. CNTVCT_EL0 is a
        // counter that only goes forward; the kernel lets user space read it, because its vDSO
        // does. Memory is not touched, and the compiler may not move accesses over this (no
        // `nomem`).
        unsafe {
            core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags))
        }
        ticks
    }

    #[inline(always)]
    fn peek(&self) -> u64 {
        let ticks: u64;
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags))
        }
        ticks
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
impl Clock for Tsc {
    fn now(&self) -> u64 {
        Monotonic.now()
    }
}

impl Clock for Monotonic {
    #[inline(always)]
    fn now(&self) -> u64 {
        // The vDSO's CLOCK_MONOTONIC cannot fail; it orders itself after earlier loads.
        nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC)
            .map_or(0, |t| Duration::from(t).as_nanos() as u64)
    }
}

/// The clock of that source, chosen at run time: for the launcher. Roles use the static types.
impl Clock for ClockSource {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            Self::Tsc => Tsc.now(),
            Self::Monotonic => Monotonic.now(),
        }
    }

    #[inline]
    fn peek(&self) -> u64 {
        match self {
            Self::Tsc => Tsc.peek(),
            Self::Monotonic => Monotonic.peek(),
        }
    }
}

impl VirtualClock {
    /// Sets the virtual clock's time, in ticks.
    pub fn set(&self, ticks: u64) {
        self.ticks.set(ticks);
    }

    /// Returns a handle to this virtual clock that calls a hook before each read. The hook may
    /// unwind, and so crash its caller at that point.
    #[must_use]
    pub fn with_read_hook(&self, hook: fn()) -> Self {
        Self { ticks: Rc::clone(&self.ticks), on_read: Some(hook) }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> u64 {
        if let Some(hook) = self.on_read {
            hook();
        }
        self.ticks.get()
    }
}

/// A test clock that unwinds the calling thread at a given read, to test recovery after a crash at
/// that point. Its time is the number of reads.
#[cfg(feature = "fixtures")]
#[derive(Clone, Debug, Default)]
pub struct CrashClock {
    /// Number of reads of the clock so far.
    pub reads: Rc<core::cell::Cell<u64>>,
    /// The number of the read that unwinds, from 1; the panic hook is not called.
    pub crash_at: u64,
}

#[cfg(feature = "fixtures")]
impl Clock for CrashClock {
    fn now(&self) -> u64 {
        self.reads.set(self.reads.get() + 1);
        if self.reads.get() == self.crash_at {
            std::panic::resume_unwind(Box::new("the simulated crash"));
        }
        self.reads.get()
    }
}

/// One point in time on both the run's clock and CLOCK_MONOTONIC, for calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    /// Time on the run's clock, in ticks.
    pub ticks: u64,
    /// Time on CLOCK_MONOTONIC, in nanoseconds.
    pub monotonic_ns: u64,
}

impl ClockPair {
    /// Reads both clocks 50 times, and returns the pair whose readings were closest together.
    pub fn read(clock: &impl Clock) -> Self {
        let read = || {
            let before = clock.now();
            let monotonic_ns = Monotonic.now();
            let after = clock.now();
            (after - before, Self { ticks: before + (after - before) / 2, monotonic_ns })
        };
        let pairs = std::iter::repeat_with(read).take(50);
        pairs.min_by_key(|(width, _)| *width).map(|(_, pair)| pair).expect("fifty pairs")
    }

    /// Returns the clock's nanoseconds per tick between an earlier pair of readings and this one.
    pub fn ns_per_tick_since(&self, earlier: &Self) -> f64 {
        let ticks = self.ticks.saturating_sub(earlier.ticks).max(1);
        self.monotonic_ns.saturating_sub(earlier.monotonic_ns) as f64 / ticks as f64
    }
}

/// Measures the cost of one clock read in nanoseconds: the median over 51 batches of the mean of
/// 1,000 reads.
pub fn read_cost_ns(clock: &impl Clock) -> f64 {
    let batch = || {
        let start = Monotonic.now();
        for _ in 0..1000 {
            core::hint::black_box(clock.now());
        }
        (Monotonic.now() - start) as f64 / 1000.0
    };
    let mut costs: Vec<f64> = std::iter::repeat_with(batch).take(51).collect();
    costs.sort_by(f64::total_cmp);
    costs[25]
}

/// Number of reads of [`step_ticks`].
const STEP_READS: u32 = 20_000;
/// A difference of two reads that occurs less often than this is an interruption.
const STEP_COMMON: u32 = STEP_READS / 200;

/// Measures the step of a clock in ticks, which limits its resolution. Many counters advance by
/// several ticks at once. If a read takes a step or longer, the step is derived from the
/// differences between the intervals that occur, so it is at most 1 or 2 ticks too large for a
/// clock that counts every tick.
pub fn step_ticks(clock: &impl Clock) -> f64 {
    let mut counts = std::collections::BTreeMap::<u64, u32>::new();
    let mut last = clock.now();
    for read in 0..STEP_READS {
        // Pauses of many lengths: a clock that counts every tick then shows many intervals.
        (0..read % 16).for_each(|pause| {
            core::hint::black_box(pause);
        });
        let now = clock.now();
        *counts.entry(now.saturating_sub(last)).or_default() += 1;
        last = now;
    }
    // The clock did not advance between two reads, so it advances by one step at a time.
    if counts.get(&0).is_some_and(|count| *count >= STEP_COMMON) {
        return counts.keys().find(|ticks| **ticks > 0).map_or(0.0, |ticks| *ticks as f64);
    }
    let common: Vec<(u64, u32)> = counts.into_iter().filter(|(_, count)| *count >= STEP_COMMON).collect();
    // A step with a fraction of a tick shows as two adjacent numbers.
    let intervals: Vec<f64> = common
        .chunk_by(|a, b| b.0 - a.0 <= 1)
        .map(|neighbors| {
            let count: u32 = neighbors.iter().map(|(_, count)| count).sum();
            neighbors.iter().map(|(ticks, count)| *ticks as f64 * f64::from(*count)).sum::<f64>()
                / f64::from(count)
        })
        .collect();
    let counts_every_tick = common.chunk_by(|a, b| b.0 - a.0 <= 1).any(|neighbors| neighbors.len() > 3);
    if counts_every_tick {
        return 1.0;
    }
    let gaps = intervals.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.min_by(f64::total_cmp).or(intervals.first().copied()).unwrap_or(0.0)
}

/// The start tick of a run and the length of a tick, to convert between ticks and nanoseconds since
/// the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timebase {
    /// The tick of the start of the run.
    pub start_ticks: u64,
    /// Nanoseconds per tick of the run's clock.
    pub ns_per_tick: f64,
}

impl Timebase {
    /// Converts a duration in nanoseconds to ticks of the run's clock.
    #[inline]
    pub fn ticks(&self, ns: u64) -> u64 {
        (ns as f64 / self.ns_per_tick) as u64
    }

    /// Returns the tick at which `ns` nanoseconds have passed since the start of the run.
    #[inline]
    pub fn at(&self, ns: u64) -> u64 {
        self.start_ticks.saturating_add(self.ticks(ns))
    }

    /// Converts a duration in ticks of the run's clock to nanoseconds.
    #[inline]
    pub fn ns(&self, ticks: u64) -> u64 {
        (ticks as f64 * self.ns_per_tick) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_never_goes_backward() {
        fn check(clock: &impl Clock) {
            let (a, b) = (clock.now(), clock.now());
            assert!(b >= a);
        }
        check(&Monotonic);
        #[cfg(not(miri))]
        check(&Tsc);
    }

    /// A clock whose counter advances in steps of `step`; a read takes at least `read`.
    #[derive(Clone)]
    struct SteppedClock {
        time: VirtualClock,
        step: f64,
        read: u64,
    }

    impl Clock for SteppedClock {
        fn now(&self) -> u64 {
            let time = self.time.now();
            // Plus a pseudo-random time below 16.
            self.time.set(time + self.read + (time.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 60));
            ((time as f64 / self.step).floor() * self.step) as u64
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "thousands of readings: minutes there")]
    fn counter_step_is_measured() {
        let measured = |step: f64, read: u64| {
            let clock = SteppedClock { time: VirtualClock::default(), step, read };
            clock.time.set(1_000_000_007);
            step_ticks(&clock)
        };
        assert_eq!(measured(26.0, 35), 26.0, "a read takes longer than a step");
        assert_eq!(measured(26.0, 3), 26.0, "a read takes less than a step");
        assert!((measured(26.4, 35) - 26.4).abs() < 1.0, "{}", measured(26.4, 35));
        assert_eq!(measured(1000.0, 20), 1000.0, "a read takes much less than a step");
        assert!(measured(1.0, 35) <= 2.0, "{}: the counter counts every tick", measured(1.0, 35));
    }

    #[test]
    fn clock_pairs_give_tick_length() {
        let earlier = ClockPair { ticks: 1_000, monotonic_ns: 500 };
        let later = ClockPair { ticks: 3_000, monotonic_ns: 1_500 };
        assert_eq!(later.ns_per_tick_since(&earlier), 0.5);
        let base = Timebase { start_ticks: 10, ns_per_tick: 0.5 };
        assert_eq!((base.ticks(100), base.at(100), base.ns(200)), (200, 210, 100));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri's clock is not for measuring")]
    fn monotonic_tick_is_one_nanosecond() {
        let earlier = ClockPair::read(&Monotonic);
        std::thread::sleep(Duration::from_millis(2));
        let ratio = ClockPair::read(&Monotonic).ns_per_tick_since(&earlier);
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
    }
}
