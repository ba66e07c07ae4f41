//! A transport under test.

pub use crate::messages::{CAPACITY, Message};
use crate::role;
use std::path::Path;

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
    Resume,
}

/// Attaches an end in a directory and runs it as a process with this id.
type RunRole = dyn Fn(&Path, End, Attach, u64);

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
    pub role: Box<RunRole>,
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

pub fn name(place: &Path) -> String {
    place.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the version of a crate, as the lock file of the referees pins it.
pub fn version(name: &str) -> &'static str {
    let lock = include_str!("../../Cargo.lock");
    let after = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
    after.and_then(|rest| rest.split('"').next()).unwrap_or("?")
}

pub fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
