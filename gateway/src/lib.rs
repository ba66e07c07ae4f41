//! The gateway: the engine's agent for one venue. It takes orders from its inbox to the venue, and
//! the venue's reports to the completion hand-off.
//!
//! ```text
//!            accept(order, now)                      send(report)
//!  inbox ──────────────────────▶ venue ─────────────────────────────▶ outbox ─▶ completion
//!          while it has room       ▲ advance(now), when its deadline has come;  at most 16 reports a duty cycle
//!                                  │ cancel_all(dead), in bounded steps
//! ```
#![forbid(unsafe_code)]

mod checked;
mod delay;
mod disconnect;
pub mod gateway_log;
mod held;
mod outbox;
mod session;
mod venue;

pub use checked::{CheckedRules, MessageLimit, ValidatingSession, VenueError};
pub use delay::{DelayModel, DelayVenue, InFull, in_full};
pub use held::TimerWheel;
pub use session::SessionVenue;
pub use venue::{NoRoom, ROOM, Reports, SessionCounts, Sweep, Venue, VenueContext, VenueInfo};

use disconnect::Disconnects;
use outbox::{Outbox, Sink};
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

/// How many lines of the agent are kept warm, at most: all, unless the venue in it is a large one.
const LINES: usize = 32;

/// How many orders are taken and how many reports sent in one duty cycle, so that agents which
/// share a thread all get their turn.
const BATCH: usize = 16;

const _: () = assert!(BATCH <= ROOM);

/// What a dead gateway has left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayResumePoint {
    /// Orders that it took.
    pub orders: u64,
    /// All that it took, word for word.
    pub dispatched: Checksum,
    /// The last message that it took, if its session does not have that: without the session's
    /// number.
    pub first: Option<Message>,
    /// The next order in its inbox, if it is stamped already and only the session does not have it.
    pub stamped_order: Option<OrderId>,
    /// The next messages of its inbox that the engine counts in no sum any more.
    pub unsummed: u64,
    /// Reports in its completion hand-off, from the first on.
    pub completed: u64,
    /// Reports that it has stamped and not handed over.
    pub stamped: Vec<Message>,
    /// Both, word for word.
    pub reported: Checksum,
}

/// The agent of one venue.
pub struct Gateway<P, V> {
    /// Its venue's index in the plan, below [`MAX_VENUES`](protocol::wire::MAX_VENUES).
    index: u16,
    inbox: spsc::Consumer,
    outbox: Outbox<P>,
    venue: V,
    /// Strategies that died and whose orders are being cancelled.
    disconnects: Disconnects,
    received: u64,
    faults: u64,
    /// What was handed over, word for word.
    dispatched: Checksum,
    /// Messages were taken whose slots are not given back: a successor takes them again unless the
    /// session has them.
    keeps: bool,
    /// See [`GatewayResumePoint`].
    stamped_order: Option<OrderId>,
    unsummed: u64,
}

impl<P: Producer, V: Venue> Gateway<P, V> {
    const RECORD: VenueInfo = V::RECORD.checked();

    /// The gateway of the venue with this index in the plan.
    pub fn new(index: u16, inbox: spsc::Consumer, completion: P, bell: Option<Doorbell>, venue: V) -> Self {
        Self {
            index,
            inbox,
            outbox: Outbox::new(completion, bell),
            venue,
            disconnects: Disconnects::new(),
            received: 0,
            faults: 0,
            dispatched: Checksum::default(),
            keeps: false,
            stamped_order: None,
            unsummed: 0,
        }
    }

    /// The same in the place of one that has died.
    #[must_use]
    pub fn in_place_of(self, past: GatewayResumePoint) -> Self {
        let GatewayResumePoint { orders, dispatched, stamped_order, unsummed, .. } = past;
        let outbox = self.outbox.behind(past.completed, past.reported, past.stamped);
        Self { outbox, received: orders, dispatched, stamped_order, unsummed, ..self }
    }

    /// Logs each fill before its report is handed over, for a gateway that may die and the run goes
    /// on.
    #[must_use]
    pub fn logging_fills_first(mut self, is_first: bool) -> Self {
        self.outbox.logs_fills_first = is_first;
        self
    }

