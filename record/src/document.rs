//! Versioned JSON documents: one way to read and one way to write every saved document.
//!
//! A document names itself first: `"schema": "bulkhead.run/3"` is its name and version. The schema
//! is checked before anything else, since the content of another version need not parse.
//!
//! Within a version, optional keys may be added: an unknown key is ignored, and a missing key is an
//! error unless it has a default. Any other change requires a new version, which other builds
//! refuse.

use crate::escape::single_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use system::folder::{OpenDir, not_regular, read_regular};
use thiserror::Error;

const MAX_BYTES: u64 = 1 << 30;

/// A type that is saved as versioned JSON. Its name and keys are defined in its own module only.
pub trait Document: Serialize + Sized {
    /// Name of the document's file, for example `run.json`.
    const FILE: &'static str;
    /// Name of the document's schema, for example `bulkhead.run`.
    const NAME: &'static str;
    /// Version of the document's format that this build reads and writes, from 1.
    const VERSION: u32;
    /// Part of the error message for a folder that lacks the document's file. The default is for
    /// results computed from the logs of a run.
    const ABSENT: &'static str = "not the folder of a run, or its logs were never merged";
    /// Remedy in the error message for a damaged file of the document. The default is for results
    /// computed from the logs of a run.
    const REMEDY: &'static str = "launcher report FOLDER makes it again from the logs";
    /// `true` if the JSON is indented for people to read.
    const PRETTY: bool = true;
    /// `true` if the file is synced to disk before it replaces the previous one.
    const SYNCED: bool = false;

    /// Converts parsed JSON to the document. Each type has a function of its own, so that no other
    /// crate compiles the conversion again.
    fn from_json(value: Value) -> serde_json::Result<Self>;

    /// Checks that the values of a read document are consistent.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the name and version of the document's schema, as saved in its file.
    fn schema() -> String {
        format!("{}/{}", Self::NAME, Self::VERSION)
    }

    /// Reads the document from a folder.
    fn read(folder: &Path) -> Result<Self, DocumentError> {
        read(folder)
    }

    /// Serializes the document to the bytes of its file.
    ///
    /// # Errors
    /// None in practice: no document has values that JSON cannot hold.
    fn json(&self) -> serde_json::Result<Vec<u8>> {
        if Self::PRETTY {
            return answer_json(&Self::schema(), self);
        }
        serde_json::to_vec(&VersionedDocument { schema: Self::schema(), document: self })
    }

    /// Writes the document into a folder atomically.
    ///
    /// # Errors
    /// [`SaveError`]: a full disk or a folder without write permission. The previous file is kept.
    fn save(&self, folder: &Path) -> Result<(), SaveError> {
        let path = folder.join(Self::FILE);
        let bytes = self.json().map_err(|error| SaveError::new(&path, error.into()))?;
        write_file(&path, &bytes, Self::SYNCED)
    }
}

/// Reads a document (a versioned JSON file) from a folder.
///
/// # Errors
/// No such file, or one that is damaged or of another version.
pub fn read<D: Document>(folder: &Path) -> Result<D, DocumentError> {
    let path = folder.join(D::FILE);
    parse(&path, &read_text(&path, D::ABSENT, D::REMEDY)?)
}

/// Serializes the answer that a command prints with `--json`: indented, with the name of its
/// schema.
///
/// # Errors
/// A value that JSON cannot hold.
pub fn answer_json(schema: &str, answer: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(&VersionedDocument { schema: schema.into(), document: answer })?;
    json.push(b'\n');
    Ok(json)
}

#[derive(Serialize)]
struct VersionedDocument<'a, D> {
    schema: String,
    #[serde(flatten)]
    document: &'a D,
}

/// The keys that every document has, whatever its version.
#[derive(Deserialize)]
struct SchemaHeader {
    schema: String,
    #[serde(default)]
    version: Option<String>,
}

/// The kind of an error in reading a document (a versioned JSON file).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentFault {
    /// The document's file is missing.
    Absent,
    /// The operating system returned an error.
    Unreadable,
    /// The path is not a regular file: a directory, a pipe, a device or a symbolic link.
    NotAFile,
    /// The file is not UTF-8.
    NotText,
    /// The file is not the expected JSON.
    Json,
    /// The file holds another kind of document.
    Other,
    /// The file holds another version of the document.
    Version,
    /// The values of the document are inconsistent.
    Content,
}

