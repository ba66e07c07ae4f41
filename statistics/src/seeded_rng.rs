//! Seeded random numbers for resampling and simulation: equal for equal seeds on every machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded generator of random numbers (ChaCha8).
pub struct SeededRng(ChaCha8Rng);

impl SeededRng {
    /// Creates a random-number generator from a seed.
    pub fn new(seed: u64) -> Self {
        // Not `seed_from_u64`: the library may change how that spreads its argument.
        let mut key = *b"........bulkhead statistics, v1.";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Returns the generator's next random 64-bit integer.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns the generator's next random integer from 0 to `bound − 1`; 0 if `bound` is 0.
    pub fn next_below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Returns the generator's next random number above 0 and at most 1.
    pub fn next_unit(&mut self) -> f64 {
        ((self.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}
