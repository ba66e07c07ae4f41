//! Which faults a signal injects and which their strategy, and the random numbers of faults and
//! simulated runs, from the run's seed.

use crate::plan::{Fault, FaultKind, FaultTime};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use shm::ring::Step;

/// The steps of a push into a ring at which an injected fault can make the producer abandon the
/// push. The slot is claimed, the message not visible yet.
pub const HOLD_STEPS: [Step; 3] = [Step::Claimed, Step::HalfWritten, Step::Written];

/// Returns `true` if the launcher injects the fault by sending a signal; otherwise the strategy or
/// venue does it itself.
pub const fn is_by_signal(fault: &Fault) -> bool {
    matches!((fault.kind, fault.when), (FaultKind::Kill | FaultKind::Stop, FaultTime::At { .. }))
}

/// A pseudo-random number generator for faults and simulations: equal seeds and streams give equal
/// numbers on every machine.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The random stream with which the launcher draws the process that receives a fault's signal.
    pub const SIGNALS: u64 = 1;
    /// The random stream with which the planner draws the strategy that a fault without a given
    /// target hits.
    pub const PLANNING: u64 = 2;
    /// The random stream of the addresses and values of a faulty strategy's random writes to
    /// memory.
    pub const SCRIBBLES: u64 = 3;
    /// The random stream that selects the technique of a simulated run.
    pub const TECHNIQUE: u64 = 4;
    /// The main random stream of a simulated run's scenario, such as its numbers of strategies,
    /// venues and orders.
    pub const SCENARIO: u64 = 5;
    /// The random stream of the errors that a garbling (faulty) venue makes in its reports.
    pub const GARBLE: u64 = 8;
    /// The random stream that schedules a simulated run: which thread runs next, and how far the
    /// clock advances.
    pub const TURNS: u64 = 6;
    /// The random stream of a simulated kernel's delays, such as how long a killed process still
    /// runs.
    pub const PROCESSES: u64 = 7;
    /// The random stream of the kill switches of a simulated run.
    pub const SWITCHES: u64 = 9;
    /// The random stream that draws whether a simulated run tests crash recovery, and when its
    /// engine and exchanges are killed or stopped.
    pub const RESTARTS: u64 = 10;
    /// The random stream of a simulated run's hot standbys, journaling and machine crash.
    pub const STANDBYS: u64 = 11;
    /// The random stream of bursts of kills (strategy, engine and exchange at nearly one time) in a
    /// simulated run.
    pub const BURSTS: u64 = 12;
    /// The random stream of the number of credentials in a simulated run.
    pub const CREDENTIALS: u64 = 13;
    /// The random stream of the strategies that operators end in a simulated run.
    pub const ENDS: u64 = 14;
    /// The random stream of the spare strategies of a simulated run, and of those that are added.
    pub const ADDITIONS: u64 = 15;
    /// The random stream of the kills and operators' commands at the natural ends of strategies in
    /// a simulated run.
    pub const ENDINGS: u64 = 16;
    /// The random stream of the external event of a simulated run, such as lost memory or a starved
    /// thread.
    pub const SURROUNDINGS: u64 = 17;
    /// The random stream that draws whether strategies of a simulated run share processes, and how
    /// many strategies share one process.
    pub const GROUPS: u64 = 18;
    /// The random stream of how processes end in a simulated run, such as the number of thread
    /// turns until the kernel has removed a process.
    pub const DEATHS: u64 = 19;

    /// Creates the pseudo-random stream with this number (one for each purpose) from a run's seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        // Not `seed_from_u64`: how that spreads its argument is the library's to change.
        let mut key = *b"........bulkhead faults, v1.....";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        Self(generator)
    }

    /// Draws a whole number from 0 to `bound − 1`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}
