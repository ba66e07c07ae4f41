//! How an end waits, and what it does when it is slow: chosen once a run, outside the hot path.

use super::plan::Slow;
use analysis::experiment::Wait;
use shm::bell::Listener;
use shm::idle::{Idle, Park};
use std::time::Duration;
use system::clock::{Clock, ClockSource};

/// A way of waiting.
pub(super) struct Waiting {
    kind: Kind,
    /// How often the end could not go on.
    pub looks: u64,
    /// How often it came back from a yield or a sleep.
    pub wakes: u64,
}

enum Kind {
    Busy,
    Yield,
    Poll(Duration),
    Park {
        park: Park,
        /// The bell is armed: the next wait sleeps.
        armed: bool,
    },
}

/// No end sleeps longer than this without a look.
const AT_MOST_NS: u64 = 10_000_000;

impl Waiting {
    /// Waits so; `own` is what the end sleeps on.
    pub(super) fn new(wait: Wait, poll_ns: u64, own: Option<Listener>) -> Self {
        let kind = match (wait, own) {
            (Wait::Park, Some(own)) => Kind::Park { park: Park::new(own), armed: false },
            (Wait::Poll, _) => Kind::Poll(Duration::from_nanos(poll_ns)),
            (Wait::Yield, _) => Kind::Yield,
            (Wait::Busy | Wait::Park, _) => Kind::Busy,
        };
        Self { kind, looks: 0, wakes: 0 }
    }

    /// Could not go on: waits, once.
    #[inline(never)]
    pub(super) fn wait(&mut self) {
        self.looks += 1;
        match &mut self.kind {
            Kind::Busy => return core::hint::spin_loop(),
            Kind::Yield => std::thread::yield_now(),
            Kind::Poll(time) => std::thread::sleep(*time),
            Kind::Park { park, armed } => {
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
    pub(super) fn went_on(&mut self) {
        if let Kind::Park { park, armed } = &mut self.kind
            && *armed
        {
            park.reset();
            *armed = false;
        }
    }
}

/// What an end does for each event.
pub(super) struct Pace {
    slow: Option<Slow>,
    jitter: f64,
    ns_per_tick: f64,
    random: u64,
}

impl Pace {
    /// So slow, or not at all; `jitter` is a share of it to both sides.
    pub(super) const fn new(slow: Option<Slow>, jitter: f64, ns_per_tick: f64, seed: u64) -> Self {
        Self { slow, jitter, ns_per_tick, random: seed }
    }

    /// Whether there is anything to do.
    pub(super) const fn is_slow(&self) -> bool {
        self.slow.is_some()
    }

    /// How long it is this time, in nanoseconds.
    fn draw(&mut self, ns: u64) -> u64 {
        // splitmix64 (Steele, Lea, Flood 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let even = ((mixed ^ mixed >> 31) >> 11) as f64 / (1u64 << 53) as f64;
        (ns as f64 * (1.0 + self.jitter * (2.0 * even - 1.0))) as u64
    }

    /// Does it.
    pub(super) fn work(&mut self, clock: ClockSource) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use shm::bell::BELL_WORDS;
    use shm::memory::Region;

    #[test]
    fn only_what_gives_the_core_away_wakes() {
        let bell = || Some(Listener::new(&Region::heap(BELL_WORDS).words()));
        for (wait, wakes) in [(Wait::Busy, 0), (Wait::Yield, 4), (Wait::Poll, 4), (Wait::Park, 2)] {
            let mut waiting = Waiting::new(wait, 1_000, bell());
            (0..4).for_each(|_| waiting.wait());
            assert_eq!((waiting.looks, waiting.wakes), (4, wakes), "{wait}");
        }
    }

    #[test]
    fn an_event_between_two_looks_takes_the_bell_back() {
        let own = Listener::new(&Region::heap(BELL_WORDS).words());
        let mut waiting = Waiting::new(Wait::Park, 0, Some(own));
        waiting.wait();
        waiting.went_on();
        waiting.wait();
        assert_eq!(waiting.wakes, 0, "armed twice, never asleep");
    }

    #[test]
    fn jitter_is_even_around_what_was_asked_for_and_the_seed_gives_it_again() {
        let draws = |seed| {
            let mut pace = Pace::new(None, 0.5, 1.0, seed);
            (0..1000).map(|_| pace.draw(1_000)).collect::<Vec<_>>()
        };
        let one = draws(7);
        assert_eq!(one, draws(7));
        assert_ne!(one, draws(8));
        assert!(one.iter().all(|ns| (500..=1_500).contains(ns)));
        let mean = one.iter().sum::<u64>() / 1000;
        assert!((950..1_050).contains(&mean), "{mean}");
        assert_eq!(Pace::new(None, 0.0, 1.0, 1).draw(1_000), 1_000);
    }
}
