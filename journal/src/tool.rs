//! The journal tool: list, verify, dump, follow, and cut a log at damage.

use crate::disk::{self, OsDisk};
use crate::error::JournalError;
use crate::files::open_for_update;
use crate::format::{self, RECORD_HEADER, SEGMENT_HEADER, WATERMARK};
use crate::lock;
use crate::reader::{Reader, Record};
use crate::recovery;
use crate::segment::{self, OpenSegment};
use crate::snapshot;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error of the journal tool, such as a missing directory.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The journal cannot be read or changed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The log is not damaged.
    #[error("{}: the log is not damaged: nothing was cut", .0.display())]
    Undamaged(PathBuf),
}

/// The output format of the journal tool's dump: text or JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpFormat {
    /// Text: sequence, length, and the payload as text (control characters escaped) or, where it
    /// is not one, in hexadecimal.
    Text,
    /// One JSON object per line, the payload in hexadecimal.
    Json,
    /// CSV with a header line, the payload in hexadecimal.
    Csv,
}

/// Returns the directory of a journal, from its path or from that of a file in it.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if path.is_file() && parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) if path.is_file() => parent,
        _ => path,
    }
}

/// Returns `true` if a directory holds a journal: a segment or a snapshot.
///
/// # Errors
/// The directory cannot be read.
pub fn is_journal(path: &Path) -> Result<bool, ToolError> {
    let folder = folder(path);
    Ok(!segment::list(folder)?.is_empty() || !snapshot::list(folder)?.is_empty())
}

/// Lists the segments and snapshots of a journal, one per line. A damaged file is listed with the
/// reason.
///
/// # Errors
/// A file cannot be read, or the output cannot be written.
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

/// Reads a journal as recovery would and reports whether records are lost. Returns `true` if
/// nothing is lost.
///
/// # Errors
/// A file cannot be read, or the output cannot be written.
pub fn verify(path: &Path, out: &mut dyn Write) -> Result<bool, ToolError> {
    let folder = folder(path);
    let end = recovery::read_log(folder, |_| {})?;
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
    let missing = end.lost.clone().or(end.gap_description());
    if let Some(why) = &missing {
        writeln!(out, "DAMAGED: records from {} on are missing: {why}", end.last + 1)?;
    }
    Ok(is_whole && missing.is_none() && end.bad_snapshots.is_empty())
}

fn hexadecimal(payload: &[u8]) -> String {
    payload.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns `true` if at most one character in eight is a control character.
fn is_mostly_printable(text: &str) -> bool {
    text.chars().filter(|c| c.is_control()).count() * 8 <= text.chars().count()
}

/// Returns a text with its control characters as `\n` or `\u{1b}`.
fn shown_text(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut shown, c| {
        if c.is_control() {
            shown.extend(c.escape_default())
        } else {
            shown.push(c)
        }
        shown
    })
}

fn print(record: Record<'_>, dump_format: DumpFormat, out: &mut dyn Write) -> io::Result<()> {
    let Record { sequence, payload } = record;
    match dump_format {
        DumpFormat::Text => match std::str::from_utf8(payload) {
            Ok(text) if is_mostly_printable(text) => {
                writeln!(out, "{sequence}  {}  {}", payload.len(), shown_text(text))
            }
            _ => writeln!(out, "{sequence}  {}  {}", payload.len(), hexadecimal(payload)),
        },
        DumpFormat::Json => {
            let payload = hexadecimal(payload);
            writeln!(out, "{{\"payload\":\"{payload}\",\"sequence\":{sequence}}}")
        }
        DumpFormat::Csv => writeln!(out, "{sequence},{},{}", payload.len(), hexadecimal(payload)),
    }
}

/// Prints the records of a log, from sequence number `from` or from the first record. Returns the
/// number dumped. At the end of the log, `should_continue` decides whether to poll for more, and
/// may sleep before.
///
/// # Errors
/// The first damaged record, after all records before it; the output cannot be written.
pub fn dump(
    path: &Path,
    from: Option<u64>,
    dump_format: DumpFormat,
    out: &mut dyn Write,
    should_continue: impl FnMut() -> bool,
) -> Result<u64, ToolError> {
    dump_described(path, from, dump_format, out, |_| None, should_continue)
}

