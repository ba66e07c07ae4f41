//! Whether a number is a multiple of another, without a division: odd ticks and lots.

/// A divisor, prepared. A multiple of an odd number d, times the inverse of d modulo 2^64, is the quotient; anything else
/// becomes larger than every quotient. Powers of two are rotated to the top, where they are large as well.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiple {
    inverse: u64,
    largest_quotient: u64,
    shift: u32,
}

impl Multiple {
    /// Of that divisor, above 0.
    pub(crate) const fn of(divisor: u64) -> Self {
        let shift = divisor.trailing_zeros();
        let odd = divisor >> shift;
        // Newton: each round doubles the bits that are right, from three on.
        let mut inverse = odd;
        let mut round = 0;
        while round < 5 {
            inverse = inverse.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(inverse)));
            round += 1;
        }
        Self { inverse, largest_quotient: u64::MAX / divisor, shift }
    }

    /// Whether the number is one of its multiples.
    #[inline(always)]
    pub(crate) const fn has(&self, number: u64) -> bool {
        number.wrapping_mul(self.inverse).rotate_right(self.shift) <= self.largest_quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_agrees_with_the_remainder(divisor in 1u64.., number: u64, small in 1u64..5_000, quotient: u64) {
            for divisor in [divisor, small, 1 << (divisor % 64)] {
                let multiple = Multiple::of(divisor);
                for number in [number, number % (4 * small), divisor, (quotient % (u64::MAX / divisor)) * divisor, 0] {
                    prop_assert_eq!(multiple.has(number), number % divisor == 0, "{} of {}", number, divisor);
                }
            }
        }
    }
}
