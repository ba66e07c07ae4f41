//! Messages of the correct producers, in which every change is detected.

use protocol::wire::{MESSAGE_WORDS, Message};

/// Number of producers in each run; the first one is the scribbler.
pub const PRODUCERS: usize = 3;

/// Makes message `n` of a producer: producer, number, and words that depend on both and on their
/// index.
pub fn message(producer: usize, n: u64) -> Message {
    core::array::from_fn(|index| match index {
        0 => producer as u64,
        1 => n,
        _ => ((producer as u64) << 60 ^ (index as u64) << 52 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    })
}

/// Returns producer and number of a whole message.
pub fn read(got: &Message) -> Option<(usize, u64)> {
    const { assert!(MESSAGE_WORDS > 2) };
    let producer = usize::try_from(got[0]).ok().filter(|producer| *producer < PRODUCERS)?;
    (*got == message(producer, got[1])).then_some((producer, got[1]))
}
