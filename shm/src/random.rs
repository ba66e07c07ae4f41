//! A small generator of pseudo-random numbers, so that a seed names a workload or a test's case on
//! every machine.

/// The pseudo-random generator SplitMix64 (Steele, Lea, Flood 2014), given by its 64-bit state,
/// which is the seed at first.
#[derive(Clone, Debug)]
pub struct SplitMix64(pub u64);

impl SplitMix64 {
    /// Draws the generator's next 64 pseudo-random bits.
    #[inline]
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Draws a pseudo-random number from 0 to just below `bound`, from the upper bits.
    #[inline]
    pub const fn below(&mut self, bound: u64) -> u64 {
        ((self.draw() as u128 * bound as u128) >> 64) as u64
    }

    /// Draws a pseudo-random fraction from 0 to just below 1.
    #[inline]
    pub const fn share(&mut self) -> f64 {
        (self.draw() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns a number whose bits all depend on all bits of `number`: the generator's finalizer.
#[inline]
pub const fn mix(number: u64) -> u64 {
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::SplitMix64;

    #[test]
    fn seed_gives_published_numbers() {
        // The reference implementation's first numbers (Vigna, splitmix64.c) from this seed.
        let mut random = SplitMix64(1_234_567);
        let drawn = [(); 3].map(|()| random.draw());
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
        assert!((0..1_000).all(|_| random.below(7) < 7 && random.share() < 1.0));
    }
}
