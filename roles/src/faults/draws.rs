//! Random numbers for faults and simulated runs, from the run's seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Random numbers for faults: the same for the same seed, on every machine.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

impl Draws {
    /// For who gets a signal.
    pub const SIGNALS: u64 = 1;
    /// For what is drawn before the run.
    pub const PLANNING: u64 = 2;
    /// For what a scribbler writes where.
    pub const SCRIBBLES: u64 = 3;
    /// For the technique of a simulated run.
    pub const TECHNIQUE: u64 = 4;
    /// For what happens in a simulated run.
    pub const SCENARIO: u64 = 5;
    /// For what a venue garbles.
    pub const GARBLE: u64 = 8;
    /// For whose turn it is in a simulated run.
    pub const TURNS: u64 = 6;
    /// For what the kernel decides in a simulated run.
    pub const PROCESSES: u64 = 7;
    /// For the kill switches of a simulated run.
    pub const SWITCHES: u64 = 9;
    /// For who dies and comes back in a simulated run.
    pub const COMEBACKS: u64 = 10;
    /// For what spares and the disk do in a simulated run.
    pub const SPARES: u64 = 11;

    /// A stream of numbers of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        // Not `seed_from_u64`: how that spreads its argument is the library's to change.
        let mut key = *b"........bulkhead faults, v1.....";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream);
        Self(generator)
    }

    /// A whole number from 0 to `bound − 1`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}
