//! The price levels of one list of a book, in order of their keys: which prices have a queue, and which queue.

mod sorted;

pub use sorted::Sorted;

/// Price levels by key. A key is a number of ticks from the end of the band at which the best price would be, so the best
/// level is the one with the lowest key.
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
