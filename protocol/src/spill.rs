//! Stamp logs that are larger than `/dev/shm` (`--spill`): rings of chunks that a separate process,
//! the spiller, moves to disk.
//!
//! ```text
//!                    freed           saved              at (the chunk that is written)
//!   ────────────────── │ ───────────── │ ─────── … ────── │ ────────────▶ chunks, numbered from 0
//!   in the file, and   │ in the file,  │ full, waits for  │ free: zeroed, and the
//!   overwritten        │ being zeroed  │ the spiller      │ writer's when it gets there
//! ```
//!
//! **Single writer.** A chunk belongs to the thread until it is full, to the spiller until it is
//! zeroed, and then to the thread again. The thread publishes the chunk that it writes (`at`, in
//! its status block) once per chunk. The spiller publishes how many chunks it has saved and freed
//! (`saved`, `freed`, in a segment of its own for each thread); the thread reads them once per
//! chunk. A record costs no more than without spilling: the check that finds the end of a log also
//! finds the end of a chunk.
//!
//! **The thread never waits.** If the next chunk is not free when one is full, the spiller is late:
//! records are counted as dropped until it is free, with the positions of the first and the last of
//! them. That makes the run invalid, like any full log; the log continues after the loss.
//!
//! **A spiller may die at any time**, and its successor continues from the state in memory. The
//! spiller writes a chunk to its fixed offset in the file, publishes `saved`, zeroes the chunk, and
//! publishes `freed`. After a death before `saved`, the chunk is written again, with identical
//! bytes at the same offset; after a later death the chunk is only zeroed. So no chunk is
//! duplicated and none is missing.
//!
//! **The file** has the format of a log without a ring, so all readers of logs can read it. Chunks
//! that are not saved when the run ends are appended from the ring by the process that saves logs
//! anyway: the launcher, or its reaper.
//!
//! **A thread's next incarnation**, or its hot standby, needs the totals of its log
//! ([`PointTotals`]). The spiller keeps the totals of the saved chunks in two tables that alternate
//! (double buffering): the table that `saved` selects is complete, since the other table is written
//! before `saved` is advanced. So a spiller may die at any store, and a reader of a table that is
//! being written sees that `saved` has changed. Single records, from the end, are read from the
//! ring and before that from the file.

use crate::point_totals::{POINTS, PointTotals};
use crate::record::{Point, RECORD_WORDS};
use crate::status::{self, LOG_OFFSET, SPILL_CHUNK, SPILL_LOST, SPILL_LOST_FROM, SPILL_LOST_TO};
use core::ops::ControlFlow;
use serde::{Deserialize, Serialize};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;
use std::io;

/// Records in a chunk of a stamp log that is moved to disk: 256 KiB; one record under loom.
pub const CHUNK_RECORDS: u64 = if cfg!(loom) { 1 } else { 1 << 14 };
/// Words in a chunk of a stamp log that is moved to disk.
pub const CHUNK_WORDS: usize = CHUNK_RECORDS as usize * RECORD_WORDS;
/// Bytes in a chunk of a stamp log that is moved to disk.
pub const CHUNK_BYTES: u64 = CHUNK_WORDS as u64 * 8;

/// Offset in the spiller's segment of the number of freed chunks, in a cache line of its own: the
/// thread polls it.
const FREED: usize = HEADER_WORDS;
/// Offset of the number of chunks that are in the file.
const SAVED: usize = FREED + 16;
/// Offset of the two tables of totals.
const TABLES: usize = SAVED + 16;
/// The kind of the segment in which the spiller publishes how far it has moved a thread's log.
pub const SPILLED_KIND: SegmentKind = SegmentKind::new(
    22,
    "spilled",
    &[("freed", FREED), ("saved", SAVED), ("tables", TABLES), ("points", POINTS)],
);

/// The setting that stamp logs are moved to disk during a run, with the number of chunks in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spill {
    /// Number of chunks of each thread's ring, in the order of the plan's threads, at least two.
    pub chunks: Vec<u32>,
    /// The core of the spiller; `None`: the kernel chooses.
    pub core: Option<u32>,
}

impl Spill {
    /// Returns `true` if logs of these capacities (records) can each be a ring of at least two
    /// whole chunks.
    pub fn fits(&self, logs: impl ExactSizeIterator<Item = u64>) -> bool {
        let is_whole = |records: u64| records.is_multiple_of(CHUNK_RECORDS);
        let is_one = |chunks: u32, records: u64| (2..=records / CHUNK_RECORDS).contains(&u64::from(chunks));
        self.chunks.len() == logs.len()
            && self
                .chunks
                .iter()
                .zip(logs)
                .all(|(chunks, records)| is_whole(records) && is_one(*chunks, records))
    }
}

