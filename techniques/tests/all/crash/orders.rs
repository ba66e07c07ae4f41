//! What a victim and its tracer both know: the words in which the victim gets its orders, and what
//! its messages hold.

use protocol::wire::{MESSAGE_WORDS, Message};

/// How often to push or pop before the next stop.
pub const COUNT: usize = 0;
/// The number of the producer's next message.
pub const NUMBER: usize = 1;
/// Where the code of the push or pop begins.
pub const ENTRY: usize = 2;
/// How many pushes were taken; how many pops gave something.
pub const DONE: usize = 3;
/// One more than the index of the dead producer that the consumer is to retire instead of popping;
/// 0: it pops.
pub const RETIRE: usize = 4;
/// Where the code of the retirement begins.
pub const RETIRE_ENTRY: usize = 5;
/// How many messages to push, or at most to take, at once instead of one by one; 0: one by one.
pub const BATCH: usize = 6;
/// Where the code of that begins.
pub const BATCH_ENTRY: usize = 7;
/// What was popped, message after message, around and around.
pub const LOG: usize = 8;
/// Messages in the log.
pub const LOG_ENTRIES: usize = 1024;
/// Words in all.
pub const WORDS: usize = LOG + LOG_ENTRIES * MESSAGE_WORDS;

/// The segment's name within the run.
pub fn orders_name(role: &str, index: usize) -> String {
    format!("orders-{role}-{index}")
}

/// Message `n` of a producer. Every word depends on both and on its place, so that a message that
/// was put together of two shows.
pub fn message(producer: usize, n: u64) -> Message {
    let name = (producer as u64) << 48 | n;
    core::array::from_fn(|place| {
        if place == 0 { name } else { (name ^ (place as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    })
}

/// The board's segment within the run.
pub const BOARD: &str = "board";
/// The cell that the board's writer writes.
pub const BOARD_CELL: usize = 1;

/// What version `version` of the board's cell holds, so many words; written at tick `version`.
pub fn board_value(version: u64, words: usize) -> Vec<u64> {
    (0..words as u64).map(|place| (version ^ place << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}
