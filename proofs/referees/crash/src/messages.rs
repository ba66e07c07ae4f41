//! The messages that are sent through a transport under test.

/// Number of messages that a tested transport has space for.
pub const CAPACITY: usize = 64;

/// A message: number of its sender, number of the message, and words that depend on both.
pub type Message = [u64; 7];

/// A message that no sender makes.
const DAMAGED: Message = [u64::MAX; 7];

pub fn message(sender: u64, number: u64) -> Message {
    words(sender, number)
}

/// Returns the words of a message of any length. The first seven are [`message`].
fn words<const WORDS: usize>(sender: u64, number: u64) -> [u64; WORDS] {
    core::array::from_fn(|word| match word {
        0 => sender,
        1 => number,
        word => number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(word as u32) ^ sender,
    })
}

/// A type whose values carry a [`Message`], longer or shorter.
pub trait Form {
    /// Returns the value that carries a message.
    fn encode(message: &Message) -> Self;
    /// Returns the carried message; one that no sender makes if any bit is wrong.
    fn decode(&self) -> Message;
}

/// With further words, which depend on its sender and its number.
impl<const WORDS: usize> Form for [u64; WORDS] {
    fn encode(message: &Message) -> Self {
        words(message[0], message[1])
    }

    fn decode(&self) -> Message {
        let message = core::array::from_fn(|word| self[word]);
        if self[message.len()..] == Self::encode(&message)[message.len()..] { message } else { DAMAGED }
    }
}

impl Form for u32 {
    fn encode(message: &Message) -> Self {
        short(message, Self::BITS) as Self
    }

    fn decode(&self) -> Message {
        from_short((*self).into(), Self::BITS)
    }
}

impl Form for u64 {
    fn encode(message: &Message) -> Self {
        short(message, Self::BITS)
    }

    fn decode(&self) -> Message {
        from_short(*self, Self::BITS)
    }
}

/// Bits of the number of a message that a short one has. No trial sends more messages.
const NUMBER_BITS: u32 = 12;

/// Returns sender and number in the lower half of `bits` bits, and a check in the upper half.
fn short(&[sender, number, ..]: &Message, bits: u32) -> u64 {
    let key = sender << NUMBER_BITS | number & ((1 << NUMBER_BITS) - 1);
    let check = key.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits / 2);
    key | check << (bits / 2)
}

/// Returns the message that a short one carries, or one that no sender makes.
fn from_short(found: u64, bits: u32) -> Message {
    let key = found & ((1 << (bits / 2)) - 1);
    let carried = message(key >> NUMBER_BITS, key & ((1 << NUMBER_BITS) - 1));
    if short(&carried, bits) == found { carried } else { DAMAGED }
}

/// Decodes sender and number of a message; `None` if no sender makes such a message.
pub fn decode(found: &Message) -> Option<(u64, u64)> {
    let [sender, number, ..] = *found;
    (sender < 16 && *found == message(sender, number)).then_some((sender, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_message_with_any_damaged_word_is_refused() {
        let long = <[u64; 25]>::encode(&message(3, 5));
        assert_eq!(decode(&long.decode()), Some((3, 5)));
        for word in 0..long.len() {
            let mut damaged = long;
            damaged[word] ^= 1 << 40;
            assert_eq!(decode(&damaged.decode()), None, "word {word}");
        }
    }

    #[test]
    fn long_message_of_two_messages_is_refused() {
        let [mut mixed, other] = [5, 6].map(|number| <[u64; 25]>::encode(&message(3, number)));
        mixed[7..].copy_from_slice(&other[7..]);
        assert_eq!(decode(&mixed.decode()), None);
    }

    #[test]
    fn short_message_with_any_damaged_bit_is_refused() {
        assert_eq!(decode(&u32::encode(&message(2, 300)).decode()), Some((2, 300)));
        assert_eq!(decode(&u64::encode(&message(2, 300)).decode()), Some((2, 300)));
        for bit in 0..64 {
            let [four, eight] = [1 << (bit % 32), 1 << bit];
            assert_eq!(decode(&(u32::encode(&message(2, 300)) ^ four as u32).decode()), None, "bit {bit}");
            assert_eq!(decode(&(u64::encode(&message(2, 300)) ^ eight).decode()), None, "bit {bit}");
        }
    }

    #[test]
    fn short_message_of_zeros_is_refused() {
        assert_eq!([0_u32.decode(), 0_u64.decode()].map(|zeros| decode(&zeros)), [None; 2]);
    }
}
