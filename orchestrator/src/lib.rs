//! The orchestrator: the central event loop that every order passes through, twice.
//!
//! Outward: take from the submit hand-off (t2), check, work, dispatch to the venue's gateway (t3). Homeward: take from
//! the completion hand-off (t6), settle, return to the strategy (t7). One thread owns all of it, so positions and limits
//! need no lock. With a journal it writes down what it is told before it acts, and one that dies has a successor that goes
//! on where it was: `events` and `recovery` say how.
#![forbid(unsafe_code)]

mod accounting;
mod desk;
mod events;
mod given;
mod held;
mod incidents;
mod journalled;
mod kill;
mod line;
mod positions;
mod put;
mod recovery;
mod returns;
pub mod risk;
mod setup;
mod shadow;
#[cfg(test)]
mod snapshots;
mod state;
mod waiting;
mod warm;
pub mod work;

pub use events::{Event, RecoveryError};
pub use given::{Estate, GatewayPast, Recovered};
pub use incidents::{Supervision, TOLERATED};
pub use kill::log_records;
pub use positions::{Account, Change, Closed, Positions};
pub use recovery::Mute;
pub use returns::ReturnPath;
pub use shadow::{Ends, Shadow};

use incidents::Decision;
use journal::Writer;
use journalled::HeldReport;
use kill::{Kills, Told};
use line::StrategyLine;
use protocol::agent::{Agent, Cycle};
use protocol::checksum::{Checksum, digest};
use protocol::counters::Slots;
use protocol::desk::{Desk, MAX_REASONS};
use protocol::labels::OrchestratorCounter;
use protocol::limits::Control;
use protocol::stamps::{HandOff, LinkEnd, Point, StampLog};
use protocol::supervision::{Misconduct, Standstill};
use protocol::wire::{Message, NOTHING, Operation, Order, OrderStatus, Report};
use returns::Pushed;
use risk::{Reject, Risk};
use shm::bell::Bell;
use shm::clock::Clock;
use shm::ring::{Consumer, spsc};
use std::collections::VecDeque;
use waiting::WaitingRoom;
use work::Work;

/// How many messages of each kind one duty cycle takes, so that neither direction starves the other.
const BATCH: usize = 16;

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
    risk: Risk,
    kills: Kills,
    desk: Option<Desk>,
    /// Orders refused, by the reason's code.
    refused: [u64; MAX_REASONS],
    /// Venues have a gateway for each.
    credentials: usize,
    /// Venues; their gateways are `venues * credentials`.
    venues: usize,
    work: Work,
    /// The order that went last, until it is booked.
    unbooked: Option<Order>,
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
    /// Reports that were put into their strategy's return ring.
    returned: u64,
    rejected: u64,
    full: u64,
    faults: u64,
    /// The reports of all gateways, word for word.
    reported: Checksum,
    /// What happens is written down before it is acted on.
    is_kept: bool,
    journal: Option<Writer>,
    /// Of the order that is looked at, where it was written down: whether its gateway's inbox has room.
    decided: Option<bool>,
    /// Reports that wait for the disk, in their order.
    held: VecDeque<HeldReport>,
    /// Why it can go on no more.
    failed: Option<String>,
}

