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
use protocol::wire::{Message, Order, OrderStatus, Report, Side};
use returns::Pushed;
use risk::{Limits, Reject};
use shm::bell::Bell;
use shm::clock::Clock;
use shm::ring::{Consumer, spsc};
use work::Work;

/// How many messages of each kind one duty cycle takes, so that neither direction starves the other.
const BATCH: usize = 16;

/// An order that has passed the checks and whose gateway's inbox is full.
struct Undispatched {
    message: Message,
    venue: usize,
}

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
    /// A report may wait for room in a return ring.
    returns_wait: bool,
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
    /// An order that found its inbox full. Nothing more is taken from submit before it is gone: it keeps its place,
    /// and the ring behind it pushes back on the strategies. Reports still flow, so room will come.
    undispatched: Option<Undispatched>,
    /// The memory that an order came through says whose it is.
    knows_writers: bool,
    dispatched: u64,
    settled: u64,
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
        Self {
            submit,
            completion,
            inboxes,
            lines: (0..returns.len()).map(|index| StrategyLine::new(index as u16)).collect(),
            returns,
            returns_wait: false,
            supervision: None,
            dying: 0,
            next_look: 0,
            damaged: false,
            stands: None,
            positions,
            venue_budgets: Vec::new(),
            limits,
            work,
            undispatched: None,
            knows_writers: true,
            dispatched: 0,
            settled: 0,
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
            Pushed::Returned => {}
            Pushed::Waits => {
                self.full += 1;
                self.returns_wait = true;
            }
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
        if !self.flush_undispatched() {
            return 0;
        }
        let mut taken = 0;
        while taken < BATCH {
            let Some((from, message)) = self.submit.try_pop() else { break };
            taken += 1;
            self.accept(from, message, cycle);
            if self.undispatched.is_some() {
                break;
            }
        }
        if let Some((from, fault)) = self.submit.take_fault() {
            self.peer_fault(from, fault, cycle);
        }
        taken
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
        let is_next = is_next(self) || (self.catches_up(cycle.now) && is_next(self));
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
        self.positions.open(strategy);
        cycle.pass(Point::OrchDispatch, order.id);
        self.dispatched += 1;
        if !self.inboxes[venue].send(&message) {
            self.full += 1;
            self.undispatched = Some(Undispatched { message, venue });
        }
        // After the push, off the order's way. Also for one that waits: it is pushed as it is, or the run does not end.
        let digest = digest(&message);
        self.lines[strategy].taken.add(digest);
        self.inboxes[venue].sum.add(digest);
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

    /// Moves reports that wait into their rings, as far as there is room; how many.
    #[cold]
    fn flush_returns(&mut self) -> usize {
        let moved = self.returns.iter_mut().map(ReturnPath::flush).sum();
        self.returns_wait = self.returns.iter().any(ReturnPath::is_waiting);
        moved
    }

    /// Dispatches the order that waits for room, if there is one. `false` if there still is none.
    #[inline]
    fn flush_undispatched(&mut self) -> bool {
        let Some(Undispatched { message, venue }) = &self.undispatched else { return true };
        if !self.inboxes[*venue].send(message) {
            return false;
        }
        self.undispatched = None;
        true
    }
}

impl<R: Consumer, C: Clock> Agent<C> for Orchestrator<R> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        if self.supervision.as_ref().is_some_and(Supervision::has_news) {
            self.read_fences(cycle.now);
        }
        if self.dying > 0 {
            self.retire(&cycle.clock);
        }
        if cycle.now >= self.next_look {
            self.look_at_submit(cycle);
        }
        let flushed = if self.returns_wait { self.flush_returns() } else { 0 };
        flushed + self.settle(cycle) + self.dispatch(cycle)
    }

    fn next_deadline(&self) -> u64 {
        // What waits for room is tried again at once.
        let waiting = self.undispatched.is_some() || self.dying > 0 || self.returns_wait;
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
        slot.set(OrchestratorCounter::Rejected, self.rejected);
        slot.set(OrchestratorCounter::Full, self.full);
        slot.set(OrchestratorCounter::ProtocolErrors, self.faults);
        slot.set(OrchestratorCounter::Work, self.work.achieved_picos());
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
