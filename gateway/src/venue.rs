//! The trait for venues: orders and cancels arrive, time passes, reports come out.

use protocol::wire::{CancelScope, MAX_REPORTS, Order, OrderId, Report};
use system::clock::Timebase;
use thiserror::Error;

/// How many reports a kind of venue sends per order and per call of [`Venue::accept`], and whether
/// that call returns their due time. The capacity for reports is derived from the two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueInfo {
    /// Average number of reports per order for which stamp logs and return paths have capacity, 1
    /// to [`MAX_REPORTS`]. A single order may have up to [`MAX_REPORTS`].
    pub reports_per_order: u8,
    /// Maximum number of reports that one call of [`Venue::accept`] sends: it is called only while
    /// that many fit. At most [`OUTBOX_CAPACITY`].
    pub immediate_reports: u8,
    /// Whether [`Venue::accept`] returns for every order when the order's first report is due.
    pub reports_release_time: bool,
}

/// Maximum number of reports that a gateway buffers while the queue to the engine (completion
/// hand-off) is full.
pub const OUTBOX_CAPACITY: usize = 32;

impl VenueInfo {
    /// The properties of a venue that sends one report per order, and never during
    /// [`Venue::accept`]. The call returns the time at which the report is due.
    pub const ONE_REPORT: Self =
        Self { reports_per_order: 1, immediate_reports: 0, reports_release_time: true };

    /// Checks the ranges of a venue's properties at compile time, and returns them.
    pub const fn validated(self) -> Self {
        assert!(self.reports_per_order >= 1 && self.reports_per_order as usize <= MAX_REPORTS);
        assert!(self.immediate_reports as usize <= OUTBOX_CAPACITY);
        self
    }
}

/// The error that the gateway has no space for a venue's report now. The venue retains it and is
/// called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no room for a report now")]
pub struct ReportsFull;

/// The receiver of a venue's reports: its gateway, or a wrapper around it.
pub trait Reports {
    /// Returns `true` if the gateway can take another report of the venue.
    fn has_capacity(&self) -> bool;

    /// Sends a report of the venue to the gateway. The gateway takes its stamp t5 now.
    ///
    /// # Errors
    /// [`ReportsFull`]; nothing was sent then.
    fn send(&mut self, report: Report) -> Result<(), ReportsFull>;

    /// Sends a report with the venue's message number, from 1, which a validating session checks.
    /// Without such a session the number is ignored.
    ///
    /// # Errors
    /// [`ReportsFull`]; nothing was sent then.
    fn send_numbered(&mut self, number: u64, report: Report) -> Result<(), ReportsFull> {
        let _ = number;
        self.send(report)
    }

    /// Passes on an empty message in place of an invalid one that the venue received. It is
    /// counted, because a successor derives from counts how far its predecessor got. Called only
    /// while [`Reports::has_capacity`].
    fn skip_report(&mut self);

    /// Returns the converter from nanoseconds into ticks of the run's clock.
    fn time(&self) -> Timebase;
}

/// A mass cancel of the open orders in a scope, done in bounded steps, for a crashed strategy or a
/// kill switch.
#[derive(Debug)]
pub struct CancelSweep {
    /// The scope of the open orders to cancel.
    pub scope: CancelScope,
    /// Where the next step continues: 0 at first, then a value of the venue's choice.
    pub cursor: usize,
    /// Number of orders that the venue may still visit before it returns; it counts down.
    pub budget: usize,
    /// The current time in ticks.
    pub now: u64,
}

impl CancelSweep {
    /// Returns `true` if the mass cancel concerns an order with this id and instrument.
    #[inline]
    pub const fn concerns(&self, id: OrderId, instrument: u16) -> bool {
        self.scope.contains(id, instrument)
    }
}

/// A place where orders are executed: an exchange or a simulation of one. Its methods run on the
/// gateway's thread. Each returns in bounded time, does not block and does not allocate.
///
/// The reports of an order are numbered from 0 without gaps, and exactly one of them is the last:
/// the merge finds a venue that does otherwise, and the run is not valid.
///
/// A venue with one report an order, which it gives after a delay, need not be written from here:
/// see [`DelayModel`](crate::DelayModel).
pub trait Venue: Send {
    /// The properties of this kind of venue.
    const INFO: VenueInfo;

    /// `true` if an order must not overtake a mass cancel on its way to the venue.
    const IN_ORDER: bool = false;

    /// Returns `true` if the venue can take another order or cancel. If not, the gateway leaves
    /// them in its inbox.
    fn has_capacity(&self) -> bool;

    /// Takes an order or a cancel that arrives at the venue at `now` (ticks, t4). Returns when its
    /// first report is due (ticks), if that is certain; the gateway's lateness is measured against
    /// it. Reports that are due immediately may be sent in this call.
    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64>;

    /// Advances the venue's time to `now` (ticks), and sends the reports that are due. Reports that
    /// do not fit are sent by a later call: in the next duty cycle, if the deadline is still in the
    /// past.
    fn advance(&mut self, now: u64, reports: &mut impl Reports);

    /// Returns the tick at which the venue next has something to do without another order.
    /// `u64::MAX` if never. Called in every duty cycle.
    fn next_deadline(&self) -> u64;

    /// Prefetches memory of the venue that the next order needs. Changes nothing.
    fn prefetch_hot(&self) {}

    /// Cancels orders that a mass cancel concerns, within its budget and while reports fit. Each
    /// gets a last report: [`Status::Cancelled`](protocol::wire::OrderStatus::Cancelled). Returns
    /// `true` once no order in the scope is left. Orders that arrive later are not concerned.
    fn try_cancel_all(&mut self, sweep: &mut CancelSweep, reports: &mut impl Reports) -> bool;

    /// Returns the number of invalid messages that the venue received. Counted with the gateway's
    /// protocol errors.
    fn faults(&self) -> u64 {
        0
    }

    /// Returns `true` if the venue's session is up, as of the last [`Venue::advance`]. While it is
    /// down, no report comes.
    #[inline]
    fn is_connected(&self) -> bool {
        true
    }

    /// Requests from the venue all messages from number `next` on, after a lost session.
    fn resume(&mut self, next: u64) {
        let _ = next;
    }

    /// Returns the message counters of the venue's session; zeros without a session.
    #[inline]
    fn session(&self) -> SessionCounts {
        SessionCounts::default()
    }
}

/// Message counters of a validating session with a venue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Number of messages sent to the venue.
    pub sent: u64,
    /// Number of the last in-sequence message from the venue.
    pub received: u64,
    /// Number of invalid messages from the venue.
    pub errors: u64,
    /// Number of orders closed because the venue stayed silent.
    pub stuck: u64,
    /// Number of orders that the venue refused, or that found the session down.
    pub refused: u64,
    /// Number of times that the session went down.
    pub disconnects: u64,
}

/// The settings from which a venue is created: its index, its gateway and its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueContext {
    /// Index of the venue, from 0.
    pub venue: u16,
    /// Index of the gateway in front of it: a venue has one per credential.
    pub gateway: u16,
    /// Number of venues in the run.
    pub venues: u16,
    /// Number of strategies that trade at the venue.
    pub strategies: u16,
    /// Maximum number of orders that the venue must be able to hold at once. It may refuse to take
    /// more ([`Venue::has_capacity`]).
    pub max_held: usize,
}
