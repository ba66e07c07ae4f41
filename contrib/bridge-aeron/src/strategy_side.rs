//! The strategy's side of a bridge, on the far host: orders out, reports back, and the outcome of
//! orders when the engine's host is gone.
//!
//! | order | its last report |
//! |---|---|
//! | answered by the engine | the engine's; a rejected order is *refused* |
//! | not taken by the engine's side | refused, `venue-down` |
//! | taken, session ended: the engine cancels it | expired, `venue-down`; fills in its log |
//! | unknown whether it was taken | expired, `venue-silent`; the engine's log has it |
//! | no answer for [`RECONNECT_TIMEOUT_NS`] | refused, `venue-down`, as are later orders |
//!
//! Without a session, orders wait in the run.

use crate::flag::Flag;
use crate::order_map::{last_report, refused};
use crate::pump::{BridgeSide, TurnResult, hand_over};
use bridge::clock::RoundTrip;
use bridge::link::{CloseReason, Delivery, DeliveryOutcome, Event, Link};
use crossbeam_queue::ArrayQueue;
use launcher::protocol::reject::Reject;
use launcher::protocol::wire::{
    CancelScope, MAX_EPOCH, Message, Operation, Order, OrderId, OrderRequest, OrderStatus, Report,
};
use std::collections::{HashMap, VecDeque};

/// Maximum time for which orders wait while no session with the engine's host is open, in
/// nanoseconds. With the timeout of a session it is less than the ten seconds of a run's progress
/// timeout.
pub const RECONNECT_TIMEOUT_NS: u64 = 6_000_000_000;

/// Maximum time at the end of the run until the peer has acknowledged it, in nanoseconds.
const END_TIMEOUT_NS: u64 = 3_000_000_000;

/// Capacity of the queues between venue and bridge, in messages.
const QUEUE_CAPACITY: usize = 4096;

/// Maximum number of orders whose round trips between the hosts are recorded, at 32 bytes each.
pub const MAX_ROUND_TRIPS: usize = 4_000_000;

#[derive(Clone, Copy, Debug)]
pub enum BridgeRequest {
    Order(Order),
    Cancel(CancelScope),
}

/// The queues between the thread of the venue `remote` and the bridge's thread.
#[derive(Debug)]
pub struct StrategyQueues {
    pub requests: ArrayQueue<BridgeRequest>,
    pub reports: ArrayQueue<Report>,
    pub accepts_orders: Flag,
    pub is_ending: Flag,
}

impl Default for StrategyQueues {
    fn default() -> Self {
        let (requests, reports) = (ArrayQueue::new(QUEUE_CAPACITY), ArrayQueue::new(QUEUE_CAPACITY));
        Self { requests, reports, accepts_orders: Flag::default(), is_ending: Flag::default() }
    }
}

/// Counts of a bridge's orders by outcome, of the cancels that it sent, and of invalid reports, at
/// the strategies' host. Each order of the venue is in exactly one of the first five counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Orders {
    /// Orders whose last report came from the engine or its bridge.
    pub answered: u64,
    /// Orders that the engine's side did not take.
    pub lost: u64,
    /// Orders taken whose session ended before their last report.
    pub cut_off: u64,
    /// Orders of which it is unknown whether they were taken.
    pub unknown: u64,
    /// Orders not sent: no session, or an unsupported operation.
    pub refused: u64,
    /// Cancels sent by this side for crashed strategies.
    pub cancels: u64,
    /// Invalid reports, dropped.
    pub strange: u64,
}

/// An order that may be open at the engine.
#[derive(Clone, Copy, Debug)]
struct SentOrder {
    order: Order,
    session: u64,
    next_number: u8,
    filled: u64,
    is_unknown: bool,
    /// A cancel of this side itself: its reports are dropped.
    is_cleanup: bool,
}

/// A defect that a test injects into the bridge, and must detect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Orders of an ended session stay open.
    KeepsEarlier,
    /// Taken orders are reported as lost.
    CallsTakenLost,
    /// The end of a session closes its orders before their outcome is known.
    ClosesAtOnce,
}

/// The bridge's logic at the strategies' host: passes orders on and returns reports.
#[derive(Debug)]
pub struct StrategySide<'a> {
    queues: &'a StrategyQueues,
    open: HashMap<OrderId, SentOrder>,
    /// Orders to cancel for crashed strategies.
    cancels: VecDeque<OrderId>,
    /// Reports that found their queue full.
    waiting: VecDeque<Report>,
    session: u64,
    /// Since when there has been no session, in nanoseconds; `None`: a session is open.
    down_since: Option<u64>,
    ends_since: Option<u64>,
    has_given_up: bool,
    pub orders: Orders,
    pub downs: Vec<(u64, CloseReason)>,
    /// Round trips of orders to their first reports.
    pub round_trips: Vec<RoundTrip>,
    pub(crate) broken: Option<Broken>,
}

