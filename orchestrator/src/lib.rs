//! The orchestrator: the central event loop that every order passes through, twice.
//!
//! Outward: take from the submit hand-off (t2), check, work, dispatch to the venue's gateway (t3). Homeward: take from
//! the completion hand-off (t6), settle, return to the strategy (t7). One thread owns all of it, so positions and limits
//! need no lock.
#![forbid(unsafe_code)]

mod incidents;
mod line;
mod positions;
mod returns;
pub mod risk;
mod waiting;
pub mod work;

pub use incidents::{Supervision, TOLERATED};
pub use positions::{Position, Positions};
pub use returns::ReturnPath;

use incidents::Decision;
use line::StrategyLine;
use protocol::agent::{Agent, Cycle};
use protocol::checksum::{Checksum, digest};
use protocol::counters::Slots;
use protocol::labels::OrchestratorCounter;
use protocol::stamps::{HandOff, LinkEnd, Point, StampLog};
use protocol::supervision::{Misconduct, Standstill};
use protocol::wire::{CancelScope, Message, Operation, Order, OrderStatus, Report, Side};
use returns::Pushed;
use risk::{Limits, Reject};
use shm::bell::Bell;
use shm::clock::Clock;
use shm::ring::{Consumer, spsc};
use waiting::{Gap, WaitingRoom};
use work::Work;

/// How many messages of each kind one duty cycle takes, so that neither direction starves the other.
const BATCH: usize = 16;

/// How many orders may wait for room in an inbox unless [`Orchestrator::waiting`] says so.
const DEFAULT_WAITING: u32 = 64;

/// A gateway's inbox and the bell of the gateway's thread, where that parks.
pub struct Inbox {
    /// The ring.
    pub ring: spsc::Producer,
    /// The bell, unless the gateway polls or shares our thread.
    pub bell: Option<Bell>,
    sum: Checksum,
}

impl Inbox {
    /// The inbox behind this ring.
    pub fn new(ring: spsc::Producer, bell: Option<Bell>) -> Self {
        Self { ring, bell, sum: Checksum::default() }
    }

    /// Sends, unless the ring is full.
    #[inline]
    fn send(&mut self, message: &Message) -> bool {
        if self.ring.try_push(message).is_err() {
            return false;
        }
        if let Some(bell) = &self.bell {
            bell.ring();
        }
        true
    }
}

/// The agent. `R` is the receiving end of the technique under test, for both contended hand-offs.
pub struct Orchestrator<R> {
    submit: R,
    completion: R,
    inboxes: Vec<Inbox>,
    returns: Vec<ReturnPath>,
    /// What is known of each strategy.
    lines: Vec<StrategyLine>,
    supervision: Option<Supervision>,
    /// Strategies whose retirement has begun and not ended.
    dying: usize,
    /// When to look at the submit hand-off again, in ticks.
    next_look: u64,
    damaged: bool,
    /// Where it stands still.
    stands: Option<Standstill>,
    positions: Positions,
    /// Orders that the plan still has, for each strategy and venue; empty where it has no such limit.
    venue_budgets: Vec<u64>,
    limits: Limits,
    work: Work,
    /// Orders that passed the checks and found their gateway's inbox full.
    waiting: WaitingRoom,
    waiting_peak: u64,
    #[cfg(test)]
    is_broken: bool,
    /// The memory that an order came through says whose it is.
    knows_writers: bool,
    dispatched: u64,
    /// Reports taken from the gateways.
    reports: u64,
    /// Those of them that were the last of their order.
    settled: u64,
    /// Reports that are in their strategy's return ring.
    returned: u64,
    rejected: u64,
    full: u64,
    faults: u64,
    /// The reports of all gateways, word for word.
    reported: Checksum,
}

impl<R: Consumer> Orchestrator<R> {
    /// An orchestrator over these links; `returns` has one entry for each strategy, `inboxes` one for each venue. Without
    /// [`Orchestrator::supervised`] no strategy is ever retired or started again.
    pub fn new(
        submit: R,
        completion: R,
        inboxes: Vec<Inbox>,
        returns: Vec<ReturnPath>,
        limits: Limits,
        work: Work,
    ) -> Self {
        let positions = Positions::new(returns.len());
        let waiting = WaitingRoom::new(inboxes.len(), DEFAULT_WAITING, DEFAULT_WAITING);
        Self {
            submit,
            completion,
            inboxes,
            lines: (0..returns.len()).map(|index| StrategyLine::new(index as u16)).collect(),
            returns,
            supervision: None,
            dying: 0,
            next_look: 0,
            damaged: false,
            stands: None,
            positions,
            venue_budgets: Vec::new(),
            limits,
            work,
            waiting,
            waiting_peak: 0,
            #[cfg(test)]
            is_broken: false,
            knows_writers: true,
            dispatched: 0,
            reports: 0,
            settled: 0,
            returned: 0,
            rejected: 0,
            full: 0,
            faults: 0,
            reported: Checksum::default(),
        }
    }

