//! Finds an order's place by its id: a hash table whose buckets are half a cache line.
//!
//! A bucket holds four ids. An id whose bucket is full goes to the next one with a free slot, and
//! every bucket that it passes counts it: a search ends at a bucket with a count of 0, and a
//! removal leaves no gap to close. Two consecutive ids share a bucket, so a stream of new ids
//! touches few.
//!
//! The memory in use follows the number of ids: when a table is half full one of double the size
//! takes over, and each insertion moves one more of the old table's buckets to it.

const BUCKET_SLOTS: usize = 4;
/// Minimum slots per id: buckets are at most half full on average, and few overflow.
const SLOTS_PER_ID: usize = 2;
/// Number of low bits that ids of one bucket may differ in.
const NEIGHBOR_BITS: u32 = 1;

/// A bucket of the table: a 16-bit tag for each id, and the nodes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(32))]
struct Bucket {
    /// Four tags. The highest bit of a tag is set if its slot is in use.
    tags: u64,
    slots: [u32; BUCKET_SLOTS],
    /// Number of ids that passed this bucket because it was full, and are in later ones.
    overflowed: u32,
}

const EMPTY: Bucket = Bucket { tags: 0, slots: [0; BUCKET_SLOTS], overflowed: 0 };

/// The lowest bit of each of a word's four tags, and the highest.
const LOW: u64 = 0x0001_0001_0001_0001;
const HIGH: u64 = LOW << 15;

/// A set of slots: the highest bits of their tags.
#[derive(Clone, Copy)]
struct SlotSet(u64);

impl Iterator for SlotSet {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let position = self.0.trailing_zeros() / 16;
        self.0 &= self.0 - 1;
        Some(position as usize)
    }
}

impl Bucket {
    /// Returns the slots with a tag, and possibly others: "Determine if a word has a byte equal to
    /// n".
    #[inline]
    fn matches(&self, tag: u64) -> SlotSet {
        let zero_where_equal = self.tags ^ tag.wrapping_mul(LOW);
        SlotSet(zero_where_equal.wrapping_sub(LOW) & !zero_where_equal & HIGH)
    }

    #[inline]
    fn used(&self) -> SlotSet {
        SlotSet(self.tags & HIGH)
    }

    /// Returns the position of a slot with a tag that `is` accepts.
    #[inline]
    fn find(&self, tag: u64, is: impl Fn(u32) -> bool) -> Option<usize> {
        self.matches(tag).find(|&position| is(self.slots[position % BUCKET_SLOTS]))
    }

    #[inline]
    fn try_insert(&mut self, tag: u64, slot: u32) -> bool {
        let Some(position) = SlotSet(!self.tags & HIGH).next() else { return false };
        // The tag of a free slot is 0.
        self.tags |= tag << (position * 16);
        self.slots[position % BUCKET_SLOTS] = slot;
        true
    }
}

/// The bucket in which the search for an order id begins, and the tag to compare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HomeBucket {
    bucket: usize,
    tag: u64,
}

/// The position of an order id: its first bucket, and the bucket and slot that hold it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    home: u32,
    bucket: u32,
    position: u32,
}

impl Entry {
    #[inline]
    fn new(home: HomeBucket, bucket: usize, position: usize) -> Self {
        Entry { home: home.bucket as u32, bucket: bucket as u32, position: position as u32 }
    }
}

#[derive(Clone, Copy, Debug)]
struct Table {
    start: usize,
    len: usize,
}

impl Table {
    #[inline]
    fn home(self, id: u64) -> HomeBucket {
        let product = u128::from(id >> NEIGHBOR_BITS) * 0x9e37_79b9_7f4a_7c15;
        let mixed = (product >> 64) as u64 ^ product as u64;
        let bucket = self.start + (((mixed >> 32) * self.len as u64) >> 32) as usize;
        let tag = 1 << 15 | mixed >> 17 & 0x3fff << NEIGHBOR_BITS | id & ((1 << NEIGHBOR_BITS) - 1);
        HomeBucket { bucket, tag }
    }

    /// Returns the maximum number of ids: half of the slots.
    fn max_ids(self) -> usize {
        self.len * BUCKET_SLOTS / SLOTS_PER_ID
    }

    #[inline]
    fn next_bucket(self, bucket: usize) -> usize {
        if bucket + 1 == self.start + self.len { self.start } else { bucket + 1 }
    }
}

const SMALLEST_TABLE: usize = 64;

#[derive(Debug)]
pub(crate) struct Index {
    buckets: Vec<Bucket>,
    table: Table,
    /// The previous table, from which ids are moved; empty if it has none.
    old: Table,
    /// Number of the old table's buckets that were not moved yet: the first ones.
    unmoved: usize,
    used: usize,
    /// Maximum number of ids without growth: 0 while the old table is moved.
    grows_above: usize,
}

impl Index {
    pub(crate) fn new(capacity: usize) -> Self {
        let largest = (SLOTS_PER_ID * capacity).div_ceil(BUCKET_SLOTS).next_power_of_two();
        let table = Table { start: 0, len: largest.min(SMALLEST_TABLE) };
        Index {
            buckets: vec![EMPTY; 2 * largest - table.len],
            table,
            old: Table { start: 0, len: 0 },
            unmoved: 0,
            used: 0,
            grows_above: table.max_ids(),
        }
    }

