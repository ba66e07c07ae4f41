//! Wait strategies of a queue end, and its cost per event: chosen once per run, off the hot path.

use serde::{Deserialize, Serialize};
use shm::bell::Listener;
use shm::idle::{Idle, Park};
use std::time::Duration;
use system::clock::{Clock, ClockSource};

/// The strategy with which an end of a queue waits: spin, yield, sleep or park; with its counters.
pub struct WaitStrategy {
    kind: WaitingKind,
    /// Number of times that the end had to wait.
    pub polls: u64,
    /// Number of returns from a yield or a sleep.
    pub wakes: u64,
}

enum WaitingKind {
    Busy,
    Yield,
    Poll(Duration),
    Park {
        park: Park,
        /// The doorbell is armed: the next wait sleeps.
        armed: bool,
    },
}

/// Maximum sleep without a poll, in nanoseconds.
const MAX_SLEEP_NS: u64 = 10_000_000;

impl WaitStrategy {
    const fn new(kind: WaitingKind) -> Self {
        Self { kind, polls: 0, wakes: 0 }
    }

    /// Creates a wait strategy that spins.
    pub const fn busy() -> Self {
        Self::new(WaitingKind::Busy)
    }

    /// Creates a wait strategy that yields the core.
    pub const fn yielding() -> Self {
        Self::new(WaitingKind::Yield)
    }

    /// Creates a wait strategy that sleeps for `time` between polls.
    pub const fn polling(time: Duration) -> Self {
        Self::new(WaitingKind::Poll(time))
    }

    /// Creates a wait strategy that parks until the doorbell rings.
    pub fn parking(own: Listener) -> Self {
        Self::new(WaitingKind::Park { park: Park::new(own), armed: false })
    }

    /// Waits once, as the strategy does.
    #[inline(never)]
    pub fn wait(&mut self) {
        self.polls += 1;
        match &mut self.kind {
            WaitingKind::Busy => return core::hint::spin_loop(),
            WaitingKind::Yield => std::thread::yield_now(),
            WaitingKind::Poll(time) => std::thread::sleep(*time),
            WaitingKind::Park { park, armed } => {
                park.idle(MAX_SLEEP_NS);
                *armed = !*armed;
                if *armed {
                    // Polls once more before it sleeps.
                    return;
                }
            }
        }
        self.wakes += 1;
    }

    /// Disarms the doorbell of a queue's end after an event was taken or pushed.
    #[inline(always)]
    pub fn on_progress(&mut self) {
        if let WaitingKind::Park { park, armed } = &mut self.kind
            && *armed
        {
            park.reset();
            *armed = false;
        }
    }
}

/// The setting that each event costs time at an end of a queue: computing or sleeping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slow {
    /// Sleeps for a time, in nanoseconds.
    Sleep(u64),
    /// Spins for a time, in nanoseconds.
    Work(u64),
}

impl Slow {
    /// Returns the cost of one event in nanoseconds.
    pub const fn ns(self) -> u64 {
        match self {
            Slow::Sleep(ns) | Slow::Work(ns) => ns,
        }
    }
}

/// The cost of each event at an end of a queue, with random variation.
pub struct Pace {
    slow: Option<Slow>,
    jitter: f64,
    ns_per_tick: f64,
    random: u64,
}

impl Pace {
    /// Creates the cost of events; `jitter` is the relative half-width of its variation.
    pub const fn new(slow: Option<Slow>, jitter: f64, ns_per_tick: f64, seed: u64) -> Self {
        Self { slow, jitter, ns_per_tick, random: seed }
    }

    /// Returns `true` if events cost time at this end of the queue.
    pub const fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// Draws the random cost of one event, in nanoseconds.
    pub fn draw(&mut self, ns: u64) -> u64 {
        // splitmix64 (Steele, Lea, Flood 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let even = ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        (ns as f64 * (1.0 + self.jitter * (2.0 * even - 1.0))) as u64
    }

    /// Spends the time that one event costs.
    pub fn work(&mut self, clock: ClockSource) {
        match self.slow {
            None => {}
            Some(Slow::Sleep(ns)) => std::thread::sleep(Duration::from_nanos(self.draw(ns))),
            Some(Slow::Work(ns)) => {
                let ticks = (self.draw(ns) as f64 / self.ns_per_tick) as u64;
                let until = clock.peek().saturating_add(ticks);
                while clock.peek() < until {
                    core::hint::spin_loop();
                }
            }
        }
    }
}
