//! Decision ticks of the board benchmark: the writer publishes ticks, and each reader reads values
//! for each tick.

use super::BoardRead;
use protocol::benchmark::decisions::BoardDecision;
use protocol::plan::BoardWork;
use shm::board::Writer;
use shm::memory::AtomicWords;
use system::clock::{Clock, Timebase};

/// The cell whose versions the ticks name.
const DECIDED_CELL: usize = 0;

/// The writer's end of the decision ticks of a board.
pub(super) struct TickWriter {
    cell: usize,
    every_ticks: u64,
    next: u64,
    value: Vec<u64>,
}

impl TickWriter {
    /// Creates the writer of a board's decision ticks (times at which readers read the board);
    /// `None` if the benchmark has no such ticks.
    pub fn new(work: &BoardWork, time: Timebase) -> Option<Self> {
        let every_ticks = time.ticks(work.decide_every_ns?).max(1);
        Some(Self { cell: work.cells, every_ticks, next: time.start_ticks, value: vec![0; work.words] })
    }

    /// Publishes a decision tick on the board if one is due at the tick `now` of the clock. Called
    /// after a write.
    pub fn publish_if_due(&mut self, board: &mut Writer, now: u64) {
        if now >= self.next {
            self.value[0] = board.version(DECIDED_CELL);
            board.write(self.cell, now, &self.value);
            self.next = now + self.every_ticks;
        }
    }
}

/// A reader's end of the decision ticks of a board.
pub(super) struct TickReader<'a> {
    cell: usize,
    seen: u64,
    value: Vec<u64>,
    results: &'a AtomicWords,
}

impl<'a> TickReader<'a> {
    /// Creates a reader that reads the board at decision ticks and stores what it found in
    /// `results`; `None` if the benchmark has no such ticks.
    pub fn new(work: &BoardWork, results: &'a AtomicWords) -> Option<Self> {
        work.decide_every_ns?;
        Some(Self { cell: work.cells, seen: 0, value: vec![0; work.words], results })
    }

    /// Reads, at a new decision tick, cell 0 of the board: the newest value and the version whose
    /// number the tick contains. Stores the newest version, and whether the other one could still
    /// be read.
    pub fn decide(&mut self, clock: &impl Clock, board: &impl BoardRead) {
        if board.version(self.cell) == self.seen {
            return;
        }
        let Ok(Some(tick)) = board.read(self.cell, &mut self.value) else { return };
        self.seen = tick.version;
        let named = self.value[0];
        let Ok(Some(newest)) = board.read(DECIDED_CELL, &mut self.value) else { return };
        let at = clock.now();
        let has_named = matches!(
            board.read_version(DECIDED_CELL, named, &mut self.value),
            Ok(Some(found)) if found.version == named
        );
        let decision = BoardDecision { number: tick.version, newest: newest.version, at, has_named };
        decision.store(self.results);
    }
}
