use crate::ThreadMemory;
use protocol::benchmark::board_results::BoardMeasure;
use protocol::benchmark::decisions::{BoardDecision, MAX_DECISIONS};
use protocol::benchmark::{BOARD_RESULT_WORDS, BOARD_SLICES};
use protocol::control::RunState;
use protocol::counters::AgentCounters;
use protocol::labels::{ReaderCounter, WriterCounter};
use protocol::plan::{BoardWork, ReaderWaiting, Role};
use protocol::shared_histogram::{BUCKETS, MAX_WORD, Resolution};
use roles::board::histograms::BoardHistograms;
use roles::board::{BoardAgent, BoardRead, content};
use shm::board::{self, BoardShape, ReadError, Stamp};
use shm::memory::{ReadOnlyWords, Region};
use shm::sync::Ordering;
use std::cell::Cell;
use std::time::Duration;
use system::clock::{Clock, Timebase, VirtualClock};

const TIME: Timebase = Timebase { start_ticks: 0, ns_per_tick: 1.0 };

/// A clock that moves with each look.
#[derive(Clone)]
struct Moving(VirtualClock);

impl Clock for Moving {
    fn now(&self) -> u64 {
        self.0.set(self.0.now() + 1);
        self.0.now()
    }
}

/// The launcher's view of an end's counters and results.
struct Counted {
    writer: AgentCounters,
    reader: AgentCounters,
    results: ReadOnlyWords,
}

impl Counted {
    fn get(&self, counter: ReaderCounter) -> u64 {
        self.reader.get(counter)
    }

    fn greatest(&self, measure: BoardMeasure) -> u64 {
        self.results.load(measure.offset() + MAX_WORD, Ordering::Relaxed)
    }

    /// The number of values in a histogram.
    fn measured(&self, measure: BoardMeasure) -> u64 {
        self.counted(measure.offset(), Resolution::FINE)
    }

    /// The number of values in each part of the time.
    fn measured_over_time(&self, measure: BoardMeasure) -> Vec<u64> {
        let slice = |slice| self.counted(measure.slice_offset(slice), Resolution::COARSE);
        (0..BOARD_SLICES).map(slice).collect()
    }

    fn counted(&self, at: usize, resolution: Resolution) -> u64 {
        let buckets = at + BUCKETS..at + resolution.words();
        buckets.map(|word| self.results.load(word, Ordering::Relaxed)).sum()
    }
}

