//! A sorted vector, the best level last: what happens near the best price moves little.

use super::Levels;
use std::cmp::Reverse;

/// Price levels in a sorted vector.
#[derive(Debug)]
pub struct Sorted {
    /// Keys and queues, falling.
    entries: Vec<(u64, u32)>,
}

impl Sorted {
    fn find(&self, key: u64) -> Result<usize, usize> {
        self.entries.binary_search_by_key(&Reverse(key), |entry| Reverse(entry.0))
    }
}

impl Levels for Sorted {
    type Pool = ();

    fn pool(_lists: usize, _levels: usize, _keys: u64) -> Self::Pool {}

    fn new(levels: usize, _keys: u64) -> Self {
        let mut entries = vec![(u64::MAX, u32::MAX); levels];
        entries.clear();
        Sorted { entries }
    }

    fn get(&self, _pool: &(), key: u64) -> Option<u32> {
        self.find(key).ok().map(|place| self.entries[place].1)
    }

    fn insert(&mut self, _pool: &mut (), key: u64, queue: u32) {
        let place = self.find(key).unwrap_or_else(|place| place);
        self.entries.insert(place, (key, queue));
    }

    fn remove(&mut self, _pool: &mut (), key: u64) {
        if let Ok(place) = self.find(key) {
            self.entries.remove(place);
        }
    }

    fn from(&self, _pool: &(), key: u64) -> Option<u32> {
        let place = self.find(key).map_or_else(|place| place, |place| place + 1);
        place.checked_sub(1).map(|place| self.entries[place].1)
    }

    fn before(&self, _pool: &(), key: u64) -> Option<u32> {
        let place = self.find(key).map_or_else(|place| place, |place| place + 1);
        self.entries.get(place).map(|entry| entry.1)
    }
}
