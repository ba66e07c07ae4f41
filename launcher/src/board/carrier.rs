//! What is measured: the board, and a broken variant of it that the readers' check must find.

use super::plan::Carrier;
use anyhow::Result;
use shm::board::{self, ReadError, Shape, Stamp};
use shm::memory::{Header, View, Words};
use shm::sync::Ordering;
use std::time::Duration;

/// The writing end.
pub trait Write {
    /// Makes `value` the newest one of the cell.
    fn write(&mut self, cell: usize, ticks: u64, value: &[u64]);
    /// Wakes who sleeps until there is something newer in that cell.
    fn wake(&self, cell: usize);
    /// The cell's version.
    fn version(&self, cell: usize) -> u64;
}

/// A reading end.
pub trait Read {
    /// The version of the cell's newest value.
    fn version(&self, cell: usize) -> u64;
    /// Copies the newest value.
    fn read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError>;
    /// Sleeps until the version is another one, or for so long.
    fn sleep(&self, cell: usize, version: u64, at_most: Duration);
}

impl Write for board::Writer {
    #[inline(always)]
    fn write(&mut self, cell: usize, ticks: u64, value: &[u64]) {
        self.write(cell, ticks, value);
    }
    fn wake(&self, cell: usize) {
        self.wake(cell);
    }
    fn version(&self, cell: usize) -> u64 {
        self.version(cell)
    }
}

impl Read for board::Reader {
    #[inline(always)]
    fn version(&self, cell: usize) -> u64 {
        self.version(cell)
    }
    #[inline(always)]
    fn read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
        self.read(cell, into)
    }
    fn sleep(&self, cell: usize, version: u64, at_most: Duration) {
        self.wait_for_newer(cell, version, board::Wait::Sleep, at_most);
    }
}

/// One slot a cell, and no second look at the version: a read that a write comes between is torn. Everything else is as on the
/// board. Not for use: it shows that the check of the content finds what it is there for.
pub struct Careless<M> {
    memory: M,
    words: usize,
}

/// Words of a cell: version, time, value.
const fn stride(words: usize) -> usize {
    (2 + words).next_multiple_of(8)
}

impl Write for Careless<Words> {
    fn write(&mut self, cell: usize, ticks: u64, value: &[u64]) {
        let cell = &self.memory[cell * stride(self.words)..][..2 + self.words];
        cell[1].store(ticks, Ordering::Relaxed);
        for (word, value) in cell[2..].iter().zip(value) {
            word.store(*value, Ordering::Relaxed);
        }
        cell[0].store(cell[0].load(Ordering::Relaxed) + 1, Ordering::Release);
    }
    fn wake(&self, _: usize) {}
    fn version(&self, cell: usize) -> u64 {
        self.memory[cell * stride(self.words)].load(Ordering::Relaxed)
    }
}

impl Read for Careless<View> {
    fn version(&self, cell: usize) -> u64 {
        self.memory.load(cell * stride(self.words), Ordering::Acquire)
    }
    fn read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
        let version = self.version(cell);
        let start = cell * stride(self.words);
        let ticks = self.memory.load(start + 1, Ordering::Relaxed);
        for (place, word) in into.iter_mut().enumerate() {
            *word = self.memory.load(start + 2 + place, Ordering::Relaxed);
        }
        Ok((version > 0).then_some(Stamp { version, ticks }))
    }
    fn sleep(&self, _: usize, _: u64, at_most: Duration) {
        std::thread::sleep(at_most.min(board::MAX_SLEEP));
    }
}

/// Words of the memory of a board of that shape.
pub fn words(carrier: Carrier, shape: Shape) -> usize {
    match carrier {
        Carrier::Board => shape.segment_words(),
        Carrier::Careless => shape.cells() * stride(shape.words()),
    }
}

/// Writes what stands in front, once, before anybody attaches.
pub fn begin(carrier: Carrier, shape: Shape, memory: &Words) {
    let header = Header {
        kind: board::KIND,
        bytes: 0,
        capacity: 0,
        slot_words: 0,
        creator_pid: std::process::id(),
        creator_start: 0,
        run: 0,
        index: 0,
    };
    match carrier {
        Carrier::Board => shape.write_header(memory, header),
        Carrier::Careless => {}
    }
}

/// The broken variant's writing end.
pub fn careless_writer(memory: Words, words: usize) -> Careless<Words> {
    Careless { memory, words }
}

/// Its reading end.
pub fn careless_reader(memory: View, words: usize) -> Careless<View> {
    Careless { memory, words }
}

#[cfg(test)]
mod tests {
    use super::super::content;
    use super::*;
    use shm::memory::Region;

    #[test]
    fn the_broken_variant_tears_and_the_check_sees_it() {
        let words = Region::heap(stride(8)).words();
        let mut writer = careless_writer(words.clone(), 8);
        let reader = careless_reader(words.clone().into(), 8);
        let mut value = [0; 8];
        assert_eq!(reader.read(0, &mut value), Ok(None));
        content::fill(&mut value, 0);
        writer.write(0, 7, &value);
        let mut read = [0; 8];
        assert_eq!(reader.read(0, &mut read), Ok(Some(Stamp { version: 1, ticks: 7 })));
        assert!(content::is_whole(&read, 0));
        // The second write has come half way.
        content::fill(&mut value, 1);
        for (word, value) in words[2..6].iter().zip(value) {
            word.store(value, Ordering::Relaxed);
        }
        let stamp = reader.read(0, &mut read).unwrap().unwrap();
        assert!(!content::is_whole(&read, content::number(stamp.version, 0, 1)));
    }
}