/// The dimensions of a stamp log that is a ring of chunks in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRing {
    /// Number of chunks in memory, at least one.
    pub chunks: u64,
    /// Maximum number of chunks of the whole log, at least one.
    pub max_chunks: u64,
    /// Number of instruments whose top of book is logged.
    pub instruments: usize,
}

impl LogRing {
    /// Returns the size in words of the segment of a thread whose log is this ring.
    pub const fn segment_words(self) -> usize {
        LOG_OFFSET + self.chunks as usize * CHUNK_WORDS
    }

    /// Returns the size in words of the spiller's segment for a log that is this ring.
    pub const fn spilled_words(self) -> usize {
        TABLES + 2 * PointTotals::table_words(self.instruments)
    }

    /// Returns the offset of the table that is complete when `saved` chunks are saved.
    const fn table_offset(self, saved: u64) -> usize {
        TABLES + (saved % 2) as usize * PointTotals::table_words(self.instruments)
    }

    /// Returns the offset (words) of a chunk of the log in the thread's segment.
    pub(crate) const fn chunk_offset(self, chunk: u64) -> usize {
        LOG_OFFSET + (chunk % self.chunks) as usize * CHUNK_WORDS
    }

    /// Limits the chunk number that a thread reports to those that are possible when `freed` chunks
    /// have been freed.
    fn clamp_chunk(self, reported: u64, freed: u64) -> u64 {
        reported.min(freed.saturating_add(self.chunks - 1)).min(self.max_chunks - 1).max(freed)
    }
}

/// Returns the number of records in a chunk: those before the first key of zero, found by
/// bisection.
fn count_chunk_records(key: impl Fn(usize) -> u64) -> usize {
    let (mut low, mut high) = (0, CHUNK_RECORDS as usize);
    while low < high {
        let middle = low + (high - low) / 2;
        if key(middle * RECORD_WORDS) == 0 { high = middle } else { low = middle + 1 }
    }
    low
}

/// The logging thread's end of a ring of log chunks: rotates to the next chunk, and records losses.
pub(crate) struct ChunkRotator {
    segment: AtomicWords,
    ring: LogRing,
    at: u64,
    freed: ReadOnlyWords,
    words: AtomicWords,
}

impl ChunkRotator {
    /// Attaches to the ring of log chunks in a thread's segment and the spiller's segment.
    /// Continues in the chunk in which an earlier incarnation ended.
    ///
    /// # Panics
    /// If a segment is too short for the ring.
    pub fn new(segment: &AtomicWords, spilled: &ReadOnlyWords, ring: LogRing) -> Self {
        assert!(segment.len() >= ring.segment_words(), "the segment is as the plan has it");
        let (words, freed) = (status::spill(segment), spilled.slice(FREED, 1));
        // Acquire: pairs with the spiller's Release; a freed chunk is zeroed.
        let at =
            ring.clamp_chunk(words[SPILL_CHUNK].load(Ordering::Relaxed), freed.load(0, Ordering::Acquire));
        // Release: pairs with the spiller's Acquire.
        words[SPILL_CHUNK].store(at, Ordering::Release);
        Self { segment: segment.clone(), ring, at, freed, words }
    }

    /// Returns the chunk of the log that is being written, and its number of records.
    pub fn current_chunk(&self) -> (AtomicWords, usize) {
        let words = self.segment.slice(self.ring.chunk_offset(self.at), CHUNK_WORDS);
        let records = count_chunk_records(|word| words[word].load(Ordering::Acquire));
        (words, records)
    }

    /// Returns the log's next chunk once the current one is full; `None` if there is none to use.
    /// That one is not free, or the log has reached its maximum length.
    pub fn rotate(&mut self) -> Option<AtomicWords> {
        let next = self.at + 1;
        // Acquire: pairs with the spiller's Release; a freed chunk is zeroed.
        let free = self.freed.load(0, Ordering::Acquire).saturating_add(self.ring.chunks);
        if next >= free || next >= self.ring.max_chunks {
            return None;
        }
        self.at = next;
        // Release: pairs with the spiller's Acquire; the previous chunk is complete.
        self.words[SPILL_CHUNK].store(next, Ordering::Release);
        Some(self.segment.slice(self.ring.chunk_offset(next), CHUNK_WORDS))
    }

    /// Notes in shared memory that a record was lost after the current chunk; `records` is the
    /// total so far.
    pub fn record_loss(&self, records: u64) {
        let place = (self.at + 1).saturating_mul(CHUNK_RECORDS);
        // Relaxed: only this thread writes these words.
        if self.words[SPILL_LOST].load(Ordering::Relaxed) == 0 {
            self.words[SPILL_LOST_FROM].store(place, Ordering::Relaxed);
        }
        self.words[SPILL_LOST_TO].store(place, Ordering::Relaxed);
        self.words[SPILL_LOST].store(records, Ordering::Relaxed);
    }

