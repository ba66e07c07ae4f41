//! `--spill`: stamp logs that are longer than `/dev/shm` has room, as rings of chunks that a
//! process of its own, the spiller, moves to disk.
//!
//! ```text
//!                    freed              saved                at (the chunk that is written)
//!   ────────────────── │ ──────────────── │ ─────── … ──────── │ ─────────────────▶ chunks, numbered from 0
//!   in the file, and   │ in the file,     │ full, waits for    │ free: zeroed, and the
//!   written over       │ being zeroed     │ the spiller        │ writer's when it comes there
//! ```
//!
//! **One writer each.** A chunk is the thread's until it is full, the spiller's until that has
//! zeroed it, and then the thread's again. The thread says which chunk it writes (`at`, in its
//! status block) once a chunk; the spiller says how many it has saved and given back (`saved`,
//! `freed`, in a segment of its own for each thread), which the thread looks at once a chunk. A
//! record costs what it costs without: the end of a chunk is found by the check that finds the end
//! of a log.
//!
//! **The thread never waits.** If the next chunk is not free when one is full, the spiller is
//! behind: records are counted as dropped until it is free, with the places of the first and the
//! last of them. That makes the run invalid, as a log that is full always did; the log goes on
//! behind the loss.
//!
//! **A spiller may die at any time**, and the next one goes on where the memory says. It writes a
//! chunk to its own place in the file, says that it is saved, zeroes it, says that it is free: dead
//! before it has said *saved*, the chunk is written again, the same bytes to the same place; dead
//! behind it, the chunk is only zeroed. So no chunk is there twice, and none is missing.
//!
//! **The file** is what a log without a ring would have been saved as, so everything that reads
//! logs reads it. What is not saved when the run ends is appended from the ring by who saves logs
//! anyway: the launcher, or its warden.
//!
//! **A thread's next incarnation**, and whoever is ready to be one, asks what its log comes to
//! ([`PointTotals`]). What has left is summed up by the spiller, in two tables that take turns: the one
//! that `saved` names is whole, since a table is written before `saved` is, and never the one that
//! `saved` names. So a spiller may die at any store, and a reader that meets a table that is being
//! written sees that `saved` has moved. Who asks for records one by one, from the end, finds them
//! in the ring and behind that in the file.

use crate::record::{Point, RECORD_WORDS};
use crate::status::{self, AT, LOG_OFFSET, LOST, LOST_FROM, LOST_TO};
use crate::sums::{POINTS, PointTotals};
use core::ops::ControlFlow;
use serde::{Deserialize, Serialize};
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords, SegmentKind};
use shm::sync::Ordering;
use std::io;

/// Records in a chunk: 256 KiB. Loom's are small.
pub const CHUNK_RECORDS: u64 = if cfg!(loom) { 1 } else { 1 << 14 };
/// Words in a chunk.
pub const CHUNK_WORDS: usize = CHUNK_RECORDS as usize * RECORD_WORDS;
/// Bytes in a chunk.
pub const CHUNK_BYTES: u64 = CHUNK_WORDS as u64 * 8;

/// The word of a spiller's segment with the number of chunks that it has given back, in a line of
/// its own: the thread looks at it.
const FREED: usize = HEADER_WORDS;
/// The word with the number of chunks that are in the file.
const SAVED: usize = FREED + 16;
/// Where the two tables of sums begin.
const TABLES: usize = SAVED + 16;
/// What the spiller says of a thread's log; written by the spiller.
pub const SPILLED_KIND: SegmentKind = SegmentKind::new(
    22,
    "spilled",
    &[("freed", FREED), ("saved", SAVED), ("tables", TABLES), ("points", POINTS)],
);

/// That a run's logs are spilled, as its plan has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spill {
    /// Chunks of each thread's ring, in the order of the plan's threads, at least two.
    pub chunks: Vec<u32>,
    /// The core of the spiller; `None`: it has none of its own, and runs where the kernel lets it.
    pub core: Option<u32>,
}

impl Spill {
    /// Whether it has a ring for each of these logs, by their room in records: logs are of whole
    /// chunks, and two or more of them in memory.
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

/// A ring: how many chunks it has, and what the log may have in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Chunks in memory, at least one.
    pub chunks: u64,
    /// Chunks in all, at least one.
    pub last: u64,
    /// Instruments whose touches are in it.
    pub instruments: usize,
}

