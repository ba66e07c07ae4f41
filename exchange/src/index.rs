//! From an order's id to its node: open addressing with linear probing, no tombstones, all of it set aside at the start.
//!
//! Eight ids that follow each other share a cache line, so that a stream of new ids touches few lines; the groups of eight are
//! scattered by a multiplication. An entry holds 32 bits of the hash: they tell most strangers apart without a look at their nodes, and
//! say where the entry would like to be, which is all that closing a gap needs to know.

use crate::arena::NONE;

#[derive(Clone, Copy, Debug)]
struct Entry {
    tag: u32,
    slot: u32,
}

const EMPTY: Entry = Entry { tag: 0, slot: NONE };

/// The index.
#[derive(Debug)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    /// 32 less the number of bits of a place.
    shift: u32,
    mask: usize,
}

impl Index {
    /// An index for so many ids, at most half full.
    pub(crate) fn new(capacity: usize) -> Self {
        let bits = (2 * capacity).next_power_of_two().trailing_zeros().max(3);
        Index { entries: vec![EMPTY; 1 << bits], shift: 32 - bits, mask: (1 << bits) - 1 }
    }

    /// 29 bits of the hash of the group, above 3 bits of the place in it.
    fn tag(id: u64) -> u32 {
        let mut mixed = (id >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^= mixed >> 32;
        mixed = mixed.wrapping_mul(0xd6e8_feb8_6659_fd93);
        ((mixed >> 35) as u32) << 3 | (id as u32 & 7)
    }

    /// Where an entry would like to be: the upper bits of its group's hash choose the line.
    fn home(&self, tag: u32) -> usize {
        (((tag >> self.shift) & !7) | (tag & 7)) as usize & self.mask
    }

    /// The node of that id; `is` says whether a node has it.
    #[inline]
    pub(crate) fn get(&self, id: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = Self::tag(id);
        let mut place = self.home(tag);
        loop {
            let entry = self.entries[place];
            if entry.slot == NONE {
                return None;
            }
            if entry.tag == tag && is(entry.slot) {
                return Some(entry.slot);
            }
            place = (place + 1) & self.mask;
        }
    }

    /// Reads where an id would be, so that it is near when it is needed; what it returns means nothing.
    #[inline]
    pub(crate) fn touch(&self, id: u64) -> u32 {
        self.entries[self.home(Self::tag(id))].slot
    }

    /// Adds an id that is not in it. There is always room: it is never more than half full.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64, slot: u32) {
        let tag = Self::tag(id);
        let mut place = self.home(tag);
        while self.entries[place].slot != NONE {
            place = (place + 1) & self.mask;
        }
        self.entries[place] = Entry { tag, slot };
    }

    /// Removes the entry of an id that is in it, and closes the gap.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64, slot: u32) {
        let mut gap = self.home(Self::tag(id));
        while self.entries[gap].slot != slot {
            if self.entries[gap].slot == NONE {
                debug_assert!(false, "an open order is in the index");
                return;
            }
            gap = (gap + 1) & self.mask;
        }
        let mut place = gap;
        loop {
            place = (place + 1) & self.mask;
            let entry = self.entries[place];
            if entry.slot == NONE {
                break;
            }
            // It may move into the gap unless its home lies behind the gap.
            let from_home = place.wrapping_sub(self.home(entry.tag)) & self.mask;
            let from_gap = place.wrapping_sub(gap) & self.mask;
            if from_home >= from_gap {
                self.entries[gap] = entry;
                gap = place;
            }
        }
        self.entries[gap] = EMPTY;
    }

    /// How many ids are in it.
    pub(crate) fn len(&self) -> usize {
        self.entries.iter().filter(|entry| entry.slot != NONE).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// The same operations on the index and on a `HashMap`.
    fn agrees(ids: impl Fn(u64) -> u64) {
        let capacity = 256;
        let mut index = Index::new(capacity);
        let mut map: HashMap<u64, u32> = HashMap::new();
        let mut by_slot = vec![0; capacity];
        let mut state = 1u64;
        for step in 0..40_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let id = ids((state >> 33) % 400);
            let slot = index.get(id, |slot| by_slot[slot as usize] == id);
            assert_eq!(slot, map.get(&id).copied(), "step {step}");
            if let Some(slot) = slot {
                index.remove(id, slot);
                map.remove(&id);
            } else if map.len() < capacity {
                let free = (0..).find(|slot| !map.values().any(|used| used == slot)).expect("one");
                by_slot[free as usize] = id;
                index.insert(id, free);
                map.insert(id, free);
            }
            if step % 1000 == 0 {
                assert_eq!(index.len(), map.len());
                for (&id, &slot) in &map {
                    assert_eq!(index.get(id, |slot| by_slot[slot as usize] == id), Some(slot));
                }
            }
        }
    }

    #[test]
    fn it_agrees_with_a_map_on_ids_of_every_kind() {
        agrees(|n| n);
        agrees(|n| n << 3);
        agrees(|n| n << 56);
        agrees(|n| u64::MAX - n * 0x1_0000_0001);
        agrees(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    #[test]
    fn no_id_is_far_from_its_home_when_ids_follow_each_other() {
        let mut index = Index::new(10_000);
        (0..10_000).for_each(|n| index.insert(1_000_000 + n, n as u32));
        let far = |(place, entry): (usize, &Entry)| {
            if entry.slot == NONE { 0 } else { place.wrapping_sub(index.home(entry.tag)) & index.mask }
        };
        let worst = index.entries.iter().enumerate().map(far).max().expect("entries");
        assert!(worst < 200, "{worst} places from home");
    }
}
