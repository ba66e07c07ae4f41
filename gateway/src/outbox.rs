//! The way of reports from a venue into the completion hand-off: stamped when the venue gives them,
//! in their order, none lost when the hand-off is full.

use crate::venue::{NoRoom, ROOM, Reports, VenueInfo};
use protocol::agent::Cycle;
use protocol::checksum::{Checksum, digest};
use protocol::sender::{SendOutcome, Sender};
use protocol::session::WITHDRAWN;
use protocol::stamps::Point;
use protocol::wire::{Message, OrderStatus, PLACEHOLDER, Report, Side};
use shm::bell::Doorbell;
use shm::ring::Producer;
use system::clock::{Clock, Timebase};

/// The sending end of the completion hand-off.
pub(crate) struct Outbox<P> {
    /// Queued reports keep their stamps.
    completion: Sender<P>,
    pub completed: u64,
    pub full: u64,
    /// Reports that the venue's record rules out; nothing was sent in the place of each.
    pub refused: u64,
    /// What was handed over, word for word.
    pub reported: Checksum,
    /// A fill is logged before its report is pushed: the log of a gateway that dies must hold every
    /// fill that the engine knows.
    pub logs_fills_first: bool,
}

impl<P: Producer> Outbox<P> {
    /// Over that end; nothing is allocated after this.
    pub fn new(completion: P, bell: Option<Doorbell>) -> Self {
        Self {
            completion: Sender::new(completion, bell, ROOM),
            completed: 0,
            full: 0,
            refused: 0,
            reported: Checksum::default(),
            logs_fills_first: false,
        }
    }

    /// The same in the place of one that has died: behind so many reports in the hand-off, with
    /// those that are stamped and not there.
    pub fn behind(mut self, completed: u64, reported: Checksum, waiting: Vec<Message>) -> Self {
        (self.completed, self.reported) = (completed, reported);
        self.completion.enqueue_all(waiting);
        self.completion.ring_bell();
        self
    }

    /// No report waits.
    #[inline]
    pub fn is_clear(&self) -> bool {
        !self.completion.has_queued()
    }

    /// How many more reports can wait.
    #[inline]
    pub fn room(&self) -> usize {
        ROOM - self.completion.queued()
    }

    /// Sends the reports that wait, as far as there is room; `false` if some still wait.
    #[cold]
    pub fn flush(&mut self) -> bool {
        self.completed += self.completion.flush(ROOM) as u64;
        self.is_clear()
    }

    /// Sends a report, or lets it wait. There is room.
    #[inline]
    fn push(&mut self, message: &Message) {
        let sent = self.completion.push(message);
        // After the push, off the report's way. Also for one that waits: it is pushed as it is, or
        // the run does not end.
        self.reported.add(digest(message));
        match sent {
            SendOutcome::Ring => self.completed += 1,
            _ => self.full += 1,
        }
    }
}

/// What a venue sees of it in one call. `CANCELS`: the orders of a dead strategy are being
/// cancelled.
pub(crate) struct Sink<'a, P, C, const CANCELS: bool> {
    outbox: &'a mut Outbox<P>,
    pub cycle: &'a mut Cycle<C>,
    record: VenueInfo,
    /// Reports that it takes.
    left: usize,
    /// Reports that the venue may give in all, by the orders that it has taken.
    owed: u64,
}

impl<'a, P: Producer, C: Clock, const CANCELS: bool> Sink<'a, P, C, CANCELS> {
    /// Takes so many reports, at most [`Outbox::room`], of a venue with this record that has taken
    /// so many orders.
    #[inline]
    pub fn new(
        outbox: &'a mut Outbox<P>,
        cycle: &'a mut Cycle<C>,
        left: usize,
        record: VenueInfo,
        orders: u64,
    ) -> Self {
        let owed = orders * u64::from(record.reports_an_order);
        Self { outbox, cycle, record, left, owed }
    }

    /// Reports that it still takes.
    #[inline]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Logs what was filled with a report, if anything was.
    #[inline]
    fn log_fill(&mut self, report: &Report) {
        if report.filled > 0 {
            let signed = match report.side {
                Side::Buy => report.filled,
                Side::Sell => report.filled.wrapping_neg(),
            };
            let log = &mut self.cycle.log;
            log.append_with(Point::FillQuantity, report.id, report.number, signed);
            log.append_with(Point::FillPrice, report.id, report.number, report.price.cast_unsigned());
        }
    }

    /// Whether the venue may give this report: the logs of gateway and orchestrator have room for
    /// no others. Of one report an order there cannot be too many: who holds an order gives one.
    #[inline]
    fn may_give(&self) -> bool {
        self.record.reports_an_order == 1
            || self.outbox.completed + (self.outbox.completion.queued() as u64) < self.owed
    }
}

impl<P: Producer, C: Clock, const CANCELS: bool> Reports for Sink<'_, P, C, CANCELS> {
    #[inline]
    fn has_room(&self) -> bool {
        self.left > 0
    }

    #[inline]
    fn send(&mut self, report: Report) -> Result<(), NoRoom> {
        if self.left == 0 {
            return Err(NoRoom);
        }
        self.left -= 1;
        if !self.may_give() {
            self.outbox.refused += 1;
            self.outbox.push(&PLACEHOLDER);
            return Ok(());
        }
        if (CANCELS || report.reason == WITHDRAWN) && report.status == OrderStatus::Cancelled {
            self.cycle.stamp_with(Point::Cancelled, report.id, report.number);
        }
        let message = report.to_message();
        self.cycle.stamp_with(Point::GatewayDone, report.id, report.detail());
        if self.outbox.logs_fills_first {
            self.log_fill(&report);
            self.outbox.push(&message);
        } else {
            self.outbox.push(&message);
            // After the push, off the report's path.
            self.log_fill(&report);
        }
        Ok(())
    }

    #[cold]
    fn nothing(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            self.outbox.push(&PLACEHOLDER);
        }
    }

    #[inline]
    fn time(&self) -> Timebase {
        self.cycle.time
    }
}