impl Ring {
    /// The words of a thread's segment with such a ring.
    pub const fn segment_words(self) -> usize {
        LOG_OFFSET + self.chunks as usize * CHUNK_WORDS
    }

    /// The words of the spiller's segment for it.
    pub const fn spilled_words(self) -> usize {
        TABLES + 2 * PointTotals::words(self.instruments)
    }

    /// Where in that segment the table is that is whole when so many chunks are saved.
    const fn table(self, saved: u64) -> usize {
        TABLES + (saved % 2) as usize * PointTotals::words(self.instruments)
    }

    /// Where in the segment that chunk begins.
    pub(crate) const fn place(self, chunk: u64) -> usize {
        LOG_OFFSET + (chunk % self.chunks) as usize * CHUNK_WORDS
    }

    /// The chunk that the thread writes, as it says, within what can be where so many have been
    /// given back.
    fn at(self, said: u64, freed: u64) -> u64 {
        said.min(freed.saturating_add(self.chunks - 1)).min(self.last - 1).max(freed)
    }
}

/// The records at the beginning of a chunk: those up to the first key that is zero, found by
/// bisection.
fn count_in(key: impl Fn(usize) -> u64) -> usize {
    let (mut low, mut high) = (0, CHUNK_RECORDS as usize);
    while low < high {
        let middle = low + (high - low) / 2;
        if key(middle * RECORD_WORDS) == 0 { high = middle } else { low = middle + 1 }
    }
    low
}

/// The thread's end of a ring: turns to the next chunk, and says what was lost.
pub(crate) struct ChunkRotator {
    segment: AtomicWords,
    ring: Ring,
    at: u64,
    freed: ReadOnlyWords,
    words: AtomicWords,
}

impl ChunkRotator {
    /// The ring in a thread's segment, and what the spiller says of it. Goes on in the chunk in
    /// which an earlier incarnation ended.
    ///
    /// # Panics
    /// If a segment is too short for it.
    pub fn new(segment: &AtomicWords, spilled: &ReadOnlyWords, ring: Ring) -> Self {
        assert!(segment.len() >= ring.segment_words(), "the segment is as the plan has it");
        let (words, freed) = (status::spill(segment), spilled.slice(FREED, 1));
        // Acquire: pairs with the spiller's Release; what is given back is zeroed.
        let at = ring.at(words[AT].load(Ordering::Relaxed), freed.load(0, Ordering::Acquire));
        // Release: pairs with the spiller's Acquire.
        words[AT].store(at, Ordering::Release);
        Self { segment: segment.clone(), ring, at, freed, words }
    }

    /// The chunk that is written, and how many records it has.
    pub fn chunk(&self) -> (AtomicWords, usize) {
        let words = self.segment.slice(self.ring.place(self.at), CHUNK_WORDS);
        let records = count_in(|word| words[word].load(Ordering::Acquire));
        (words, records)
    }

    /// The next chunk, now that this one is full; `None`: it is not free, or the log is as long as
    /// it may be.
    pub fn turn(&mut self) -> Option<AtomicWords> {
        let next = self.at + 1;
        // Acquire: pairs with the spiller's Release; what is given back is zeroed.
        let free = self.freed.load(0, Ordering::Acquire).saturating_add(self.ring.chunks);
        if next >= free || next >= self.ring.last {
            return None;
        }
        self.at = next;
        // Release: pairs with the spiller's Acquire; the chunk behind us is whole.
        self.words[AT].store(next, Ordering::Release);
        Some(self.segment.slice(self.ring.place(next), CHUNK_WORDS))
    }

    /// Says that a record was lost behind the chunk that is full; now so many in all.
    pub fn lost(&self, records: u64) {
        let place = (self.at + 1).saturating_mul(CHUNK_RECORDS);
        // Relaxed: our own words, for whoever reads the status.
        if self.words[LOST].load(Ordering::Relaxed) == 0 {
            self.words[LOST_FROM].store(place, Ordering::Relaxed);
        }
        self.words[LOST_TO].store(place, Ordering::Relaxed);
        self.words[LOST].store(records, Ordering::Relaxed);
    }

    /// How many earlier incarnations of the thread have lost.
    pub fn lost_before(&self) -> u64 {
        self.words[LOST].load(Ordering::Relaxed)
    }
}