    /// Returns how many log records earlier incarnations of the thread have lost.
    pub fn lost_records(&self) -> u64 {
        self.words[SPILL_LOST].load(Ordering::Relaxed)
    }
}

/// The part of a thread's stamp log that is still in memory and not yet moved to disk.
pub struct UnspilledTail<'a> {
    log: &'a ReadOnlyWords,
    spilled: &'a ReadOnlyWords,
    ring: LogRing,
}

impl<'a> UnspilledTail<'a> {
    /// Creates the view of a thread's log in memory and of the spiller's segment.
    ///
    /// # Panics
    /// If a segment is too short for the ring.
    pub fn new(log: &'a ReadOnlyWords, spilled: &'a ReadOnlyWords, ring: LogRing) -> Self {
        assert!(
            log.len() >= ring.segment_words() && spilled.len() >= ring.spilled_words(),
            "as the plan has them"
        );
        Self { log, spilled, ring }
    }

    /// Returns the number of log chunks that are on disk.
    pub fn saved(&self) -> u64 {
        // Acquire: pairs with the spiller's Release; the table of totals is complete.
        self.spilled.load(SAVED, Ordering::Acquire).min(self.ring.max_chunks)
    }

    /// Returns the chunk that the thread writes, limited to possible values.
    fn current_chunk(&self) -> u64 {
        // Acquire: pairs with the thread's Release; the chunks before this one are complete.
        let said = self.log.load(HEADER_WORDS + status::SPILL_AT + SPILL_CHUNK, Ordering::Acquire);
        self.ring.clamp_chunk(said, self.spilled.load(FREED, Ordering::Acquire))
    }

