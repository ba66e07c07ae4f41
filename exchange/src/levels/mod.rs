//! The price levels of one list of a book, in order of their keys: which prices have a queue, and
//! which queue.
//!
//! Measured with the loads of `cargo bench -p exchange --bench engine`, nanoseconds a command,
//! median of 9 to 41 rounds that alternated, on a busy machine of two cores (wall time, so that
//! only the columns of a row can be compared; the trie remembered one leaf then):
//!
//! | load | sorted vector | window of 4,096 ticks with bitmap, sorted vector behind it | trie |
//! |---|---|---|---|
//! | mixed, 1,000 orders, ±300 ticks | 122 | 83 | 96 |
//! | mixed, 10,000 orders, ±20,000 ticks | 842 | 425 | 133 |
//! | recorded flow | 75 | 43 | 53 |
//! | new best bid 500,000 ticks above 4,000 levels, and its cancel | 50 | 520,000 | 35 |
//!
//! The window was some 15 % faster while everything stayed in it. Remembering sixteen leaves has
//! taken as much from the trie since (49 to 43 ns of processor time for the first row). When the
//! best price leaves it, it has to be moved with all that is in it, which a single order far away
//! can force. The trie has no such case, and it needs no guess at the width of a market: it is what
//! [`Exchange`](crate::Exchange) uses. The sorted vector is the one that is obviously right: tests
//! lay the trie beside it.

mod sorted;
mod trie;

pub use sorted::Sorted;
pub use trie::Trie;

/// Price levels by key. A key is a number of ticks from the end of the band at which the best price
/// would be, so the best level is the one with the lowest key.
pub trait Levels: Sized + std::fmt::Debug {
    /// What the lists of an exchange share.
    type Pool: std::fmt::Debug;

    /// Sets aside room for `levels` levels at keys below `keys`, in `lists` lists together.
    fn pool(lists: usize, levels: usize, keys: u64) -> Self::Pool;

    /// An empty list with room for `levels` levels at keys below `keys`.
    fn new(levels: usize, keys: u64) -> Self;

    /// The queue at a key.
    fn get(&self, pool: &Self::Pool, key: u64) -> Option<u32>;

    /// Adds a queue at a key that has none.
    fn insert(&mut self, pool: &mut Self::Pool, key: u64, queue: u32);

    /// Removes the queue at a key that has one.
    fn remove(&mut self, pool: &mut Self::Pool, key: u64);

    /// The queue at the lowest key that is `key` or above.
    fn from(&self, pool: &Self::Pool, key: u64) -> Option<u32>;

    /// The queue at the highest key below `key`.
    fn before(&self, pool: &Self::Pool, key: u64) -> Option<u32>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// The same operations on a structure and on a `BTreeMap`.
    fn agrees<L: Levels>(keys: u64, spread: impl Fn(u64) -> u64) {
        let mut pool = L::pool(2, 60, keys);
        let mut lists = [L::new(60, keys), L::new(60, keys)];
        let mut maps: [BTreeMap<u64, u32>; 2] = Default::default();
        let mut state = 3u64;
        for step in 0..60_000u32 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (which, key) = ((state >> 62 & 1) as usize, spread(state >> 8 & 0xffff) % keys);
            let (list, map) = (&mut lists[which], &mut maps[which]);
            assert_eq!(list.get(&pool, key), map.get(&key).copied(), "get {key}, step {step}");
            if map.remove(&key).is_some() {
                list.remove(&mut pool, key);
            } else if map.len() < 30 {
                map.insert(key, step);
                list.insert(&mut pool, key, step);
            } else if let Some((first, _)) = map.pop_first() {
                list.remove(&mut pool, first);
            }
            let other = spread(state >> 24 & 0xffff) % keys;
            for key in [0, key, key + 1, other, keys] {
                let expected = map.range(key..).next().map(|entry| *entry.1);
                assert_eq!(list.from(&pool, key), expected, "from {key}, step {step}");
                let expected = map.range(..key).next_back().map(|entry| *entry.1);
                assert_eq!(list.before(&pool, key), expected, "before {key}, step {step}");
            }
        }
    }

    fn agrees_everywhere<L: Levels>() {
        agrees::<L>(1, |n| n);
        agrees::<L>(64, |n| n);
        agrees::<L>(65, |n| n);
        agrees::<L>(5_000, |n| n);
        agrees::<L>(1 << 40, |n| n);
        agrees::<L>(1 << 40, |n| n * 3_000);
        agrees::<L>(1 << 62, |n| n << 46 | n & 3);
        agrees::<L>(1 << 62, |n| (1 << 61) + n % 200);
    }

    #[test]
    fn a_sorted_vector_agrees_with_a_map() {
        agrees_everywhere::<Sorted>();
    }

    #[test]
    fn a_trie_agrees_with_a_map() {
        agrees_everywhere::<Trie>();
    }
}
