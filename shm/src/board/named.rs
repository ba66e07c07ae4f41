//! Boards under a name in `/dev/shm`, between processes.

use super::{BoardError, BoardShape, KIND, Reader, Writer};
use crate::memory::header::{Header, run_hash};
use crate::memory::owned::OwnedSegment;
use crate::memory::{AtomicWords, Region, is_valid_name};
use crate::process::start_time;
use core::ops::{Deref, DerefMut};

/// The writing end of a board (newest values for readers) under a name in `/dev/shm`. Dropping it
/// removes the name; attached readers keep the memory. A killed process leaves the board as it is:
/// see [`NamedWriter::resume`].
pub struct NamedWriter {
    writer: Writer,
    /// Its segment, locked for as long as this lives; `None` once it was left.
    segment: Option<OwnedSegment>,
}

fn segment(name: &str) -> Result<String, BoardError> {
    if is_valid_name(name) { Ok(format!("{name}.board")) } else { Err(BoardError::Name(name.into())) }
}

impl NamedWriter {
    /// Creates a board under a name in `/dev/shm`, mode 0600. Leftovers of a crashed writer are
    /// removed first.
    ///
    /// # Errors
    /// [`BoardError::Name`]; a name that is taken; too little room. Nothing is left over then.
    pub fn create(name: &str, shape: BoardShape) -> Result<Self, BoardError> {
        let name = segment(name)?;
        remove_dead(&name);
        let write_header = |words: &AtomicWords| shape.write_header(words, header(&name));
        let (segment, region) = OwnedSegment::create(&name, shape.segment_words(), true, write_header)?;
        match Writer::attach(&region.words()) {
            Ok(writer) => Ok(Self { writer, segment: Some(segment) }),
            Err(error) => {
                let _ = segment.unlink();
                Err(error)
            }
        }
    }

    /// Continues the board of a crashed writer: attached readers keep their values and see new
    /// ones.
    ///
    /// # Errors
    /// No board has that name; [`BoardError::Written`]: its writer is running;
    /// [`BoardError::Version`].
    pub fn resume(name: &str) -> Result<Self, BoardError> {
        let name = segment(name)?;
        let Some(segment) = OwnedSegment::resume(&name)? else { return Err(BoardError::Written(name)) };
        let words = Region::map(&name, segment.file(), true)?.words();
        Ok(Self { writer: Writer::attach(&words)?, segment: Some(segment) })
    }

    /// Closes the writer of a board (latest values, read by many) and leaves its memory for the
    /// next writer.
    pub fn leave(mut self) {
        self.segment = None;
    }
}

impl Deref for NamedWriter {
    type Target = Writer;

    #[inline(always)]
    fn deref(&self) -> &Writer {
        &self.writer
    }
}

impl DerefMut for NamedWriter {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Writer {
        &mut self.writer
    }
}

impl Drop for NamedWriter {
    fn drop(&mut self) {
        if let Some(segment) = self.segment.take() {
            // A name that cannot be removed is left, and the next creator removes it.
            let _ = segment.unlink();
        }
    }
}

impl Reader {
    /// Attaches a reading end to the board with this name, on pages that it cannot write.
    ///
    /// # Errors
    /// No board has that name yet; [`BoardError::Name`]; the file is not a board of this build.
    pub fn open(name: &str) -> Result<Self, BoardError> {
        let name = segment(name)?;
        Self::attach(&Region::open_read_only(&name)?)
    }
}

fn header(name: &str) -> Header {
    let creator_pid = std::process::id();
    let creator_start = start_time(creator_pid).unwrap_or(0);
    Header { creator_pid, creator_start, run: run_hash(name), ..Header::anonymous(KIND, 0, 0, 0, 0) }
}

/// Removes a board whose writer is dead.
fn remove_dead(name: &str) {
    let is_board = |file| Region::map_read_only(name, file).is_ok_and(|view| BoardShape::read(&view).is_ok());
    if let Ok(Some(segment)) = OwnedSegment::resume(name)
        && is_board(segment.file())
    {
        let _ = segment.unlink();
    }
}
