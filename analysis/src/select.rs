//! Out-of-core selection of the value at a rank: exact, in several passes.

/// Bits that one pass settles: 65,536 counters a selection.
const BITS: u32 = 16;

/// For each selection, a column and a rank from 0, the value that would stand there if the column
/// were sorted. `each` hands all values to who asks, with their columns, as often as it is called;
/// none is greater than `most`. For a rank that is past the end it is any value.
pub(crate) fn select(
    wanted: &[(usize, u64)],
    most: u64,
    each: impl Fn(&mut dyn FnMut(usize, u64)),
) -> Vec<u64> {
    let columns = wanted.iter().map(|(column, _)| column + 1).max().unwrap_or(0);
    let of_column = |column| (0..wanted.len()).filter(|at| wanted[*at].0 == column).collect();
    let by_column: Vec<Vec<usize>> = (0..columns).map(of_column).collect();
    let mut found: Vec<(u64, u64)> = wanted.iter().map(|(_, rank)| (0, *rank)).collect();
    let levels = (u64::BITS - most.leading_zeros()).div_ceil(BITS).max(1);
    for level in (0..levels).rev() {
        let shift = level * BITS;
        let mut counts = vec![vec![0u64; 1 << BITS]; wanted.len()];
        each(&mut |column, value| {
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

/// The pair that would stand at that rank, from 0, if all of them were sorted; `None` past the end.
/// `each` as for [`select`]. Keeps them if they are no more than `few`.
pub(crate) fn select_pair(
    rank: u64,
    few: usize,
    each: impl Fn(&mut dyn FnMut([u64; 2])),
) -> Option<[u64; 2]> {
    let (mut count, mut kept) = (0_u64, Vec::new());
    each(&mut |pair| {
        count += 1;
        if kept.len() < few {
            kept.push(pair);
        }
    });
    if rank >= count {
        return None;
    }
    if kept.len() as u64 == count {
        return Some(*kept.select_nth_unstable(rank as usize).1);
    }
    let firsts = |hear: &mut dyn FnMut(usize, u64)| each(&mut |pair| hear(0, pair[0]));
    let first = *select(&[(0, rank)], u64::MAX, firsts).first()?;
    let mut before = 0;
    each(&mut |pair| before += u64::from(pair[0] < first));
    let seconds = |hear: &mut dyn FnMut(usize, u64)| {
        each(&mut |pair| {
            if pair[0] == first {
                hear(0, pair[1]);
            }
        });
    };
    Some([first, *select(&[(0, rank - before)], u64::MAX, seconds).first()?])
}

/// The digit of a value at that shift, and what stands above it.
#[inline]
fn split(value: u64, shift: u32) -> (u64, usize) {
    let above = value >> shift;
    (above >> BITS, (above & ((1 << BITS) - 1)) as usize)
}

/// The rank, from 0, of the least value that this share of so many does not exceed.
pub(crate) fn rank(count: u64, share: f64) -> u64 {
    ((count as f64 * share).ceil() as u64).clamp(1, count.max(1)) - 1
}

/// A bit for each of many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// So many, none of them set.
    pub fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    /// Whether that one is set; not where there is none.
    #[inline]
    pub fn get(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }

    /// Sets that one.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn set(&mut self, place: usize) {
        self.0[place / 64] |= 1 << (place % 64);
    }

    /// How many are set.
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
        fn a_pair_is_found_whether_all_are_kept_or_not(
            pairs in prop::collection::vec([prop_oneof![0u64..4, any::<u64>()], prop_oneof![0u64..4, any::<u64>()]], 0..60),
            rank in 0u64..64,
            few in 0usize..70,
        ) {
            let mut sorted = pairs.clone();
            sorted.sort_unstable();
            let found = select_pair(rank, few, |hear| pairs.iter().for_each(|pair| hear(*pair)));
            prop_assert_eq!(found, sorted.get(rank as usize).copied());
        }
    }

    #[test]
    fn bits_are_set_one_by_one() {
        let mut bits = Bits::new(130);
        [0, 63, 64, 129].into_iter().for_each(|place| bits.set(place));
        assert_eq!((0..200).filter(|place| bits.get(*place)).collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert_eq!(bits.count(), 4);
    }
}
