//! The player: a strategy that sends the orders of its schedule. Maker and taker follow its times
//! with orders of their own.

use crate::schedule::Entry;
use crate::{NewOrder, Orders, Strategy};
use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::wire::OrderId;
use shm::memory::ReadOnlyWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// Maximum number of due orders that one duty cycle sends before reports are polled again.
const BATCH: usize = 16;

/// Converts orders of a schedule into those that a strategy sends in their place.
pub(crate) trait OrderShaper {
    /// Returns the order to send when `scheduled` is due; `None` for nothing. Called again if the
    /// session refused it.
    fn shape_order(&mut self, scheduled: &NewOrder) -> Option<NewOrder>;

    /// Handles that the order that was returned last has been sent.
    fn on_sent(&mut self, order: &NewOrder, id: OrderId);
}

/// Sends scheduled orders unchanged.
struct AsScheduled;

impl OrderShaper for AsScheduled {
    #[inline]
    fn shape_order(&mut self, scheduled: &NewOrder) -> Option<NewOrder> {
        Some(*scheduled)
    }

    #[inline]
    fn on_sent(&mut self, _: &NewOrder, _: OrderId) {}
}

/// A strategy that sends the orders of its schedule at their times, once or repeatedly.
pub struct Player {
    schedule: ReadOnlyWords,
    entries: usize,
    /// Index of the next entry.
    position: usize,
    /// Laps after the current one.
    laps_left: u64,
    lap_ns: u64,
    /// Start of the current lap, in nanoseconds since the start of the run.
    lap_began_ns: u64,
    pacing: Pacing,
    /// The next order; `None` at the end or before the first duty cycle.
    next: Option<NewOrder>,
    /// When the next order is due (ticks); 0 before the first duty cycle, `u64::MAX` at the end.
    due: u64,
    bad_entries: u64,
    /// Orders due before the first duty cycle are skipped.
    is_late: bool,
}

impl Player {
    /// Creates a player of the first `entries` orders in a schedule segment.
    ///
    /// # Panics
    /// If the segment is shorter than its entries.
    pub fn new(schedule: ReadOnlyWords, entries: usize, pacing: Pacing) -> Self {
        assert!(
            HEADER_WORDS + entries * SCHEDULE_ENTRY_WORDS <= schedule.len(),
            "checked against the header"
        );
        Self {
            schedule,
            entries,
            position: 0,
            laps_left: 0,
            lap_ns: 0,
            lap_began_ns: 0,
            pacing,
            next: None,
            due: 0,
            bad_entries: 0,
            is_late: false,
        }
    }

    /// Repeats the schedule `laps` times, beginning every `lap_ns` nanoseconds.
    #[must_use]
    pub fn with_laps(self, laps: u32, lap_ns: u64) -> Self {
        Self { laps_left: u64::from(laps.max(1)) - 1, lap_ns, ..self }
    }

    /// Continues after `played` orders for a restarted strategy, and skips those that came due in
    /// between.
    #[must_use]
    pub fn resume(self, played: usize) -> Self {
        let laps = (played as u64).checked_div(self.entries as u64).unwrap_or(0).min(self.laps_left);
        let position = (played - laps as usize * self.entries).min(self.entries);
        Self {
            position,
            laps_left: self.laps_left - laps,
            lap_began_ns: laps.saturating_mul(self.lap_ns),
            is_late: self.pacing == Pacing::Scheduled,
            ..self
        }
    }

    /// Returns `true` if there is another entry; begins the next lap at the end of one.
    #[inline]
    fn try_ensure_entry(&mut self) -> bool {
        self.position < self.entries || self.try_begin_lap()
    }

    #[cold]
    fn try_begin_lap(&mut self) -> bool {
        let Some(left) = self.laps_left.checked_sub(1).filter(|_| self.entries > 0) else { return false };
        (self.laps_left, self.position) = (left, 0);
        self.lap_began_ns = self.lap_began_ns.saturating_add(self.lap_ns);
        true
    }

    /// Returns when an order of this lap is due, in nanoseconds since the start of the run.
    #[inline]
    const fn due_ns(&self, fire_ns: u64) -> u64 {
        self.lap_began_ns.saturating_add(fire_ns)
    }

    /// Skips the entries that are due before now.
    #[cold]
    fn skip_missed(&mut self, orders: &impl Orders) {
        let (time, now) = (orders.time(), orders.now());
        while self.try_ensure_entry() {
            // An entry's first word is its due time.
            let at = HEADER_WORDS + self.position * SCHEDULE_ENTRY_WORDS;
            let fire_ns = self.schedule.load(at, Ordering::Relaxed);
            if time.at(self.due_ns(fire_ns)) >= now {
                break;
            }
            self.position += 1;
        }
        self.is_late = false;
    }

    /// Loads the next valid entry.
    #[inline]
    fn advance(&mut self, orders: &impl Orders) {
        while self.next.is_none() && self.try_ensure_entry() {
            let offset = HEADER_WORDS + self.position * SCHEDULE_ENTRY_WORDS;
            let words = std::array::from_fn(|i| self.schedule.load(offset + i, Ordering::Relaxed));
            self.position += 1;
            let Ok(entry) = Entry::from_words(words) else {
                self.bad_entries += 1;
                continue;
            };
            let scheduled = self.pacing == Pacing::Scheduled;
            self.due = if scheduled { orders.time().at(self.due_ns(entry.fire_ns)) } else { 0 };
            let Entry { venue, operation, side, price, quantity, target, delay_ns, .. } = entry;
            let due = scheduled.then_some(self.due);
            let order = NewOrder {
                operation,
                side,
                price,
                quantity,
                target,
                delay_ns,
                due,
                ..NewOrder::to_venue(venue)
            };
            self.next = Some(order);
        }
        if self.next.is_none() {
            self.due = u64::MAX;
        }
    }

    /// Returns the tick at which the next order is due. 0 before the first duty cycle, `u64::MAX`
    /// at the end.
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
                    if let Some(order) = shape.shape_order(&scheduled) {
                        let Ok(id) = orders.send(order) else { break };
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
        if self.due > orders.now() { 0 } else { self.send_due(orders, &mut AsScheduled) }
    }

    fn next_due(&self) -> u64 {
        self.next.map_or(u64::MAX, |_| self.due)
    }

    fn finished(&self) -> bool {
        self.next.is_none() && self.position == self.entries && (self.laps_left == 0 || self.entries == 0)
    }
}
