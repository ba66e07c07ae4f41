//! From an order's id to its node: a hash table of cache lines, all of it set aside at the start.
//!
//! A line has room for eight ids. One that finds its line full goes to the next that is not, and
//! the lines that it has passed count it: a search ends at a line that nobody has passed. So no gap
//! has to be closed and nothing moves when an id is removed, and no branch depends on how many
//! others are near. Ids that follow each other share a line by fours, so that a stream of new ids
//! touches few.

/// Ids in a line.
const PLACES: usize = 8;
/// How many times as many places as ids there are, at least: lines are half full on average and few
/// are passed.
const ROOM: usize = 2;
/// Ids that share a line, as a power of two.
const SHARE: u32 = 2;

/// A line: 16 bits of each id's hash, then the nodes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line {
    /// Four in a word; the upper bit of each says that the place is taken.
    tags: [u64; 2],
    slots: [u32; PLACES],
    /// How many of those that passed this line are in others.
    passed: u32,
}

const EMPTY: Line = Line { tags: [0; 2], slots: [0; PLACES], passed: 0 };

/// The lowest bit of each of a word's four tags, and the highest.
const LOW: u64 = 0x0001_0001_0001_0001;
const HIGH: u64 = LOW << 15;

/// Places as a set of bits: bit 16 n + h is place 4 h + n.
#[derive(Clone, Copy)]
struct Places(u64);

impl Places {
    /// From two words with the highest bit of a tag set for each place that is meant.
    #[inline]
    fn new(words: [u64; 2]) -> Self {
        Places(words[0] >> 15 | words[1] >> 14)
    }
}

impl Iterator for Places {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        let bit = self.0.trailing_zeros();
        if bit == 64 {
            return None;
        }
        self.0 &= self.0 - 1;
        Some((bit & 1) as usize * 4 + (bit >> 4) as usize)
    }
}

impl Line {
    /// The places that have this tag; with one of them there may be others that do not. The trick
    /// is in "Bit Twiddling Hacks" under "Determine if a word has a byte equal to n".
    #[inline]
    fn with(&self, tag: u64) -> Places {
        Places::new(self.tags.map(|word| {
            let zero_where_equal = word ^ tag.wrapping_mul(LOW);
            zero_where_equal.wrapping_sub(LOW) & !zero_where_equal & HIGH
        }))
    }

    /// The places that are not taken.
    #[inline]
    fn free(&self) -> Places {
        Places::new(self.tags.map(|word| !word & HIGH))
    }

    /// Puts a tag where there is none, or takes one away.
    #[inline]
    fn flip(&mut self, place: usize, tag: u64) {
        self.tags[place / 4 % 2] ^= tag << (place % 4 * 16);
    }

    #[inline]
    fn get(&self, tag: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.with(tag).map(|place| self.slots[place % PLACES]).find(|&slot| is(slot))
    }

    /// Whether there was a place for it.
    #[inline]
    fn insert(&mut self, tag: u64, slot: u32) -> bool {
        let Some(place) = self.free().next() else { return false };
        self.flip(place, tag);
        self.slots[place % PLACES] = slot;
        true
    }

    /// Whether it was here. A place whose node is another's may only seem to have the tag; the
    /// node's own has it.
    #[inline]
    fn remove(&mut self, tag: u64, slot: u32) -> bool {
        let Some(place) = self.with(tag).find(|&place| self.slots[place % PLACES] == slot) else {
            return false;
        };
        self.flip(place, tag);
        true
    }
}

/// The index.
#[derive(Debug)]
pub(crate) struct Index {
    lines: Vec<Line>,
}

impl Index {
    /// An index for so many ids.
    pub(crate) fn new(capacity: usize) -> Self {
        Index { lines: vec![EMPTY; (ROOM * capacity).div_ceil(PLACES)] }
    }

    /// An id's line and its tag.
    #[inline]
    fn home(&self, id: u64) -> (usize, u64) {
        let product = u128::from(id >> SHARE) * 0x9e37_79b9_7f4a_7c15;
        let mixed = (product >> 64) as u64 ^ product as u64;
        let line = ((mixed >> 32) * self.lines.len() as u64) >> 32;
        (line as usize, 1 << 15 | mixed >> 17 & 0x1fff << SHARE | id & ((1 << SHARE) - 1))
    }

    #[inline]
    fn after(&self, line: usize) -> usize {
        if line + 1 == self.lines.len() { 0 } else { line + 1 }
    }

    /// The node of that id; `is` says whether a node has it.
    #[inline]
    pub(crate) fn get(&self, id: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let (line, tag) = self.home(id);
        let here = &self.lines[line];
        match here.get(tag, &is) {
            None if here.passed > 0 => self.get_beyond(line, tag, is),
            found => found,
        }
    }

    #[inline(never)]
    fn get_beyond(&self, mut line: usize, tag: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        // Once around at most: every line may have been passed by somebody.
        for _ in 1..self.lines.len() {
            line = self.after(line);
            let here = &self.lines[line];
            let found = here.get(tag, &is);
            if found.is_some() || here.passed == 0 {
                return found;
            }
        }
        None
    }

    /// Reads where an id would be, so that it is near when it is needed; what it returns means
    /// nothing.
    #[inline]
    pub(crate) fn touch(&self, id: u64) -> u32 {
        self.lines[self.home(id).0].passed
    }

    /// Adds an id that is not in it. There is always room: it is never more than half full.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64, slot: u32) {
        let (line, tag) = self.home(id);
        if !self.lines[line].insert(tag, slot) {
            self.insert_beyond(line, tag, slot);
        }
    }

    #[inline(never)]
    fn insert_beyond(&mut self, mut line: usize, tag: u64, slot: u32) {
        loop {
            self.lines[line].passed += 1;
            line = self.after(line);
            if self.lines[line].insert(tag, slot) {
                return;
            }
        }
    }

    /// Removes the entry of an id that is in it.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64, slot: u32) {
        let (line, tag) = self.home(id);
        if !self.lines[line].remove(tag, slot) {
            self.remove_beyond(line, tag, slot);
        }
    }

    #[inline(never)]
    fn remove_beyond(&mut self, mut line: usize, tag: u64, slot: u32) {
        loop {
            let here = &mut self.lines[line];
            if here.passed == 0 {
                return debug_assert!(false, "an open order is in the index");
            }
            here.passed -= 1;
            line = self.after(line);
            if self.lines[line].remove(tag, slot) {
                return;
            }
        }
    }

    /// How many ids are in it.
    pub(crate) fn len(&self) -> usize {
        self.lines.iter().map(|line| PLACES - line.free().count()).sum()
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
        agrees(|n| n << 58);
        agrees(|n| u64::MAX - n * 0x1_0000_0001);
        agrees(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    #[test]
    fn few_ids_are_far_from_home_and_nothing_stays_passed() {
        let capacity = 10_000;
        let mut index = Index::new(capacity);
        let all = |from: u64| (from..from + capacity as u64).zip(0..);
        all(1_000_000).for_each(|(id, slot)| index.insert(id, slot));
        let passed: u32 = index.lines.iter().map(|line| line.passed).sum();
        assert!(passed < 2_500, "{passed} lines passed");
        for round in 0..20 {
            let from = 1_000_000 + round * capacity as u64;
            for ((old, slot), (new, _)) in all(from).zip(all(from + capacity as u64)) {
                index.remove(old, slot);
                index.insert(new, slot);
            }
        }
        assert_eq!(index.len(), capacity);
        all(1_200_000).for_each(|(id, slot)| index.remove(id, slot));
        assert!(index.lines.iter().all(|line| line.passed == 0 && line.tags == [0; 2]));
    }
}
