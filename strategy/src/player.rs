//! The player: a strategy that plays its part of the schedule. The maker and the taker follow its
//! times, and send orders of their own instead.

use crate::schedule::Entry;
use crate::{NewOrder, Orders, Strategy};
use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::wire::OrderId;
use shm::memory::ReadOnlyWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// How many due orders one cycle sends before reports are looked at again.
const BATCH: usize = 16;

/// What a strategy that follows the times of a schedule makes of the orders in it.
pub(crate) trait Shape {
    /// What to send now that this order is due; `None`: nothing. Asked again where the session
    /// refused it.
    fn shape(&mut self, scheduled: &NewOrder) -> Option<NewOrder>;

    /// What it made of the last one was sent.
    fn sent(&mut self, order: &NewOrder, id: OrderId);
}

/// What the schedule says.
struct Unchanged;

impl Shape for Unchanged {
    #[inline]
    fn shape(&mut self, scheduled: &NewOrder) -> Option<NewOrder> {
        Some(*scheduled)
    }

    #[inline]
    fn sent(&mut self, _: &NewOrder, _: OrderId) {}
}

/// Plays the entries of a schedule segment in their order, as often as it is told to.
pub struct Player {
    schedule: ReadOnlyWords,
    entries: usize,
    /// The next entry.
    position: usize,
    /// Laps that come behind this one.
    laps_left: u64,
    lap_ns: u64,
    /// When this one began.
    lap_began_ns: u64,
    pacing: Pacing,
    /// The next order; `None` at the end, or before the first cycle has told the time.
    next: Option<NewOrder>,
    /// When it is due (ticks); 0 before the first cycle, `u64::MAX` at the end.
    due: u64,
    bad_entries: u64,
    /// What is due before the first cycle is to be left out.
    is_late: bool,
}

impl Player {
    /// A player of that many entries behind the header of a schedule segment.
    ///
    /// # Panics
    /// If the segment is shorter: the header's check comes first.
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

    /// Plays them so many times, each so many nanoseconds behind the one before.
    #[must_use]
    pub fn in_laps(self, laps: u32, lap_ns: u64) -> Self {
        Self { laps_left: u64::from(laps.max(1)) - 1, lap_ns, ..self }
    }

    /// For an incarnation after the first: goes on behind the entries that were played before, and
    /// leaves out those that were due while nobody was there to send them.
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

    /// Whether there is another entry: at the end of a lap the next one begins.
    #[inline]
    fn has_more(&mut self) -> bool {
        self.position < self.entries || self.begin_lap()
    }

    #[cold]
    fn begin_lap(&mut self) -> bool {
        let Some(left) = self.laps_left.checked_sub(1).filter(|_| self.entries > 0) else { return false };
        (self.laps_left, self.position) = (left, 0);
        self.lap_began_ns = self.lap_began_ns.saturating_add(self.lap_ns);
        true
    }

    /// When an order of this lap is due, in nanoseconds since the start.
    #[inline]
    const fn due_ns(&self, fire_ns: u64) -> u64 {
        self.lap_began_ns.saturating_add(fire_ns)
    }

    /// Leaves out the entries that are due before now.
    #[cold]
    fn skip_missed(&mut self, orders: &impl Orders) {
        let (time, now) = (orders.time(), orders.now());
        while self.has_more() {
            // The time when it is due is its first word.
            let at = HEADER_WORDS + self.position * SCHEDULE_ENTRY_WORDS;
            let fire_ns = self.schedule.load(at, Ordering::Relaxed);
            if time.at(self.due_ns(fire_ns)) >= now {
                break;
            }
            self.position += 1;
        }
        self.is_late = false;
    }

    /// Loads the next entry that can be read.
    #[inline]
    fn advance(&mut self, orders: &impl Orders) {
        while self.next.is_none() && self.has_more() {
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

    /// When the next order is due, in ticks; 0 before the first cycle, `u64::MAX` at the end.
    #[inline(always)]
    pub(crate) const fn due(&self) -> u64 {
        self.due
    }

    /// Sends what is due, in the shape that it is given; returns for how many orders it did so.
    #[inline(never)]
    pub(crate) fn send_due(&mut self, orders: &mut impl Orders, shape: &mut impl Shape) -> usize {
        let mut sent = 0;
        if self.is_late {
            self.skip_missed(orders);
        }
        while sent < BATCH {
            self.advance(orders);
            match self.next {
                Some(scheduled) if self.due <= orders.now() => {
                    if let Some(order) = shape.shape(&scheduled) {
                        let Ok(id) = orders.send(order) else { break };
                        shape.sent(&order, id);
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
        // Nearly always nothing is: one word.
        if self.due > orders.now() { 0 } else { self.send_due(orders, &mut Unchanged) }
    }

    fn next_due(&self) -> u64 {
        self.next.map_or(u64::MAX, |_| self.due)
    }

    fn finished(&self) -> bool {
        self.next.is_none() && self.position == self.entries && (self.laps_left == 0 || self.entries == 0)
    }
}