/// Prints the records of a log as [`dump`] does; in text, a description that `describe` returns for
/// a record replaces the record's payload.
///
/// # Errors
/// As [`dump`].
pub fn dump_described(
    path: &Path,
    from: Option<u64>,
    dump_format: DumpFormat,
    out: &mut dyn Write,
    describe: impl Fn(Record<'_>) -> Option<String>,
    mut should_continue: impl FnMut() -> bool,
) -> Result<u64, ToolError> {
    let mut reader = Reader::open(folder(path), from)?;
    if dump_format == DumpFormat::Csv {
        writeln!(out, "sequence,length,payload")?;
    }
    let mut records = 0;
    loop {
        while let Some(record) = reader.next_record()? {
            match describe(record).filter(|_| dump_format == DumpFormat::Text) {
                Some(text) => writeln!(out, "{}  {}  {text}", record.sequence, record.payload.len())?,
                None => print(record, dump_format, out)?,
            }
            records += 1;
        }
        out.flush()?;
        if !should_continue() {
            return Ok(records);
        }
    }
}

/// Copies a segment. The copy gets its name only when it is complete.
fn copy(dir: &Path, mut from: &File, to: &Path) -> Result<(), JournalError> {
    let unfinished = dir.join(segment::UNFINISHED);
    disk::remove(&OsDisk, &unfinished)?;
    let mut copy = disk::create(&OsDisk, &unfinished)?;
    io::copy(&mut from, &mut copy).map_err(JournalError::io(&unfinished, "write it"))?;
    disk::rename(&OsDisk, &unfinished, to)
}

/// Removes everything from a log's first damaged record on, so that a writer can continue there.
/// Returns the last record left. A copy of the damaged segment, and all later segments, get names
/// that begin with `orphaned-`.
///
/// # Errors
/// [`ToolError::Undamaged`]; [`JournalError::Locked`] while a writer has the log open.
pub fn cut(path: &Path) -> Result<u64, ToolError> {
    let folder = folder(path);
    let _lock = lock::lock(folder)?;
    let end = recovery::read_log(folder, |_| {})?;
    if end.stopped.is_none() && end.last >= end.watermark {
        return Err(ToolError::Undamaged(folder.to_owned()));
    }
    let (mut reader, mut position) = (Reader::open(folder, Some(end.last.max(1)))?, None);
    while let Ok(Some(record)) = reader.next_record() {
        let bytes = format::record_size(record.payload.len()) as u64;
        if record.sequence > end.last {
            break;
        }
        position =
            reader.position().map(|(path, at)| (path.to_owned(), at.max(SEGMENT_HEADER as u64 + bytes)));
    }
    let last = end.segments.last().copied().unwrap_or(0);
    for (index, path) in segment::list(folder)? {
        let orphaned = folder.join(format!("orphaned-{index:08}"));
        if index > last {
            disk::rename(&OsDisk, &path, &orphaned)?;
            continue;
        }
        let io = |what| JournalError::io(&path, what);
        let Ok(open) = OpenSegment::open(&path) else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = open_for_update(folder, &name).map_err(io("open it"))?;
        if index == last {
            copy(folder, &open.file, &orphaned)?;
            let at = match &position {
                Some((found, at)) if *found == path => *at,
                _ => SEGMENT_HEADER as u64,
            };
            let remaining = open.header.bytes.saturating_sub(at) as usize;
            file.write_all_at(&vec![0; remaining.max(RECORD_HEADER)], at).map_err(io("write it"))?;
        }
        let watermark = open.header.watermark.min(end.last);
        let words = [watermark, !watermark].map(u64::to_le_bytes);
        file.write_all_at(words.as_flattened(), WATERMARK as u64).map_err(io("write it"))?;
        disk::sync(&OsDisk, &path, &file)?;
    }
    disk::sync_dir(&OsDisk, folder)?;
    Ok(end.last)
}
