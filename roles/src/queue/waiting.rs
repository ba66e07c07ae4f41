//! Wait strategies of a queue's end, and the simulated cost per event: chosen once per run, off the
//! hot path.

use protocol::plan::{EndWaiting, EventCost};
use shm::idle::{Idle, IdleStrategy, Park};
use shm::random::SplitMix64;
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
    /// Creates the wait strategy that the plan requests for an end of a queue. `idle` is that of
    /// the thread; one that parks has the doorbell.
    pub fn new(waiting: EndWaiting, idle: IdleStrategy) -> Self {
        let kind = match (waiting, idle) {
            (_, IdleStrategy::Park(park)) => WaitingKind::Park { park, armed: false },
            (EndWaiting::Yield, _) => WaitingKind::Yield,
            (EndWaiting::Sleep(ns), _) => WaitingKind::Poll(Duration::from_nanos(ns)),
            (EndWaiting::Spin | EndWaiting::Park, _) => WaitingKind::Busy,
        };
        Self { kind, polls: 0, wakes: 0 }
    }

    /// Waits once at the queue's end: spins, yields, sleeps or parks.
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

    /// Disarms the doorbell, on which a parked end of the queue waits, after an event was taken or
    /// pushed.
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

/// The simulated cost of each event at an end of a queue, with random variation.
pub struct Pace {
    cost: Option<EventCost>,
    jitter: f64,
    ns_per_tick: f64,
    random: SplitMix64,
}

impl Pace {
    /// Creates the simulated cost of events; `jitter` is the relative half-width of its variation.
    pub const fn new(cost: Option<EventCost>, jitter: f64, ns_per_tick: f64, seed: u64) -> Self {
        Self { cost, jitter, ns_per_tick, random: SplitMix64(seed) }
    }

    /// Returns `true` if each event costs simulated time at this end of the queue.
    pub const fn is_slow(&self) -> bool {
        self.cost.is_some()
    }

    /// Draws the simulated cost of one event, in nanoseconds, at random around `ns`.
    pub fn draw(&mut self, ns: u64) -> u64 {
        (ns as f64 * (1.0 + self.jitter * (2.0 * self.random.share() - 1.0))) as u64
    }

    /// Spends the simulated time that one event costs at this end of the queue.
    pub fn work(&mut self, clock: ClockSource) {
        match self.cost {
            None => {}
            Some(EventCost::Sleep(ns)) => std::thread::sleep(Duration::from_nanos(self.draw(ns))),
            Some(EventCost::Work(ns)) => {
                let ticks = (self.draw(ns) as f64 / self.ns_per_tick) as u64;
                let until = clock.peek().saturating_add(ticks);
                while clock.peek() < until {
                    core::hint::spin_loop();
                }
            }
        }
    }
}
