//! Out-of-core radix selection: the exact value at a rank, found in several passes over the data.

/// Bits that one pass resolves: 65,536 counters for each selection.
const BITS: u32 = 16;

/// Returns, for each pair of column and rank (from 0) in `ranks`, the value at that rank if the
/// column's values were sorted. `for_each_value` passes all values with their columns, and is
/// called once per pass; no value exceeds `max`. The value for a rank past the end is unspecified.
pub fn select_ranks(
    ranks: &[(usize, u64)],
    max: u64,
    for_each_value: impl Fn(&mut dyn FnMut(usize, u64)),
) -> Vec<u64> {
    let columns = ranks.iter().map(|(column, _)| column + 1).max().unwrap_or(0);
    let wanted_of_column = |column| (0..ranks.len()).filter(|at| ranks[*at].0 == column).collect();
    let by_column: Vec<Vec<usize>> = (0..columns).map(wanted_of_column).collect();
    let mut found: Vec<(u64, u64)> = ranks.iter().map(|(_, rank)| (0, *rank)).collect();
    let levels = (u64::BITS - max.leading_zeros()).div_ceil(BITS).max(1);
    for level in (0..levels).rev() {
        let shift = level * BITS;
        let mut counts = vec![vec![0u64; 1 << BITS]; ranks.len()];
        for_each_value(&mut |column, value| {
            let (prefix, digit) = split(value, shift);
            for at in by_column.get(column).into_iter().flatten() {
                if found[*at].0 == prefix {
                    counts[*at][digit] += 1;
                }
            }
        });
        for ((prefix, left), counts) in found.iter_mut().zip(&counts) {
            let mut digit = 0;
            while digit + 1 < counts.len() && *left >= counts[digit] {
                *left -= counts[digit];
                digit += 1;
            }
            *prefix = *prefix << BITS | digit as u64;
        }
    }
    found.into_iter().map(|(value, _)| value).collect()
}

/// Returns the pair of numbers at a rank, from 0, among pairs in sorted order; `None` past the end.
/// `for_each_value` is as for [`select_ranks`]. Candidates are kept in memory once there are at
/// most `max_kept` of them.
pub fn select_nth_pair(
    rank: u64,
    max_kept: usize,
    for_each_value: impl Fn(&mut dyn FnMut([u64; 2])),
) -> Option<[u64; 2]> {
    let (mut count, mut candidates) = (0_u64, Vec::new());
    for_each_value(&mut |pair| {
        count += 1;
        if candidates.len() < max_kept {
            candidates.push(pair);
        }
    });
    if rank >= count {
        return None;
    }
    if candidates.len() as u64 == count {
        return Some(*candidates.select_nth_unstable(rank as usize).1);
    }
    let firsts = |visit: &mut dyn FnMut(usize, u64)| for_each_value(&mut |pair| visit(0, pair[0]));
    let first = *select_ranks(&[(0, rank)], u64::MAX, firsts).first()?;
    let mut before = 0;
    for_each_value(&mut |pair| before += u64::from(pair[0] < first));
    let seconds = |visit: &mut dyn FnMut(usize, u64)| {
        for_each_value(&mut |pair| {
            if pair[0] == first {
                visit(0, pair[1]);
            }
        });
    };
    Some([first, *select_ranks(&[(0, rank - before)], u64::MAX, seconds).first()?])
}

/// Splits a value at `shift` into the bits above its digit and the digit.
#[inline]
fn split(value: u64, shift: u32) -> (u64, usize) {
    let above = value >> shift;
    (above >> BITS, (above & ((1 << BITS) - 1)) as usize)
}

/// Returns the rank, from 0, of the quantile `share` (0 to 1) among `count` sorted values.
pub fn nearest_rank(count: u64, share: f64) -> u64 {
    ((count as f64 * share).ceil() as u64).clamp(1, count.max(1)) - 1
}

/// A set of bits with a fixed number of bits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BitSet(Vec<u64>);

impl BitSet {
    /// Creates a set of `count` bits, all clear.
    pub fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// Returns `true` if the bit at `index` of the set is set; `false` past the end.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// Sets the bit at an index of the set.
    ///
    /// # Panics
    /// If the bit is past the end.
    #[inline]
    pub fn set(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    /// Returns the number of bits of the set that are set.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nth_pair_matches_sorting_at_any_limit(
            pairs in prop::collection::vec([prop_oneof![0u64..4, any::<u64>()], prop_oneof![0u64..4, any::<u64>()]], 0..60),
            rank in 0u64..64,
            few in 0usize..70,
        ) {
            let mut sorted = pairs.clone();
            sorted.sort_unstable();
            let found = select_nth_pair(rank, few, |visit| pairs.iter().for_each(|pair| visit(*pair)));
            prop_assert_eq!(found, sorted.get(rank as usize).copied());
        }
    }

    #[test]
    fn bit_set_sets_single_bits() {
        let mut bits = BitSet::new(130);
        [0, 63, 64, 129].into_iter().for_each(|index| bits.set(index));
        assert_eq!((0..200).filter(|index| bits.get(*index)).collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert_eq!(bits.count(), 4);
    }
}
