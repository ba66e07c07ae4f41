//! The index from order ids to nodes: a hash table whose buckets are cache lines, allocated at the
//! start.
//!
//! A bucket holds eight ids. An id whose bucket is full goes to the next one with a free slot, and
//! every bucket that it passes counts it: a search ends at a bucket with a count of 0. A removal
//! therefore leaves no gap to close and moves nothing, and no branch depends on how full the
//! neighborhood is. Four consecutive ids share a bucket, so that a stream of new ids touches few.
//!
//! The memory in use follows the number of ids: the index has tables of 64 buckets and of each
//! double up to the capacity. When a table is half full the next larger one takes over, and each
//! insertion moves one more of the old table's buckets to it.

/// Ids in a bucket.
const BUCKET_SLOTS: usize = 8;
/// Minimum slots per id: buckets are at most half full on average, and few overflow.
const SLOTS_PER_ID: usize = 2;
/// Number of low bits that ids of one bucket may differ in.
const NEIGHBOR_BITS: u32 = 2;

/// One cache line of the table: a 16-bit tag for each id, then the nodes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Bucket {
    /// Four tags in a word. The highest bit of a tag is set if its slot is in use.
    tags: [u64; 2],
    slots: [u32; BUCKET_SLOTS],
    /// Number of ids that passed this bucket because it was full, and are in later ones.
    overflowed: u32,
}

const EMPTY: Bucket = Bucket { tags: [0; 2], slots: [0; BUCKET_SLOTS], overflowed: 0 };

/// The lowest bit of each of a word's four tags, and the highest.
const LOW: u64 = 0x0001_0001_0001_0001;
const HIGH: u64 = LOW << 15;

/// A set of slots: bit 16 n + h stands for slot 4 h + n.
#[derive(Clone, Copy)]
struct SlotSet(u64);

impl SlotSet {
    /// Creates a set from two words with the highest bit of a tag set for each slot in it.
    #[inline]
    fn new(words: [u64; 2]) -> Self {
        SlotSet(words[0] >> 15 | words[1] >> 14)
    }
}

impl Iterator for SlotSet {
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

impl Bucket {
    /// Returns the slots with a tag, and possibly others if there is one: see "Determine if a word
    /// has a byte equal to n" in "Bit Twiddling Hacks".
    #[inline]
    fn matches(&self, tag: u64) -> SlotSet {
        SlotSet::new(self.tags.map(|word| {
            let zero_where_equal = word ^ tag.wrapping_mul(LOW);
            zero_where_equal.wrapping_sub(LOW) & !zero_where_equal & HIGH
        }))
    }

    /// Returns the free slots.
    #[inline]
    fn free(&self) -> SlotSet {
        SlotSet::new(self.tags.map(|word| !word & HIGH))
    }

    /// Returns the slots in use.
    #[inline]
    fn used(&self) -> SlotSet {
        SlotSet::new(self.tags.map(|word| word & HIGH))
    }

    /// Sets the tag of a free slot, or clears it.
    #[inline]
    fn flip(&mut self, position: usize, tag: u64) {
        self.tags[position / 4 % 2] ^= tag << (position % 4 * 16);
    }

    /// Returns the position of a slot with a tag that `is` accepts.
    #[inline]
    fn find(&self, tag: u64, is: impl Fn(u32) -> bool) -> Option<usize> {
        self.matches(tag).find(|&position| is(self.slots[position % BUCKET_SLOTS]))
    }

    /// Inserts an entry. Returns `false` if the bucket is full.
    #[inline]
    fn try_insert(&mut self, tag: u64, slot: u32) -> bool {
        let Some(position) = self.free().next() else { return false };
        self.flip(position, tag);
        self.slots[position % BUCKET_SLOTS] = slot;
        true
    }
}

/// Where an id is sought: the first bucket, and the tag.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Home {
    bucket: usize,
    tag: u64,
}

/// Where an id is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    home: Home,
    bucket: usize,
    position: usize,
}

/// A hash table: some of the index's buckets.
#[derive(Clone, Copy, Debug)]
struct Table {
    start: usize,
    len: usize,
}

impl Table {
    /// Returns where an id is sought.
    #[inline]
    fn home(self, id: u64) -> Home {
        let product = u128::from(id >> NEIGHBOR_BITS) * 0x9e37_79b9_7f4a_7c15;
        let mixed = (product >> 64) as u64 ^ product as u64;
        let bucket = self.start + (((mixed >> 32) * self.len as u64) >> 32) as usize;
        let tag = 1 << 15 | mixed >> 17 & 0x1fff << NEIGHBOR_BITS | id & ((1 << NEIGHBOR_BITS) - 1);
        Home { bucket, tag }
    }