    /// The same for strategies of which each has so many orders to send in all: one more is a flood. What the plan has room
    /// for in the stamp logs nobody can use up for the others.
    #[must_use]
    pub fn expecting(mut self, orders: &[u64]) -> Self {
        for (line, orders) in self.lines.iter_mut().zip(orders) {
            line.budget = *orders;
        }
        self
    }

    /// The same with a limit for each strategy and venue, laid out as [`protocol::workload::Trading::venue_orders`]: the stamp log of a
    /// gateway with a thread of its own has room for no more. Empty: no such limit.
    #[must_use]
    pub fn expecting_at_venues(self, venue_orders: &[u64]) -> Self {
        Self { venue_budgets: venue_orders.to_vec(), ..self }
    }

    /// The same with room for so many orders of all venues together that find their gateway's inbox full, and of at most `limit` of
    /// one venue. What finds no room there is rejected. Where there is room for every order that strategies may have open, none is.
    #[must_use]
    pub fn waiting(self, orders: u32, limit: u32) -> Self {
        Self { waiting: WaitingRoom::new(self.inboxes.len(), orders, limit), ..self }
    }

    /// The same, told of deaths by the launcher.
    #[must_use]
    pub fn supervised(self, supervision: Supervision) -> Self {
        Self { supervision: Some(supervision), ..self }
    }

