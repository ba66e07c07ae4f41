//! The context from which a strategy is built.

use crate::Player;
use crate::schedule::Entry;
use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use shm::memory::ReadOnlyWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// What one incarnation of a strategy knows about its run when it is built.
#[derive(Clone)]
pub struct Context {
    /// Which strategy it is, from 0.
    pub strategy: u16,
    /// How many strategies there are.
    pub strategies: u16,
    /// How many venues there are: orders go to 0 … `venues` − 1.
    pub venues: u16,
    /// Which incarnation it is: 0, and one more each time that it was started again after a death.
    /// Nothing of what its predecessor knew is left.
    pub epoch: u16,
    /// The most orders that it can send: those that the plan has for it, less what its predecessors
    /// sent. Once they are sent it has finished, whatever it says itself.
    pub orders: u64,
    /// The most orders that it can have open at once.
    pub max_open: u64,
    /// Orders that its predecessors sent.
    pub sent_before: u64,
    schedule: ReadOnlyWords,
    entries: usize,
    laps: u32,
    lap_ns: u64,
    pacing: Pacing,
}

impl Context {
    /// A strategy's context, with its schedule segment and the number of entries in it.
    ///
    /// # Panics
    /// If the segment is shorter: the header's check comes first.
    pub fn new(strategy: u16, schedule: ReadOnlyWords, entries: usize, pacing: Pacing) -> Self {
        assert!(
            HEADER_WORDS + entries * SCHEDULE_ENTRY_WORDS <= schedule.len(),
            "checked against the header"
        );
        Self {
            strategy,
            strategies: 1,
            venues: 1,
            epoch: 0,
            orders: entries as u64,
            max_open: u64::MAX,
            sent_before: 0,
            schedule,
            entries,
            laps: 1,
            lap_ns: 0,
            pacing,
        }
    }

    /// The same where the schedule is played so many times, each so many nanoseconds behind the one
    /// before.
    #[must_use]
    pub fn in_laps(self, laps: u32, lap_ns: u64) -> Self {
        Self { laps: laps.max(1), lap_ns, ..self }
    }

    /// The orders that were drawn or recorded for it, the earliest first, of all laps. It may send
    /// them, or others, or none.
    pub fn schedule(&self) -> impl Iterator<Item = Entry> {
        let (schedule, entries, lap_ns) = (self.schedule.clone(), self.entries, self.lap_ns);
        let places =
            (0..u64::from(self.laps)).flat_map(move |lap| (0..entries).map(move |entry| (lap, entry)));
        places.filter_map(move |(lap, position)| {
            let offset = HEADER_WORDS + position * SCHEDULE_ENTRY_WORDS;
            // Relaxed: written before this process started.
            let words = std::array::from_fn(|i| schedule.load(offset + i, Ordering::Relaxed));
            let entry = Entry::from_words(words).ok()?;
            Some(Entry { fire_ns: entry.fire_ns.saturating_add(lap.saturating_mul(lap_ns)), ..entry })
        })
    }

    /// The strategy that plays its schedule.
    pub fn player(&self) -> Player {
        let player = Player::new(self.schedule.clone(), self.entries, self.pacing);
        let player = player.in_laps(self.laps, self.lap_ns);
        if self.epoch == 0 { player } else { player.resume(self.sent_before as usize) }
    }
}
