//! Which faults a signal injects and which their strategy, and the random numbers of faults and
//! simulated runs, from the run's seed.

use crate::plan::{Fault, FaultKind, FaultTime};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use shm::ring::Step;

/// The steps of a push at which a fault can abandon the push. The slot is claimed, the message not
/// visible yet.
pub const HOLD_STEPS: [Step; 3] = [Step::Claimed, Step::HalfWritten, Step::Written];

/// Returns `true` if the launcher injects the fault by a signal; otherwise the strategy does it
/// itself.
pub const fn is_by_signal(fault: &Fault) -> bool {
    matches!((fault.kind, fault.when), (FaultKind::Kill | FaultKind::Stop, FaultTime::At { .. }))
}

/// A random number generator for faults and simulations, reproducible from a seed on every machine.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// The number of the random stream that draws which process receives a signal.
    pub const SIGNALS: u64 = 1;
    /// The random stream of the run's planner.
    pub const PLANNING: u64 = 2;
    /// The random stream of the addresses and values that a scribbling strategy writes.
    pub const SCRIBBLES: u64 = 3;
    /// The random stream that selects the technique of a simulated run.
    pub const TECHNIQUE: u64 = 4;
    /// The random stream of the events of a simulated run.
    pub const SCENARIO: u64 = 5;
    /// The random stream of a garbling venue's errors.
    pub const GARBLE: u64 = 8;
    /// The random stream of the scheduling of a simulated run.
    pub const TURNS: u64 = 6;
    /// The random stream of the operating system's decisions in a simulated run.
    pub const PROCESSES: u64 = 7;
    /// The random stream of the kill switches of a simulated run.
    pub const SWITCHES: u64 = 9;
    /// The random stream of the crashes and restarts of a simulated run.
    pub const RESTARTS: u64 = 10;
    /// The random stream of the standbys and the disk of a simulated run.
    pub const STANDBYS: u64 = 11;
    /// The random stream of the bursts of deaths in a simulated run.
    pub const BURSTS: u64 = 12;
    /// The random stream of the number of credentials in a simulated run.
    pub const CREDENTIALS: u64 = 13;
    /// The random stream of the strategies that operators end in a simulated run.
    pub const ENDS: u64 = 14;
    /// The random stream of the spare strategies of a simulated run, and of those that are added.
    pub const ADDITIONS: u64 = 15;
    /// The random stream of the events at the ends of strategies in a simulated run.
    pub const ENDINGS: u64 = 16;
    /// The random stream of the event in the surroundings of a simulated run.
    pub const SURROUNDINGS: u64 = 17;
    /// The random stream of the groups of strategies in a simulated run.
    pub const GROUPS: u64 = 18;
    /// The random stream of the steps in which processes of a simulated run end.
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