/// A thread's log in its ring, for who reads it: what is there beside the file.
pub struct UnspilledTail<'a> {
    log: &'a ReadOnlyWords,
    spilled: &'a ReadOnlyWords,
    ring: Ring,
}

impl<'a> UnspilledTail<'a> {
    /// The log of a thread and what the spiller says of it.
    ///
    /// # Panics
    /// If a segment is too short for it.
    pub fn new(log: &'a ReadOnlyWords, spilled: &'a ReadOnlyWords, ring: Ring) -> Self {
        assert!(
            log.len() >= ring.segment_words() && spilled.len() >= ring.spilled_words(),
            "as the plan has them"
        );
        Self { log, spilled, ring }
    }

    /// How many chunks are in the file.
    pub fn saved(&self) -> u64 {
        // Acquire: pairs with the spiller's Release; what is counted is counted.
        self.spilled.load(SAVED, Ordering::Acquire).min(self.ring.last)
    }

    /// The chunk that is written. What the thread says is used only as far as it can be.
    fn at(&self) -> u64 {
        // Acquire: pairs with the thread's Release; the chunks before this one are whole.
        let said = self.log.load(HEADER_WORDS + status::SPILL_AT + AT, Ordering::Acquire);
        self.ring.at(said, self.spilled.load(FREED, Ordering::Acquire))
    }

