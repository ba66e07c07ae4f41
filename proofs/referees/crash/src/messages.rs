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

/// Returns a message with further words, which depend on its sender and its number.
pub fn to_long<const WORDS: usize>(message: &Message) -> [u64; WORDS] {
    words(message[0], message[1])
}

/// Returns the first words of a message, or a message that no sender makes if one of the other
/// words does not belong to them.
pub fn from_long<const WORDS: usize>(long: &[u64; WORDS]) -> Message {
    let message = core::array::from_fn(|word| long[word]);
    if long[message.len()..] == to_long::<WORDS>(&message)[message.len()..] { message } else { DAMAGED }
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
        let long: [u64; 25] = to_long(&message(3, 5));
        assert_eq!(decode(&from_long(&long)), Some((3, 5)));
        for word in 0..long.len() {
            let mut damaged = long;
            damaged[word] ^= 1 << 40;
            assert_eq!(decode(&from_long(&damaged)), None, "word {word}");
        }
    }

    #[test]
    fn long_message_of_two_messages_is_refused() {
        let (mut mixed, other): ([u64; 25], [u64; 25]) = (to_long(&message(3, 5)), to_long(&message(3, 6)));
        mixed[7..].copy_from_slice(&other[7..]);
        assert_eq!(decode(&from_long(&mixed)), None);
    }
}
