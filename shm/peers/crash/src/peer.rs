//! A transport under test.

use crate::role;
use std::path::Path;

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

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attach {
    Create,
    Join,
    /// An end in place of a killed one of the same kind, the way the transport documents.
    Succeed,
}

/// A transport under test, with space for [`CAPACITY`] messages. Its ends are in different
/// processes.
pub struct Peer {
    pub name: &'static str,
    pub krate: &'static str,
    /// Name of the tested type of the crate.
    pub kind: &'static str,
    pub creator: End,
    /// `true` if a receiver sees the newest message only.
    pub is_newest_only: bool,
    /// `true` if several senders can be attached at once.
    pub has_many_senders: bool,
    pub role: Box<dyn Fn(&Path, End, Attach, u64)>,
}

impl Peer {
    /// A transport with its name, its crate and the type there, and the end that creates it. The
    /// functions attach a sender, attach a receiver, push, and pop. They attach in a directory in
    /// `/dev/shm` for the transport's files, whose last component is also a name for it.
    pub fn new<S, R>(
        [name, krate, kind]: [&'static str; 3],
        creator: End,
        sender: impl Fn(&Path, Attach) -> Result<S, String> + 'static,
        receiver: impl Fn(&Path, Attach) -> Result<R, String> + 'static,
        push: impl Fn(&mut S, &Message) -> Result<bool, String> + 'static,
        pop: impl Fn(&mut R) -> Result<Option<Message>, String> + 'static,
    ) -> Self {
        let role = move |place: &Path, end, attach, id| match end {
            End::Sender => role::sender(sender(place, attach), &push, id),
            End::Receiver => role::receiver(receiver(place, attach), &pop),
        };
        let role = Box::new(role);
        Self { name, krate, kind, creator, is_newest_only: false, has_many_senders: false, role }
    }
}

pub const CAPACITY: usize = 64;

pub fn name(place: &Path) -> String {
    place.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the version of a crate, as the lock file of this package pins it.
pub fn version(name: &str) -> &'static str {
    let lock = include_str!("../Cargo.lock");
    let after = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
    after.and_then(|rest| rest.split('"').next()).unwrap_or("?")
}

pub fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
