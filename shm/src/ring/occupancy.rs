//! Occupancy of a ring, for an observer without an end of it and without the right to write.
//!
//! Words come from a closure, so that the observer may read them from a file instead of mapping it.
//! The result is exact only if no end moves concurrently; it is always between 0 and the capacity,
//! for any words.

use super::{array_queue, spsc};
use crate::memory::header::INDEX;
use crate::ring::MESSAGE_WORDS;

/// Returns the number of leading positions, of `count`, that satisfy `matches`, by binary search.
fn leading(count: u64, mut matches: impl FnMut(u64) -> Option<bool>) -> Option<u64> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if matches(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// Returns the number of messages that wait in an SPSC ring, for an observer that only reads the
/// ring's words. The ring's consumer has taken `head`; `word` loads a word of the producer's part.
/// `None`: a word could not be had, or the capacity is not a power of two.
pub fn spsc(capacity: u64, head: u64, mut word: impl FnMut(usize) -> Option<u64>) -> Option<u64> {
    let mask = capacity.checked_sub(1).filter(|_| capacity.is_power_of_two())?;
    let slot = spsc::slot_words(MESSAGE_WORDS);
    let first_sequence = spsc::first_slot(word(INDEX)?) + MESSAGE_WORDS;
    leading(capacity, |after_head| {
        let position = head.wrapping_add(after_head);
        let at = ((position & mask) as usize).checked_mul(slot)?.checked_add(first_sequence)?;
        // Published: the sequence is the position plus one. Else that of the previous lap, or 0.
        Some(word(at)? == position.wrapping_add(1))
    })
}

/// Returns the number of positions claimed and not freed in an `array-queue` ring, for an observer
/// that only reads its words. `None`: as [`spsc()`].
pub fn array_queue(capacity: u64, mut word: impl FnMut(usize) -> Option<u64>) -> Option<u64> {
    let mask = capacity.checked_sub(1).filter(|_| capacity.is_power_of_two())?;
    // A scribbled tail must not make numbers overflow.
    let tail = word(array_queue::TAIL)?.min(u64::MAX >> 8);
    let first = tail.saturating_sub(capacity);
    let taken = leading(tail - first, |after_first| {
        let position = first + after_first;
        let at =
            ((position & mask) as usize).checked_mul(MESSAGE_WORDS + 1)?.checked_add(array_queue::SLOTS)?;
        // A taken slot is free for the next lap: its stamp is 2 · (lap + 1), or more.
        let lap = position >> capacity.trailing_zeros();
        Some(word(at)? >= (lap + 1) << 1)
    })?;
    Some(tail - first - taken)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::memory::Region;
    use crate::ring::{SharedQueue as _, intent};
    use crate::sync::Ordering;
    use proptest::prelude::*;

    const CAPACITY: usize = 64;
    const M: usize = MESSAGE_WORDS;

    /// Fills and drains a ring three times. `fill` is compared with what it holds after each step.
    fn check_fill(
        fill: impl Fn() -> Option<u64>,
        mut push: impl FnMut(&[u64; M]) -> bool,
        mut pop: impl FnMut() -> bool,
    ) {
        for lap in 0..3 {
            for pushed in 0..CAPACITY as u64 {
                assert_eq!(fill(), Some(pushed), "lap {lap}");
                assert!(push(&[pushed; M]));
            }
            assert!(!push(&[0; M]));
            for left in (0..=CAPACITY as u64).rev() {
                assert_eq!(fill(), Some(left), "lap {lap}");
                assert_eq!(pop(), left > 0);
            }
        }
    }

    #[test]
    fn spsc_occupancy_matches_ring_contents() {
        let words = Region::heap(spsc::ring_words(CAPACITY, M)).words();
        spsc::write_header::<M>(&words, CAPACITY);
        let (mut producer, mut consumer) =
            (spsc::Producer::<M>::attach(&words).unwrap(), spsc::Consumer::<M>::attach(&words).unwrap());
        let part = words.slice(spsc::HEAD_WORDS, words.len() - spsc::HEAD_WORDS);
        let word = |index: usize| part.get(index).map(|word| word.load(Ordering::Relaxed));
        check_fill(
            || spsc(CAPACITY as u64, words[spsc::HEAD].load(Ordering::Relaxed), word),
            |message| producer.try_push(message).is_ok(),
            || consumer.try_pop().unwrap().is_some(),
        );
    }

    #[test]
    fn array_queue_occupancy_matches_ring_contents() {
        let words = Region::heap(array_queue::ring_words(CAPACITY, M)).words();
        array_queue::write_header::<M>(&words, CAPACITY);
        let intents = intent::on_heap(1);
        let mut producer = array_queue::Producer::<M>::attach(&words, &intents[0]).unwrap();
        let mut consumer = array_queue::Consumer::<M>::attach(&words, intents).unwrap();
        let word = |index: usize| words.get(index).map(|word| word.load(Ordering::Relaxed));
        check_fill(
            || array_queue(CAPACITY as u64, word),
            |message| producer.try_push(message).is_ok(),
            || consumer.try_pop().unwrap().is_some(),
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 3 } else { 256 }))]
        #[test]
        fn occupancy_of_arbitrary_words_stays_within_capacity(words in prop::collection::vec(any::<u64>(), 1..200), head: u64, log2 in 0u32..9) {
            let word = |index: usize| words.get(index).copied();
            for capacity in [1u64 << log2, u64::from(log2), u64::MAX, 1 << 63] {
                prop_assert!(spsc(capacity, head, word).is_none_or(|fill| fill <= capacity));
                prop_assert!(array_queue(capacity, word).is_none_or(|fill| fill <= capacity));
            }
        }
    }
}
