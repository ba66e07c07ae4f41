//! A transport under test.

use std::path::Path;

/// A message: number of its sender, number of the message, and words that depend on both.
pub type Message = [u64; 7];

/// Creates message `number` of a sender.
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

/// An end of a tested transport: sender or receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
}

/// The way in which a process attaches an end of a transport.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attach {
    /// The first end of the transport, which creates it.
    Create,
    /// The other end.
    Join,
    /// An end in place of a killed one of the same kind, the way the transport documents.
    Succeed,
}

/// A transport under test, with space for [`CAPACITY`] messages. Its ends are in different
/// processes.
pub trait Peer {
    /// Name of the tested crate.
    const CRATE: &'static str;
    /// Name of the tested type of the crate.
    const KIND: &'static str;
    /// The end that creates the transport.
    const CREATOR: End;
    /// `true` if a receiver sees the newest message only.
    const NEWEST_ONLY: bool = false;
    /// `true` if several senders can be attached at once.
    const HAS_MANY_SENDERS: bool = false;
    type Sender;
    type Receiver;

    /// Attaches a sender to the transport. `place` is a directory in `/dev/shm` for the transport's
    /// files, whose last component is also a name for it.
    fn sender(place: &Path, attach: Attach) -> Result<Self::Sender, String>;

    /// Attaches a receiver to the transport.
    fn receiver(place: &Path, attach: Attach) -> Result<Self::Receiver, String>;

    /// Sends a message; `false` if the transport is full.
    fn push(sender: &mut Self::Sender, message: &Message) -> Result<bool, String>;

    /// Takes a message from the transport, without waiting.
    fn pop(receiver: &mut Self::Receiver) -> Result<Option<Message>, String>;
}

/// Number of messages that a tested transport has space for.
pub const CAPACITY: usize = 64;

/// Returns the last component of a directory's path.
pub fn name(place: &Path) -> String {
    place.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the version of a crate, as the lock file of this package pins it.
pub fn version(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let after = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
    after.and_then(|rest| rest.split('"').next()).unwrap_or("?")
}

/// Formats an error as text.
pub fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
