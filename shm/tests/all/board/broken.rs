//! Boards with one defect each, all of which the checks of `model` detect.

use super::model::{Follows, Reads, Writes, acts, check, shapes};
use proptest::test_runner::{Config, TestRunner};
use shm::board::{BoardShape, LogPoll, LogReader, ReadError, Reader, Stamp, Writer};
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::sync::Ordering::Relaxed;

/// A reader whose second version check is missing (`LENIENT` = 0), or tolerates one write too many
/// (1).
struct LenientReader<const LENIENT: u8> {
    view: ReadOnlyWords,
    shape: BoardShape,
}

impl<const LENIENT: u8> Reads for LenientReader<LENIENT> {
    fn attach(view: &ReadOnlyWords, shape: BoardShape) -> Self {
        Self { view: view.clone(), shape }
    }

    fn read(
        &mut self,
        cell: usize,
        into: &mut [u64],
        at: &mut impl FnMut(usize),
    ) -> Result<Option<Stamp>, ReadError> {
        let load = |index| self.view.load(index, Relaxed);
        let version = load(self.shape.version_at(cell));
        if version == 0 {
            return Ok(None);
        }
        let slot = self.shape.slot_at(cell, version);
        let ticks = load(slot);
        for (index, word) in into.iter_mut().enumerate() {
            at(index);
            *word = load(slot + 1 + index);
        }
        at(into.len());
        let passed = load(self.shape.version_at(cell)) - version;
        if LENIENT == 1 && passed >= self.shape.slots() as u64 {
            return Err(ReadError::Overtaken { tries: 1 });
        }
        Ok(Some(Stamp { version, ticks }))
    }
}

/// A log reader that does not report a gap.
struct GapHidingLogReader(LogReader);

impl Follows for GapHidingLogReader {
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

/// A writer that publishes the version before the value.
struct EarlyPublishingWriter {
    words: AtomicWords,
    shape: BoardShape,
}

impl Writes for EarlyPublishingWriter {
    fn attach(words: &AtomicWords) -> Self {
        let shape = Reader::attach(&words.clone().into()).unwrap().shape();
        Self { words: words.clone(), shape }
    }

    fn write(&mut self, cell: usize, ticks: u64, value: &[u64], stops_before: Option<usize>) -> Option<u64> {
        let version_at = self.shape.version_at(cell);
        let version = self.words[version_at].load(Relaxed) + 1;
        let slot = self.shape.slot_at(cell, version);
        let stores = [(version_at, version), (slot, ticks)];
        let value = value.iter().enumerate().map(|(index, word)| (slot + 1 + index, *word));
        for (store, (index, word)) in stores.into_iter().chain(value).enumerate() {
            if stops_before == Some(store) {
                return None;
            }
            self.words[index].store(word, Relaxed);
        }
        Some(version)
    }
}

/// A writer that overwrites the newest value: one slot for all versions, as in a plain seqlock.
struct InPlaceWriter(EarlyPublishingWriter);

impl Writes for InPlaceWriter {
    fn attach(words: &AtomicWords) -> Self {
        Self(EarlyPublishingWriter::attach(words))
    }

    fn write(&mut self, cell: usize, ticks: u64, value: &[u64], stops_before: Option<usize>) -> Option<u64> {
        let EarlyPublishingWriter { words, shape } = &self.0;
        let version_at = shape.version_at(cell);
        let version = words[version_at].load(Relaxed) + 1;
        for slot in 0..shape.slots() as u64 {
            let slot = shape.slot_at(cell, slot);
            for (store, word) in core::iter::once(&ticks).chain(value).enumerate() {
                if stops_before == Some(store) {
                    return None;
                }
                words[slot + store].store(*word, Relaxed);
            }
        }
        if stops_before == Some(value.len() + 1) {
            return None;
        }
        words[version_at].store(version, Relaxed);
        Some(version)
    }
}

fn assert_detected<W: Writes, R: Reads, F: Follows>(difference: &str) {
    let config = Config { cases: 2_000, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let result = TestRunner::new(config).run(&(shapes(), acts()), |(shape, acts)| {
        check::<W, R, F>(shape, &acts).map_err(proptest::test_runner::TestCaseError::fail)
    });
    let result = result.expect_err("no defect was detected").to_string();
    assert!(result.contains(difference), "another difference was detected: {result}");
}

#[test]
fn reader_without_second_version_check_is_detected() {
    assert_detected::<Writer, LenientReader<0>, LogReader>("torn");
}

#[test]
fn reader_tolerating_one_extra_write_is_detected() {
    assert_detected::<Writer, LenientReader<1>, LogReader>("torn");
}

#[test]
fn log_reader_hiding_missed_entries_is_detected() {
    assert_detected::<Writer, Reader, GapHidingLogReader>("after");
}

#[test]
fn writer_publishing_before_data_is_detected() {
    assert_detected::<EarlyPublishingWriter, Reader, LogReader>("");
}

#[test]
fn writer_overwriting_newest_value_is_detected() {
    assert_detected::<InPlaceWriter, Reader, LogReader>("torn");
}
