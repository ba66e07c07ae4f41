//! The scheduled orders of a run: when each is due, which strategy sends it, to which venue, and
//! how long the venue holds it. [`sample`] draws them from a [`Spec`], [`replay`] reads a recorded
//! flow, before the first process starts.
//!
//! Every technique and isolation level plays the same schedule, so that a difference between two
//! runs is not a difference between their inputs; [`Schedule::hash`] is the proof.

mod arrivals;
mod crossover;
mod draws;
mod entry;
mod flow;
mod replay;
mod sample;
mod spec;

pub use crossover::Turns;
pub use entry::{Entry, MAX_DELAY_NS, RESTING};
pub use flow::{FlowWriter, SentOrder};
use protocol::index::{StrategyIndex, VenueIndex};
pub use replay::{Replay, ReplayError, read_times, replay, replay_from};
pub use sample::sample;
pub use spec::{Arrivals, DelayRange, MAX_ORDERS, MAX_WINDOW_NS, Spec, SpecError};

use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::topology::ReplayStep;
use protocol::wire::OrderRequest;
use shm::memory::header::{FNV_OFFSET, fnv1a};

/// One encoded order of a schedule segment, in words of 64 bits. See [`Entry`].
pub type EntryWords = [u64; SCHEDULE_ENTRY_WORDS];

/// The orders that all strategies send in a run, by due time.
///
/// An order's position among those of its strategy is its sequence
/// ([`protocol::wire::OrderId::sequence`]).
#[derive(Clone, PartialEq, Eq)]
pub struct Schedule {
    /// For each strategy its entries, by due time; entries due at once keep the order in which they
    /// were made.
    words: Vec<Vec<EntryWords>>,
    venues: u16,
    window_ns: u64,
    pacing: Pacing,
    /// Of a recording: the strategy of each order, in recorded order.
    strategy_order: Vec<StrategyIndex>,
}

impl Schedule {
    /// Creates a schedule without orders.
    pub const fn empty() -> Self {
        Self {
            words: Vec::new(),
            venues: 0,
            window_ns: 0,
            pacing: Pacing::Closed,
            strategy_order: Vec::new(),
        }
    }

    /// Creates a schedule of one strategy from due times alone, ascending, in nanoseconds from the
    /// start.
    pub fn from_due_times(times: impl IntoIterator<Item = u64>) -> Self {
        let request = OrderRequest::to_venue(0);
        let words: Vec<_> = times.into_iter().map(|fire_ns| Entry { fire_ns, request }.to_words()).collect();
        let window_ns = words.last().map_or(0, |entry| entry[0]);
        Self {
            words: vec![words],
            venues: 1,
            window_ns,
            pacing: Pacing::Scheduled,
            strategy_order: Vec::new(),
        }
    }

    /// Returns the number of the schedule's strategies, 1 to [`protocol::wire::MAX_STRATEGIES`].
    /// Some may have no orders.
    pub fn strategies(&self) -> u16 {
        self.words.len() as u16
    }

    /// Returns the number of the schedule's venues, 1 to [`protocol::wire::MAX_VENUES`].
    pub fn venues(&self) -> u16 {
        self.venues
    }

    /// Returns a strategy's scheduled orders as encoded words; empty for an unknown strategy.
    pub fn words(&self, strategy: StrategyIndex) -> &[EntryWords] {
        self.words.get(strategy.as_usize()).map_or(&[], Vec::as_slice)
    }

