//! The two measured loops of the board: the writer's and a reader's.

use super::content;
use super::log::{BoardField, BoardLog, BoardMeasure, SLICES};
use crate::bench::account::{AgentAccount, Field};
use crate::bench::control::{ControlView, DRAIN, GO};
use shm::board::{self, ReadError, Stamp};
use shm::memory::View;
use shm::sync::{Ordering, spin_hint};
use std::time::Duration;
use system::clock::{Clock, Timebase};
use system::names;

/// How long after the end the writer may make writes that were due before it, in nanoseconds.
pub const LATE_NS: u64 = 1_000_000_000;
/// The longest sleep of a reader without a look at the phase.
const SLEEP: Duration = Duration::from_millis(10);

names! {
    /// How readers wait for something newer.
    Waiting {
        /// Looks again at once.
        Spin = "spin",
        /// Gives the core away.
        Yield = "yield",
        /// Sleeps until the writer wakes it, for a millisecond at most.
        Park = "park",
    }
}

/// A reading end: the board's, or a broken one that the check must find.
pub trait BoardRead {
    /// The version of the cell's newest value.
    fn version(&self, cell: usize) -> u64;
    /// Copies the newest value.
    fn read(&self, cell: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError>;
    /// Sleeps until the version is another one, or that long.
    fn sleep(&self, cell: usize, version: u64, at_most: Duration);
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
    fn sleep(&self, cell: usize, version: u64, at_most: Duration) {
        self.wait_for_newer(cell, version, board::Wait::Sleep, at_most);
    }
}

/// What both loops have.
pub struct BoardAgent<'a, C> {
    /// The clock.
    pub clock: C,
    /// From durations to ticks.
    pub time: Timebase,
    /// The phase of the case.
    pub control: &'a ControlView,
    /// When writes are due, in nanoseconds from the start; `None`: nothing is due.
    pub due: Option<View>,
    /// The agent's account.
    pub account: &'a AgentAccount,
    /// Its histograms, in the account.
    pub log: BoardLog,
    /// How readers wait.
    pub waiting: Waiting,
    /// The number of cells.
    pub cells: usize,
    /// Words of a value.
    pub words: usize,
    /// The length of the case.
    pub duration_ns: u64,
}

