//! The two measured loops of the board benchmark: writer and reader.

pub mod content;
mod decisions;
pub mod histograms;

use decisions::{TickReader, TickWriter};
use histograms::BoardHistograms;
use protocol::benchmark::board_results::BoardMeasure;
use protocol::control::{Control, RunState};
use protocol::counters::AgentSlot;
use protocol::labels::{ReaderCounter, WriterCounter};
use protocol::plan::{BoardWork, ReaderWaiting};
use shm::board::{self, ReadError, Stamp};
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::sync::{Ordering, spin_hint};
use std::time::Duration;
use system::clock::{Clock, ClockSource, Monotonic, Timebase, Tsc};

/// Maximum sleep of a reader without a check of the run's state.
const SLEEP: Duration = Duration::from_millis(10);

/// The reading end of the board in its benchmark: the real one, or a deliberately broken one that
/// the result check must detect.
pub trait BoardRead {
    /// Returns the number of the newest version of a cell.
    fn version(&self, cell: usize) -> u64;
    /// Copies a cell's newest value into `into`.
    fn read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError>;
    /// Copies the value of one version of a cell into `into`; `None` before that version is
    /// written.
    fn read_version(&self, cell: usize, version: u64, into: &mut [u64]) -> Result<Option<Stamp>, ReadError>;
    /// Sleeps until the version of a cell changes, at most `timeout`.
    fn sleep(&self, cell: usize, version: u64, timeout: Duration);
}

impl BoardRead for board::Reader {
    #[inline(always)]
    fn version(&self, cell: usize) -> u64 {
        self.version(cell)
    }
    #[inline(always)]
    fn read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
        self.read(cell, into)
    }
    fn read_version(&self, cell: usize, version: u64, into: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
        self.read_version(cell, version, into)
    }
    fn sleep(&self, cell: usize, version: u64, timeout: Duration) {
        self.wait_for_newer(cell, version, board::Wait::Sleep, timeout);
    }
}

/// The writing or the reading end of a board, for one role of the board benchmark.
pub enum BoardEnd {
    /// The writer of a board.
    Writer(board::Writer),
    /// A reader of a board.
    Reader(board::Reader),
}

/// The settings, clock and result memory of one thread in the board benchmark: the writer, or a
/// reader.
#[allow(missing_docs, reason = "the names say it")]
pub struct BoardAgent<'a> {
    pub work: &'a BoardWork,
    pub time: Timebase,
    pub control: &'a Control,
    /// Due times of the writes, in nanoseconds from the start; `None`: no schedule.
    pub due: Option<ReadOnlyWords>,
    pub counters: AgentSlot<'a>,
    pub histograms: BoardHistograms,
    /// The results of this end in shared memory: histograms, then decisions.
    pub results: AtomicWords,
}

