//! The index from order ids to nodes: a hash table whose buckets are cache lines, allocated at the
//! start.
//!
//! A bucket holds eight ids. An id whose bucket is full goes to the next one with a free slot, and
//! every bucket that it passes counts it: a search ends at a bucket with a count of 0. A removal
//! therefore leaves no gap to close and moves nothing, and no branch depends on how full the
//! neighborhood is. Four consecutive ids share a bucket, so that a stream of new ids touches few.

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

    /// Sets the tag of a free slot, or clears it.
    #[inline]
    fn flip(&mut self, position: usize, tag: u64) {
        self.tags[position / 4 % 2] ^= tag << (position % 4 * 16);
    }

    #[inline]
    fn get(&self, tag: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.matches(tag).map(|position| self.slots[position % BUCKET_SLOTS]).find(|&slot| is(slot))
    }

    /// Inserts an entry. Returns `false` if the bucket is full.
    #[inline]
    fn try_insert(&mut self, tag: u64, slot: u32) -> bool {
        let Some(position) = self.free().next() else { return false };
        self.flip(position, tag);
        self.slots[position % BUCKET_SLOTS] = slot;
        true
    }

    /// Removes an entry. Returns `false` if it is not in this bucket. Of the slots that seem to
    /// have the tag, only the one of this node has it for certain.
    #[inline]
    fn try_remove(&mut self, tag: u64, slot: u32) -> bool {
        let Some(position) = self.matches(tag).find(|&position| self.slots[position % BUCKET_SLOTS] == slot)
        else {
            return false;
        };
        self.flip(position, tag);
        true
    }
}

/// A hash table from order ids to nodes.
#[derive(Debug)]
pub(crate) struct Index {
    buckets: Vec<Bucket>,
}

impl Index {
    /// Creates an index for `capacity` ids.
    pub(crate) fn new(capacity: usize) -> Self {
        Index { buckets: vec![EMPTY; (SLOTS_PER_ID * capacity).div_ceil(BUCKET_SLOTS)] }
    }

    /// Returns the bucket and the tag of an id.
    #[inline]
    fn bucket_of(&self, id: u64) -> (usize, u64) {
        let product = u128::from(id >> NEIGHBOR_BITS) * 0x9e37_79b9_7f4a_7c15;
        let mixed = (product >> 64) as u64 ^ product as u64;
        let bucket = ((mixed >> 32) * self.buckets.len() as u64) >> 32;
        (bucket as usize, 1 << 15 | mixed >> 17 & 0x1fff << NEIGHBOR_BITS | id & ((1 << NEIGHBOR_BITS) - 1))
    }

    #[inline]
    fn next_bucket(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets.len() { 0 } else { bucket + 1 }
    }

    /// Returns the node of an order id, if it is open. `is` returns `true` if a node has the id.
    #[inline]
    pub(crate) fn get(&self, id: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let (bucket, tag) = self.bucket_of(id);
        let here = &self.buckets[bucket];
        match here.get(tag, &is) {
            None if here.overflowed > 0 => self.get_beyond(bucket, tag, is),
            found => found,
        }
    }

    #[inline(never)]
    fn get_beyond(&self, mut bucket: usize, tag: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        // At most one round: every bucket may have overflowed.
        for _ in 1..self.buckets.len() {
            bucket = self.next_bucket(bucket);
            let here = &self.buckets[bucket];
            let found = here.get(tag, &is);
            if found.is_some() || here.overflowed == 0 {
                return found;
            }
        }
        None
    }

    /// Reads the bucket of an id to bring it into the cache. The returned value has no meaning.
    #[inline]
    pub(crate) fn prefetch(&self, id: u64) -> u32 {
        self.buckets[self.bucket_of(id).0].overflowed
    }

    /// Inserts an id that is not in the index. There is always a free slot: at most half are in
    /// use.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64, slot: u32) {
        let (bucket, tag) = self.bucket_of(id);
        if !self.buckets[bucket].try_insert(tag, slot) {
            self.insert_beyond(bucket, tag, slot);
        }
    }

    #[inline(never)]
    fn insert_beyond(&mut self, mut bucket: usize, tag: u64, slot: u32) {
        loop {
            self.buckets[bucket].overflowed += 1;
            bucket = self.next_bucket(bucket);
            if self.buckets[bucket].try_insert(tag, slot) {
                return;
            }
        }
    }

    /// Removes an id that is in the index.
    #[inline]
    pub(crate) fn remove(&mut self, id: u64, slot: u32) {
        let (bucket, tag) = self.bucket_of(id);
        if !self.buckets[bucket].try_remove(tag, slot) {
            self.remove_beyond(bucket, tag, slot);
        }
    }

    #[inline(never)]
    fn remove_beyond(&mut self, mut bucket: usize, tag: u64, slot: u32) {
        loop {
            let here = &mut self.buckets[bucket];
            if here.overflowed == 0 {
                return debug_assert!(false, "the index has all open orders");
            }
            here.overflowed -= 1;
            bucket = self.next_bucket(bucket);
            if self.buckets[bucket].try_remove(tag, slot) {
                return;
            }
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
        all(1_000_000).for_each(|(id, slot)| index.insert(id, slot));
        let overflowed: u32 = index.buckets.iter().map(|bucket| bucket.overflowed).sum();
        assert!(overflowed < 2_500, "{overflowed} overflows");
        for round in 0..20 {
            let from = 1_000_000 + round * capacity as u64;
            for ((old, slot), (new, _)) in all(from).zip(all(from + capacity as u64)) {
                index.remove(old, slot);
                index.insert(new, slot);
            }
        }
        assert_eq!(index.len(), capacity);
        all(1_200_000).for_each(|(id, slot)| index.remove(id, slot));
        assert!(index.buckets.iter().all(|bucket| bucket.overflowed == 0 && bucket.tags == [0; 2]));
    }
}
