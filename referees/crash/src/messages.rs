//! The messages that are sent through a transport under test.

/// Number of messages that a tested transport has space for.
pub const CAPACITY: usize = 64;

/// A message: number of its sender, number of the message, and words that depend on both.
pub type Message = [u64; 7];

pub fn message(sender: u64, number: u64) -> Message {
    core::array::from_fn(|word| match word {
        0 => sender,
        1 => number,
        word => (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(word as u32) ^ sender,
    })
}

/// Decodes sender and number of a message; `None` if no sender makes such a message.
pub fn decode(found: &Message) -> Option<(u64, u64)> {
    let [sender, number, ..] = *found;
    (sender < 16 && *found == message(sender, number)).then_some((sender, number))
}