impl<R: Consumer> Orchestrator<R> {
    /// Takes reports from the gateways and returns them to their strategies.
    #[inline]
    fn settle<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        // In a loop of its own: of two ways to a message each would come through memory.
        if self.is_kept {
            return self.settle_kept(cycle);
        }
        let mut taken = 0;
        while taken < BATCH {
            let Some((_, message)) = self.completion.try_pop() else { break };
            taken += 1;
            self.take_report(message, cycle);
        }
        self.reports += taken as u64;
        taken
    }

    /// One report.
    #[inline(always)]
    fn take_report<C: Clock>(&mut self, message: Message, cycle: &mut Cycle<C>) {
        // Gateways are our own threads, so this is a bug and not a hostile peer: counted, passed over. What an exchange sent that none may
        // send they have counted themselves.
        let report = Report::from_message(message).ok();
        let known = report.filter(|report| usize::from(report.id.strategy()) < self.returns.len());
        let Some(report) = known else {
            self.reported.add(digest(&message));
            self.faults += u64::from(message != NOTHING);
            return;
        };
        // Is there when it is looked at, behind the hand-over.
        self.positions.prefetch(report.id);
        cycle.pass_with(Point::OrchRecvCompletion, report.id, report.number);
        let strategy = usize::from(report.id.strategy());
        let is_current = self.lines[strategy].is_current(report.id);
        self.settled += u64::from(report.is_last);
        let digest = if is_current {
            self.give_back(strategy, &report, &message, cycle)
        } else {
            self.orphan(strategy);
            digest(&message)
        };
        self.reported.add(digest);
        // Behind the hand-over, off the report's way.
        self.account_for(&report, is_current, cycle);
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
        if self.is_kept && self.must_hold() {
            return self.hold(strategy, report, message);
        }
        cycle.pass_with(Point::OrchReturn, report.id, report.number);
        let returns = &mut self.returns[strategy];
        let pushed = returns.push(message);
        // Also for one that waits or is dropped.
        let digest = digest(message);
        returns.sum.add(digest);
        match pushed {
            Pushed::Returned => self.returned += 1,
            Pushed::Waits => {
                self.full += 1;
                self.returns_wait = true;
            }
            // Unless another one sent orders in its name.
            Pushed::Dropped => self.drops(strategy, cycle),
        }
        digest
    }

    /// Takes orders from the strategies and dispatches them.
    #[inline]
    fn dispatch<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let flushed = if self.waiting.len() == 0 { 0 } else { self.flush_waiting(cycle) };
        if self.is_kept {
            return flushed + self.dispatch_kept(cycle);
        }
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
        self.book();
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
        let now = since_start(cycle);
        if self.risk.floods(strategy, now) {
            self.kill_by_limit(strategy, Control::KillMessageRate, cycle);
        }
        if let Err(reason) = self.risk.check(&order, &self.positions, now) {
            self.lines[strategy].taken.add(digest(&message));
            self.reject(from, &order, reason, cycle);
            return;
        }
        let venue = self.gateway(&order);
        if let Some(left) = self.venue_budget(&order) {
            if *left == 0 {
                self.lines[strategy].taken.add(digest(&message));
                self.reject(from, &order, Reject::NotPlanned, cycle);
                return;
            }
            *left -= 1;
        }
        self.work.perform(&cycle.clock, cycle.time);
        // What waits for this venue goes first.
        if (self.waiting.has(venue) && !self.overtakes()) || !self.has_room(venue) {
            self.wait(from, &order, &message, cycle);
            return;
        }
        let digest = self.send(&order, &message, cycle);
        self.lines[strategy].taken.add(digest);
        if self.is_kept {
            self.opens(&order);
        } else {
            self.unbooked = Some(order);
        }
    }

    /// Whether an order can be sent to that gateway now.
    #[inline(always)]
    fn has_room(&mut self, gateway: usize) -> bool {
        self.decided.unwrap_or_else(|| self.inboxes[gateway].ring.has_room())
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
        let gateway = self.gateway(order);
        let inbox = &mut self.inboxes[gateway];
        let is_sent = inbox.send(message);
        debug_assert!(is_sent, "asked before");
        let digest = digest(message);
        inbox.sum.add(digest);
        digest
    }

    #[cold]
    fn reject<C: Clock>(&mut self, from: Option<usize>, order: &Order, reason: Reject, cycle: &mut Cycle<C>) {
        self.count_refused(reason);
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
        self.refused_again(order.id, reason, cycle);
    }

    /// Moves reports that wait into their rings, as far as there is room; how many.
    #[cold]
    fn flush_returns(&mut self) -> usize {
        let moved = self.returns.iter_mut().map(ReturnPath::flush).sum();
        self.returns_wait = self.returns.iter().any(ReturnPath::is_waiting);
        moved
    }
}

impl<R: Consumer, C: Clock> Agent<C> for Orchestrator<R> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        // What follows looks at positions.
        self.book();
        if self.is_kept && !self.goes_on(cycle) {
            return 0;
        }
        if self.supervision.as_ref().is_some_and(Supervision::has_news) {
            self.read_fences(cycle);
        }
        if self.dying > 0 {
            self.retire(cycle);
        }
        if self.desk.as_ref().is_some_and(Desk::has_news) {
            self.obey(cycle);
        }
        if self.kills.are_told() == Told::NotYet {
            self.tell_gateways(cycle);
        }
        if cycle.now >= self.next_look {
            self.look_at_submit(cycle);
        }
        let flushed = if self.returns_wait { self.flush_returns() } else { 0 };
        self.returned += flushed as u64;
        flushed + self.settle(cycle) + self.dispatch(cycle)
    }

    fn next_deadline(&self, _: bool) -> u64 {
        // What waits for room is tried again at once.
        let waiting = self.waiting.len() > 0
            || self.dying > 0
            || self.kills.are_told() == Told::NotYet
            || self.returns_wait
            || !self.held.is_empty();
        if waiting { 0 } else { u64::MAX }
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
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
        self.positions.seal(log);
    }

    fn keep_warm(&self, round: usize) {
        self.warm(round);
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.book();
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
        slot.set(OrchestratorCounter::Journalled, self.journal.as_ref().map_or(0, Writer::last));
        let recovered = self.journal.as_ref().map(Writer::recovered);
        slot.set(OrchestratorCounter::Recovered, recovered.map_or(0, |end| end.last));
        slot.set(OrchestratorCounter::Replayed, recovered.map_or(0, |end| end.records));
        let (submit, completion) = (self.submit.allocation(), self.completion.allocation());
        slot.set(OrchestratorCounter::BlocksFresh, submit.fresh.saturating_add(completion.fresh));
        slot.set(OrchestratorCounter::BlocksReused, submit.reused.saturating_add(completion.reused));
    }
}

/// The time of this duty cycle, in ticks since the start: what the controls reckon with.
#[inline(always)]
fn since_start<C>(cycle: &Cycle<C>) -> u64 {
    cycle.now.saturating_sub(cycle.time.start_ticks)
}

#[cfg(test)]
mod tests;
