//! The player: a strategy that sends the orders of its schedule. Maker and taker follow its times
//! with orders of their own.

use crate::schedule::Entry;
use crate::{Orders, Strategy};
use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::wire::{OrderId, OrderRequest};
use shm::memory::ReadOnlyWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// Maximum number of due orders that one duty cycle sends before reports are polled again.
const BATCH: usize = 16;

/// Converts orders of a schedule into those that a strategy sends in their place.
pub(crate) trait OrderShaper {
    /// Returns the order to send when `scheduled` is due; `None` for nothing. Called again if the
    /// session refused it. `due`: its intended time in ticks, if it has one.
    fn shape_order(&mut self, scheduled: &OrderRequest, due: Option<u64>) -> Option<OrderRequest>;

    fn on_sent(&mut self, order: &OrderRequest, id: OrderId);
}

struct UnchangedShaper;

impl OrderShaper for UnchangedShaper {
    #[inline]
    fn shape_order(&mut self, scheduled: &OrderRequest, _: Option<u64>) -> Option<OrderRequest> {
        Some(*scheduled)
    }

    #[inline]
    fn on_sent(&mut self, _: &OrderRequest, _: OrderId) {}
}

/// A strategy that sends the orders of its schedule at their times.
pub struct Player {
    schedule: ReadOnlyWords,
    entries: usize,
    position: usize,
    pacing: Pacing,
    /// The next order; `None` at the end or before the first duty cycle.
    next: Option<OrderRequest>,
    /// When the next order is due (ticks); 0 before the first duty cycle, `u64::MAX` at the end.
    due: u64,
    /// Orders due before the first duty cycle are skipped.
    is_late: bool,
}

impl Player {
    /// Creates a player of the first `entries` orders in a schedule segment, which is long enough.
    pub(crate) fn new(schedule: ReadOnlyWords, entries: usize, pacing: Pacing) -> Self {
        Self { schedule, entries, position: 0, pacing, next: None, due: 0, is_late: false }
    }

    /// Continues after `played` orders for a restarted strategy, and skips those that came due in
    /// between.
    pub(crate) fn resume(self, played: usize) -> Self {
        let position = played.min(self.entries);
        Self { position, is_late: self.pacing == Pacing::Scheduled, ..self }
    }

    #[cold]
    fn skip_missed(&mut self, orders: &impl Orders) {
        let (time, now) = (orders.time(), orders.now());
        while self.position < self.entries {
            // An entry's first word is its due time.
            let at = HEADER_WORDS + self.position * SCHEDULE_ENTRY_WORDS;
            let fire_ns = self.schedule.load(at, Ordering::Relaxed);
            if time.at(fire_ns) >= now {
                break;
            }
            self.position += 1;
        }
        self.is_late = false;
    }

    #[inline]
    fn advance(&mut self, orders: &impl Orders) {
        while self.next.is_none() && self.position < self.entries {
            let offset = HEADER_WORDS + self.position * SCHEDULE_ENTRY_WORDS;
            let words = std::array::from_fn(|i| self.schedule.load(offset + i, Ordering::Relaxed));
            self.position += 1;
            let Ok(entry) = Entry::from_words(words) else { continue };
            let is_scheduled = self.pacing == Pacing::Scheduled;
            self.due = if is_scheduled { orders.time().at(entry.fire_ns) } else { 0 };
            self.next = Some(entry.request);
        }
        if self.next.is_none() {
            self.due = u64::MAX;
        }
    }

    #[inline(always)]
    pub(crate) const fn due(&self) -> u64 {
        self.due
    }

    /// Sends the scheduled orders that are due, converted by `shape`. Returns the number of
    /// scheduled orders processed.
    #[inline(never)]
    pub(crate) fn send_due(&mut self, orders: &mut impl Orders, shape: &mut impl OrderShaper) -> usize {
        let mut sent = 0;
        if self.is_late {
            self.skip_missed(orders);
        }
        while sent < BATCH {
            self.advance(orders);
            match self.next {
                Some(scheduled) if self.due <= orders.now() => {
                    let due = (self.pacing == Pacing::Scheduled).then_some(self.due);
                    if let Some(order) = shape.shape_order(&scheduled, due) {
                        let Ok(id) = orders.send_due(order, due) else { break };
                        shape.on_sent(&order, id);
                    }
                    self.next = None;
                    sent += 1;
                }
                _ => break,
            }
        }
        sent
    }
}

impl Strategy for Player {
    #[inline(always)]
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        // Nearly always false: reads one word.
        if self.due > orders.now() { 0 } else { self.send_due(orders, &mut UnchangedShaper) }
    }

    fn next_due(&self) -> u64 {
        self.next.map_or(u64::MAX, |_| self.due)
    }

    fn finished(&self) -> bool {
        self.next.is_none() && self.position == self.entries
    }
}
