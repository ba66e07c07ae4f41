//! A strategy's session with the engine: numbers and stamps its orders, and keeps them in order
//! when the ring is full.

use crate::Refused;
use protocol::agent::Cycle;
use protocol::checksum::{Checksum, digest};
use protocol::counters::AgentSlot;
use protocol::labels::StrategyCounter;
use protocol::sender::{SendOutcome, Sender};
use protocol::stamps::{HandOff, LinkEnd, Point, StampLog};
use protocol::wire::{Message, OrderId, OrderRequest, OrderStatus, Report};
use shm::bell::Doorbell;
use shm::ring::{Producer, spsc};
use system::clock::Clock;

/// A strategy's connection to the engine: sends the strategy's orders, receives their reports, and
/// counts both. Generic over the technique's producer.
pub struct Session<P> {
    strategy: u16,
    epoch: u16,
    next_sequence: u64,
    budget: u64,
    max_open: u64,
    /// Queues at most one order: none is sent while one is queued.
    submit: Sender<P>,
    returns: spsc::Consumer,
    returned: u64,
    rejected: u64,
    full: u64,
    faults: u64,
    in_flight_max: u64,
    /// Checksums of the messages handed over.
    submitted: Checksum,
    reported: Checksum,
}

impl<P: Producer> Session<P> {
    /// Creates a session that sends orders through `submit` and receives reports from the ring
    /// `returns`.
    pub fn new(
        strategy: u16,
        max_open: u64,
        submit: P,
        bell: Option<Doorbell>,
        returns: spsc::Consumer,
    ) -> Self {
        Self {
            strategy,
            epoch: 0,
            next_sequence: 0,
            budget: u64::MAX,
            max_open,
            submit: Sender::new(submit, bell, 1),
            returns,
            returned: 0,
            rejected: 0,
            full: 0,
            faults: 0,
            in_flight_max: 0,
            submitted: Checksum::default(),
            reported: Checksum::default(),
        }
    }

    /// Sets the strategy's incarnation number, from 0, which is part of each order id; reports to
    /// other incarnations are discarded. Each incarnation numbers its orders from 0.
    #[must_use]
    pub fn with_epoch(self, epoch: u16) -> Self {
        Self { epoch, ..self }
    }

    /// Sets the maximum number of orders that the session may send; the log of their stamps must
    /// have room for all of them.
    #[must_use]
    pub fn with_budget(self, budget: u64) -> Self {
        Self { budget, ..self }
    }

    /// Returns `true` if the strategy's session has sent its maximum number of orders.
    pub const fn is_spent(&self) -> bool {
        self.next_sequence >= self.budget
    }

    /// Returns the number of orders sent.
    #[inline]
    pub(crate) const fn sent(&self) -> u64 {
        self.next_sequence
    }

    /// Returns the number of the strategy's orders whose last report has not come yet.
    #[inline]
    pub fn open(&self) -> u64 {
        self.next_sequence - self.returned - self.rejected
    }

    /// Returns `true` if the strategy may send another order now: neither its maximum number of
    /// orders nor that of open orders is reached.
    pub fn can_send(&self) -> bool {
        !self.is_spent() && self.open() < self.max_open
    }

    /// Sends a strategy's order: gives it an id, stamps it and pushes it into the ring. `due`: the
    /// intended send time in ticks, if it has one.
    #[inline]
    pub fn send<C: Clock>(
        &mut self,
        request: OrderRequest,
        due: Option<u64>,
        cycle: &mut Cycle<C>,
    ) -> Result<OrderId, Refused> {
        if cycle.draining {
            return Err(Refused::Ending);
        }
        if self.is_spent() {
            return Err(Refused::Spent);
        }
        if self.submit.has_queued() {
            return Err(Refused::Busy);
        }
        if self.open() >= self.max_open {
            return Err(Refused::TooManyOpen);
        }
        let id = OrderId::new(self.strategy, self.epoch, self.next_sequence);
        let message = request.with_id(id).to_message();
        if let Some(due) = due {
            cycle.log.append(Point::Due, id, due);
        }
        cycle.stamp(Point::StrategySend, id);
        if self.submit.push(&message) != SendOutcome::Ring {
            self.full += 1;
        }
        // Also for a queued one: it is pushed unchanged, or the run does not end.
        self.submitted.add(digest(&message));
        self.next_sequence += 1;
        self.in_flight_max = self.in_flight_max.max(self.open());
        Ok(id)
    }

    /// Pushes the order that waits for space in the ring, if there is one. Returns the number
    /// pushed.
    #[inline]
    pub(crate) fn flush(&mut self) -> usize {
        if self.submit.has_queued() { self.submit.flush(1) } else { 0 }
    }

    /// Returns `true` if the strategy has no report to take and no order that waits for space.
    #[inline(always)]
    pub fn is_idle(&self) -> bool {
        self.returns.looks_empty() && !self.submit.has_queued()
    }

    /// Takes the strategy's next report from its ring and stamps it; `None` if there is none now.
    #[inline]
    pub fn receive<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> Option<Report> {
        let message = match self.returns.try_pop() {
            Ok(None) => return None,
            Ok(Some(message)) => message,
            Err(_) => {
                self.faults += 1;
                return None;
            }
        };
        let report = self.admit(message, cycle);
        // After the stamp, off the report's path.
        self.reported.add(digest(&message));
        report
    }

    #[inline]
    fn admit<C: Clock>(&mut self, message: Message, cycle: &mut Cycle<C>) -> Option<Report> {
        let Ok(report) = Report::from_message(message) else {
            self.faults += 1;
            return None;
        };
        if report.id.strategy().0 != self.strategy || report.id.epoch() != self.epoch || self.open() == 0 {
            self.faults += 1;
            return None;
        }
        cycle.stamp_with(Point::StrategyRecv, report.id, report.number);
        match report.status {
            // More reports of this order follow.
            _ if !report.is_last => {}
            OrderStatus::Rejected => self.rejected += 1,
            _ => self.returned += 1,
        }
        Some(report)
    }

    /// Returns `true` if an order of the strategy waits for space in the ring.
    pub fn is_waiting(&self) -> bool {
        self.submit.has_queued()
    }

    /// Appends the checksums of all orders sent and of all reports received to the stamp log, when
    /// the session ends.
    pub fn seal(&self, log: &mut StampLog) {
        let Self { strategy, epoch, .. } = *self;
        log.append_checksum(LinkEnd::sender(HandOff::Submit, strategy, epoch), self.submitted);
        log.append_checksum(LinkEnd::receiver(HandOff::Return, strategy, epoch), self.reported);
    }

    /// Publishes the session's counters in shared memory. It also clears the slot number that the
    /// strategy announced in shared memory before its last push.
    pub fn publish(&mut self, slot: &AgentSlot<'_>) {
        self.submit.ring_mut().withdraw();
        slot.set(StrategyCounter::Sent, self.next_sequence);
        slot.set(StrategyCounter::Returned, self.returned);
        slot.set(StrategyCounter::Rejected, self.rejected);
        slot.set(StrategyCounter::Full, self.full);
        slot.set(StrategyCounter::ProtocolErrors, self.faults);
        slot.set(StrategyCounter::InFlightPeak, self.in_flight_max);
    }
}
