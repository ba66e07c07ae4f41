//! JSON documents with a version: one way to read them, one way to write them, whatever they hold.
//!
//! A document says first what it is: `"schema": "bulkhead.run/3"`, its name and its version. That
//! is looked at before anything else, since the rest of another version need not make sense to this
//! build.
//!
//! Within a version keys may be added that a reader can do without: a key that is not known is
//! passed over, and a key that is missing is an error unless it has a default. Whatever else
//! changes is a new version, which other builds refuse.

use crate::escape::in_a_line;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, ErrorKind};
use std::path::Path;
use system::folder::{NotRegular, OpenDir, not_regular, read_regular};
use thiserror::Error;

/// The largest document that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Something that is saved as JSON under a version. Its module is the only place that knows its
/// name and its keys.
pub trait Document: Serialize + DeserializeOwned {
    /// Its file in its folder, for example `run.json`.
    const FILE: &'static str;
    /// What it calls itself, for example `bulkhead.run`.
    const NAME: &'static str;
    /// The version that this build reads and writes, from 1.
    const VERSION: u32;
    /// What a folder without it is not, in words.
    const ABSENT: &'static str;
    /// What to do about a file that is damaged, in words.
    const REMEDY: &'static str;
    /// Whether it is written for people to read, with a line for each value.
    const PRETTY: bool = true;
    /// Whether it must be on the disk before it replaces the one before it, whatever happens to the
    /// machine.
    const SYNCED: bool = false;

    /// Whether what was read fits together; a file that somebody else wrote may hold anything.
    ///
    /// # Errors
    /// What does not, in words.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Name and version, as in a file.
    fn schema() -> String {
        format!("{}/{}", Self::NAME, Self::VERSION)
    }

    /// Reads it from its folder.
    ///
    /// # Errors
    /// [`DocumentError`]: there is none, it is of another version, or it is damaged.
    fn read(folder: &Path) -> Result<Self, DocumentError> {
        match read_text(&folder.join(Self::FILE), Self::REMEDY) {
            Err(DocumentError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                let folder = folder.display().to_string();
                Err(DocumentError::Absent { folder, file: Self::FILE, what: Self::ABSENT })
            }
            Err(error) => Err(error),
            Ok(text) => parse(&folder.join(Self::FILE).display().to_string(), &text),
        }
    }

    /// As the bytes of its file.
    ///
    /// # Errors
    /// None: nothing here has values that JSON cannot hold.
    fn json(&self) -> serde_json::Result<Vec<u8>> {
        let whole = Whole { schema: Self::schema(), document: self };
        if !Self::PRETTY {
            return serde_json::to_vec(&whole);
        }
        let mut json = serde_json::to_vec_pretty(&whole)?;
        json.push(b'\n');
        Ok(json)
    }

    /// Writes it into its folder, whole or not at all.
    ///
    /// # Errors
    /// [`SaveError`]: a full disk, a folder that cannot be written. What was saved before is kept.
    fn save(&self, folder: &Path) -> Result<(), SaveError> {
        let path = folder.join(Self::FILE);
        let bytes = self.json().map_err(|error| SaveError::of(&path, error.into()))?;
        write_file(&path, &bytes, Self::SYNCED)
    }
}

/// A document as its file has it.
#[derive(Serialize)]
struct Whole<'a, D> {
    schema: String,
    #[serde(flatten)]
    document: &'a D,
}

/// What every document has in front, whatever its version.
#[derive(Deserialize)]
struct Front {
    schema: String,
    /// bulkhead's version, where a document holds it.
    #[serde(default)]
    version: Option<String>,
}

