//! The queue of reports from a venue into the completion hand-off: stamped when the venue sends
//! them, in order, and none lost while the hand-off is full.

use crate::venue::{OUTBOX_CAPACITY, Reports, ReportsFull, VenueInfo};
use protocol::agent::Cycle;
use protocol::checksum::{Checksum, digest};
use protocol::sender::{SendOutcome, Sender};
use protocol::session::WITHDRAWN;
use protocol::stamps::Point;
use protocol::wire::{Message, OrderStatus, PLACEHOLDER, Report, Side};
use shm::bell::Doorbell;
use shm::ring::Producer;
use system::clock::{Clock, Timebase};

pub(crate) struct ReportOutbox<P> {
    /// Queued reports keep their stamps.
    completion: Sender<P>,
    pub completed: u64,
    pub full: u64,
    /// Number of reports beyond the limits of the venue's [`VenueInfo`]; an empty message was sent
    /// in place of each.
    pub refused: u64,
    /// Checksum of the reports handed over to the engine.
    pub reported: Checksum,
    /// Whether a fill is logged before its report is pushed: a crashed gateway's log must hold
    /// every fill that the engine has received.
    pub logs_fills_first: bool,
}

impl<P: Producer> ReportOutbox<P> {
    /// Creates the sender of a gateway's reports to the engine, which buffers up to
    /// [`OUTBOX_CAPACITY`] reports while the queue to the engine is full. All memory is allocated
    /// here.
    pub fn new(completion: P, bell: Option<Doorbell>) -> Self {
        Self {
            completion: Sender::new(completion, bell, OUTBOX_CAPACITY),
            completed: 0,
            full: 0,
            refused: 0,
            reported: Checksum::default(),
            logs_fills_first: false,
        }
    }

    /// Continues a crashed gateway's report sender: `completed` reports are in the queue to the
    /// engine already, and those in `waiting` are sent now. The latter were stamped before the
    /// crash.
    pub fn resume_after(mut self, completed: u64, reported: Checksum, waiting: Vec<Message>) -> Self {
        (self.completed, self.reported) = (completed, reported);
        self.completion.enqueue_all(waiting);
        self.completion.ring_bell();
        self
    }

    /// Returns `true` if no report of the gateway is buffered: all are in the queue to the engine.
    #[inline]
    pub fn is_clear(&self) -> bool {
        !self.completion.has_queued()
    }

    /// Returns how many more reports the gateway can buffer for the engine.
    #[inline]
    pub fn remaining(&self) -> usize {
        OUTBOX_CAPACITY - self.completion.queued()
    }

    /// Sends buffered reports to the engine while the queue to the engine has space. Returns
    /// `false` if some remain.
    #[cold]
    pub fn try_flush(&mut self) -> bool {
        self.completed += self.completion.flush(OUTBOX_CAPACITY) as u64;
        self.is_clear()
    }

    /// Sends or queues a report. The caller has checked the capacity.
    #[inline]
    fn push(&mut self, message: &Message) {
        let sent = self.completion.push(message);
        // After the push, off the report's path. Also for a queued one: it is pushed unchanged, or
        // the run does not end.
        self.reported.add(digest(message));
        match sent {
            SendOutcome::Ring => self.completed += 1,
            _ => self.full += 1,
        }
    }
}

/// The receiver of reports that a venue gets for the duration of one call. `CANCELS`: orders of a
/// crashed strategy are being cancelled.
pub(crate) struct ReportSink<'a, P, C, const CANCELS: bool> {
    outbox: &'a mut ReportOutbox<P>,
    pub cycle: &'a mut Cycle<C>,
    info: VenueInfo,
    remaining: usize,
    /// Total number of reports that the venue may send for the orders that it has taken.
    owed_reports: u64,
}

impl<'a, P: Producer, C: Clock, const CANCELS: bool> ReportSink<'a, P, C, CANCELS> {
    /// Creates the receiver that takes a venue's reports during one call, at most `remaining` of
    /// them. `remaining` is at most [`ReportOutbox::remaining`]. `orders`, the number of orders
    /// that the venue has taken so far, limits the total number of reports.
    #[inline]
    pub fn new(
        outbox: &'a mut ReportOutbox<P>,
        cycle: &'a mut Cycle<C>,
        remaining: usize,
        info: VenueInfo,
        orders: u64,
    ) -> Self {
        let owed_reports = orders * u64::from(info.reports_per_order);
        Self { outbox, cycle, info, remaining, owed_reports }
    }

    /// Returns how many more reports the venue may send during the gateway's current call to the
    /// venue.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.remaining
    }

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

    /// Returns `true` if the venue may send another report: the stamp logs have no capacity for
    /// more. With one report per order there cannot be too many, because an order held is reported
    /// once.
    #[inline]
    fn is_owed(&self) -> bool {
        self.info.reports_per_order == 1
            || self.outbox.completed + (self.outbox.completion.queued() as u64) < self.owed_reports
    }
}

impl<P: Producer, C: Clock, const CANCELS: bool> Reports for ReportSink<'_, P, C, CANCELS> {
    #[inline]
    fn has_capacity(&self) -> bool {
        self.remaining > 0
    }

    #[inline]
    fn send(&mut self, report: Report) -> Result<(), ReportsFull> {
        if self.remaining == 0 {
            return Err(ReportsFull);
        }
        self.remaining -= 1;
        if !self.is_owed() {
            self.outbox.refused += 1;
            self.outbox.push(&PLACEHOLDER);
            return Ok(());
        }
        if (CANCELS || report.reason == WITHDRAWN) && report.status == OrderStatus::Cancelled {
            self.cycle.stamp_with(Point::Cancelled, report.id, report.number);
        }
        let message = report.to_message();
        self.cycle.stamp_with(Point::GatewayDone, report.id, report.stamp_detail());
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
    fn skip_report(&mut self) {
        if self.remaining > 0 {
            self.remaining -= 1;
            self.outbox.push(&PLACEHOLDER);
        }
    }

    #[inline]
    fn time(&self) -> Timebase {
        self.cycle.time
    }
}
