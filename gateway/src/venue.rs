//! The trait for venues: orders and cancels arrive, time passes, reports come out.

use protocol::wire::{CancelScope, MAX_REPORTS, Order, OrderId, Report};
use system::clock::Timebase;
use thiserror::Error;

/// What there is to know of a kind of venue: the room that its reports need follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueInfo {
    /// How many reports of each order there is room for in stamp logs and return paths, 1 to
    /// [`MAX_REPORTS`]: on average, over all its orders. One order may have up to [`MAX_REPORTS`].
    pub reports_an_order: u8,
    /// The most reports that one call of [`Venue::accept`] gives: it is called only while there is
    /// room for so many. At most [`ROOM`].
    pub reports_at_once: u8,
    /// [`Venue::accept`] says of every order when its first report is due.
    pub tells_release: bool,
}

/// How many reports wait in a gateway while the completion hand-off is full.
pub const ROOM: usize = 32;

impl VenueInfo {
    /// One report an order, never at once, at a time that is told.
    pub const ONE_REPORT: Self = Self { reports_an_order: 1, reports_at_once: 0, tells_release: true };

    /// The same record.
    ///
    /// # Panics
    /// A number is out of its range; at compile time, where a [`Venue`] is used.
    pub const fn checked(self) -> Self {
        assert!(self.reports_an_order >= 1 && self.reports_an_order as usize <= MAX_REPORTS);
        assert!(self.reports_at_once as usize <= ROOM);
        self
    }
}

/// There is no room for a report now. The venue keeps it, and is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no room for a report now")]
pub struct NoRoom;

/// Where a venue's reports go.
pub trait Reports {
    /// Whether there is room for another report.
    fn has_room(&self) -> bool;

    /// Sends a report. The gateway takes the stamp t5 of it now.
    ///
    /// # Errors
    /// [`NoRoom`]; nothing was sent then.
    fn send(&mut self, report: Report) -> Result<(), NoRoom>;

    /// The same of a venue that numbers what it says, from 1: what the session looks for gaps and
    /// repeats in. Where there is no session the number means nothing.
    ///
    /// # Errors
    /// As [`Reports::send`].
    fn send_numbered(&mut self, number: u64, report: Report) -> Result<(), NoRoom> {
        let _ = number;
        self.send(report)
    }

    /// Something came from behind the venue that none may send. What is handed over in its place
    /// says nothing, but is counted: whoever comes back knows by counts how far it was. Called
    /// while [`Reports::has_room`].
    fn nothing(&mut self);

    /// Turns nanoseconds into ticks of the run's clock.
    fn time(&self) -> Timebase;
}

/// The orders of a strategy that died, or of a kill switch, are being cancelled, a part in each
/// call.
#[derive(Debug)]
pub struct Sweep {
    /// Which open orders.
    pub scope: CancelScope,
    /// Where to go on: 0 at first, then whatever the venue left here.
    pub cursor: usize,
    /// How many orders the venue may look at before it returns; it counts them down.
    pub looks: usize,
    /// The time, in ticks.
    pub now: u64,
}

impl Sweep {
    /// Whether it is about an order of this id and instrument.
    #[inline]
    pub const fn concerns(&self, id: OrderId, instrument: u16) -> bool {
        self.scope.contains(id, instrument)
    }
}

/// A venue. Its methods run on the gateway's thread. Each returns in bounded time, does not block
/// and does not allocate.
///
/// The reports of an order are numbered from 0 without gaps, and exactly one of them is the last:
/// the merge finds a venue that does otherwise, and the run is not valid.
///
/// A venue with one report an order, which it gives after a delay, need not be written from here:
/// see [`DelayModel`](crate::DelayModel).
pub trait Venue: Send {
    /// What there is to know of it.
    const RECORD: VenueInfo;

    /// What it is told goes behind it in the order in which it came: no order overtakes a cancel of
    /// all.
    const IN_ORDER: bool = false;

    /// Whether it can take another order or cancel. If not, the gateway leaves them in its inbox.
    fn has_room(&self) -> bool;

    /// An order or a cancel has arrived, at `now` (ticks, t4). Returns when its first report is due
    /// (ticks), if the venue knows: what the gateway is later than that is its lateness. Reports
    /// that are due at once may be given at once.
    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64>;

    /// Time has come to `now` (ticks), which is not before [`Venue::next_deadline`]. Gives the
    /// reports that are due. What finds no room is given when the venue is asked again: in the next
    /// duty cycle, if the deadline still has passed.
    fn advance(&mut self, now: u64, reports: &mut impl Reports);

    /// When there is something to report or to do without another order, in ticks; `u64::MAX` if
    /// never. Asked in every duty cycle.
    fn next_deadline(&self) -> u64;

    /// Asks the processor for what the next order will need and is not in the venue itself. Changes
    /// nothing.
    fn keep_warm(&self) {}

    /// Cancels orders that the sweep concerns, within its looks and while there is room, with a
    /// report for each: the last one of its order,
    /// [`Status::Cancelled`](protocol::wire::OrderStatus::Cancelled). `true`: there are no more.
    /// Orders that arrive later are not concerned.
    fn cancel_all(&mut self, sweep: &mut Sweep, reports: &mut impl Reports) -> bool;

    /// What came from behind it that none may send. Counted with the gateway's protocol errors.
    fn faults(&self) -> u64 {
        0
    }

    /// Whether its session is up, as of the last call of [`Venue::advance`]. While it is not,
    /// nothing comes from it.
    #[inline]
    fn is_connected(&self) -> bool {
        true
    }

    /// Its session is up again. The next message of the venue is to be the one with that number:
    /// what it sent before and nobody heard comes again.
    fn resume(&mut self, next: u64) {
        let _ = next;
    }

    /// What the session with it counts; nothing where there is none.
    #[inline]
    fn session(&self) -> SessionCounts {
        SessionCounts::default()
    }
}

/// What a session counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionCounts {
    /// Messages to the venue: the number of the last one.
    pub sent: u64,
    /// Messages from the venue: the number of the last one that was in order.
    pub received: u64,
    /// Messages of the venue that cannot be.
    pub errors: u64,
    /// Orders that were closed because the venue said nothing.
    pub stuck: u64,
    /// Orders that the venue refused, or that found the session down.
    pub refused: u64,
    /// How often the session went down.
    pub disconnects: u64,
    /// Orders that were rejected because of the message limit.
    pub throttled: u64,
}

/// What a venue is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VenueContext {
    /// Which venue it is, from 0.
    pub venue: u16,
    /// Which gateway it is behind: a venue has one for each credential.
    pub gateway: u16,
    /// How many there are.
    pub venues: u16,
    /// How many strategies trade there.
    pub strategies: u16,
    /// How many orders it must be able to hold at once. More it may refuse to take
    /// ([`Venue::has_room`]).
    pub max_held: usize,
}