/// A document that cannot be read.
#[derive(Debug, Error)]
pub enum DocumentError {
    /// There is no such file.
    #[error("{folder}: no {file} in it: {what}")]
    Absent {
        /// The folder.
        folder: String,
        /// What it would be called.
        file: &'static str,
        /// What that means.
        what: &'static str,
    },
    /// The operating system refused.
    #[error("{file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// What it said.
        source: io::Error,
    },
    /// A folder, a pipe, a device, a symbolic link.
    #[error("{file}: {what}: {remedy}")]
    NotAFile {
        /// The path.
        file: String,
        /// What it is instead.
        what: NotRegular,
        /// What to do.
        remedy: &'static str,
    },
    /// Bytes that are no text.
    #[error("{file}: byte {at} is no UTF-8, so this is not JSON: damaged; {remedy}")]
    NotText {
        /// The file.
        file: String,
        /// How many bytes are text.
        at: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// Not the JSON that it should be.
    #[error("{file}: no {expected}: {}: {found}; {remedy}", in_a_line(&source.to_string()))]
    Json {
        /// The file.
        file: String,
        /// What it should be.
        expected: String,
        /// Where and why.
        source: serde_json::Error,
        /// `cut short` or `damaged`.
        found: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// Another document under this name.
    #[error("{file}: schema {found:?}, expected {expected:?}: another file under this name; {remedy}")]
    Other {
        /// The file.
        file: String,
        /// What it says it is.
        found: String,
        /// What it would have to be.
        expected: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Another version of the document.
    #[error(
        "{file}: schema {found:?}, this build reads {expected:?}: use the launcher that wrote it{}",
        writer.as_ref().map_or_else(String::new, |writer| format!(" (bulkhead {})", in_a_line(writer)))
    )]
    Version {
        /// The file.
        file: String,
        /// What it says it is.
        found: String,
        /// What it would have to be.
        expected: String,
        /// The version of bulkhead that wrote it, if it says so.
        writer: Option<String>,
    },
    /// Values that do not fit each other.
    #[error("{file}: {}: damaged; {remedy}", in_a_line(why))]
    Content {
        /// The file.
        file: String,
        /// What does not fit.
        why: String,
        /// What to do.
        remedy: &'static str,
    },
}

/// A file that cannot be written.
#[derive(Debug, Error)]
#[error("cannot write {file}: {source}")]
pub struct SaveError {
    file: String,
    source: io::Error,
}

impl SaveError {
    fn of(path: &Path, source: io::Error) -> Self {
        Self { file: path.display().to_string(), source }
    }
}

/// Reads a document from the text of its file; `file` is what errors call it.
///
/// # Errors
/// As [`Document::read`].
pub fn parse<D: Document>(file: &str, text: &str) -> Result<D, DocumentError> {
    let (file, remedy) = (file.to_owned(), D::REMEDY);
    let wrong = |source: serde_json::Error| {
        let last = text.lines().last().unwrap_or_default().len();
        let at_end = source.is_eof() || (source.line() >= text.lines().count() && source.column() >= last);
        let found = if at_end { "cut short" } else { "damaged" };
        DocumentError::Json { file: file.clone(), expected: D::schema(), source, found, remedy }
    };
    let Front { schema: found, version: writer } = serde_json::from_str(text).map_err(wrong)?;
    let expected = D::schema();
    if found != expected {
        let is_this = found.rsplit_once('/').is_some_and(|(name, _)| name == D::NAME);
        return Err(if is_this {
            DocumentError::Version { file, found, expected, writer }
        } else {
            DocumentError::Other { file, found, expected, remedy }
        });
    }
    let document: D = serde_json::from_str(text).map_err(wrong)?;
    match document.check() {
        Ok(()) => Ok(document),
        Err(why) => Err(DocumentError::Content { file, why, remedy }),
    }
}

fn read_text(path: &Path, remedy: &'static str) -> Result<String, DocumentError> {
    let file = || path.display().to_string();
    let bytes = read_regular(path, MAX_BYTES).map_err(|source| match not_regular(&source) {
        Some(what) => DocumentError::NotAFile { file: file(), what, remedy },
        None => DocumentError::Io { file: file(), source },
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        DocumentError::NotText { file: file(), at, remedy }
    })
}

/// Writes a file of a folder of results under a draft name and then renames it: a process that is
/// killed leaves the old file or the new one, never half. Links are replaced and not followed, nor
/// is one that stands for the folder.
///
/// # Errors
/// [`SaveError`]: a full disk, a folder that cannot be written. What was there before is kept.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    write_file(path, bytes, false)
}

/// Writes a file whose path a user named: as [`write_whole`], but its folder may be reached through
/// links.
///
/// # Errors
/// As [`write_whole`]; there is no such folder.
pub fn write_named(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default();
    let real = parent.canonicalize().map_err(|error| SaveError::of(path, error))?.join(name);
    write_file(&real, bytes, false).map_err(|error| SaveError::of(path, error.source))
}

fn write_file(path: &Path, bytes: &[u8], synced: bool) -> Result<(), SaveError> {
    let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    // Synced before the rename, so that a crash of the machine leaves the old one or the new one,
    // never half.
    let write = || OpenDir::open(folder)?.write_whole(name, bytes, synced);
    write().map_err(|error| SaveError::of(path, error))
}