    /// Takes reports from the gateways and returns them to their strategies.
    #[inline]
    fn settle<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH {
            let Some((_, message)) = self.completion.try_pop() else { break };
            taken += 1;
            // Gateways are our own threads, so this is a bug and not a hostile peer: counted, passed over.
            let report = Report::from_message(message).ok();
            let known = report.filter(|report| usize::from(report.id.strategy()) < self.returns.len());
            let Some(report) = known else {
                self.reported.add(digest(&message));
                self.faults += 1;
                continue;
            };
            cycle.pass_with(Point::OrchRecvCompletion, report.id, report.number);
            let strategy = usize::from(report.id.strategy());
            let is_current = self.lines[strategy].is_current(report.id);
            self.positions.settle(strategy, &report, is_current);
            self.settled += u64::from(report.is_last);
            let digest = if is_current {
                self.give_back(strategy, &report, &message, cycle)
            } else {
                self.orphan(strategy);
                digest(&message)
            };
            self.reported.add(digest);
        }
        self.reports += taken as u64;
        taken
    }

    /// Stamps and returns a report; its digest, which is computed behind the hand-over, off the report's way.
    #[inline]
    fn give_back<C: Clock>(
        &mut self,
        strategy: usize,
        report: &Report,
        message: &Message,
        cycle: &mut Cycle<C>,
    ) -> u64 {
        cycle.pass_with(Point::OrchReturn, report.id, report.number);
        let returns = &mut self.returns[strategy];
        let pushed = returns.push(message);
        // Also for one that waits or is dropped.
        let digest = digest(message);
        returns.sum.add(digest);
        match pushed {
            Pushed::Returned => self.returned += 1,
            Pushed::Waits => self.full += 1,
            // Unless another one sent orders in its name.
            Pushed::Dropped => {
                self.misconduct(self.knows_writers.then_some(strategy), Misconduct::Flood, cycle);
            }
        }
        digest
    }

    /// Takes orders from the strategies and dispatches them.
    #[inline]
    fn dispatch<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let flushed = if self.waiting.len() == 0 { 0 } else { self.flush_waiting(cycle) };
        let mut taken = 0;
        while taken < BATCH {
            let Some((from, message)) = self.submit.try_pop() else { break };
            taken += 1;
            self.accept(from, message, cycle);
        }
        if let Some((from, fault)) = self.submit.take_fault() {
            self.peer_fault(from, fault, cycle);
        }
        flushed + taken
    }

    /// One order. Whose it is comes from the memory it came through; only where several strategies write into the same
    /// memory must the order itself be believed.
    #[inline]
    fn accept<C: Clock>(&mut self, from: Option<usize>, message: Message, cycle: &mut Cycle<C>) {
        let Ok(order) = Order::from_message(message) else {
            self.misconduct(from, Misconduct::Garbage, cycle);
            return;
        };
        let claimed = usize::from(order.id.strategy());
        let is_next = |orchestrator: &Self| {
            from.unwrap_or(claimed) == claimed
                && orchestrator.lines.get(claimed).is_some_and(|line| line.is_next(order.id))
        };
        // Where strategies share a ring, the first order of a new incarnation may come before this duty cycle knows of it.
        let is_next = is_next(self) || (self.catches_up(cycle) && is_next(self));
        if !is_next && self.irregular(from, &order, cycle) == Decision::Drop {
            return;
        }
        let strategy = claimed;
        let line = &mut self.lines[strategy];
        if line.budget == 0 {
            self.misconduct(from, Misconduct::Flood, cycle);
            return;
        }
        line.budget -= 1;
        line.took(order.id);
        self.knows_writers = from.is_some();
        cycle.pass(Point::OrchRecvSubmit, order.id);
        if let Err(reason) = self.limits.check(&order, self.positions.of(strategy), self.inboxes.len()) {
            self.lines[strategy].taken.add(digest(&message));
            self.reject(from, &order, reason, cycle);
            return;
        }
        let venue = usize::from(order.venue);
        if let Some(left) = self.venue_budgets.get_mut(strategy * self.inboxes.len() + venue) {
            if *left == 0 {
                self.lines[strategy].taken.add(digest(&message));
                self.reject(from, &order, Reject::NotPlanned, cycle);
                return;
            }
            *left -= 1;
        }
        self.work.perform(&cycle.clock, cycle.time);
        // What waits for this venue goes first.
        if (self.waiting.has(venue) && !self.overtakes()) || !self.inboxes[venue].ring.has_room() {
            self.wait(from, &order, &message, cycle);
            return;
        }
        self.positions.open(strategy);
        let digest = self.send(&order, &message, cycle);
        self.lines[strategy].taken.add(digest);
    }

    /// Whether orders are let past those that wait for the same venue: only the broken variant of the tests does that.
    #[inline(always)]
    const fn overtakes(&self) -> bool {
        #[cfg(test)]
        return self.is_broken;
        #[cfg(not(test))]
        false
    }

    /// Stamps an order and pushes it into an inbox that has room; its digest, which is computed behind the push, off the order's
    /// way.
    #[inline(always)]
    fn send<C: Clock>(&mut self, order: &Order, message: &Message, cycle: &mut Cycle<C>) -> u64 {
        // A new order, which a kill switch stops, or something else, which may pass one.
        cycle.pass_with(Point::OrchDispatch, order.id, u8::from(order.operation != Operation::New));
        self.dispatched += 1;
        let inbox = &mut self.inboxes[usize::from(order.venue)];
        let is_sent = inbox.send(message);
        debug_assert!(is_sent, "asked before");
        let digest = digest(message);
        inbox.sum.add(digest);
        digest
    }

    /// An order whose gateway takes none now. Nothing of it is stamped before it is dispatched: until then it can be rejected.
    #[cold]
    fn wait<C: Clock>(
        &mut self,
        from: Option<usize>,
        order: &Order,
        message: &Message,
        cycle: &mut Cycle<C>,
    ) {
        let (strategy, venue) = (usize::from(order.id.strategy()), usize::from(order.venue));
        self.lines[strategy].taken.add(digest(message));
        self.full += 1;
        if self.waiting.push(venue, message) {
            self.positions.open(strategy);
            self.waiting_peak = self.waiting_peak.max(self.waiting.len());
            return;
        }
        if let Some(left) = self.venue_budgets.get_mut(strategy * self.inboxes.len() + venue) {
            *left += 1;
        }
        self.reject(from, order, Reject::VenueBusy, cycle);
    }

    /// Dispatches what waits, venue by venue, as far as there is room; how many.
    #[cold]
    fn flush_waiting<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut flushed = 0;
        for venue in 0..self.inboxes.len() {
            for _ in 0..BATCH {
                if !self.waiting.has(venue) || !self.inboxes[venue].ring.has_room() {
                    break;
                }
                let Some(message) = self.waiting.pop(venue) else { break };
                // It was an order when it was taken.
                let Ok(order) = Order::from_message(message) else { continue };
                self.send(&order, &message, cycle);
                flushed += 1;
            }
        }
        flushed
    }

    /// Takes the orders that the scope concerns out of the waiting room and rejects them: they have not left the engine, so no
    /// venue need be told.
    #[cold]
    pub(crate) fn turn_away<C: Clock>(&mut self, scope: CancelScope, reason: Reject, cycle: &mut Cycle<C>) {
        let orders = |message: &Message| Order::from_message(*message).ok();
        let is_meant = |message: &Message| {
            orders(message).is_some_and(|order| scope.concerns(order.id, order.instrument))
        };
        for venue in 0..self.inboxes.len() {
            let mut gap = Gap::FRONT;
            while let Some(order) = self.waiting.take(venue, &mut gap, is_meant).as_ref().and_then(orders) {
                let strategy = usize::from(order.id.strategy());
                if self.lines[strategy].is_current(order.id) {
                    self.positions.withdraw(strategy);
                    self.reject(None, &order, reason, cycle);
                } else {
                    self.refuse_waiting(order.id, cycle);
                }
            }
        }
    }

    #[cold]
    fn reject<C: Clock>(&mut self, from: Option<usize>, order: &Order, reason: Reject, cycle: &mut Cycle<C>) {
        self.rejected += 1;
        cycle.log.append(Point::Rejected, order.id, reason as u64);
        let report = Report {
            id: order.id,
            venue: order.venue,
            instrument: order.instrument,
            status: OrderStatus::Rejected,
            reason: reason as u8,
            side: order.side,
            price: order.price,
            filled: 0,
            leaves: 0,
            cumulative: 0,
            number: 0,
            is_last: true,
        };
        self.give_back(order.id.strategy().into(), &report, &report.to_message(), cycle);
        self.offence(from, reason, cycle);
    }
}

