//! Ends that are wrong, each in one way: the checks of `model` find every one of them.

use super::model::{Follows, Reads, Writes, acts, check, shapes};
use proptest::test_runner::{Config, TestRunner};
use shm::board::{BoardShape, LogPoll, LogReader, ReadError, Reader, Stamp, Writer};
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::sync::Ordering::Relaxed;

/// A reader by hand, whose second look at the version is `LENIENT`: 0 there is none, 1 it lets one
/// write too many pass.
struct Lenient<const LENIENT: u8> {
    view: ReadOnlyWords,
    shape: BoardShape,
}

impl<const LENIENT: u8> Reads for Lenient<LENIENT> {
    fn attach(view: &ReadOnlyWords, shape: BoardShape) -> Self {
        Self { view: view.clone(), shape }
    }

    fn read(
        &mut self,
        cell: usize,
        into: &mut [u64],
        at: &mut impl FnMut(usize),
    ) -> Result<Option<Stamp>, ReadError> {
        let load = |place| self.view.load(place, Relaxed);
        let version = load(self.shape.version_at(cell));
        if version == 0 {
            return Ok(None);
        }
        let slot = self.shape.slot_at(cell, version);
        let ticks = load(slot);
        for (place, word) in into.iter_mut().enumerate() {
            at(place);
            *word = load(slot + 1 + place);
        }
        at(into.len());
        let passed = load(self.shape.version_at(cell)) - version;
        if LENIENT == 1 && passed >= self.shape.slots() as u64 {
            return Err(ReadError::Overtaken { tries: 1 });
        }
        Ok(Some(Stamp { version, ticks }))
    }
}

/// Continues after a gap and does not report it.
struct Silent(LogReader);

impl Follows for Silent {
    fn attach(view: &ReadOnlyWords, _: BoardShape) -> Self {
        Self(Reader::attach(view).unwrap().follow(0, 0))
    }

    fn next(&mut self, into: &mut [u64], at: &mut impl FnMut(usize)) -> Result<LogPoll, ReadError> {
        match self.0.next_with(into, at)? {
            LogPoll::Missed(_) => self.0.next_with(into, &mut |_| ()),
            next => Ok(next),
        }
    }
}

/// Publishes before it writes.
struct Hasty {
    words: AtomicWords,
    shape: BoardShape,
}

impl Writes for Hasty {
    fn attach(words: &AtomicWords) -> Self {
        let shape = Reader::attach(&words.clone().into()).unwrap().shape();
        Self { words: words.clone(), shape }
    }

    fn write(&mut self, cell: usize, ticks: u64, value: &[u64], dies_at: Option<usize>) -> Option<u64> {
        let version_at = self.shape.version_at(cell);
        let version = self.words[version_at].load(Relaxed) + 1;
        let slot = self.shape.slot_at(cell, version);
        let stores = [(version_at, version), (slot, ticks)];
        let value = value.iter().enumerate().map(|(place, word)| (slot + 1 + place, *word));
        for (store, (place, word)) in stores.into_iter().chain(value).enumerate() {
            if dies_at == Some(store) {
                return None;
            }
            self.words[place].store(word, Relaxed);
        }
        Some(version)
    }
}

/// Writes over the newest value: one slot for all versions, as in a plain seqlock.
struct InPlace(Hasty);

impl Writes for InPlace {
    fn attach(words: &AtomicWords) -> Self {
        Self(Hasty::attach(words))
    }

    fn write(&mut self, cell: usize, ticks: u64, value: &[u64], dies_at: Option<usize>) -> Option<u64> {
        let Hasty { words, shape } = &self.0;
        let version_at = shape.version_at(cell);
        let version = words[version_at].load(Relaxed) + 1;
        for slot in 0..shape.slots() as u64 {
            let slot = shape.slot_at(cell, slot);
            for (store, word) in core::iter::once(&ticks).chain(value).enumerate() {
                if dies_at == Some(store) {
                    return None;
                }
                words[slot + store].store(*word, Relaxed);
            }
        }
        if dies_at == Some(value.len() + 1) {
            return None;
        }
        words[version_at].store(version, Relaxed);
        Some(version)
    }
}

fn is_found<W: Writes, R: Reads, F: Follows>(what: &str) {
    let config = Config { cases: 2_000, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let found = TestRunner::new(config).run(&(shapes(), acts()), |(shape, acts)| {
        check::<W, R, F>(shape, &acts).map_err(proptest::test_runner::TestCaseError::fail)
    });
    let found = found.expect_err("nothing was found").to_string();
    assert!(found.contains(what), "found, but something else: {found}");
}

#[test]
fn reader_without_second_version_check_is_detected() {
    is_found::<Writer, Lenient<0>, LogReader>("torn");
}

#[test]
fn reader_tolerating_one_extra_write_is_detected() {
    is_found::<Writer, Lenient<1>, LogReader>("torn");
}

#[test]
fn log_reader_hiding_missed_entries_is_detected() {
    is_found::<Writer, Reader, Silent>("after");
}

#[test]
fn writer_publishing_before_data_is_detected() {
    is_found::<Hasty, Reader, LogReader>("");
}

#[test]
fn writer_overwriting_newest_value_is_detected() {
    is_found::<InPlace, Reader, LogReader>("torn");
}
