//! The context from which a strategy is built.

use crate::Player;
use crate::schedule::Entry;
use protocol::plan::Pacing;
use protocol::positions::{self, InheritedPosition};
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use shm::memory::ReadOnlyWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// The identity, the schedule and the settings from which an incarnation of a strategy is created.
#[derive(Clone)]
pub struct Context {
    /// Index of the strategy, from 0.
    pub strategy: u16,
    /// Number of strategies in the run.
    pub strategies: u16,
    /// Number of venues in the run: orders go to 0 … `venues` − 1.
    pub venues: u16,
    /// Incarnation of the strategy: 0, incremented by each restart after a crash. No state of the
    /// predecessor is left.
    pub epoch: u16,
    /// Maximum number of orders that the strategy may send: those of the plan, less those that its
    /// predecessors sent. Once they are sent the strategy has finished.
    pub orders: u64,
    /// Maximum number of the strategy's orders that are open at once.
    pub max_open: u64,
    /// Number of orders that earlier incarnations of the strategy sent.
    pub sent_before: u64,
    inherited: Option<ReadOnlyWords>,
    schedule: ReadOnlyWords,
    entries: usize,
    pacing: Pacing,
}

impl Context {
    /// Creates the context of a strategy whose schedule is the first `entries` orders of a segment.
    pub fn new(strategy: u16, schedule: ReadOnlyWords, entries: usize, pacing: Pacing) -> Self {
        let end = HEADER_WORDS + entries * SCHEDULE_ENTRY_WORDS;
        assert!(end <= schedule.len(), "checked against the header");
        Self {
            strategy,
            strategies: 1,
            venues: 1,
            epoch: 0,
            orders: entries as u64,
            max_open: u64::MAX,
            sent_before: 0,
            inherited: None,
            schedule,
            entries,
            pacing,
        }
    }

    /// Adds the shared-memory segment with the positions that the strategy inherits.
    #[must_use]
    pub fn with_inherited_positions(self, segment: ReadOnlyWords) -> Self {
        Self { inherited: Some(segment), ..self }
    }

    /// Returns `true` if an earlier incarnation of the strategy has ended: it crashed and was
    /// restarted, or an operator replaced it.
    pub const fn is_successor(&self) -> bool {
        self.epoch > 0
    }

    /// Returns the positions that the strategy inherits: those in the engine at its predecessor's
    /// end; none in the first incarnation. A fill of a predecessor's order after that is not in
    /// them.
    pub fn positions(&self) -> impl Iterator<Item = InheritedPosition> {
        self.inherited.iter().flat_map(positions::read)
    }

    /// Returns the position that the strategy inherits in an instrument, as [`Context::positions`]
    /// does; zeros if it inherits none.
    pub fn position(&self, instrument: u16) -> InheritedPosition {
        let found = self.positions().find(|position| position.instrument == instrument);
        found.unwrap_or(InheritedPosition { instrument, ..InheritedPosition::default() })
    }

    /// Returns the strategy's scheduled orders, earliest first. The strategy may send them, others
    /// or none.
    pub fn schedule(&self) -> impl Iterator<Item = Entry> {
        let schedule = self.schedule.clone();
        (0..self.entries).filter_map(move |position| {
            let offset = HEADER_WORDS + position * SCHEDULE_ENTRY_WORDS;
            // Relaxed: written before this process started.
            let words = std::array::from_fn(|i| schedule.load(offset + i, Ordering::Relaxed));
            Entry::from_words(words).ok()
        })
    }

    /// Creates the built-in strategy that sends the orders of the strategy's schedule.
    pub fn player(&self) -> Player {
        let player = Player::new(self.schedule.clone(), self.entries, self.pacing);
        if self.epoch == 0 { player } else { player.resume(self.sent_before as usize) }
    }
}