/// Runs a loop over `cells` cells in a state of the run.
fn ran(
    state: RunState,
    cells: usize,
    due: Option<&[u64]>,
    work: impl FnOnce(&BoardAgent<'_>, &Moving),
) -> Counted {
    ran_with(None, state, cells, due, work)
}

/// Runs a loop, with a decision tick at most each so many nanoseconds.
fn ran_with(
    decide_every_ns: Option<u64>,
    state: RunState,
    cells: usize,
    due: Option<&[u64]>,
    work: impl FnOnce(&BoardAgent<'_>, &Moving),
) -> Counted {
    let (control, thread) = (crate::control(state).control(), ThreadMemory::new());
    let results = Region::heap(BOARD_RESULT_WORDS + 4 * MAX_DECISIONS).words();
    let due = due.map(|times| {
        let words = Region::heap(times.len()).words();
        words.iter().zip(times).for_each(|(word, time)| word.store(*time, Ordering::Relaxed));
        words.into()
    });
    let settings = BoardWork {
        readers: 1,
        waiting: ReaderWaiting::Spin,
        cells,
        words: 4,
        scheduled: None,
        duration_ns: 1_000,
        folder: None,
        decide_every_ns,
    };
    let status = thread.status();
    let agent = BoardAgent {
        work: &settings,
        time: TIME,
        control: &control,
        due,
        counters: status.slots().next_agent(),
        histograms: BoardHistograms::new(&results, TIME, settings.duration_ns),
        results: results.clone(),
    };
    work(&agent, &Moving(VirtualClock::default()));
    let [writer, reader] = [Role::Writer, Role::Reader(0)].map(|role| thread.counters(role));
    Counted { writer, reader, results: results.into() }
}

#[test]
fn writes_are_made_when_due_and_read_whole() {
    let (mut writer, reader) = board::pair(BoardShape::with_cells(2, 4).unwrap());
    let due = [10, 10, 10, 300, 400];
    let counters = ran(RunState::Go, 2, Some(&due), |agent, clock| agent.write(clock, &mut writer));
    assert_eq!((reader.version(0), reader.version(1)), (3, 2), "in turn");
    let writes = counters.writer.get(WriterCounter::Written);
    assert_eq!((writes, counters.measured(BoardMeasure::Second)), (5, 5));
    // Of 1,000 ns, a sixtieth each: three at 10, one at 300 and one at 400.
    let over_time = counters.measured_over_time(BoardMeasure::First);
    assert_eq!(
        (over_time[..2].iter().sum::<u64>(), over_time[18], over_time[25]),
        (3, 1, 1),
        "{over_time:?}"
    );
    assert_eq!(counters.measured_over_time(BoardMeasure::Second).iter().sum::<u64>(), 5);
    // Three were due at once: the third is late by what the first two took.
    assert!(counters.greatest(BoardMeasure::Second) > counters.greatest(BoardMeasure::First));

    let counters = ran(RunState::Stop, 2, Some(&due), |agent, clock| agent.read(clock, &reader));
    let counts = [ReaderCounter::Read, ReaderCounter::Missed, ReaderCounter::Torn, ReaderCounter::Overtaken];
    assert_eq!(counts.map(|counter| counters.get(counter)), [2, 3, 0, 0], "the newest of each cell");
    assert_eq!(counters.measured(BoardMeasure::Third), 2);
}

#[test]
fn readers_decide_once_for_each_tick() {
    let (mut writer, reader) = board::pair(BoardShape::with_cells(2, 4).unwrap());
    let due = [0, 10, 20, 300, 310];
    ran_with(Some(200), RunState::Go, 1, Some(&due), |agent, clock| agent.write(clock, &mut writer));
    assert_eq!((reader.version(0), reader.version(1)), (5, 2), "one tick for each of two bursts");
    let decided = |reader: &board::Reader| {
        let counts = ran_with(Some(200), RunState::Stop, 1, None, |agent, clock| agent.read(clock, reader));
        let all = BoardDecision::all(&counts.results);
        all.iter().map(|found| (found.number, found.newest, found.has_named)).collect::<Vec<_>>()
    };
    assert_eq!(decided(&reader), [(2, 5, true)], "the newest is one version ahead of the tick's");
    (0..4).for_each(|_| {
        writer.write(0, 0, &[0; 4]);
    });
    assert_eq!(decided(&reader), [(2, 9, false)], "version 4 is overwritten");
}

#[test]
fn successor_goes_on_after_the_last_write() {
    let (mut writer, reader) = board::pair(BoardShape::with_cells(2, 4).unwrap());
    writer.write(0, 0, &[0; 4]);
    ran(RunState::Go, 2, Some(&[0; 4]), |agent, clock| agent.write(clock, &mut writer));
    assert_eq!((reader.version(0), reader.version(1)), (2, 2));
}

#[test]
fn stress_ends_with_its_time_or_its_case() {
    for (state, min) in [(RunState::Go, 50), (RunState::Drain, 0)] {
        let (mut writer, reader) = board::pair(BoardShape::with_cells(1, 4).unwrap());
        ran(state, 1, None, |agent, clock| agent.write(clock, &mut writer));
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
    fn read_version(&self, _: usize, _: u64, _: &mut [u64]) -> Result<Option<Stamp>, ReadError> {
        Ok(None)
    }
    fn sleep(&self, _: usize, _: u64, _: Duration) {}
}

#[test]
fn torn_values_and_versions_that_go_back_are_counted() {
    for (is_whole, torn) in [(false, 2), (true, 1)] {
        let reader = Torn { reads: Cell::new(0), is_whole };
        let counters = ran(RunState::Stop, 1, None, |agent, clock| agent.read(clock, &reader));
        assert_eq!((counters.get(ReaderCounter::Read), counters.get(ReaderCounter::Torn)), (2, torn));
    }
}

#[test]
fn torn_value_is_detected_at_every_word() {
    for words in [1, 2, 7, 64] {
        let (mut old, mut new) = (vec![0; words], vec![0; words]);
        content::fill(&mut old, 41);
        content::fill(&mut new, 42);
        assert!(content::is_whole(&old, 41) && content::is_whole(&new, 42));
        assert!(!content::is_whole(&old, 42), "a whole value of another version");
        for torn in 1..words {
            let value = [&new[..torn], &old[torn..]].concat();
            assert!(!content::is_whole(&value, 41) && !content::is_whole(&value, 42), "{torn} of {words}");
        }
        assert!(!content::is_whole(&vec![0; words], 41), "never written");
    }
}