    /// The chunks that are not, and how many records each has: all but the last are full.
    fn chunks(&self, saved: u64) -> impl Iterator<Item = (u64, usize)> + '_ {
        let at = self.at();
        (saved..=at).map(move |chunk| {
            let first = self.ring.place(chunk);
            let here = || count_in(|word| self.log.load(first + word, Ordering::Acquire));
            (chunk, if chunk < at { CHUNK_RECORDS as usize } else { here() })
        })
    }

    /// Calls with the bytes of what is not in the file, chunk by chunk.
    ///
    /// # Errors
    /// What it was called for refused.
    pub fn each(&self, mut each: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for (chunk, records) in self.chunks(self.saved()) {
            bytes.clear();
            let first = self.ring.place(chunk);
            for word in first..first + records * RECORD_WORDS {
                // Relaxed: whoever wrote them has ended.
                bytes.extend_from_slice(&self.log.load(word, Ordering::Relaxed).to_le_bytes());
            }
            each(&bytes)?;
        }
        Ok(())
    }

    /// How many records of that point the log has, in the file and here.
    pub fn count(&self, point: Point) -> u64 {
        let (mut place, mut sums) = (SpillLocation::default(), PointTotals::new(self.ring.instruments));
        self.look(&mut place, &mut sums);
        sums.count(point)
    }

    /// Adds what was appended since these were the sums up to that place. The log may still be
    /// written, and spilled.
    pub fn look(&self, place: &mut SpillLocation, sums: &mut PointTotals) {
        let mut keys = Vec::new();
        loop {
            let saved = self.saved();
            if place.chunk < saved {
                let table = self.ring.table(saved);
                // Acquire: what the spiller writes behind `saved` it stores with Release. Who sees
                // any of it sees in the next turn that `saved` has moved, and takes the other
                // table.
                let load = |word| self.spilled.load(table + word, Ordering::Acquire);
                *sums = PointTotals::of_table(self.ring.instruments, load);
                *place = SpillLocation { chunk: saved, record: 0 };
                continue;
            }
            let at = self.at();
            if !self.keys_of(*place, &mut keys) {
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

    /// The keys of a chunk from that place on, as far as there are any; `false`: it is saved, and
    /// may be no longer here.
    fn keys_of(&self, place: SpillLocation, keys: &mut Vec<u64>) -> bool {
        let first = self.ring.place(place.chunk);
        // Acquire: pairs with the Release of `free` and of the thread's later keys. Who sees any of
        // them sees that `saved` has moved.
        let key = |record: usize| self.log.load(first + record * RECORD_WORDS, Ordering::Acquire);
        keys.clear();
        keys.extend((place.record..CHUNK_RECORDS as usize).map(key).take_while(|key| *key != 0));
        self.saved() <= place.chunk
    }

    /// Calls with the keys of all records, the newest first, until that breaks. `saved` reads the
    /// chunk of that number from the file. The thread has ended; the log may still be spilled.
    ///
    /// # Errors
    /// What `saved` refused.
    pub fn each_back(
        &self,
        mut saved: impl FnMut(u64) -> io::Result<Vec<u64>>,
        mut each: impl FnMut(u64) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let mut keys = Vec::new();
        for chunk in (0..=self.at()).rev() {
            if self.saved() > chunk || !self.keys_of(SpillLocation { chunk, record: 0 }, &mut keys) {
                keys = saved(chunk)?;
            }
            if keys.iter().rev().try_for_each(|key| each(*key)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// How far a log was read: chunks, and records of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillLocation {
    chunk: u64,
    record: usize,
}

/// The spiller's end of a thread's ring.
pub struct Drain {
    pub(crate) log: AtomicWords,
    spilled: AtomicWords,
    pub(crate) ring: Ring,
    pub(crate) saved: u64,
    pub(crate) freed: u64,
    bytes: Vec<u8>,
}

impl Drain {
    /// Goes on where a spiller before this one ended, which is dead.
    ///
    /// # Panics
    /// If a segment is too short for the ring.
    pub fn new(log: AtomicWords, spilled: AtomicWords, ring: Ring) -> Self {
        assert!(
            log.len() >= ring.segment_words() && spilled.len() >= ring.spilled_words(),
            "as the plan has them"
        );
        let [saved, freed] = [SAVED, FREED].map(|word| spilled[word].load(Ordering::Acquire));
        Self { log, spilled, ring, saved, freed, bytes: Vec::with_capacity(CHUNK_BYTES as usize) }
    }

    /// Chunks that wait to be saved.
    pub fn waiting(&self) -> u64 {
        // Acquire: pairs with the thread's Release; the chunks before this one are whole.
        let said = status::spill(&self.log)[AT].load(Ordering::Acquire);
        self.ring.at(said, self.freed).saturating_sub(self.saved)
    }

    /// Saves the next chunk that is full and gives it back; `false`: there is none. `save` is told
    /// its number and its bytes, and says when they are in the file.
    ///
    /// # Errors
    /// What `save` refused. The chunk is still there, for the next time.
    pub fn step(&mut self, save: impl FnOnce(u64, &[u8]) -> io::Result<()>) -> io::Result<bool> {
        // If one is saved already, a spiller before this one has died before it gave it back.
        let is_saved = self.freed < self.saved || self.save_next(save)?;
        if is_saved {
            self.free();
        }
        Ok(is_saved)
    }

    pub(crate) fn save_next(&mut self, save: impl FnOnce(u64, &[u8]) -> io::Result<()>) -> io::Result<bool> {
        if self.waiting() == 0 {
            return Ok(false);
        }
        let sums = self.copy();
        save(self.saved, &self.bytes)?;
        self.saved += 1;
        // Not the table that readers are told of: that is the other one, until `saved` says that
        // this one is whole.
        sums.store(&self.spilled[self.ring.table(self.saved)..]);
        // Release: pairs with the Acquire of `Rest::saved`.
        self.spilled[SAVED].store(self.saved, Ordering::Release);
        Ok(true)
    }

    /// Copies the next chunk; the sums with it.
    fn copy(&mut self) -> PointTotals {
        let table = self.ring.table(self.saved);
        let mut sums = PointTotals::of_table(self.ring.instruments, |word| {
            self.spilled[table + word].load(Ordering::Relaxed)
        });
        self.bytes.clear();
        let first = self.ring.place(self.saved);
        for record in self.log[first..first + CHUNK_WORDS].chunks_exact(RECORD_WORDS) {
            // Relaxed: ours since the Acquire in `waiting`.
            let [key, value] = [0, 1].map(|word| record[word].load(Ordering::Relaxed));
            sums.add(key);
            self.bytes.extend_from_slice(&key.to_le_bytes());
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
        sums
    }

    /// Zeroes the oldest chunk that is saved, and gives it back.
    fn free(&mut self) {
        let first = self.ring.place(self.freed);
        for word in &self.log[first..first + CHUNK_WORDS] {
            // Release: `Rest::keys_of` says why.
            word.store(0, Ordering::Release);
        }
        self.freed += 1;
        // Release: pairs with the Acquire in `ChunkRotator::turn`.
        self.spilled[FREED].store(self.freed, Ordering::Release);
    }
}