    /// Returns the bucket in which the search for an order id begins, or to which it is added.
    #[inline]
    pub(crate) fn home(&self, id: u64) -> HomeBucket {
        self.table.home(id)
    }

    /// Finds an order id. `is` returns `true` for the node that has it.
    #[inline(always)]
    pub(crate) fn find(&self, id: u64, home: HomeBucket, is: impl Fn(u32) -> bool) -> Option<Entry> {
        let current = &self.buckets[home.bucket];
        match current.find(home.tag, &is) {
            Some(position) => Some(Entry::new(home, home.bucket, position)),
            None if current.overflowed > 0 || self.old.len > 0 => self.find_elsewhere(id, home, is),
            None => None,
        }
    }

    /// Finds an id that is not in its home's bucket.
    #[inline(never)]
    fn find_elsewhere(&self, id: u64, home: HomeBucket, is: impl Fn(u32) -> bool) -> Option<Entry> {
        let in_old = || (self.old.len > 0).then(|| self.find_in(self.old, self.old.home(id), &is)).flatten();
        self.find_in(self.table, home, &is).or_else(in_old)
    }

    fn find_in(&self, table: Table, home: HomeBucket, is: impl Fn(u32) -> bool) -> Option<Entry> {
        let mut bucket = home.bucket;
        // At most one round: every bucket may have overflowed.
        for _ in 0..table.len {
            let current = &self.buckets[bucket];
            if let Some(position) = current.find(home.tag, &is) {
                return Some(Entry::new(home, bucket, position));
            }
            if current.overflowed == 0 {
                return None;
            }
            bucket = table.next_bucket(bucket);
        }
        None
    }

    #[inline]
    pub(crate) fn slot(&self, entry: Entry) -> u32 {
        self.buckets[entry.bucket as usize].slots[entry.position as usize % BUCKET_SLOTS]
    }

    /// Reads the bucket of an order id to cache it. The returned value has no meaning.
    #[inline]
    pub(crate) fn prefetch(&self, id: u64) -> u32 {
        self.buckets[self.home(id).bucket].overflowed
    }

    /// Adds an order id whose first bucket was computed after the last insertion. `id_of` returns
    /// the order id of an open node. There is always a free slot: at most half are used.
    #[inline]
    pub(crate) fn insert(&mut self, home: HomeBucket, slot: u32, id_of: impl Fn(u32) -> u64) {
        self.insert_in_table(home, slot);
        self.used += 1;
        if self.used > self.grows_above {
            self.grow(id_of);
        }
    }

    #[inline]
    fn insert_in_table(&mut self, home: HomeBucket, slot: u32) {
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

    /// Moves the last bucket of the old table; without one, begins to move the table in use.
    #[cold]
    fn grow(&mut self, id_of: impl Fn(u32) -> u64) {
        if self.old.len == 0 {
            let next = Table { start: self.table.start + self.table.len, len: 2 * self.table.len };
            self.old = std::mem::replace(&mut self.table, next);
            self.unmoved = self.old.len;
            self.grows_above = 0;
            return;
        }
        self.unmoved -= 1;
        let bucket = self.old.start + self.unmoved;
        let current = self.buckets[bucket];
        for position in current.used() {
            let slot = current.slots[position % BUCKET_SLOTS];
            let id = id_of(slot);
            self.unlink(self.old, Entry::new(self.old.home(id), bucket, position));
            self.insert_in_table(self.table.home(id), slot);
        }
        if self.unmoved == 0 {
            self.old.len = 0;
            self.grows_above = self.table.max_ids();
        }
    }

    /// Removes an order id's entry. Those of other ids stay where they are.
    #[inline]
    pub(crate) fn remove(&mut self, entry: Entry) {
        let in_old = (entry.home as usize) < self.table.start;
        self.unlink(if in_old { self.old } else { self.table }, entry);
        self.used -= 1;
    }

    #[inline]
    fn unlink(&mut self, table: Table, entry: Entry) {
        let bucket = entry.bucket as usize;
        self.buckets[bucket].tags &= !(0xffff << (entry.position % BUCKET_SLOTS as u32 * 16));
        let mut passed = entry.home as usize;
        while passed != bucket {
            self.buckets[passed].overflowed -= 1;
            passed = table.next_bucket(passed);
        }
    }

    /// Returns the number of order ids in the table, by counting.
    pub(crate) fn len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.used().count()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::random::SplitMix64;
    use std::collections::HashMap;

    /// Applies the same operations to the index and to a `HashMap`.
    fn check_against_map(ids: impl Fn(u64) -> u64) {
        let capacity = 256;
        let mut index = Index::new(capacity);
        let mut map: HashMap<u64, u32> = HashMap::new();
        let mut by_slot = vec![0; capacity];
        let mut random = SplitMix64(1);
        for step in 0..40_000 {
            let id = ids(random.below(400));
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
            let entry = index.find(id, index.home(id), |candidate| candidate == slot);
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
        assert!(index.buckets.iter().all(|bucket| bucket.overflowed == 0 && bucket.tags == 0));
    }
}
