//! The journal tool: list, verify, dump, follow, and cut at damage. Text goes to whatever the
//! caller writes to.

use crate::disk::{self, Os};
use crate::error::JournalError;
use crate::format::{self, RECORD_HEADER, SEGMENT_HEADER, WATERMARK};
use crate::reader::{Reader, Record};
use crate::recovery;
use crate::segment::{self, OpenSegment};
use crate::snapshot;
use crate::writer;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use system::folder::OpenDir;
use thiserror::Error;

/// Why a tool could not do it.
#[derive(Debug, Error)]
pub enum ToolError {
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What it writes to.
    #[error("cannot write what was found: {0}")]
    Output(#[from] io::Error),
    /// Nothing to cut.
    #[error("{}: nothing is damaged: nothing was cut", .0.display())]
    Whole(PathBuf),
}

/// How records are dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people: sequence, length, payload as text where it is text.
    Text,
    /// A JSON object a line, the payload in hexadecimal.
    Json,
    /// CSV with a header line, the payload in hexadecimal.
    Csv,
}

/// The folder of a journal, for a path to it or to a file in it.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if path.is_file() && parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) if path.is_file() => parent,
        _ => path,
    }
}

/// Whether there is a segment or a snapshot.
///
/// # Errors
/// A folder that cannot be read.
pub fn is_journal(path: &Path) -> Result<bool, ToolError> {
    let folder = folder(path);
    Ok(!segment::list(folder)?.is_empty() || !snapshot::list(folder)?.is_empty())
}

/// Lists segments and snapshots, a line each.
///
/// # Errors
/// What cannot be read at all; a damaged file is a line.
pub fn list(path: &Path, out: &mut dyn Write) -> Result<(), ToolError> {
    let folder = folder(path);
    for (_, path) in segment::list(folder)? {
        let name = path.file_name().unwrap_or_default().display().to_string();
        match OpenSegment::open(&path) {
            Ok(open) => {
                let first =
                    open.first()?.map_or("no record".to_owned(), |first| format!("from record {first}"));
                let (bytes, synced) = (open.header.bytes, open.header.watermark);
                writeln!(out, "{name}  {bytes} bytes  {first}  synced up to {synced}")?;
            }
            Err(JournalError::Bad { what, .. }) => writeln!(out, "{name}  {what}")?,
            Err(error) => return Err(error.into()),
        }
    }
    for (sequence, path) in snapshot::list(folder)? {
        let name = path.file_name().unwrap_or_default().display().to_string();
        match snapshot::read(&path)? {
            Ok(found) => writeln!(out, "{name}  {} bytes  up to record {sequence}", found.state.len())?,
            Err(what) => writeln!(out, "{name}  {what}")?,
        }
    }
    Ok(())
}

/// Reads everything, as recovery would, and says what it finds; whether nothing is lost.
///
/// # Errors
/// What cannot be read at all.
pub fn verify(path: &Path, out: &mut dyn Write) -> Result<bool, ToolError> {
    let folder = folder(path);
    let end = recovery::read(folder, |_| {})?;
    for (path, what) in &end.bad_snapshots {
        writeln!(out, "{}: {what}", path.display())?;
    }
    let snapshot = match end.snapshot {
        0 => "no snapshot".to_owned(),
        sequence => format!("a snapshot up to record {sequence}"),
    };
    writeln!(out, "{snapshot}, then {} records of the log: the last one is {}", end.records, end.last)?;
    if let Some(why) = &end.stopped {
        writeln!(out, "it ends there because of: {why}")?;
    }
    let is_whole = end.last >= end.watermark;
    if !is_whole {
        writeln!(out, "DAMAGED: records {} to {} were synced and are lost", end.last + 1, end.watermark)?;
    }
    Ok(is_whole && end.bad_snapshots.is_empty())
}