impl<R: Consumer, C: Clock> Agent<C> for Orchestrator<R> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        if self.supervision.as_ref().is_some_and(Supervision::has_news) {
            self.read_fences(cycle);
        }
        if self.dying > 0 {
            self.retire(&cycle.clock);
        }
        if cycle.now >= self.next_look {
            self.look_at_submit(cycle);
        }
        let flushed: usize = self.returns.iter_mut().map(ReturnPath::flush).sum();
        self.returned += flushed as u64;
        flushed + self.settle(cycle) + self.dispatch(cycle)
    }

    fn next_deadline(&self) -> u64 {
        // What waits for room is tried again at once.
        let waiting =
            self.waiting.len() > 0 || self.dying > 0 || self.returns.iter().any(ReturnPath::is_waiting);
        if waiting { 0 } else { u64::MAX }
    }

    fn seal(&self, log: &mut StampLog) {
        for (line, returns) in self.lines.iter().zip(&self.returns) {
            let (strategy, epoch) = (line.strategy, line.epoch);
            log.append_checksum(LinkEnd::receiver(HandOff::Submit, strategy, epoch), line.taken);
            log.append_checksum(LinkEnd::sender(HandOff::Return, strategy, epoch), returns.sum);
        }
        for (venue, inbox) in (0..).zip(&self.inboxes) {
            log.append_checksum(LinkEnd::sender(HandOff::Inbox, venue, 0), inbox.sum);
        }
        log.append_checksum(LinkEnd::receiver(HandOff::Completion, 0, 0), self.reported);
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        let slot = slots.take();
        slot.set(OrchestratorCounter::Dispatched, self.dispatched);
        slot.set(OrchestratorCounter::Settled, self.settled);
        slot.set(OrchestratorCounter::Reports, self.reports);
        slot.set(OrchestratorCounter::Returned, self.returned);
        slot.set(OrchestratorCounter::Rejected, self.rejected);
        slot.set(OrchestratorCounter::Full, self.full);
        slot.set(OrchestratorCounter::ProtocolErrors, self.faults);
        slot.set(OrchestratorCounter::Work, self.work.achieved_picos());
        slot.set(OrchestratorCounter::Waiting, self.waiting.len());
        slot.set(OrchestratorCounter::WaitingPeak, self.waiting_peak);
        let (submit, completion) = (self.submit.allocation(), self.completion.allocation());
        slot.set(OrchestratorCounter::BlocksFresh, submit.fresh.saturating_add(completion.fresh));
        slot.set(OrchestratorCounter::BlocksReused, submit.reused.saturating_add(completion.reused));
    }
}

/// The sign of a side: what a fill adds to a position.
const fn sign(side: Side) -> i64 {
    match side {
        Side::Buy => 1,
        Side::Sell => -1,
    }
}

#[cfg(test)]
mod tests;