/// An error in reading a document (a versioned JSON file).
#[derive(Debug, Error)]
#[error("{message}")]
pub struct DocumentError {
    /// Kind of the error.
    pub fault: DocumentFault,
    /// Path of the file.
    pub path: PathBuf,
    /// Path, cause and remedy.
    message: String,
}

impl DocumentError {
    /// Creates an error of this kind about a document's file. The message names path, cause and
    /// remedy.
    pub fn new(fault: DocumentFault, path: &Path, message: String) -> Self {
        Self { fault, path: path.to_owned(), message }
    }
}

/// An error in writing a file.
#[derive(Debug, Error)]
#[error("cannot write {file}: {source}")]
pub struct SaveError {
    file: String,
    source: io::Error,
}

impl SaveError {
    fn new(path: &Path, source: io::Error) -> Self {
        Self { file: path.display().to_string(), source }
    }
}

/// Parses a saved JSON document from the text of its file, whose path is for errors.
fn parse<D: Document>(path: &Path, text: &str) -> Result<D, DocumentError> {
    let (file, remedy, expected) = (path.display(), D::REMEDY, D::schema());
    let fail = |fault, message| DocumentError::new(fault, path, message);
    let wrong = |source: serde_json::Error| {
        let last = text.lines().last().unwrap_or_default().len();
        let at_end = source.is_eof() || (source.line() >= text.lines().count() && source.column() >= last);
        let found = if at_end { "cut short" } else { "damaged" };
        let source = single_line(&source.to_string());
        fail(DocumentFault::Json, format!("{file}: no {expected}: {source}: {found}; {remedy}"))
    };
    let value: Value = serde_json::from_str(text).map_err(wrong)?;
    let SchemaHeader { schema: found, version: writer } = SchemaHeader::deserialize(&value).map_err(wrong)?;
    if found != expected {
        let is_this = found.rsplit_once('/').is_some_and(|(name, _)| name == D::NAME);
        let writer =
            writer.map_or_else(String::new, |writer| format!(" (bulkhead {})", single_line(&writer)));
        return Err(if is_this {
            let what = format!("this build reads {expected:?}: use the launcher that wrote it{writer}");
            fail(DocumentFault::Version, format!("{file}: schema {found:?}, {what}"))
        } else {
            let what = format!("expected {expected:?}: another file under this name; {remedy}");
            fail(DocumentFault::Other, format!("{file}: schema {found:?}, {what}"))
        });
    }
    let document = D::from_json(value).map_err(wrong)?;
    let inconsistent = |why: String| {
        fail(DocumentFault::Content, format!("{file}: {}: damaged; {remedy}", single_line(&why)))
    };
    document.check().map_err(inconsistent)?;
    Ok(document)
}

fn read_text(path: &Path, absent: &str, remedy: &str) -> Result<String, DocumentError> {
    let file = path.display();
    let fail = |fault, message| DocumentError::new(fault, path, message);
    let bytes = read_regular(path, MAX_BYTES).map_err(|source| match not_regular(&source) {
        Some(what) => fail(DocumentFault::NotAFile, format!("{file}: {what}: {remedy}")),
        None if source.kind() == ErrorKind::NotFound => {
            let (folder, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
            let name = name.display();
            fail(DocumentFault::Absent, format!("{}: no {name} in it: {absent}", folder.display()))
        }
        None => fail(DocumentFault::Unreadable, format!("{file}: {source}")),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let what = format!("byte {at} is no UTF-8, so this is not JSON: damaged; {remedy}");
        fail(DocumentFault::NotText, format!("{file}: {what}"))
    })
}

/// Writes a file atomically: to a temporary name that is then renamed. A killed process leaves the
/// old file or the new one. Symbolic links are replaced, not followed; a link in place of the
/// folder is refused.
///
/// # Errors
/// [`SaveError`]: a full disk or a folder without write permission. The previous file is kept.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    write_file(path, bytes, false)
}

/// Writes a file atomically to a path that a user named, and follows links in its parent path,
/// which [`write_atomically`] refuses.
pub fn write_user_path(path: &Path, bytes: &[u8]) -> Result<(), SaveError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default();
    let real = parent.canonicalize().map_err(|error| SaveError::new(path, error))?.join(name);
    write_file(&real, bytes, false).map_err(|error| SaveError::new(path, error.source))
}

fn write_file(path: &Path, bytes: &[u8], synced: bool) -> Result<(), SaveError> {
    let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
    // Synced before the rename, so that a power failure leaves the old file or the new one.
    let write = || OpenDir::open(folder)?.write_whole(name, bytes, synced);
    write().map_err(|error| SaveError::new(path, error))
}