fn hexadecimal(payload: &[u8]) -> String {
    payload.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn print(record: Record<'_>, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let Record { sequence, payload } = record;
    match form {
        Form::Text => match std::str::from_utf8(payload) {
            Ok(text) if !text.contains(char::is_control) => {
                writeln!(out, "{sequence}  {}  {text}", payload.len())
            }
            _ => writeln!(out, "{sequence}  {}  {}", payload.len(), hexadecimal(payload)),
        },
        Form::Json => {
            let payload = hexadecimal(payload);
            writeln!(out, "{}", serde_json::json!({ "sequence": sequence, "payload": payload }))
        }
        Form::Csv => writeln!(out, "{sequence},{},{}", payload.len(), hexadecimal(payload)),
    }
}

/// Dumps the log's records, from one on or from the first that is there, until nothing more is
/// there and `goes_on` says no. It is asked whenever nothing more is there: to follow a journal
/// that is written, it sleeps a little and says yes.
///
/// # Errors
/// The first damaged record, behind those before it.
pub fn dump(
    path: &Path,
    from: Option<u64>,
    form: Form,
    out: &mut dyn Write,
    mut goes_on: impl FnMut() -> bool,
) -> Result<u64, ToolError> {
    let mut reader = Reader::open(folder(path), from)?;
    if form == Form::Csv {
        writeln!(out, "sequence,length,payload")?;
    }
    let mut records = 0;
    loop {
        while let Some(record) = reader.next()? {
            print(record, form, out)?;
            records += 1;
        }
        out.flush()?;
        if !goes_on() {
            return Ok(records);
        }
    }
}

/// Copies a file of a folder, whole or not at all.
fn copy(place: &OpenDir, from: &OsStr, to: &OsStr) -> io::Result<()> {
    let mut draft = place.draft(to)?;
    io::copy(&mut place.read(from)?, &mut draft)?;
    draft.save()
}

/// Gives up everything from the first damaged record on, so that a writer goes on before it. The
/// damaged segment is copied first, and later ones are set aside, all under names that begin with
/// `aside-`. How many records are left is the result.
///
/// # Errors
/// [`ToolError::Whole`]; [`JournalError::Locked`] while somebody writes.
pub fn cut(path: &Path) -> Result<u64, ToolError> {
    let folder = folder(path);
    let _lock = writer::lock(folder)?;
    let end = recovery::read(folder, |_| {})?;
    if end.stopped.is_none() && end.last >= end.watermark {
        return Err(ToolError::Whole(folder.to_owned()));
    }
    let (mut reader, mut place) = (Reader::open(folder, Some(end.last.max(1)))?, None);
    while let Ok(Some(record)) = reader.next() {
        let bytes = format::size(record.payload.len()) as u64;
        if record.sequence > end.last {
            break;
        }
        place = reader.place().map(|(path, at)| (path.to_owned(), at.max(SEGMENT_HEADER as u64 + bytes)));
    }
    let last = end.segments.last().copied().unwrap_or(0);
    for (index, path) in segment::list(folder)? {
        let aside = folder.join(format!("aside-{index:08}"));
        if index > last {
            disk::rename(&Os, &path, &aside)?;
            continue;
        }
        let io = |what| JournalError::io(&path, what);
        let Ok(open) = OpenSegment::open(&path) else { continue };
        let name = path.file_name().unwrap_or_default();
        let opened = OpenDir::open(folder).map_err(io("open its folder"))?;
        let file = opened.edit(name).map_err(io("open it"))?;
        if index == last {
            copy(&opened, name, aside.file_name().unwrap_or_default()).map_err(io("copy it"))?;
            let at = match &place {
                Some((found, at)) if *found == path => *at,
                _ => SEGMENT_HEADER as u64,
            };
            let rest = open.header.bytes.saturating_sub(at) as usize;
            file.write_all_at(&vec![0; rest.max(RECORD_HEADER)], at).map_err(io("write it"))?;
        }
        let mark = open.header.watermark.min(end.last);
        let mut words = [0; 16];
        words[..8].copy_from_slice(&mark.to_le_bytes());
        words[8..].copy_from_slice(&(!mark).to_le_bytes());
        file.write_all_at(&words, WATERMARK as u64).map_err(io("write it"))?;
        disk::sync(&Os, &path, &file)?;
    }
    disk::sync_folder(&Os, folder)?;
    Ok(end.last)
}
