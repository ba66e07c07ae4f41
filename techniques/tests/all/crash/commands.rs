//! The protocol of a victim and its tracer: the words of the commands, and the content of the
//! messages.

use protocol::wire::{MESSAGE_WORDS, Message};

/// Number of pushes or pops before the next stop.
pub const COUNT: usize = 0;
/// The number of the producer's next message.
pub const NUMBER: usize = 1;
/// The address of the push or pop function.
pub const ENTRY: usize = 2;
/// Number of accepted pushes, or of successful pops.
pub const DONE: usize = 3;
/// One more than the index of the dead producer that the consumer is to retire instead of popping;
/// 0: it pops.
pub const RETIRE: usize = 4;
/// The address of the retirement function.
pub const RETIRE_ENTRY: usize = 5;
/// The popped messages, as a circular log.
pub const LOG: usize = 6;
/// Capacity of the log in messages.
pub const LOG_ENTRIES: usize = 1024;
/// Total number of words.
pub const WORDS: usize = LOG + LOG_ENTRIES * MESSAGE_WORDS;

/// Returns the name of the commands segment within the run.
pub fn commands_name(role: &str, index: usize) -> String {
    format!("commands-{role}-{index}")
}

/// Makes message `n` of a producer. Every word depends on both and on its index, so that mixed
/// messages are detected.
pub fn message(producer: usize, n: u64) -> Message {
    let name = (producer as u64) << 48 | n;
    core::array::from_fn(|index| {
        if index == 0 { name } else { (name ^ (index as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15) }
    })
}

/// The name of the board's segment within the run.
pub const BOARD: &str = "board";
/// The cell that the board's writer writes.
pub const BOARD_CELL: usize = 1;

/// Returns the value of a version of the board's cell; it is written at tick `version`.
pub fn board_value(version: u64, words: usize) -> Vec<u64> {
    (0..words as u64).map(|index| (version ^ index << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}
