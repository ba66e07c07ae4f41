//! Random numbers with a fixed definition, in one stream per concern.
//!
//! A schedule's hash must mean the same on every machine and with every later build. Of the
//! generator, ChaCha with eight rounds, every output bit is specified. The steps from its words to
//! numbers are this file's, a line each, because libraries of distributions reserve the right to
//! change theirs with a minor version.
//!
//! **One stream per concern.** The n-th order takes the n-th word of the stream of due times, of
//! strategies, of venues and so on. So a change to one setting changes only what it is about: with
//! another delay range every order keeps its due time, strategy and price.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A quantity of a schedule that is drawn from a random stream of its own. The codes are part of
/// every hash: never change one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrawStream {
    DueTime = 1,
    Strategy = 2,
    Venue = 3,
    Delay = 4,
    Side = 5,
    Price = 6,
    Quantity = 7,
    Epoch = 8,
}

pub(super) struct Draws(ChaCha8Rng);

impl Draws {
    pub(super) fn new(seed: u64, stream: DrawStream) -> Self {
        // Not `seed_from_u64`: how that spreads its argument is the library's to change.
        let mut key = *b"........bulkhead schedule, v1...";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(stream as u64);
        Self(generator)
    }

    /// Draws a whole number from 0 to `bound − 1`; 0 if `bound` is 0.
    ///
    /// The upper half of the 128-bit product: one word a draw. No value is likelier than another by
    /// more than `bound` in 2^64, which is far below what any number of orders can show.
    #[inline]
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Draws a number above 0 and at most 1, in steps of 2^-53.
    #[inline]
    pub(super) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn draws_stay_in_their_range(seed: u64, bound in 1u64..) {
            let mut draws = Draws::new(seed, DrawStream::Delay);
            for _ in 0..100 {
                prop_assert!(draws.below(bound) < bound);
                let unit = draws.unit();
                prop_assert!(unit > 0.0 && unit <= 1.0);
            }
        }
    }
}
