//! A transport under test.

pub use crate::messages::{CAPACITY, Message};
use crate::role;
use std::path::Path;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Sender,
    Receiver,
}

impl End {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    pub const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attach {
    Create,
    Join,
    /// An end in place of a killed one of the same kind, the way the transport documents.
    Resume,
}

impl Attach {
    pub const ALL: [Self; 3] = [Self::Create, Self::Join, Self::Resume];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Join => "join",
            Self::Resume => "resume",
        }
    }
}

/// Attaches an end in a directory and runs it as a process with this id.
type RunRole = dyn Fn(&Path, End, Attach, u64);
/// Removes what killed processes left, the way the transport documents.
type CleanUp = dyn Fn(&Path) -> Result<(), String>;

/// The program that holds an end of a transport.
pub enum Program {
    /// This one.
    Own { role: Box<RunRole>, clean_up: Box<CleanUp> },
    /// Another one, with its first arguments: see `external/README.md`.
    External(Vec<String>),
}

/// A transport under test, with space for [`CAPACITY`] messages. Its ends are in different
/// processes.
pub struct Peer {
    pub name: &'static str,
    /// Name of the crate, library or system call.
    pub library: &'static str,
    pub version: String,
    pub language: &'static str,
    /// Name of the tested type of the library.
    pub kind: &'static str,
    pub creator: End,
    /// `true` if a receiver sees the newest message only.
    pub is_newest_only: bool,
    /// `true` if several senders can be attached at once.
    pub has_many_senders: bool,
    /// `true` if its documentation has no successor of an end: both ends begin with a new transport.
    pub starts_over: bool,
    pub program: Program,
}

impl Peer {
    /// A crate's transport with its name, its crate and the type there, and the end that creates
    /// it. The functions attach a sender, attach a receiver, push, and pop. They attach in a
    /// directory in `/dev/shm` for the transport's files, whose last component is also a name for
    /// it.
    pub fn new<S, R>(
        [name, library, kind]: [&'static str; 3],
        creator: End,
        sender: impl Fn(&Path, Attach) -> Result<S, String> + 'static,
        receiver: impl Fn(&Path, Attach) -> Result<R, String> + 'static,
        push: impl Fn(&mut S, &Message) -> Result<bool, String> + 'static,
        pop: impl Fn(&mut R) -> Result<Option<Message>, String> + 'static,
    ) -> Self {
        let role = move |place: &Path, end, attach, id| match end {
            End::Sender => role::sender(|| sender(place, attach), &push, id),
            End::Receiver => role::receiver(|| receiver(place, attach), &pop),
        };
        // Files at a path of the caller are the caller's to remove.
        let clean_up = |place: &Path| remove_contents(place);
        Self {
            name,
            library,
            version: version(library).into(),
            language: "Rust",
            kind,
            creator,
            is_newest_only: false,
            has_many_senders: false,
            starts_over: false,
            program: Program::Own { role: Box::new(role), clean_up: Box::new(clean_up) },
        }
    }

    /// Replaces the clean-up, which by default removes the files at the caller's path.
    #[must_use]
    pub fn with_clean_up(mut self, clean: impl Fn(&Path) -> Result<(), String> + 'static) -> Self {
        if let Program::Own { clean_up, .. } = &mut self.program {
            *clean_up = Box::new(clean);
        }
        self
    }
}

pub fn remove_contents(place: &Path) -> Result<(), String> {
    for entry in std::fs::read_dir(place).map_err(text)?.flatten() {
        let path = entry.path();
        if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
            .map_err(text)?;
    }
    Ok(())
}

pub fn name(place: &Path) -> String {
    place.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Returns the version of a crate, as the lock file of the referees pins it.
fn version(name: &str) -> &'static str {
    let lock = include_str!("../../Cargo.lock");
    let after = lock.split(&format!("name = \"{name}\"\nversion = \"")).nth(1);
    after.and_then(|rest| rest.split('"').next()).unwrap_or("?")
}

pub fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
