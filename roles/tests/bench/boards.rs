use roles::bench::account::{AccountView, AgentAccount, Field};
use roles::bench::boards::counts::{
    BUCKETS, BoardField, BoardLog, BoardMeasure, HISTOGRAM_WORDS, MAX_WORD, WORDS, measure_at,
};
use roles::bench::boards::{BoardAgent, BoardRead, Waiting, content};
use roles::bench::control::{DRAIN, GO, LAST};
use shm::board::{self, BoardShape, ReadError, Stamp};
use shm::memory::{ReadOnlyWords, Region};
use shm::sync::Ordering;
use std::cell::Cell;
use std::time::Duration;
use system::clock::{Clock, Timebase, VirtualClock};

/// A clock that moves with each look.
#[derive(Clone)]
struct Moving(VirtualClock);

impl Clock for Moving {
    fn now(&self) -> u64 {
        self.0.set(self.0.now() + 1);
        self.0.now()
    }
}

/// The launcher's view of an agent's account.
struct Counted {
    account: AccountView,
    own: ReadOnlyWords,
}

impl Counted {
    fn reads(&self) -> u64 {
        self.account.get(Field::Count)
    }

    fn get(&self, field: BoardField) -> u64 {
        self.own.load(field as usize, Ordering::Relaxed)
    }

    fn greatest(&self, measure: BoardMeasure) -> u64 {
        self.own.load(measure_at(measure as usize) + MAX_WORD, Ordering::Relaxed)
    }

    /// The number of values in a histogram.
    fn measured(&self, measure: BoardMeasure) -> u64 {
        let at = measure_at(measure as usize);
        let buckets = at + BUCKETS..at + HISTOGRAM_WORDS;
        buckets.map(|word| self.own.load(word, Ordering::Relaxed)).sum()
    }
}

/// Runs a loop over `cells` cells in a phase.
fn ran(
    phase: u64,
    cells: usize,
    due: Option<&[u64]>,
    work: impl FnOnce(&BoardAgent<'_>, &Moving),
) -> Counted {
    let (control, account) = (crate::control(phase).view(), AgentAccount::on_heap(WORDS));
    let due = due.map(|times| {
        let words = Region::heap(times.len()).words();
        words.iter().zip(times).for_each(|(word, time)| word.store(*time, Ordering::Relaxed));
        words.into()
    });
    let agent = BoardAgent {
        time: Timebase { start_ticks: 0, ns_per_tick: 1.0 },
        control: &control,
        due,
        account: &account,
        log: BoardLog::new(&account),
        waiting: Waiting::Spin,
        cells,
        words: 4,
        duration_ns: 1_000,
    };
    work(&agent, &Moving(VirtualClock::default()));
    Counted { own: account.own().into(), account: account.view() }
}

#[test]
fn writes_are_made_when_due_and_read_whole() {
    let (mut writer, reader) = board::pair(BoardShape::with_cells(2, 4).unwrap());
    let due = [10, 10, 10, 300, 400];
    let found = ran(GO, 2, Some(&due), |agent, clock| agent.write(clock, &mut writer));
    assert_eq!((reader.version(0), reader.version(1)), (3, 2), "in turn");
    assert_eq!((found.reads(), found.measured(BoardMeasure::Second)), (5, 5));
    // Three were due at once: the third is late by what the first two took.
    assert!(found.greatest(BoardMeasure::Second) > found.greatest(BoardMeasure::First));

    let found = ran(DRAIN, 2, Some(&due), |agent, clock| agent.read(clock, &reader));
    let fields = [BoardField::Missed, BoardField::Torn, BoardField::Overtaken].map(|field| found.get(field));
    assert_eq!((found.reads(), fields), (2, [3, 0, 0]), "the newest of each cell");
    assert_eq!(found.measured(BoardMeasure::Third), 2);
}

#[test]
fn successor_goes_on_after_the_last_write() {
    let (mut writer, reader) = board::pair(BoardShape::with_cells(2, 4).unwrap());
    writer.write(0, 0, &[0; 4]);
    ran(GO, 2, Some(&[0; 4]), |agent, clock| agent.write(clock, &mut writer));
    assert_eq!((reader.version(0), reader.version(1)), (2, 2));
}

#[test]
fn stress_ends_with_its_time_or_its_case() {
    for (phase, min) in [(GO, 50), (LAST, 0)] {
        let (mut writer, reader) = board::pair(BoardShape::with_cells(1, 4).unwrap());
        ran(phase, 1, None, |agent, clock| agent.write(clock, &mut writer));
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
        let found = ran(DRAIN, 1, None, |agent, clock| agent.read(clock, &reader));
        assert_eq!((found.reads(), found.get(BoardField::Torn)), (2, torn));
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