impl<C: Clock> BoardAgent<'_, C> {
    /// The tick at which that write is due; `None`: nothing is due, or no write of that number.
    #[inline(always)]
    fn due(&self, number: u64) -> Option<u64> {
        let due = self.due.as_ref()?;
        let place = usize::try_from(number).ok().filter(|place| *place < due.len())?;
        Some(self.time.at(due.load(place, Ordering::Relaxed)))
    }

    /// Ticks of a part of the time.
    fn slice(&self) -> u64 {
        (self.time.ticks(self.duration_ns) / SLICES as u64).max(1)
    }

    #[inline(always)]
    fn over_time(&self, slice: u64, at: u64, ticks: u64) {
        self.log.over_time((at.saturating_sub(self.time.start_ticks) / slice) as usize, ticks);
    }

    /// Writes each value when it is due, or one after the other, to the cells in turn. A successor goes on
    /// after the last whole write, and what was due since is late.
    pub fn write(&self, board: &mut board::Writer) {
        let (cells, slice) = (self.cells, self.slice());
        let mut value = vec![0; self.words];
        let mut number: u64 = (0..cells).map(|cell| board.version(cell)).sum();
        let scheduled = self.due.as_ref().map_or(u64::MAX, |due| due.len() as u64);
        let late_ns = if self.due.is_some() { LATE_NS } else { 0 };
        let (start, end) = (self.time.start_ticks, self.time.at(self.duration_ns.saturating_add(late_ns)));
        while number < scheduled {
            let cell = (number % cells as u64) as usize;
            let due = self.due(number);
            content::fill(&mut value, number);
            let wanted = due.unwrap_or(start);
            while self.control.phase() == GO && self.clock.peek() < wanted {
                spin_hint();
            }
            let begin = self.clock.now();
            if self.control.phase() != GO || begin >= end {
                break;
            }
            board.write(cell, begin, &value);
            if self.waiting == Waiting::Park {
                board.wake(cell);
            }
            let done = self.clock.now();
            self.log.count();
            self.log.measure(BoardMeasure::First, done - begin);
            if let Some(due) = due {
                self.log.measure(BoardMeasure::Second, done.saturating_sub(due));
            }
            self.over_time(slice, begin, done - begin);
            number += 1;
        }
        self.account.set(Field::End, self.clock.now());
    }

    /// Looks at all cells in turn and reads what is newer, until the writer has ended and its last values are read.
    pub fn read(&self, board: &impl BoardRead) {
        let slice = self.slice();
        let mut value = vec![0; self.words];
        let mut seen = vec![0; self.cells];
        loop {
            let is_last = self.control.phase() >= DRAIN;
            let mut found = false;
            for (cell, seen) in seen.iter_mut().enumerate() {
                if board.version(cell) != *seen {
                    found |= self.take(board, cell, seen, &mut value, slice);
                }
            }
            if found {
                continue;
            }
            if is_last {
                break;
            }
            match self.waiting {
                Waiting::Spin => spin_hint(),
                Waiting::Yield => std::thread::yield_now(),
                Waiting::Park => board.sleep(0, seen[0], SLEEP),
            }
        }
        self.account.set(Field::End, self.clock.now());
    }

    /// Reads a cell's newest value, checks and counts it.
    #[inline(always)]
    fn take(
        &self,
        board: &impl BoardRead,
        cell: usize,
        seen: &mut u64,
        value: &mut [u64],
        slice: u64,
    ) -> bool {
        let detected = self.clock.now();
        let Ok(Some(stamp)) = board.read(cell, value) else {
            self.log.add(BoardField::Overtaken, 1);
            return false;
        };
        let got = self.clock.now();
        let number = content::number(stamp.version, cell, self.cells);
        // Versions that go backwards are as wrong as words that do.
        if stamp.version <= *seen || !content::is_whole(value, number) {
            self.log.add(BoardField::Torn, 1);
        }
        let next = content::number(*seen + 1, cell, self.cells);
        self.log.count();
        self.log.add(BoardField::Missed, stamp.version.saturating_sub(*seen + 1));
        self.log.measure(BoardMeasure::First, got.saturating_sub(stamp.ticks));
        self.log.measure(BoardMeasure::Second, got - detected);
        if let Some(due) = self.due(next) {
            self.log.measure(BoardMeasure::Third, got.saturating_sub(due));
        }
        self.over_time(slice, stamp.ticks, got.saturating_sub(stamp.ticks));
        *seen = stamp.version;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::log::WORDS;
    use super::super::tally::LogView;
    use super::*;
    use crate::bench::account::AccountView;
    use crate::bench::control::{ControlSegment, LAST};
    use shm::board::Shape;
    use shm::memory::Region;
    use std::cell::Cell;
    use system::clock::Virtual;

    /// A clock that moves with each look.
    #[derive(Clone)]
    struct Moving(Virtual);

    impl Clock for Moving {
        fn now(&self) -> u64 {
            self.0.set(self.0.now() + 1);
            self.0.now()
        }
        fn peek(&self) -> u64 {
            self.now()
        }
    }

    /// Runs a loop over so many cells in that phase. Returns what the launcher reads.
    fn ran(
        phase: u64,
        cells: usize,
        due: Option<&[u64]>,
        work: impl FnOnce(&BoardAgent<'_, Moving>),
    ) -> (AccountView, LogView) {
        let (control, account) = (ControlSegment::on_heap(phase).view(), AgentAccount::on_heap(WORDS));
        let due = due.map(|times| {
            let words = Region::heap(times.len()).words();
            words.iter().zip(times).for_each(|(word, time)| word.store(*time, Ordering::Relaxed));
            words.into()
        });
        work(&BoardAgent {
            clock: Moving(Virtual::default()),
            time: Timebase { start_ticks: 0, ns_per_tick: 1.0 },
            control: &control,
            due,
            account: &account,
            log: BoardLog::new(&account),
            waiting: Waiting::Spin,
            cells,
            words: 4,
            duration_ns: 1_000,
        });
        (account.view(), LogView::new(&account.view()))
    }

    #[test]
    fn writes_are_made_when_due_and_read_whole() {
        let (mut writer, reader) = board::pair(Shape::of_cells(2, 4).unwrap());
        let due = [10, 10, 10, 300, 400];
        let (account, log) = ran(GO, 2, Some(&due), |agent| agent.write(&mut writer));
        assert_eq!((reader.version(0), reader.version(1)), (3, 2), "in turn");
        assert_eq!((account.get(Field::Count), log.measure(BoardMeasure::Second).count()), (5, 5));
        // Three were due at once: the third is late by what the first two took.
        let late = log.measure(BoardMeasure::Second).distribution(1.0);
        assert!(late.max_ns > log.measure(BoardMeasure::First).distribution(1.0).max_ns, "{late:?}");

        let (account, log) = ran(DRAIN, 2, Some(&due), |agent| agent.read(&reader));
        let fields =
            [BoardField::Missed, BoardField::Torn, BoardField::Overtaken].map(|field| log.get(field));
        assert_eq!((account.get(Field::Count), fields), (2, [3, 0, 0]), "the newest of each cell");
        assert_eq!(log.measure(BoardMeasure::Third).count(), 2);
        assert_eq!((0..SLICES).map(|slice| log.slice(slice).count()).sum::<u64>(), 2);
    }

    #[test]
    fn successor_goes_on_after_the_last_write() {
        let (mut writer, reader) = board::pair(Shape::of_cells(2, 4).unwrap());
        writer.write(0, 0, &[0; 4]);
        ran(GO, 2, Some(&[0; 4]), |agent| agent.write(&mut writer));
        assert_eq!((reader.version(0), reader.version(1)), (2, 2));
    }

    #[test]
    fn stress_ends_with_its_time_or_its_case() {
        for (phase, min) in [(GO, 50), (LAST, 0)] {
            let (mut writer, reader) = board::pair(Shape::of_cells(1, 4).unwrap());
            ran(phase, 1, None, |agent| agent.write(&mut writer));
            assert!(reader.version(0) >= min && (min > 0 || reader.version(0) == 0));
        }
    }

    /// A reader that gives half of an older value, then a version that went backwards; or whole values.
    struct Torn {
        reads: Cell<u64>,
        is_whole: bool,
    }

    impl BoardRead for Torn {
        fn version(&self, _: usize) -> u64 {
            [2, 1, 1][self.reads.get().min(2) as usize]
        }
        fn read(&self, _: usize, into: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
            self.reads.set(self.reads.get() + 1);
            content::fill(into, 2 - self.reads.get());
            if self.reads.get() == 1 && !self.is_whole {
                content::fill(&mut into[2..], 0);
            }
            Ok(Some(Stamp { version: 3 - self.reads.get(), ticks: 0 }))
        }
        fn sleep(&self, _: usize, _: u64, _: Duration) {}
    }

    #[test]
    fn torn_values_and_versions_that_go_back_are_counted() {
        for (is_whole, torn) in [(false, 2), (true, 1)] {
            let reader = Torn { reads: Cell::new(0), is_whole };
            let (account, log) = ran(DRAIN, 1, None, |agent| agent.read(&reader));
            assert_eq!((account.get(Field::Count), log.get(BoardField::Torn)), (2, torn));
        }
    }
}
