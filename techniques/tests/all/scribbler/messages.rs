//! What the honest send, so that every change of it shows.

use protocol::wire::{MESSAGE_WORDS, Message};

/// Producers in each run. The first one scribbles.
pub const PRODUCERS: usize = 3;

/// Message `n` of a producer: whose, which, and words that depend on both and on their place.
pub fn message(producer: usize, n: u64) -> Message {
    core::array::from_fn(|place| match place {
        0 => producer as u64,
        1 => n,
        _ => ((producer as u64) << 60 ^ (place as u64) << 52 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    })
}

/// Whose message it is and which, if it is whole.
pub fn read(got: &Message) -> Option<(usize, u64)> {
    const { assert!(MESSAGE_WORDS > 2) };
    let producer = usize::try_from(got[0]).ok().filter(|producer| *producer < PRODUCERS)?;
    (*got == message(producer, got[1])).then_some((producer, got[1]))
}
