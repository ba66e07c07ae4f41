//! The two loops that are measured: the writer's and a reader's.

use super::carrier::{Read, Write};
use super::content;
use super::log::{Field, Log, Place, SLICES};
use super::plan::{BoardPlan, GO, STATE, STOP, Waiting};
use shm::memory::View;
use shm::sync::{Ordering, spin_hint};
use std::time::Duration;
use system::clock::{Clock, Timebase};

/// How long after the end the writer may make writes that were due before it.
const LATE_NS: u64 = 1_000_000_000;
/// A sleeping reader looks so often whether the case has ended.
const SLEEP: Duration = Duration::from_millis(10);

/// What both loops have.
pub struct Ground<'a, C> {
    /// The case.
    pub plan: &'a BoardPlan,
    /// The clock.
    pub clock: C,
    /// From durations to ticks.
    pub time: Timebase,
    /// How far the case is.
    pub control: &'a View,
    /// When writes are due, in nanoseconds from the start.
    pub due: Option<&'a View>,
    /// What is left behind.
    pub log: &'a Log,
}

impl<C: Clock> Ground<'_, C> {
    #[inline(always)]
    fn state(&self) -> u64 {
        // Acquire: what the writer did before the launcher heard of its end has happened.
        self.control.load(STATE, Ordering::Acquire)
    }

    /// The tick at which that write is due; `None`: nothing is due, or no write of that number.
    #[inline(always)]
    fn due(&self, number: u64) -> Option<u64> {
        let due = self.due?;
        let place = usize::try_from(number).ok().filter(|place| *place < due.len())?;
        Some(self.time.at(due.load(place, Ordering::Relaxed)))
    }

    /// Ticks of a part of the time.
    fn slice(&self) -> u64 {
        (self.time.ticks(self.plan.duration_ns) / SLICES as u64).max(1)
    }

    #[inline(always)]
    fn over_time(&self, slice: u64, at: u64, ticks: u64) {
        self.log.over_time((at.saturating_sub(self.time.start_ticks) / slice) as usize, ticks);
    }

    fn measure(&self, place: Place, ticks: u64) {
        self.log.measures[place as usize].add(ticks);
    }

    /// Writes each value when it is due, or one behind the other, to the cells in turn. Who comes after one that died goes on behind
    /// its last whole write, and what was due meanwhile is late.
    pub fn write(&self, board: &mut impl Write) {
        let (cells, slice) = (self.plan.cells, self.slice());
        let mut value = vec![0; self.plan.words];
        let mut number: u64 = (0..cells).map(|cell| board.version(cell)).sum();
        let scheduled = self.plan.scheduled.unwrap_or(u64::MAX);
        let (start, end) = match self.plan.scheduled {
            None => (self.time.start_ticks, self.time.at(self.plan.duration_ns)),
            Some(_) => (self.time.start_ticks, self.time.at(self.plan.duration_ns.saturating_add(LATE_NS))),
        };
        while number < scheduled {
            let cell = (number % cells as u64) as usize;
            let due = self.due(number);
            content::fill(&mut value, number);
            let wanted = due.unwrap_or(start);
            while self.state() == GO && self.clock.peek() < wanted {
                spin_hint();
            }
            let begin = self.clock.now();
            if self.state() != GO || begin >= end {
                break;
            }
            board.write(cell, begin, &value);
            if self.plan.waiting == Waiting::Park {
                board.wake(cell);
            }
            let done = self.clock.now();
            self.log.add(Field::Done, 1);
            self.measure(Place::First, done - begin);
            if let Some(due) = due {
                self.measure(Place::Second, done.saturating_sub(due));
            }
            self.over_time(slice, begin, done - begin);
            number += 1;
        }
        self.log.set(Field::End, self.clock.now());
    }

    /// Looks at all cells in turn and reads what is newer, until the writer has ended and its last values are read.
    pub fn read(&self, board: &impl Read) {
        let slice = self.slice();
        let mut value = vec![0; self.plan.words];
        let mut seen = vec![0; self.plan.cells];
        loop {
            let is_last = self.state() >= STOP;
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
            match self.plan.waiting {
                Waiting::Spin => spin_hint(),
                Waiting::Yield => std::thread::yield_now(),
                Waiting::Park => board.sleep(0, seen[0], SLEEP),
            }
        }
        self.log.set(Field::End, self.clock.now());
    }

    /// Reads a cell's newest value, checks and counts it.
    #[inline(always)]
    fn take(&self, board: &impl Read, cell: usize, seen: &mut u64, value: &mut [u64], slice: u64) -> bool {
        let detected = self.clock.now();
        let Ok(Some(stamp)) = board.read(cell, value) else {
            self.log.add(Field::Overtaken, 1);
            return false;
        };
        let got = self.clock.now();
        let number = content::number(stamp.version, cell, self.plan.cells);
        // Versions that go backwards are as wrong as words that do.
        if stamp.version <= *seen || !content::is_whole(value, number) {
            self.log.add(Field::Torn, 1);
        }
        let next = content::number(*seen + 1, cell, self.plan.cells);
        self.log.add(Field::Done, 1);
        self.log.add(Field::Missed, stamp.version.saturating_sub(*seen + 1));
        self.measure(Place::First, got.saturating_sub(stamp.ticks));
        self.measure(Place::Second, got - detected);
        if let Some(due) = self.due(next) {
            self.measure(Place::Third, got.saturating_sub(due));
        }
        self.over_time(slice, stamp.ticks, got.saturating_sub(stamp.ticks));
        *seen = stamp.version;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{carrier, log, plan};
    use super::*;
    use log::LogView;
    use plan::{Carrier, LAST, START};
    use protocol::plan::{ClockSource, Isolation};
    use shm::board::{self, Shape, Stamp};
    use shm::memory::{Region, Words};
    use std::cell::Cell;
    use system::clock::Virtual;

    fn plan(cells: usize) -> BoardPlan {
        BoardPlan {
            launcher_pid: 0,
            clock: ClockSource::Monotonic,
            ns_per_tick: 1.0,
            isolation: Isolation::Thread,
            weaker_sandbox: false,
            carrier: Carrier::Board,
            waiting: Waiting::Spin,
            cells,
            words: 4,
            scheduled: None,
            duration_ns: 1_000,
            cores: vec![],
            handles: vec![],
        }
    }

    fn control(state: u64) -> Words {
        let words = Region::heap(8).words();
        words[STATE].store(state, Ordering::Relaxed);
        words[START].store(0, Ordering::Relaxed);
        words
    }

    /// A clock that moves by itself.
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

    fn ground<'a>(
        plan: &'a BoardPlan,
        control: &'a View,
        due: Option<&'a View>,
        log: &'a Log,
    ) -> Ground<'a, Moving> {
        let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
        Ground { plan, clock: Moving(Virtual::default()), time, control, due, log }
    }

    #[test]
    fn writes_are_made_when_they_are_due_and_read_whole() {
        let (mut writer, reader) = board::pair(Shape::of_cells(2, 4).unwrap());
        let due = Region::heap(8).words();
        for (place, ns) in [10, 10, 10, 300, 400].into_iter().enumerate() {
            due[place].store(ns, Ordering::Relaxed);
        }
        let due = View::from(due);
        let plan = BoardPlan { scheduled: Some(5), ..plan(2) };
        let words = Region::heap(log::WORDS).words();
        let (log, view) = (Log::new(&words), LogView(words.clone().into()));
        ground(&plan, &control(GO).into(), Some(&due), &log).write(&mut writer);
        assert_eq!((reader.version(0), reader.version(1)), (3, 2), "in turn");
        assert_eq!((view.get(Field::Done), view.measure(Place::Second).count()), (5, 5));
        // Three were due at once: the third is late by what the first two took.
        let late = view.measure(Place::Second).distribution(1.0);
        assert!(late.max_ns > view.measure(Place::First).distribution(1.0).max_ns, "{late:?}");

        let words = Region::heap(log::WORDS).words();
        let (log, view) = (Log::new(&words), LogView(words.clone().into()));
        ground(&plan, &control(STOP).into(), Some(&due), &log).read(&reader);
        let fields = [Field::Done, Field::Missed, Field::Torn, Field::Overtaken].map(|field| view.get(field));
        assert_eq!(fields, [2, 3, 0, 0], "the newest of each cell");
        assert_eq!(view.measure(Place::Third).count(), 2);
        assert_eq!((0..SLICES).map(|slice| view.slice(slice).count()).sum::<u64>(), 2);
    }

    #[test]
    fn a_successor_goes_on_behind_the_last_write() {
        let (mut writer, reader) = board::pair(Shape::of_cells(2, 4).unwrap());
        writer.write(0, 0, &[0; 4]);
        let plan = BoardPlan { scheduled: Some(4), ..plan(2) };
        let due = View::from(Region::heap(8).words());
        let words = Region::heap(log::WORDS).words();
        let log = Log::new(&words);
        ground(&plan, &control(GO).into(), Some(&due), &log).write(&mut writer);
        assert_eq!((reader.version(0), reader.version(1)), (2, 2));
    }

    #[test]
    fn stress_ends_with_its_time_and_a_case_that_is_ended_at_once() {
        for (state, least) in [(GO, 50), (LAST, 0)] {
            let (mut writer, reader) = board::pair(Shape::of_cells(1, 4).unwrap());
            let words = Region::heap(log::WORDS).words();
            let log = Log::new(&words);
            ground(&plan(1), &control(state).into(), None, &log).write(&mut writer);
            assert!(reader.version(0) >= least && (least > 0 || reader.version(0) == 0));
        }
    }

    /// A reader that gives half of an older value, then a version that went backwards.
    struct Torn(Cell<u64>);

    impl Read for Torn {
        fn version(&self, _: usize) -> u64 {
            [2, 1, 1][self.0.get().min(2) as usize]
        }
        fn read(&self, _: usize, into: &mut [u64]) -> Result<Option<Stamp>, board::ReadError> {
            self.0.set(self.0.get() + 1);
            content::fill(into, 2 - self.0.get());
            if self.0.get() == 1 {
                content::fill(&mut into[2..], 0);
            }
            Ok(Some(Stamp { version: 3 - self.0.get(), ticks: 0 }))
        }
        fn sleep(&self, _: usize, _: u64, _: Duration) {}
    }

    #[test]
    fn torn_values_and_versions_that_go_back_are_counted() {
        let plan = plan(1);
        let words = Region::heap(log::WORDS).words();
        let (log, view) = (Log::new(&words), LogView(words.clone().into()));
        ground(&plan, &control(STOP).into(), None, &log).read(&Torn(Cell::new(0)));
        assert_eq!((view.get(Field::Done), view.get(Field::Torn)), (2, 2));
        // What is not torn is not counted.
        let memory = Region::heap(16).words();
        let mut writer = carrier::careless_writer(memory.clone(), 4);
        let mut value = [0; 4];
        content::fill(&mut value, 0);
        writer.write(0, 0, &value);
        let words = Region::heap(log::WORDS).words();
        let (log, view) = (Log::new(&words), LogView(words.clone().into()));
        ground(&plan, &control(STOP).into(), None, &log).read(&carrier::careless_reader(memory.into(), 4));
        assert_eq!((view.get(Field::Done), view.get(Field::Torn)), (1, 0));
    }
}
