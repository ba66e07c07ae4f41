//! A two-level bitmap of a timing wheel's non-empty slots: a bit per slot, and a summary bit per
//! word.

/// A bitmap of a timing wheel's non-empty slots, up to 2^18 bits, a power of two.
pub(super) struct Bits {
    words: Vec<u64>,
    /// A bit for each word that is not zero.
    summary: Vec<u64>,
}

impl Bits {
    /// Creates a bitmap of the timing wheel's slots, all of which are empty.
    pub fn new(bits: usize) -> Self {
        let words = bits.div_ceil(64);
        Self { words: vec![0; words], summary: vec![0; words.div_ceil(64)] }
    }

    /// Marks a slot of the timing wheel as not empty.
    #[inline]
    pub fn set(&mut self, bit: usize) {
        self.words[bit / 64] |= 1 << (bit % 64);
        self.summary[bit / 4096] |= 1 << (bit / 64 % 64);
    }

    /// Marks a slot of the timing wheel as empty.
    #[inline]
    pub fn clear(&mut self, bit: usize) {
        let word = &mut self.words[bit / 64];
        *word &= !(1 << (bit % 64));
        if *word == 0 {
            self.summary[bit / 4096] &= !(1 << (bit / 64 % 64));
        }
    }

    /// Returns the timing wheel's first non-empty slot at or after an index, wrapping around. One
    /// is set.
    #[inline]
    pub fn next(&self, from: usize) -> usize {
        let word = from / 64;
        let candidates = self.words[word] & u64::MAX << (from % 64);
        if candidates != 0 {
            return word * 64 + candidates.trailing_zeros() as usize;
        }
        let word = self.next_word(word + 1);
        word * 64 + self.words[word].trailing_zeros() as usize
    }

    /// The first word that is not zero, from there on and then from 0 on.
    #[inline]
    fn next_word(&self, from: usize) -> usize {
        let (group, bit) = (from / 64, from % 64);
        if let Some(summary) = self.summary.get(group) {
            let candidates = summary & u64::MAX << bit;
            if candidates != 0 {
                return group * 64 + candidates.trailing_zeros() as usize;
            }
        }
        let groups = self.summary.len();
        let group = (group + 1..groups).chain(0..groups).find(|group| self.summary[*group] != 0);
        let group = group.expect("a bit is set");
        group * 64 + self.summary[group].trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn next_set_bit_is_found(size in prop::sample::select(vec![64usize, 2048, 1 << 17]), set in prop::collection::btree_set(0usize..1 << 17, 1..40), from in 0usize..1 << 17) {
            let mut bits = Bits::new(size);
            let set: std::collections::BTreeSet<usize> = set.into_iter().map(|bit| bit % size).collect();
            set.iter().for_each(|bit| bits.set(*bit));
            let from = from % size;
            prop_assert_eq!(Some(&bits.next(from)), set.range(from..).chain(&set).next());
            set.iter().skip(1).for_each(|bit| bits.clear(*bit));
            prop_assert_eq!(Some(&bits.next(from)), set.first());
        }
    }
}