impl BoardAgent<'_> {
    /// Runs the measured loop of a writer or a reader of a board (the newest values, in shared
    /// memory).
    pub fn run(&self, clock: ClockSource, end: BoardEnd) {
        match (end, clock) {
            (BoardEnd::Writer(mut board), ClockSource::Tsc) => self.write(&Tsc, &mut board),
            (BoardEnd::Writer(mut board), ClockSource::Monotonic) => self.write(&Monotonic, &mut board),
            (BoardEnd::Reader(board), ClockSource::Tsc) => self.read(&Tsc, &board),
            (BoardEnd::Reader(board), ClockSource::Monotonic) => self.read(&Monotonic, &board),
        }
    }

    /// Returns the tick at which a write is due; `None`: no schedule, or no such write.
    #[inline(always)]
    fn due(&self, number: u64) -> Option<u64> {
        let due = self.due.as_ref()?;
        let index = usize::try_from(number).ok().filter(|index| *index < due.len())?;
        Some(self.time.at(due.load(index, Ordering::Relaxed)))
    }

    /// Runs the loop of the board's writer: writes each value when it is due, or back to back, to
    /// the cells in turn. A successor resumes after the last complete write; the writes due since
    /// are late.
    pub fn write(&self, clock: &impl Clock, board: &mut board::Writer) {
        let BoardWork { cells, words, waiting, duration_ns, .. } = *self.work;
        let mut value = vec![0; words];
        let mut ticks = TickWriter::new(self.work, self.time);
        let mut number: u64 = (0..cells).map(|cell| board.version(cell)).sum();
        let scheduled = self.due.as_ref().map_or(u64::MAX, |due| due.len() as u64);
        let late_ns = if self.due.is_some() { BoardWork::LATE_NS } else { 0 };
        let (start, end) = (self.time.start_ticks, self.time.at(duration_ns.saturating_add(late_ns)));
        while number < scheduled {
            let cell = (number % cells as u64) as usize;
            let due = self.due(number);
            content::fill(&mut value, number);
            let due_ticks = due.unwrap_or(start);
            while self.control.state() == RunState::Go && clock.peek() < due_ticks {
                spin_hint();
            }
            let begin = clock.now();
            if self.control.state() != RunState::Go || begin >= end {
                break;
            }
            board.write(cell, begin, &value);
            if let Some(ticks) = &mut ticks {
                ticks.publish_if_due(board, begin);
            }
            if waiting == ReaderWaiting::Park {
                board.wake(cell);
            }
            let done = clock.now();
            self.counters.add(WriterCounter::Written, 1);
            self.histograms.measure_at(BoardMeasure::First, begin, done - begin);
            if let Some(due) = due {
                self.histograms.measure_at(BoardMeasure::Second, begin, done.saturating_sub(due));
            }
            number += 1;
        }
    }

    /// Runs the loop of a board's reader: polls all cells and reads newer versions, until the run
    /// is stopped after the writer's end and its last values are read.
    pub fn read(&self, clock: &impl Clock, board: &impl BoardRead) {
        let mut value = vec![0; self.work.words];
        let mut versions = vec![0; self.work.cells];
        let mut ticks = TickReader::new(self.work, &self.results);
        loop {
            let is_last = self.control.state() == RunState::Stop;
            let mut found = false;
            if let Some(ticks) = &mut ticks {
                ticks.decide(clock, board);
            }
            for (cell, version) in versions.iter_mut().enumerate() {
                if board.version(cell) != *version {
                    found |= self.take(clock, board, cell, version, &mut value);
                }
            }
            if found {
                continue;
            }
            if is_last {
                break;
            }
            match self.work.waiting {
                ReaderWaiting::Spin => spin_hint(),
                ReaderWaiting::Yield => std::thread::yield_now(),
                ReaderWaiting::Park => board.sleep(0, versions[0], SLEEP),
            }
        }
    }

    /// Reads, checks and counts a cell's newest value. Returns `false` if the read was overtaken.
    #[inline(always)]
    fn take(
        &self,
        clock: &impl Clock,
        board: &impl BoardRead,
        cell: usize,
        last_version: &mut u64,
        value: &mut [u64],
    ) -> bool {
        let detected = clock.now();
        let Ok(Some(stamp)) = board.read(cell, value) else {
            self.counters.add(ReaderCounter::Overtaken, 1);
            return false;
        };
        let got = clock.now();
        let number = content::number(stamp.version, cell, self.work.cells);
        // Versions that go backwards are as wrong as words that do.
        if stamp.version <= *last_version || !content::is_whole(value, number) {
            self.counters.add(ReaderCounter::Torn, 1);
        }
        let next = content::number(*last_version + 1, cell, self.work.cells);
        self.counters.add(ReaderCounter::Read, 1);
        self.counters.add(ReaderCounter::Missed, stamp.version.saturating_sub(*last_version + 1));
        self.histograms.measure_at(BoardMeasure::First, detected, got.saturating_sub(stamp.ticks));
        self.histograms.measure_at(BoardMeasure::Second, detected, got - detected);
        if let Some(due) = self.due(next) {
            self.histograms.measure(BoardMeasure::Third, got.saturating_sub(due));
        }
        *last_version = stamp.version;
        true
    }
}
