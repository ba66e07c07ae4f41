//! Removes the files that a killed creator of a queue left in `/dev/shm`.
//!
//! Every file is checked before it is removed: it is listed by the queue, of this user, of the
//! listed kind, and if it is memory its header names the queue. Anything else stays, whatever its
//! name is.

use super::descriptor::{DESCRIPTOR, ListedFile, QueueDescriptor};
use super::error::QueueError;
use super::names::{PREFIX, check_name, segment_name};
use crate::memory::calls::effective_user;
use crate::memory::header::HEADER_WORDS;
use crate::memory::owned::OwnedSegment;
use crate::memory::{Region, RegionError, SHM_DIR, lock, open_safely, unlink};
use std::fs::{OpenOptions, symlink_metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;

/// The files of a queue whose creator is dead, locked: no other process can remove them or take
/// the name.
struct Leftovers {
    /// Files without the descriptor, which is removed last.
    files: Vec<String>,
    descriptor: OwnedSegment,
}

impl Leftovers {
    fn find(name: &str) -> Result<Option<Self>, QueueError> {
        check_name(name)?;
        let descriptor_name = segment_name(name, DESCRIPTOR);
        let descriptor = match OwnedSegment::resume(&descriptor_name) {
            Ok(Some(descriptor)) => descriptor,
            Ok(None) => return Err(QueueError::Living(name.into())),
            Err(RegionError::Os { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        let words = Region::map(&descriptor_name, descriptor.file(), true)?.words();
        let descriptor_contents = QueueDescriptor::read(&words, name)
            .map_err(|source| RegionError::Header { name: descriptor_name.clone(), source })?;
        let listed = |what: &str| descriptor_contents.files.iter().copied().find(|file| file.is_named(what));
        let is_left =
            |what: &str| listed(what).is_some_and(|file| is_file_of(&descriptor_contents, file, name, what));
        let files = names_with(&segment_name(name, ""))
            .map_err(RegionError::os(&descriptor_name, "list /dev/shm beside it"))?;
        let files = files.into_iter().filter(|what| is_left(what)).map(|what| segment_name(name, &what));
        Ok(Some(Self { files: files.collect(), descriptor }))
    }
}

/// Returns the suffixes of the names in `/dev/shm` that start with a prefix, sorted.
fn names_with(prefix: &str) -> io::Result<Vec<String>> {
    let entries = std::fs::read_dir(SHM_DIR)?;
    let suffix = |entry: io::Result<std::fs::DirEntry>| {
        Some(entry.ok()?.file_name().into_string().ok()?.strip_prefix(prefix)?.to_owned())
    };
    let mut names: Vec<String> = entries.filter_map(suffix).collect();
    names.sort();
    Ok(names)
}

/// Returns `true` if the file with that name is the listed one of the queue.
fn is_file_of(queue: &QueueDescriptor, file: ListedFile, name: &str, what: &str) -> bool {
    let full = segment_name(name, what);
    let Ok(facts) = symlink_metadata(format!("{SHM_DIR}/{full}")) else { return false };
    let found = facts.file_type();
    facts.uid() == effective_user()
        && match file.memory() {
            Some(kind) => {
                found.is_file() && first_words(&full).is_some_and(|w| queue.owns(&w, kind, facts.len()))
            }
            None => file.has_type(found),
        }
}

/// The words of a segment's header, read from its file; `None` if it is too short.
fn first_words(full: &str) -> Option<[u64; HEADER_WORDS]> {
    let mut bytes = [[0; 8]; HEADER_WORDS];
    open_safely(full, OpenOptions::new().read(true)).ok()?.read_exact(bytes.as_flattened_mut()).ok()?;
    Some(bytes.map(u64::from_le_bytes))
}

/// Returns the names of this user's queues whose creators have died, from `/dev/shm`.
///
/// # Errors
/// If `/dev/shm` cannot be listed.
pub fn dead() -> io::Result<Vec<String>> {
    let is_unlocked = |name: &String| {
        let descriptor = open_safely(&segment_name(name, DESCRIPTOR), OpenOptions::new().read(true));
        descriptor.and_then(|file| lock::is_locked(&file)).is_ok_and(|held| !held)
    };
    let queue = |suffix: String| Some(suffix.strip_suffix(DESCRIPTOR)?.strip_suffix('.')?.to_owned());
    let mut names: Vec<String> = names_with(PREFIX)?.into_iter().filter_map(queue).collect();
    names.retain(|name| check_name(name).is_ok() && is_unlocked(name));
    Ok(names)
}

/// Returns the names of the files of a dead queue that [`remove`] would remove.
///
/// # Errors
/// As [`remove`].
pub fn leftovers(name: &str) -> Result<Vec<String>, QueueError> {
    let found = Leftovers::find(name)?;
    Ok(found.map_or_else(Vec::new, |left| {
        left.files.into_iter().chain([segment_name(name, DESCRIPTOR)]).collect()
    }))
}

/// Removes the files of a queue whose creator was killed, and returns their names; an empty list if
/// there are none. A process that is attached keeps the memory that it has mapped. A file that does
/// not match the queue's list stays: another program's, or one whose header was overwritten.
///
/// # Errors
/// [`QueueError::Living`]: nothing is removed then. A name that is none; what the system refused.
pub fn remove(name: &str) -> Result<Vec<String>, QueueError> {
    let Some(Leftovers { mut files, descriptor }) = Leftovers::find(name)? else { return Ok(Vec::new()) };
    for file in &files {
        unlink(file).map_err(RegionError::os(file, "remove it"))?;
    }
    let descriptor_name = segment_name(name, DESCRIPTOR);
    descriptor.unlink().map_err(RegionError::os(&*descriptor_name, "remove it"))?;
    files.push(descriptor_name);
    Ok(files)
}