impl<'a> StrategySide<'a> {
    pub fn new(queues: &'a StrategyQueues) -> Self {
        Self {
            queues,
            open: HashMap::with_capacity(QUEUE_CAPACITY),
            cancels: VecDeque::new(),
            waiting: VecDeque::with_capacity(QUEUE_CAPACITY),
            session: 0,
            down_since: Some(0),
            ends_since: None,
            has_given_up: false,
            orders: Orders::default(),
            downs: Vec::new(),
            round_trips: Vec::with_capacity(QUEUE_CAPACITY),
            broken: None,
        }
    }

    fn on_report(&mut self, message: Message, delivery: Delivery) {
        let Ok(report) = Report::from_message(message) else { return };
        let Some(open) = self.open.get_mut(&report.id).filter(|open| open.next_number == report.number)
        else {
            self.orders.strange += 1;
            return;
        };
        if let Some(about) =
            delivery.about.filter(|_| report.number == 0 && self.round_trips.len() < MAX_ROUND_TRIPS)
        {
            let (sent, arrived) = (about.sent, about.received);
            self.round_trips.push(RoundTrip {
                sent,
                arrived,
                answered: delivery.sent,
                returned: delivery.received,
            });
        }
        open.next_number = open.next_number.saturating_add(1);
        open.filled = report.cumulative;
        let is_cleanup = open.is_cleanup;
        let venue = open.order.request.venue;
        if report.is_last {
            self.open.remove(&report.id);
            self.orders.answered += u64::from(!is_cleanup);
        }
        if is_cleanup {
            return;
        }
        // To this run every rejection is a refusal by its venue.
        let status = match report.status {
            OrderStatus::Rejected => OrderStatus::Refused,
            status => status,
        };
        self.waiting.push_back(Report { venue, status, ..report });
    }

    /// Closes an order that gets no report from the engine; `false`: it is none of the run.
    fn try_close(&mut self, id: OrderId, status: OrderStatus, reason: Reject) -> bool {
        let Some(SentOrder { order, next_number, filled, is_cleanup, .. }) = self.open.remove(&id) else {
            return false;
        };
        if !is_cleanup {
            self.waiting.push_back(last_report(&order, next_number, filled, status, reason));
        }
        !is_cleanup
    }

    /// Closes unanswered orders of earlier sessions, which were another incarnation's.
    fn close_earlier(&mut self, session: u64) {
        let earlier = |open: &&SentOrder| open.session < session;
        let mut cut: Vec<(OrderId, bool)> =
            self.open.values().filter(earlier).map(|open| (open.order.id, open.is_unknown)).collect();
        cut.sort_unstable();
        for (id, is_unknown) in cut {
            let reason = if is_unknown { Reject::VenueSilent } else { Reject::VenueDown };
            let is_orders = self.try_close(id, OrderStatus::Expired, reason);
            *if is_unknown { &mut self.orders.unknown } else { &mut self.orders.cut_off } +=
                u64::from(is_orders);
        }
    }

