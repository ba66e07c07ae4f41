//! How an end waits, and what it does when it is slow: chosen once a run, outside the hot path.

use serde::{Deserialize, Serialize};
use shm::bell::Listener;
use shm::idle::{Idle, Park};
use std::time::Duration;
use system::clock::{Clock, ClockSource};

/// A way of waiting.
pub struct Waiting {
    kind: WaitingKind,
    /// How often the end could not go on.
    pub looks: u64,
    /// How often it came back from a yield or a sleep.
    pub wakes: u64,
}

enum WaitingKind {
    Busy,
    Yield,
    Poll(Duration),
    Park {
        park: Park,
        /// The bell is armed: the next wait sleeps.
        armed: bool,
    },
}

/// The longest sleep of an end without a look, in nanoseconds.
const AT_MOST_NS: u64 = 10_000_000;

impl Waiting {
    const fn new(kind: WaitingKind) -> Self {
        Self { kind, looks: 0, wakes: 0 }
    }

    /// Looks again at once.
    pub const fn busy() -> Self {
        Self::new(WaitingKind::Busy)
    }

    /// Gives the core away.
    pub const fn yielding() -> Self {
        Self::new(WaitingKind::Yield)
    }

    /// Sleeps that long.
    pub const fn polling(time: Duration) -> Self {
        Self::new(WaitingKind::Poll(time))
    }

    /// Sleeps until its bell rings.
    pub fn parking(own: Listener) -> Self {
        Self::new(WaitingKind::Park { park: Park::new(own), armed: false })
    }

    /// Could not go on: waits, once.
    #[inline(never)]
    pub fn wait(&mut self) {
        self.looks += 1;
        match &mut self.kind {
            WaitingKind::Busy => return core::hint::spin_loop(),
            WaitingKind::Yield => std::thread::yield_now(),
            WaitingKind::Poll(time) => std::thread::sleep(*time),
            WaitingKind::Park { park, armed } => {
                park.idle(AT_MOST_NS);
                *armed = !*armed;
                if *armed {
                    // Looks once more before it sleeps.
                    return;
                }
            }
        }
        self.wakes += 1;
    }

    /// Went on.
    #[inline(always)]
    pub fn went_on(&mut self) {
        if let WaitingKind::Park { park, armed } = &mut self.kind
            && *armed
        {
            park.reset();
            *armed = false;
        }
    }
}

/// What a slow end does for each event besides handing it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Slow {
    /// Sleeps.
    Sleep {
        /// Nanoseconds.
        ns: u64,
    },
    /// Works.
    Work {
        /// Nanoseconds.
        ns: u64,
    },
}

impl Slow {
    /// How long it is, in nanoseconds.
    pub const fn ns(self) -> u64 {
        match self {
            Slow::Sleep { ns } | Slow::Work { ns } => ns,
        }
    }
}

/// What an end does for each event.
pub struct Pace {
    slow: Option<Slow>,
    jitter: f64,
    ns_per_tick: f64,
    random: u64,
}

impl Pace {
    /// So slow, or not at all; `jitter` is a share of it to both sides.
    pub const fn new(slow: Option<Slow>, jitter: f64, ns_per_tick: f64, seed: u64) -> Self {
        Self { slow, jitter, ns_per_tick, random: seed }
    }

    /// Whether there is anything to do.
    pub const fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// How long it is this time, in nanoseconds.
    pub fn draw(&mut self, ns: u64) -> u64 {
        // splitmix64 (Steele, Lea, Flood 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let even = ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        (ns as f64 * (1.0 + self.jitter * (2.0 * even - 1.0))) as u64
    }

    /// Does it.
    pub fn work(&mut self, clock: ClockSource) {
        match self.slow {
            None => {}
            Some(Slow::Sleep { ns }) => std::thread::sleep(Duration::from_nanos(self.draw(ns))),
            Some(Slow::Work { ns }) => {
                let ticks = (self.draw(ns) as f64 / self.ns_per_tick) as u64;
                let until = clock.peek().saturating_add(ticks);
                while clock.peek() < until {
                    core::hint::spin_loop();
                }
            }
        }
    }
}