    #[inline]
    fn next_bucket(self, bucket: usize) -> usize {
        if bucket + 1 == self.start + self.len { self.start } else { bucket + 1 }
    }
}

/// Buckets of the smallest table.
const SMALLEST_TABLE: usize = 64;

/// An index from order ids to nodes.
#[derive(Debug)]
pub(crate) struct Index {
    buckets: Vec<Bucket>,
    /// The table of new ids.
    table: Table,
    /// The previous table, from which ids are moved; empty if it has none.
    old: Table,
    /// Number of the old table's buckets that were not moved yet: the first ones.
    unmoved: usize,
    /// Number of ids.
    used: usize,
}

impl Index {
    /// Creates an index for `capacity` ids.
    pub(crate) fn new(capacity: usize) -> Self {
        let largest = (SLOTS_PER_ID * capacity).div_ceil(BUCKET_SLOTS).next_power_of_two();
        let table = Table { start: 0, len: largest.min(SMALLEST_TABLE) };
        let buckets = vec![EMPTY; 2 * largest - table.len];
        Index { buckets, table, old: Table { start: 0, len: 0 }, unmoved: 0, used: 0 }
    }

    /// Returns where an id is sought, and is to be inserted if it is not there.
    #[inline]
    pub(crate) fn home(&self, id: u64) -> Home {
        self.table.home(id)
    }

    /// Finds an id. `is` tells whether a node has it.
    #[inline]
    pub(crate) fn find(&self, id: u64, home: Home, is: impl Fn(u32) -> bool) -> Option<Entry> {
        let found = self.find_in(self.table, home, &is);
        if found.is_none() && self.old.len > 0 {
            return self.find_in(self.old, self.old.home(id), is);
        }
        found
    }

    #[inline]
    fn find_in(&self, table: Table, home: Home, is: impl Fn(u32) -> bool) -> Option<Entry> {
        let here = &self.buckets[home.bucket];
        match here.find(home.tag, &is) {
            Some(position) => Some(Entry { home, bucket: home.bucket, position }),
            None if here.overflowed > 0 => self.find_beyond(table, home, is),
            None => None,
        }
    }

    #[inline(never)]
    fn find_beyond(&self, table: Table, home: Home, is: impl Fn(u32) -> bool) -> Option<Entry> {
        let mut bucket = home.bucket;
        // At most one round: every bucket may have overflowed.
        for _ in 1..table.len {
            bucket = table.next_bucket(bucket);
            let here = &self.buckets[bucket];
            if let Some(position) = here.find(home.tag, &is) {
                return Some(Entry { home, bucket, position });
            }
            if here.overflowed == 0 {
                return None;
            }
        }
        None
    }

    /// Returns the node of an entry.
    #[inline]
    pub(crate) fn slot(&self, entry: Entry) -> u32 {
        self.buckets[entry.bucket].slots[entry.position % BUCKET_SLOTS]
    }

    /// Reads the bucket of an id to bring it into the cache. The returned value has no meaning.
    #[inline]
    pub(crate) fn prefetch(&self, id: u64) -> u32 {
        self.buckets[self.home(id).bucket].overflowed
    }

    /// Inserts an id that is not in the index, whose home was computed after the last insertion.
    /// `id_of` returns a node's id. There is always a free slot: at most half are in use.
    #[inline]
    pub(crate) fn insert(&mut self, home: Home, slot: u32, id_of: impl Fn(u32) -> u64) {
        self.insert_in_table(home, slot);
        self.used += 1;
        if self.used * SLOTS_PER_ID > self.table.len * BUCKET_SLOTS || self.old.len > 0 {
            self.grow(id_of);
        }
    }

    #[inline]
    fn insert_in_table(&mut self, home: Home, slot: u32) {
        if !self.buckets[home.bucket].try_insert(home.tag, slot) {
            self.insert_beyond(home.bucket, home.tag, slot);
        }
    }

    #[inline(never)]
    fn insert_beyond(&mut self, mut bucket: usize, tag: u64, slot: u32) {
        loop {
            self.buckets[bucket].overflowed += 1;
            bucket = self.table.next_bucket(bucket);
            if self.buckets[bucket].try_insert(tag, slot) {
                return;
            }
        }
    }