    /// Sends the reports that are due.
    #[inline]
    fn advance<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let now = cycle.now;
        let mut sink = Sink::<P, C, false>::new(&mut self.outbox, cycle, BATCH, Self::RECORD, self.received);
        self.venue.advance(now, &mut sink);
        BATCH - sink.left()
    }

    /// Cancels orders of strategies that died.
    #[cold]
    fn cancel<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let Self { venue, disconnects, outbox, received, .. } = self;
        let now = cycle.now;
        let mut sink = Sink::<P, C, true>::new(outbox, cycle, BATCH, Self::RECORD, *received);
        let has_looked = disconnects.work(disconnect::LOOKS, now, |sweep| venue.cancel_all(sweep, &mut sink));
        // Looking is work too: a thread must not go to sleep in the middle.
        (BATCH - sink.left()).max(usize::from(has_looked))
    }

    /// Whether the venue can take an order, and there is room for what it says at once.
    #[inline]
    fn has_room(&self) -> bool {
        let at_once = usize::from(Self::RECORD.reports_at_once);
        self.venue.has_room() && (at_once == 0 || self.outbox.room() >= at_once)
    }

    /// Takes orders from the inbox.
    #[inline]
    fn receive<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH && self.has_room() && (!V::IN_ORDER || self.disconnects.is_empty()) {
            let next = if V::IN_ORDER { self.inbox.take() } else { self.inbox.try_pop() };
            match next {
                Ok(None) => break,
                Ok(Some(message)) => {
                    match Instruction::from_message(message) {
                        Ok(Instruction::Order(order)) => self.accept(&order, cycle),
                        Ok(Instruction::CancelAll(scope)) => self.disconnects.add(scope),
                        // The orchestrator is in our own process: this is a bug, not a hostile
                        // peer. Count, go on.
                        Err(_) => self.faults += 1,
                    }
                    // After the stamp, off the order's way.
                    if V::IN_ORDER && self.unsummed > 0 {
                        self.unsummed -= 1;
                    } else {
                        self.dispatched.add(digest(&message));
                    }
                    self.keeps |= V::IN_ORDER;
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
        let room = usize::from(Self::RECORD.reports_at_once);
        let mut sink = Sink::<P, C, false>::new(&mut self.outbox, cycle, room, Self::RECORD, self.received);
        if let Some(release) = self.venue.accept(order, received, &mut sink) {
            cycle.log.append(Point::Release, order.id, release);
        }
        if order.instrument != 0 {
            cycle.log.append(Point::Instrument, order.id, order.instrument.into());
        }
    }

    /// Gives back the slots of what was taken, once the session has all of it.
    #[inline]
    fn release(&mut self) {
        if V::IN_ORDER && self.keeps && self.venue.has_room() && self.disconnects.is_empty() {
            self.keeps = false;
            self.inbox.release();
        }
    }

    /// Whether a duty cycle would find nothing: three words of our own, and one of the inbox.
    #[inline(always)]
    fn looks_idle(&self, now: u64) -> bool {
        self.inbox.looks_empty()
            && self.venue.next_deadline() > now
            && self.outbox.is_clear()
            && self.disconnects.is_empty()
    }

    /// A duty cycle that finds something. Not inlined: the idle loop is to be small.
    #[inline(never)]
    fn work<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        if !self.outbox.is_clear() && !self.outbox.flush() {
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
        if self.looks_idle(cycle.now) {
            return 0;
        }
        let work = self.work(cycle);
        self.release();
        work
    }

    fn next_deadline(&self, _: bool) -> u64 {
        // A report that waits for room is tried again at once.
        let at_once = !self.outbox.is_clear() || !self.disconnects.is_empty();
        if at_once { 0 } else { self.venue.next_deadline() }
    }

    fn seal(&self, log: &mut StampLog) {
        log.append_checksum(LinkEnd::receiver(HandOff::Inbox, self.index, 0), self.dispatched);
        log.append_checksum(LinkEnd::sender(HandOff::Completion, self.index, 0), self.outbox.reported);
    }

    fn prefetch_hot(&self, _: usize) {
        prefetch_lines(self, LINES);
        self.venue.keep_warm();
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
        slot.set(GatewayCounter::Throttled, session.throttled);
    }
}

#[cfg(test)]
mod tests;