    /// Returns the chunks that are not in the file, and the number of records of each: all but the
    /// last are full.
    fn chunks(&self, saved: u64) -> impl Iterator<Item = (u64, usize)> + '_ {
        let at = self.current_chunk();
        (saved..=at).map(move |chunk| {
            let first = self.ring.chunk_offset(chunk);
            let here = || count_chunk_records(|word| self.log.load(first + word, Ordering::Acquire));
            (chunk, if chunk < at { CHUNK_RECORDS as usize } else { here() })
        })
    }

    /// Calls `each` with the bytes of the part of the log that is not on disk, chunk by chunk.
    ///
    /// # Errors
    /// An error of `each`.
    pub fn for_each_chunk(&self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (chunk, records) in self.chunks(self.saved()) {
            bytes.clear();
            let first = self.ring.chunk_offset(chunk);
            for word in first..first + records * RECORD_WORDS {
                // Relaxed: the thread that wrote them has ended.
                bytes.extend_from_slice(&self.log.load(word, Ordering::Relaxed).to_le_bytes());
            }
            each(&bytes)?;
        }
        Ok(())
    }

    /// Returns the number of records of a stamp point in the whole log, on disk and in memory.
    pub fn count(&self, point: Point) -> u64 {
        let (mut place, mut sums) = (SpillLocation::default(), PointTotals::new(self.ring.instruments));
        self.scan(&mut place, &mut sums);
        sums.count(point)
    }

    /// Counts the log's records after a position into the totals, and advances the position. The
    /// log may still be written and spilled.
    pub fn scan(&self, place: &mut SpillLocation, sums: &mut PointTotals) {
        let mut keys = Vec::new();
        loop {
            let saved = self.saved();
            if place.chunk < saved {
                let table = self.ring.table_offset(saved);
                // Acquire: the spiller stores the next table with Release. If any of it is seen,
                // the next iteration sees that `saved` has moved, and reads the other table.
                let load = |word| self.spilled.load(table + word, Ordering::Acquire);
                *sums = PointTotals::from_table(self.ring.instruments, load);
                *place = SpillLocation { chunk: saved, record: 0 };
                continue;
            }
            let at = self.current_chunk();
            if !self.try_read_keys(*place, &mut keys) {
                continue;
            }
            keys.iter().for_each(|key| sums.add(*key));
            place.record += keys.len();
            if place.chunk >= at {
                return;
            }
            *place = SpillLocation { chunk: place.chunk + 1, record: 0 };
        }
    }

    /// Reads the keys of a chunk from `location` on. Returns `false` if the chunk is saved, and may
    /// already be overwritten.
    fn try_read_keys(&self, place: SpillLocation, keys: &mut Vec<u64>) -> bool {
        let first = self.ring.chunk_offset(place.chunk);
        // Acquire: pairs with the Release of `free_oldest_chunk` and of the thread's later keys. If
        // any of them is seen, so is the change of `saved`.
        let key = |record: usize| self.log.load(first + record * RECORD_WORDS, Ordering::Acquire);
        keys.clear();
        keys.extend((place.record..CHUNK_RECORDS as usize).map(key).take_while(|key| *key != 0));
        self.saved() <= place.chunk
    }

    /// Calls `each` with the key words of all of the log's records, the newest first, until it
    /// breaks. `saved` reads a chunk from the file by its number. The thread has ended; the log may
    /// still be spilled.
    ///
    /// # Errors
    /// An error of `saved`.
    pub fn for_each_key_rev(
        &self,
        mut saved: impl FnMut(u64) -> io::Result<Vec<u64>>,
        mut each: impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut keys = Vec::new();
        for chunk in (0..=self.current_chunk()).rev() {
            if self.saved() > chunk || !self.try_read_keys(SpillLocation { chunk, record: 0 }, &mut keys) {
                keys = saved(chunk)?;
            }
            if keys.iter().rev().try_for_each(|key| each(*key)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A position in a log that is moved to disk: the chunk, and the number of its records already
/// read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillLocation {
    chunk: u64,
    record: usize,
}

/// Moves full chunks of a thread's stamp log from memory to disk, and frees them for reuse.
pub struct ChunkSpiller {
    pub(crate) log: AtomicWords,
    spilled: AtomicWords,
    pub(crate) ring: LogRing,
    pub(crate) saved: u64,
    pub(crate) freed: u64,
    bytes: Vec<u8>,
}

impl ChunkSpiller {
    /// Attaches to the chunks of a thread's log, and continues where a crashed spiller stopped.
    ///
    /// # Panics
    /// If a segment is too short for the ring.
    pub fn new(log: AtomicWords, spilled: AtomicWords, ring: LogRing) -> Self {
        assert!(
            log.len() >= ring.segment_words() && spilled.len() >= ring.spilled_words(),
            "as the plan has them"
        );
        let [saved, freed] = [SAVED, FREED].map(|word| spilled[word].load(Ordering::Acquire));
        Self { log, spilled, ring, saved, freed, bytes: Vec::with_capacity(CHUNK_BYTES as usize) }
    }

    /// Returns the number of full log chunks that are not on disk yet.
    pub fn pending_chunks(&self) -> u64 {
        // Acquire: pairs with the thread's Release; the chunks before this one are complete.
        let said = status::spill(&self.log)[SPILL_CHUNK].load(Ordering::Acquire);
        self.ring.clamp_chunk(said, self.freed).saturating_sub(self.saved)
    }

    /// Moves the next full log chunk to disk and frees it. Returns `false` if there is none. `save`
    /// gets its number and bytes, and returns when they are in the file.
    ///
    /// # Errors
    /// An error of `save`. The chunk is kept for the next call.
    pub fn spill_next(&mut self, save: impl FnOnce(u64, &[u8]) -> io::Result<()>) -> io::Result<bool> {
        // A chunk that is already saved was left by a predecessor that died before it freed the
        // chunk.
        let is_saved = self.freed < self.saved || self.save_next_chunk(save)?;
        if is_saved {
            self.free_oldest_chunk();
        }
        Ok(is_saved)
    }

    pub(crate) fn save_next_chunk(
        &mut self,
        save: impl FnOnce(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<bool> {
        if self.pending_chunks() == 0 {
            return Ok(false);
        }
        let sums = self.copy_next_chunk();
        save(self.saved, &self.bytes)?;
        self.saved += 1;
        // Not the table that `saved` selects for readers: they switch to this one when `saved` is
        // stored below.
        sums.store(&self.spilled[self.ring.table_offset(self.saved)..]);
        // Release: pairs with the Acquire of `UnspilledTail::saved`.
        self.spilled[SAVED].store(self.saved, Ordering::Release);
        Ok(true)
    }

    /// Copies the next chunk, and returns the totals that include it.
    fn copy_next_chunk(&mut self) -> PointTotals {
        let table = self.ring.table_offset(self.saved);
        let mut sums = PointTotals::from_table(self.ring.instruments, |word| {
            self.spilled[table + word].load(Ordering::Relaxed)
        });
        self.bytes.clear();
        let first = self.ring.chunk_offset(self.saved);
        for record in self.log[first..first + CHUNK_WORDS].chunks_exact(RECORD_WORDS) {
            // Relaxed: the chunk is ours since the Acquire in `pending_chunks`.
            let [key, value] = [0, 1].map(|word| record[word].load(Ordering::Relaxed));
            sums.add(key);
            self.bytes.extend_from_slice(&key.to_le_bytes());
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
        sums
    }

    /// Zeroes the oldest saved chunk and returns it to the thread.
    fn free_oldest_chunk(&mut self) {
        let first = self.ring.chunk_offset(self.freed);
        for word in &self.log[first..first + CHUNK_WORDS] {
            // Release: see `UnspilledTail::try_read_keys`.
            word.store(0, Ordering::Release);
        }
        self.freed += 1;
        // Release: pairs with the Acquire in `ChunkRotator::rotate`.
        self.spilled[FREED].store(self.freed, Ordering::Release);
    }
}