    /// Moves the last bucket of the old table; without one, begins to move the table that is in use.
    #[cold]
    fn grow(&mut self, id_of: impl Fn(u32) -> u64) {
        if self.old.len == 0 {
            let next = Table { start: self.table.start + self.table.len, len: 2 * self.table.len };
            if next.start < self.buckets.len() {
                self.old = std::mem::replace(&mut self.table, next);
                self.unmoved = self.old.len;
            }
            return;
        }
        self.unmoved -= 1;
        let bucket = self.old.start + self.unmoved;
        let here = self.buckets[bucket];
        for position in here.used() {
            let slot = here.slots[position % BUCKET_SLOTS];
            let id = id_of(slot);
            self.unlink(self.old, Entry { home: self.old.home(id), bucket, position });
            self.insert_in_table(self.table.home(id), slot);
        }
        if self.unmoved == 0 {
            self.old.len = 0;
        }
    }

    /// Removes an entry. Those of other ids stay where they are.
    #[inline]
    pub(crate) fn remove(&mut self, entry: Entry) {
        let in_old = entry.home.bucket < self.table.start;
        self.unlink(if in_old { self.old } else { self.table }, entry);
        self.used -= 1;
    }

    #[inline]
    fn unlink(&mut self, table: Table, entry: Entry) {
        let Entry { home, bucket, position } = entry;
        self.buckets[bucket].flip(position, home.tag);
        let mut passed = home.bucket;
        while passed != bucket {
            self.buckets[passed].overflowed -= 1;
            passed = table.next_bucket(passed);
        }
    }

    /// Returns the number of ids, by counting.
    pub(crate) fn len(&self) -> usize {
        self.buckets.iter().map(|bucket| BUCKET_SLOTS - bucket.free().count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Applies the same operations to the index and to a `HashMap`.
    fn check_against_map(ids: impl Fn(u64) -> u64) {
        let capacity = 256;
        let mut index = Index::new(capacity);
        let mut map: HashMap<u64, u32> = HashMap::new();
        let mut by_slot = vec![0; capacity];
        let mut state = 1u64;
        for step in 0..40_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let id = ids((state >> 33) % 400);
            let entry = index.find(id, index.home(id), |slot| by_slot[slot as usize] == id);
            assert_eq!(entry.map(|entry| index.slot(entry)), map.get(&id).copied(), "step {step}");
            if let Some(entry) = entry {
                index.remove(entry);
                map.remove(&id);
            } else if map.len() < capacity {
                let free = (0..).find(|slot| !map.values().any(|used| used == slot)).expect("one");
                by_slot[free as usize] = id;
                index.insert(index.home(id), free, |slot| by_slot[slot as usize]);
                map.insert(id, free);
            }
            if step % 1000 == 0 {
                assert_eq!(index.len(), map.len());
                for (&id, &slot) in &map {
                    let entry = index.find(id, index.home(id), |slot| by_slot[slot as usize] == id);
                    assert_eq!(entry.map(|entry| index.slot(entry)), Some(slot));
                }
            }
        }
    }

    #[test]
    fn index_agrees_with_a_map() {
        check_against_map(|n| n);
        check_against_map(|n| n << 3);
        check_against_map(|n| n << 56);
        check_against_map(|n| n << 58);
        check_against_map(|n| u64::MAX - n * 0x1_0000_0001);
        check_against_map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }

    #[test]
    fn few_ids_overflow_and_overflow_counts_return_to_zero() {
        let capacity = 10_000;
        let mut index = Index::new(capacity);
        let all = |from: u64| (from..from + capacity as u64).zip(0..);
        let mut by_slot = vec![0; capacity];
        let insert = |index: &mut Index, by_slot: &mut Vec<u64>, id: u64, slot: u32| {
            by_slot[slot as usize] = id;
            index.insert(index.home(id), slot, |slot| by_slot[slot as usize]);
        };
        let remove = |index: &mut Index, id, slot| {
            let entry = index.find(id, index.home(id), |found| found == slot);
            index.remove(entry.expect("it was inserted"));
        };
        all(1_000_000).for_each(|(id, slot)| insert(&mut index, &mut by_slot, id, slot));
        let overflowed: u32 = index.buckets.iter().map(|bucket| bucket.overflowed).sum();
        assert!(overflowed < 2_500, "{overflowed} overflows");
        for round in 0..20 {
            let from = 1_000_000 + round * capacity as u64;
            for ((old, slot), (new, _)) in all(from).zip(all(from + capacity as u64)) {
                remove(&mut index, old, slot);
                insert(&mut index, &mut by_slot, new, slot);
            }
        }
        assert_eq!(index.len(), capacity);
        all(1_200_000).for_each(|(id, slot)| remove(&mut index, id, slot));
        assert!(index.buckets.iter().all(|bucket| bucket.overflowed == 0 && bucket.tags == [0; 2]));
    }
}
