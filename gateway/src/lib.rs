//! The gateway: the engine's agent for one venue. It takes orders from its inbox to the venue, and
//! the venue's reports to the completion hand-off.
//!
//! ```text
//!            accept(order, now)                      send(report)
//!  inbox ──────────────────────▶ venue ─────────────────────────────▶ outbox ─▶ completion
//!       while it has capacity       ▲ advance(now), at its deadline; at most 16 reports a cycle
//!                                  │ cancel_all(dead), in bounded steps
//! ```
#![forbid(unsafe_code)]

mod delay;
mod disconnect;
pub mod gateway_log;
mod outbox;
mod session;
mod timer_wheel;
mod validating;
mod venue;

pub use delay::{DelayModel, DelayVenue, InFull, in_full};
pub use session::SessionVenue;
pub use timer_wheel::TimerWheel;
pub use validating::{ValidatingSession, ValidationRules};
pub use venue::{
    CancelSweep, OUTBOX_CAPACITY, Reports, ReportsFull, SessionCounts, Venue, VenueContext, VenueInfo,
};

use disconnect::CancelSweeps;
use outbox::{ReportOutbox, ReportSink};
use protocol::agent::{Agent, Cycle};
use protocol::checksum::{Checksum, digest};
use protocol::counters::CounterSlots;
use protocol::labels::GatewayCounter;
use protocol::stamps::{HandOff, LinkEnd, Point, StampLog};
use protocol::wire::{Instruction, Message, Order, OrderId};
use shm::bell::Doorbell;
use shm::prefetch::prefetch_lines;
use shm::ring::{Producer, spsc};
use system::clock::Clock;

/// Maximum number of cache lines of the agent that are prefetched: all, unless its venue is large.
const PREFETCH_LINES: usize = 32;

/// Maximum number of orders taken and of reports sent in one duty cycle, so that agents that share
/// a thread take turns.
const BATCH: usize = 16;

const _: () = assert!(BATCH <= OUTBOX_CAPACITY);

/// The position from which a crashed gateway's successor resumes: messages received, sent and
/// stamped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayResumePoint {
    /// Number of orders that the crashed gateway took from its inbox.
    pub orders: u64,
    /// Checksum of all messages that the gateway took from its inbox.
    pub dispatched: Checksum,
    /// The last message that the gateway took, if its session does not have it; without the
    /// session's number.
    pub unsent_message: Option<Message>,
    /// The next order in the gateway's inbox, if it is stamped already and only the session does
    /// not have it.
    pub stamped_order: Option<OrderId>,
    /// Number of next messages in the gateway's inbox that the engine has already removed from its
    /// checksums.
    pub unchecksummed: u64,
    /// Number of reports in the gateway's completion hand-off, from the first on.
    pub completed: u64,
    /// Reports that the gateway had stamped and not handed over.
    pub stamped: Vec<Message>,
    /// Checksum of the reports handed over and of those stamped.
    pub reported: Checksum,
}

/// The agent that connects the engine to one venue and trades there under one name (credential).
pub struct Gateway<P, V> {
    /// The gateway's index in the plan, below [`MAX_VENUES`](protocol::wire::MAX_VENUES).
    index: u16,
    inbox: spsc::Consumer,
    outbox: ReportOutbox<P>,
    venue: V,
    disconnects: CancelSweeps,
    received: u64,
    faults: u64,
    dispatched: Checksum,
    /// Messages were taken whose slots are not released: a successor takes them again unless the
    /// session has them.
    holds_slots: bool,
    stamped_order: Option<OrderId>,
    unchecksummed: u64,
}

impl<P: Producer, V: Venue> Gateway<P, V> {
    const INFO: VenueInfo = V::INFO.validated();

    /// Creates the gateway with this index in the plan, which connects the engine to a venue.
    pub fn new(index: u16, inbox: spsc::Consumer, completion: P, bell: Option<Doorbell>, venue: V) -> Self {
        Self {
            index,
            inbox,
            outbox: ReportOutbox::new(completion, bell),
            venue,
            disconnects: CancelSweeps::new(),
            received: 0,
            faults: 0,
            dispatched: Checksum::default(),
            holds_slots: false,
            stamped_order: None,
            unchecksummed: 0,
        }
    }

    /// Continues a crashed gateway's work from its resume point: message counts, checksums and
    /// timestamped reports.
    #[must_use]
    pub fn resume_from(self, resume_point: GatewayResumePoint) -> Self {
        let GatewayResumePoint { orders, dispatched, stamped_order, unchecksummed, .. } = resume_point;
        let outbox =
            self.outbox.resume_after(resume_point.completed, resume_point.reported, resume_point.stamped);
        Self { outbox, received: orders, dispatched, stamped_order, unchecksummed, ..self }
    }

    /// Sets whether each fill is logged before its report is passed on. It is required where the
    /// run continues after a crash of the gateway.
    #[must_use]
    pub fn with_fills_logged_first(mut self, is_first: bool) -> Self {
        self.outbox.logs_fills_first = is_first;
        self
    }