    /// Returns a strategy's scheduled orders, decoded; empty for an unknown strategy.
    pub fn entries(&self, strategy: StrategyIndex) -> impl ExactSizeIterator<Item = Entry> + '_ {
        self.words(strategy)
            .iter()
            .map(|words| Entry::from_words(*words).expect("a schedule is made of encoded entries"))
    }

    /// Returns the strategy and the venue of each order of a recorded flow, in recorded order;
    /// empty for a drawn schedule.
    pub fn replay_order(&self) -> impl Iterator<Item = ReplayStep> + '_ {
        let mut next = vec![0; self.words.len()];
        self.strategy_order.iter().filter_map(move |&strategy| {
            let position: &mut usize = next.get_mut(strategy.as_usize())?;
            let words = self.words[strategy.as_usize()].get(*position)?;
            *position += 1;
            Some(ReplayStep { strategy, venue: VenueIndex(entry::venue_of(words)) })
        })
    }

    /// Returns the number of scheduled orders of each strategy.
    pub fn orders_per_strategy(&self) -> Vec<u64> {
        self.words.iter().map(|entries| entries.len() as u64).collect()
    }

    /// Returns the number of orders of each strategy to each venue, strategy after strategy. Reads
    /// every entry.
    pub fn orders_per_strategy_and_venue(&self) -> Vec<u64> {
        let venues = usize::from(self.venues);
        let mut orders = vec![0; self.words.len() * venues];
        for (words, orders) in self.words.iter().zip(orders.chunks_mut(venues)) {
            for words in words {
                orders[usize::from(entry::venue_of(words))] += 1;
            }
        }
        orders
    }

    /// Returns the longest simulated venue delay of all scheduled orders, in nanoseconds. Reads
    /// every entry.
    pub fn max_delay_ns(&self) -> u64 {
        self.words.iter().flatten().map(entry::delay_of).max().unwrap_or(0)
    }

    /// Returns the length of the time in which the schedule's orders are due, in nanoseconds.
    ///
    /// The window of the [`Spec`] for uniform and Pareto arrivals; when the last order is due for
    /// Poisson arrivals (whose gaps add up to about the window, not exactly) and for a replay; 0
    /// for stress.
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// Returns whether the scheduled orders have due times, or are sent as fast as possible.
    pub fn pacing(&self) -> Pacing {
        self.pacing
    }

    /// Returns the number of scheduled orders of all strategies, 1 to [`MAX_ORDERS`].
    pub fn total(&self) -> u64 {
        self.words.iter().map(|entries| entries.len() as u64).sum()
    }

    /// Returns the number of scheduled orders per second; `None` without due times (closed loop, or
    /// all due at time 0).
    pub fn offered_per_s(&self) -> Option<f64> {
        let paced = self.pacing == Pacing::Scheduled && self.window_ns > 0;
        paced.then(|| self.total() as f64 * 1e9 / self.window_ns as f64)
    }

    /// Returns a hash of the whole schedule; equal schedules have equal hashes.
    ///
    /// FNV-1a over little-endian words: strategies, venues, window, pacing (0 scheduled, 1 closed),
    /// then for each strategy the number of its entries and their words. Bytewise, because a
    /// multiply carries no high bit down: word-wise FNV-1a would all but ignore the venue and the
    /// operation at the top of their word.
    pub fn hash(&self) -> u64 {
        let add = |hash, word: u64| fnv1a(hash, &word.to_le_bytes());
        let pacing = match self.pacing {
            Pacing::Scheduled => 0,
            Pacing::Closed => 1,
        };
        let head = [u64::from(self.strategies()), u64::from(self.venues), self.window_ns, pacing];
        self.words.iter().fold(head.into_iter().fold(FNV_OFFSET, add), |hash, entries| {
            entries.iter().flatten().copied().fold(add(hash, entries.len() as u64), add)
        })
    }
}

impl core::fmt::Debug for Schedule {
    // A summary: there may be millions of entries.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Schedule")
            .field("strategies", &self.strategies())
            .field("venues", &self.venues)
            .field("total", &self.total())
            .field("window_ns", &self.window_ns)
            .field("pacing", &self.pacing)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An order of 3 at 100, due at 5 ns.
    pub(crate) fn entry() -> Entry {
        Entry {
            fire_ns: 5,
            request: OrderRequest { delay_ns: 7, price: 100, quantity: 3, ..OrderRequest::to_venue(1) },
        }
    }

    fn schedule() -> Schedule {
        let Entry { fire_ns, request } = entry();
        let other = Entry { fire_ns, request: OrderRequest { delay_ns: 9, venue: 0, ..request } };
        let entries = vec![entry().to_words(), other.to_words()];
        Schedule {
            words: vec![entries, vec![]],
            venues: 2,
            window_ns: 10,
            pacing: Pacing::Scheduled,
            strategy_order: vec![],
        }
    }

    #[test]
    fn schedule_counts_its_orders() {
        let schedule = schedule();
        assert_eq!(schedule.orders_per_strategy(), [2, 0]);
        assert_eq!(schedule.orders_per_strategy_and_venue(), [1, 1, 0, 0]);
        assert_eq!(schedule.max_delay_ns(), 9);
        assert_eq!(schedule.offered_per_s(), Some(2e8));
        assert_eq!(schedule.entries(StrategyIndex(0)).next(), Some(entry()));
        assert_eq!(schedule.entries(StrategyIndex(u16::MAX)).len(), 0);
    }

    #[test]
    fn due_times_become_entries() {
        let times = [3, 3, 8];
        let schedule = Schedule::from_due_times(times);
        assert!(schedule.entries(StrategyIndex(0)).map(|entry| entry.fire_ns).eq(times));
        assert_eq!((schedule.total(), schedule.window_ns()), (3, 8));
    }

    #[test]
    fn hash_depends_on_every_field() {
        type Change = fn(&mut Schedule);
        let changes: [Change; 7] = [
            |s| s.venues = 3,
            |s| s.window_ns = 11,
            |s| s.pacing = Pacing::Closed,
            |s| s.words[0][0][1] ^= 1 << 63,
            |s| s.words[0].swap(0, 1),
            |s| s.words.swap(0, 1),
            |s| s.words.push(vec![]),
        ];
        let mut hashes = vec![schedule().hash()];
        for change in changes {
            let mut changed = schedule();
            change(&mut changed);
            hashes.push(changed.hash());
        }
        let all = hashes.len();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), all);
    }
}