    fn on_outcome(&mut self, message: Message, outcome: DeliveryOutcome) {
        let id = OrderId::from_word(message[0]);
        match outcome {
            // Closed with the other orders of its session.
            DeliveryOutcome::Taken if self.broken != Some(Broken::CallsTakenLost) => {}
            DeliveryOutcome::Taken | DeliveryOutcome::Lost => {
                self.orders.lost += u64::from(self.try_close(id, OrderStatus::Refused, Reject::VenueDown));
            }
            DeliveryOutcome::Unknown => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.is_unknown = true;
                }
            }
        }
    }

    fn send(&mut self, order: &Order, link: &mut Link) {
        let about = |sequence| order.id.with_sequence(sequence).word();
        let out = match order.request.operation {
            Operation::New => *order,
            // The engine's side identifies orders by their full ids.
            Operation::Cancel | Operation::Replace => {
                OrderRequest { target: about(order.request.target), ..order.request }.with_id(order.id)
            }
            // At the engine it would cover all strategies of this host.
            Operation::MassCancel => return self.refuse(order, Reject::VenueRefuses),
        };
        if link.try_send(out.to_message(), None) {
            self.record_sent(order, false);
        } else {
            self.refuse(order, Reject::VenueDown);
        }
    }

    fn record_sent(&mut self, order: &Order, is_cleanup: bool) {
        let open = SentOrder {
            order: *order,
            session: self.session,
            next_number: 0,
            filled: 0,
            is_unknown: false,
            is_cleanup,
        };
        self.open.insert(order.id, open);
    }

    fn refuse(&mut self, order: &Order, reason: Reject) {
        self.orders.refused += 1;
        self.waiting.push_back(refused(order, reason));
    }

    /// Requests the cancel of a crashed strategy's order. Returns `false` if it could not be sent.
    fn try_cancel(&mut self, target: OrderId, link: &mut Link) -> bool {
        let Some(open) = self.open.get(&target) else { return true };
        // An epoch that no strategy reaches.
        let id = OrderId::new(target.strategy().0, MAX_EPOCH, self.orders.cancels);
        let OrderRequest { venue, instrument, side, .. } = open.order.request;
        let cancel = OrderRequest {
            operation: Operation::Cancel,
            instrument,
            side,
            target: target.word(),
            ..OrderRequest::to_venue(venue)
        }
        .with_id(id);
        if !link.try_send(cancel.to_message(), None) {
            return false;
        }
        self.orders.cancels += 1;
        self.record_sent(&cancel, true);
        true
    }

    /// Takes the venue's requests while they can be sent. Returns the number taken.
    fn take_requests(&mut self, link: &mut Link) -> usize {
        let mut taken = 0;
        while let Some(target) = self.cancels.front().copied() {
            if !link.is_up() || link.is_full() || !self.try_cancel(target, link) {
                break;
            }
            self.cancels.pop_front();
            taken += 1;
        }
        while self.has_given_up || (self.cancels.is_empty() && link.is_up() && !link.is_full()) {
            let Some(request) = self.queues.requests.pop() else { break };
            taken += 1;
            match request {
                BridgeRequest::Order(order) if self.has_given_up => self.refuse(&order, Reject::VenueDown),
                BridgeRequest::Order(order) => self.send(&order, link),
                BridgeRequest::Cancel(scope) => {
                    let of = |open: &&SentOrder| {
                        !open.is_cleanup && scope.contains(open.order.id, open.order.request.instrument)
                    };
                    self.cancels.extend(self.open.values().filter(of).map(|open| open.order.id));
                    self.cancels.make_contiguous().sort_unstable();
                }
            }
        }
        taken
    }

    /// Gives up the link to the engine's host, and reports each open order to its strategy as
    /// refused or expired. The engine's host is not asked to cancel these orders.
    pub fn give_up(&mut self, link: &mut Link) {
        link.abandon();
        while let Some(event) = link.next_event() {
            self.event(event, link);
        }
        self.close_earlier(u64::MAX);
        self.cancels.clear();
        self.has_given_up = true;
    }

    /// Refuses all orders of the strategies until the run ends, because the transport to the
    /// engine's host has failed.
    pub fn refuse_all(&mut self) {
        while !self.queues.is_ending.is_up() {
            while let Some(request) = self.queues.requests.pop() {
                if let BridgeRequest::Order(order) = request {
                    self.refuse(&order, Reject::VenueDown);
                }
            }
            self.queues.accepts_orders.set(true);
            hand_over(&mut self.waiting, &self.queues.reports);
            std::thread::sleep(core::time::Duration::from_micros(100));
        }
    }

    /// Ends the link at the end of the run, once the peer has acknowledged it.
    fn end(&mut self, since: u64, link: &mut Link, now: u64) -> TurnResult {
        if link.is_over() || !link.is_up() || now.saturating_sub(since) > END_TIMEOUT_NS {
            return TurnResult::Over;
        }
        if self.open.is_empty() {
            link.end();
            return TurnResult::Idle;
        }
        // Stopped early: the engine treats it as a crash and cancels open orders.
        link.hang_up();
        TurnResult::Over
    }
}

impl BridgeSide for StrategySide<'_> {
    fn event(&mut self, event: Event, _: &mut Link) {
        match event {
            Event::Message(message, delivery) => self.on_report(message, delivery),
            Event::Outcome { message, outcome, .. } => self.on_outcome(message, outcome),
            Event::Up { session, .. } => {
                if self.broken != Some(Broken::KeepsEarlier) {
                    self.close_earlier(session);
                }
                (self.session, self.down_since) = (session, None);
            }
            Event::Down { session, why } => {
                self.downs.push((session, why));
                if self.broken == Some(Broken::ClosesAtOnce) {
                    self.close_earlier(u64::MAX);
                }
                // Set in the next step, when the time is available.
                self.down_since = Some(0);
            }
            Event::Over => {}
        }
    }

    fn turn(&mut self, link: &mut Link, now: u64) -> TurnResult {
        if let Some(since) = &mut self.down_since {
            if *since == 0 {
                *since = now;
            }
            if now.saturating_sub(*since) > RECONNECT_TIMEOUT_NS && !self.has_given_up {
                self.give_up(link);
            }
        }
        let work = self.take_requests(link) + hand_over(&mut self.waiting, &self.queues.reports);
        self.queues.accepts_orders.set(link.is_up() || self.has_given_up);
        if self.queues.is_ending.is_up() && self.queues.requests.is_empty() && self.waiting.is_empty() {
            let since = *self.ends_since.get_or_insert(now);
            return self.end(since, link, now);
        }
        if work > 0 { TurnResult::Busy } else { TurnResult::Idle }
    }
}