    #[inline]
    fn advance<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let now = cycle.now;
        let mut sink =
            ReportSink::<P, C, false>::new(&mut self.outbox, cycle, BATCH, Self::INFO, self.received);
        self.venue.advance(now, &mut sink);
        BATCH - sink.remaining()
    }

    #[cold]
    fn cancel<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let Self { venue, disconnects, outbox, received, .. } = self;
        let now = cycle.now;
        let mut sink = ReportSink::<P, C, true>::new(outbox, cycle, BATCH, Self::INFO, *received);
        let has_swept =
            disconnects.run(disconnect::SWEEP_BATCH, now, |sweep| venue.try_cancel_all(sweep, &mut sink));
        // Visiting orders is work too: the thread must not sleep in the middle of a sweep.
        (BATCH - sink.remaining()).max(usize::from(has_swept))
    }

    /// Returns `true` if the venue can take an order and its immediate reports fit.
    #[inline]
    fn can_accept(&self) -> bool {
        let immediate_reports = usize::from(Self::INFO.immediate_reports);
        self.venue.has_capacity() && (immediate_reports == 0 || self.outbox.remaining() >= immediate_reports)
    }

    #[inline]
    fn receive<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH && self.can_accept() && (!V::IN_ORDER || self.disconnects.is_empty()) {
            let next = if V::IN_ORDER { self.inbox.take() } else { self.inbox.try_pop() };
            match next {
                Ok(None) => break,
                Ok(Some(message)) => {
                    match Instruction::from_message(message) {
                        Ok(Instruction::Order(order)) => self.accept(&order, cycle),
                        Ok(Instruction::CancelAll(scope)) => self.disconnects.add(scope),
                        // The orchestrator is in the same process: this is a bug, not a hostile
                        // peer. Counted and skipped.
                        Err(_) => self.faults += 1,
                    }
                    // After the stamp, off the order's path.
                    if V::IN_ORDER && self.unchecksummed > 0 {
                        self.unchecksummed -= 1;
                    } else {
                        self.dispatched.add(digest(&message));
                    }
                    self.holds_slots |= V::IN_ORDER;
                }
                Err(_) => {
                    self.faults += 1;
                    break;
                }
            }
            taken += 1;
        }
        taken
    }

    #[inline]
    fn accept<C: Clock>(&mut self, order: &Order, cycle: &mut Cycle<C>) {
        let is_stamped = V::IN_ORDER && self.stamped_order.take_if(|id| *id == order.id).is_some();
        let received = match is_stamped {
            true => cycle.now,
            false => cycle.stamp_with(Point::GatewayRecv, order.id, self.index as u8),
        };
        self.received += 1;
        let capacity = usize::from(Self::INFO.immediate_reports);
        let mut sink =
            ReportSink::<P, C, false>::new(&mut self.outbox, cycle, capacity, Self::INFO, self.received);
        if let Some(release) = self.venue.accept(order, received, &mut sink) {
            cycle.log.append(Point::Release, order.id, release);
        }
        if order.request.instrument != 0 {
            cycle.log.append(Point::Instrument, order.id, order.request.instrument.into());
        }
    }

    /// Releases the inbox slots of messages taken, once the session has all of them.
    #[inline]
    fn release(&mut self) {
        if V::IN_ORDER && self.holds_slots && self.venue.has_capacity() && self.disconnects.is_empty() {
            self.holds_slots = false;
            self.inbox.release();
        }
    }

    /// Returns `true` if a duty cycle would find nothing. Reads three words of the gateway and one
    /// of the inbox.
    #[inline(always)]
    fn is_idle(&self, now: u64) -> bool {
        self.inbox.looks_empty()
            && self.venue.next_deadline() > now
            && self.outbox.is_clear()
            && self.disconnects.is_empty()
    }

    /// Performs a duty cycle that has work. Not inlined, to keep the idle loop small.
    #[inline(never)]
    fn work<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        if !self.outbox.is_clear() && !self.outbox.try_flush() {
            // Nothing can be sent; taking orders still helps the orchestrator.
            return self.receive(cycle);
        }
        let mut work = 0;
        if self.venue.next_deadline() <= cycle.now {
            work += self.advance(cycle);
        }
        if !self.disconnects.is_empty() && self.outbox.is_clear() {
            work += self.cancel(cycle);
        }
        if self.inbox.looks_empty() { work } else { work + self.receive(cycle) }
    }
}

impl<P: Producer, V: Venue, C: Clock> Agent<C> for Gateway<P, V> {
    #[inline(always)]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        if self.is_idle(cycle.now) {
            return 0;
        }
        let work = self.work(cycle);
        self.release();
        work
    }

    fn next_deadline(&self, _: bool) -> u64 {
        // A report that waits for space is retried immediately.
        let is_urgent = !self.outbox.is_clear() || !self.disconnects.is_empty();
        if is_urgent { 0 } else { self.venue.next_deadline() }
    }

    fn seal(&self, log: &mut StampLog) {
        log.append_checksum(LinkEnd::receiver(HandOff::Inbox, self.index, 0), self.dispatched);
        log.append_checksum(LinkEnd::sender(HandOff::Completion, self.index, 0), self.outbox.reported);
    }

    fn prefetch_hot(&self, _: usize) {
        prefetch_lines(self, PREFETCH_LINES);
        self.venue.prefetch_hot();
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        let slot = slots.next_agent();
        slot.set(GatewayCounter::Received, self.received);
        slot.set(GatewayCounter::Completed, self.outbox.completed);
        slot.set(GatewayCounter::Full, self.outbox.full);
        slot.set(GatewayCounter::ProtocolErrors, self.faults + self.outbox.refused + self.venue.faults());
        let session = self.venue.session();
        slot.set(GatewayCounter::SessionSent, session.sent);
        slot.set(GatewayCounter::SessionReceived, session.received);
        slot.set(GatewayCounter::VenueErrors, session.errors);
        slot.set(GatewayCounter::Stuck, session.stuck);
        slot.set(GatewayCounter::Refused, session.refused);
        slot.set(GatewayCounter::Disconnects, session.disconnects);
    }
}

#[cfg(test)]
mod tests;
