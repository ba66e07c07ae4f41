//! Checksums of hand-offs: each end of a link sums the digests of its messages and logs the sum
//! when the run ends. A lost, duplicated, invented or torn message makes the two sums differ,
//! whatever the order; reordering is detected from the stamps. Each message is hashed before it is
//! added: a plain sum would not detect that halves of two messages were exchanged.

use serde::{Deserialize, Serialize};
use shm::ring::{MESSAGE_WORDS, Message};

/// An odd constant with pseudo-random bits, from splitmix64's finaliser.
const SPREAD: u64 = 0xBF58_476D_1CE4_E5B9;

const _: () = assert!(MESSAGE_WORDS == 7, "each word has its rotation");

/// Returns a 64-bit hash of one message, to be added to a [`Checksum`]. About twenty instructions,
/// no branch.
#[inline(always)]
pub fn digest(message: &Message) -> u64 {
    // Each word is rotated by nine bits more than the next one; the rotations are independent.
    let [a, b, c, d, e, f, g] = *message;
    let front = (a.rotate_left(54) ^ b.rotate_left(45)) ^ (c.rotate_left(36) ^ d.rotate_left(27));
    let mixed = front ^ ((e.rotate_left(18) ^ f.rotate_left(9)) ^ g);
    // The high half has every input bit; it is folded into the low half.
    let spread = mixed.wrapping_mul(SPREAD);
    spread ^ (spread >> 32)
}

/// The sum, modulo 2^64, of the hashes of all messages at one end of a link, to compare with the
/// other end's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checksum(u64);

impl Checksum {
    /// Adds a message to the link's checksum, given the message's digest.
    #[inline(always)]
    pub const fn add(&mut self, digest: u64) {
        self.0 = self.0.wrapping_add(digest);
    }

    /// Subtracts a message's digest from the checksum, for a message that was not sent after all.
    #[inline(always)]
    pub const fn remove(&mut self, digest: u64) {
        self.0 = self.0.wrapping_sub(digest);
    }

    /// Returns the checksum: the sum of the digests so far; 0 before the first message.
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sum(messages: &[Message]) -> Checksum {
        let mut sum = Checksum::default();
        messages.iter().for_each(|message| sum.add(digest(message)));
        sum
    }

    proptest! {
        #[test]
        fn checksum_ignores_message_order(messages in prop::collection::vec(any::<Message>(), 0..20)) {
            let mut turned = messages.clone();
            turned.reverse();
            prop_assert_eq!(sum(&messages), sum(&turned));
        }

        #[test]
        fn changed_bit_changes_checksum(message: Message, word in 0..MESSAGE_WORDS, bit in 0u32..64) {
            let mut other = message;
            other[word] ^= 1 << bit;
            prop_assert_ne!(digest(&message), digest(&other));
        }

        #[test]
        fn exchanged_halves_change_checksum(a: Message, b: Message, at in 1..MESSAGE_WORDS) {
            let (mut torn_a, mut torn_b) = (a, b);
            torn_a[at..].copy_from_slice(&b[at..]);
            torn_b[at..].copy_from_slice(&a[at..]);
            prop_assume!(a[at..] != b[at..] && a[..at] != b[..at]);
            prop_assert_ne!(sum(&[a, b]), sum(&[torn_a, torn_b]));
        }

        #[test]
        fn repeat_or_loss_changes_checksum(messages in prop::collection::vec(any::<Message>(), 1..20)) {
            prop_assume!(digest(&messages[0]) != 0);
            let mut doubled = messages.clone();
            doubled.push(messages[0]);
            prop_assert_ne!(sum(&messages), sum(&doubled));
            prop_assert_ne!(sum(&messages), sum(&messages[1..]));
        }
    }

    proptest! {
        /// The digest of earlier versions, word by word: saved logs hold it.
        #[test]
        fn digest_equals_that_of_earlier_versions(message: Message) {
            let mixed = message.iter().fold(0u64, |mixed, word| mixed.rotate_left(9) ^ word);
            let spread = mixed.wrapping_mul(SPREAD);
            prop_assert_eq!(digest(&message), spread ^ (spread >> 32));
        }
    }

    /// Real messages are mostly zeros and small numbers that grow by one: the worst case for a weak
    /// hash.
    #[test]
    fn neighboring_orders_have_distinct_digests() {
        let mut seen = std::collections::HashSet::new();
        for sequence in 0..if cfg!(miri) { 50 } else { 20_000u64 } {
            for price in 0..4 {
                assert!(seen.insert(digest(&[sequence, 1_000, price, 5, 0, 0, 0])));
            }
        }
    }
}
