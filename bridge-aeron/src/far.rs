//! The far host's part: orders out, reports home, what becomes of orders when the engine's host is
//! gone.
//!
//! | the order | its last report |
//! |---|---|
//! | the engine answered it | what the engine said; what its checks rejected is *refused* here, with the same reason |
//! | the engine's side did not take it, and will not | refused, `venue-down` |
//! | it was taken, and the session ended before its last report: the engine cancels what is open of a strategy that is gone | expired, `venue-down`: what was filled meanwhile the engine's log says |
//! | whoever could say whether it was taken is gone | expired, `venue-silent`: the engine's log says it |
//! | nobody has answered for [`PATIENCE_NS`] | refused, `venue-down`, like every order from then on |
//!
//! While there is no session, orders wait in the run.

use crate::desk::{last_report, refused};
use crate::flag::Flag;
use crate::pump::{Part, Turn};
use bridge::clock::Readings;
use bridge::link::{Event, DeliveryOutcome, Link, Delivery, Why};
use crossbeam_queue::ArrayQueue;
use launcher::protocol::reject::Reject;
use launcher::protocol::wire::{
    CancelScope, MAX_EPOCH, Message, Operation, Order, OrderId, OrderStatus, Report,
};
use std::collections::{HashMap, VecDeque};

/// For so long without a session orders wait. With the silence that ends a session it is less than
/// the ten seconds in which nothing may move in a run.
pub const PATIENCE_NS: u64 = 6_000_000_000;

/// For so long the end of the run waits for the other side to hear of it.
const END_NS: u64 = 3_000_000_000;

/// Messages between the venue and its bridge, each way.
const LANE: usize = 4096;

/// Orders of which the readings are kept, the first ones: 32 bytes each.
pub const MOST_READINGS: usize = 4_000_000;

/// What the venue asks of its bridge.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// Sends an order.
    Order(Order),
    /// Cancels the open ones.
    Cancel(CancelScope),
}

/// What venue and bridge share: two threads of one process.
#[derive(Debug)]
pub struct Lanes {
    /// To the bridge.
    pub asks: ArrayQueue<Ask>,
    /// To the venue.
    pub reports: ArrayQueue<Report>,
    /// Orders are taken now.
    pub takes: Flag,
    /// The run is over.
    pub ends: Flag,
}

impl Default for Lanes {
    fn default() -> Self {
        let (asks, reports) = (ArrayQueue::new(LANE), ArrayQueue::new(LANE));
        Self { asks, reports, takes: Flag::default(), ends: Flag::default() }
    }
}

/// What is counted: each order that the venue sent is in exactly one of the first five.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Orders {
    /// The engine, or its bridge, gave the last report.
    pub answered: u64,
    /// The other side did not take it, and will not.
    pub lost: u64,
    /// It was taken, and the session ended before its last report.
    pub cut_off: u64,
    /// Nobody knows whether it was taken.
    pub unknown: u64,
    /// It was not sent: there was nobody, or it is of a kind that is not sent.
    pub refused: u64,
    /// Cancels of this side's own, for strategies that died here: no orders of anybody's.
    pub cancels: u64,
    /// Reports that cannot be, dropped.
    pub strange: u64,
}

/// An order that is open at the engine, as far as is known here.
#[derive(Clone, Copy, Debug)]
struct Open {
    order: Order,
    session: u64,
    next_number: u8,
    filled: u64,
    is_unknown: bool,
    /// A cancel of this side's own: its reports are nobody's.
    is_own: bool,
}

/// What is wrong with it on purpose: tests must find each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// Orders of a session that is over stay open.
    KeepsEarlier,
    /// What was taken is called lost.
    CallsTakenLost,
    /// A session's end closes its orders, before anybody has said what was taken.
    ClosesAtOnce,
}

/// The far host's part.
#[derive(Debug)]
pub struct Far<'a> {
    lanes: &'a Lanes,
    open: HashMap<OrderId, Open>,
    /// Orders to be cancelled for strategies that are dead.
    cancels: VecDeque<OrderId>,
    /// Reports that found their lane full.
    waiting: VecDeque<Report>,
    session: u64,
    /// Since when there has been no session; `None`: there is one.
    down_since: Option<u64>,
    ends_since: Option<u64>,
    has_given_up: bool,
    /// What was counted.
    pub orders: Orders,
    /// Why sessions ended, with their numbers.
    pub downs: Vec<(u64, Why)>,
    /// When orders went and came, of their first reports.
    pub readings: Vec<Readings>,
    pub(crate) broken: Option<Broken>,
}

impl<'a> Far<'a> {
    /// Over those lanes, with no session yet.
    pub fn new(lanes: &'a Lanes) -> Self {
        Self {
            lanes,
            open: HashMap::with_capacity(LANE),
            cancels: VecDeque::new(),
            waiting: VecDeque::with_capacity(LANE),
            session: 0,
            down_since: Some(0),
            ends_since: None,
            has_given_up: false,
            orders: Orders::default(),
            downs: Vec::new(),
            readings: Vec::with_capacity(LANE),
            broken: None,
        }
    }

    /// A report of the engine's.
    fn report(&mut self, message: Message, passage: Delivery) {
        let Ok(report) = Report::from_message(message) else { return };
        let Some(open) = self.open.get_mut(&report.id).filter(|open| open.next_number == report.number)
        else {
            self.orders.strange += 1;
            return;
        };
        if let Some(about) =
            passage.about.filter(|_| report.number == 0 && self.readings.len() < MOST_READINGS)
        {
            let (sent, arrived) = (about.sent, about.seen);
            self.readings.push(Readings { sent, arrived, left: passage.sent, back: passage.seen });
        }
        open.next_number = open.next_number.saturating_add(1);
        open.filled = report.cumulative;
        let is_own = open.is_own;
        let venue = open.order.venue;
        if report.is_last {
            self.open.remove(&report.id);
            self.orders.answered += u64::from(!is_own);
        }
        if is_own {
            return;
        }
        // To the run here it is a venue that refused it, whoever that was there.
        let status = match report.status {
            OrderStatus::Rejected => OrderStatus::Refused,
            status => status,
        };
        self.waiting.push_back(Report { venue, status, ..report });
    }

    /// The last report of an order that nobody else gives.
    fn close(&mut self, id: OrderId, status: OrderStatus, reason: Reject) -> bool {
        let Some(Open { order, next_number, filled, is_own, .. }) = self.open.remove(&id) else {
            return false;
        };
        if !is_own {
            self.waiting.push_back(last_report(&order, next_number, filled, status, reason));
        }
        !is_own
    }

    /// What was sent in an earlier session and not answered is answered by nobody: the strategy at
    /// the engine is another incarnation.
    fn close_earlier(&mut self, session: u64) {
        let earlier = |open: &&Open| open.session < session;
        let mut cut: Vec<(OrderId, bool)> =
            self.open.values().filter(earlier).map(|open| (open.order.id, open.is_unknown)).collect();
        cut.sort_unstable();
        for (id, is_unknown) in cut {
            let reason = if is_unknown { Reject::VenueSilent } else { Reject::VenueDown };
            let is_orders = self.close(id, OrderStatus::Expired, reason);
            *if is_unknown { &mut self.orders.unknown } else { &mut self.orders.cut_off } +=
                u64::from(is_orders);
        }
    }

    fn fate(&mut self, message: Message, fate: DeliveryOutcome) {
        let id = OrderId::from_word(message[0]);
        match fate {
            // Its session is over: it is closed with the others of it.
            DeliveryOutcome::Taken if self.broken != Some(Broken::CallsTakenLost) => {}
            DeliveryOutcome::Taken | DeliveryOutcome::Lost => {
                self.orders.lost += u64::from(self.close(id, OrderStatus::Refused, Reject::VenueDown));
            }
            DeliveryOutcome::Unknown => {
                if let Some(open) = self.open.get_mut(&id) {
                    open.is_unknown = true;
                }
            }
        }
    }

    /// Sends an order of the venue's.
    fn send(&mut self, order: &Order, link: &mut Link) {
        let about = |sequence| OrderId::new(order.id.strategy(), order.id.epoch(), sequence).word();
        let out = match order.operation {
            Operation::New => *order,
            // The engine's side knows orders by their whole ids.
            Operation::Cancel | Operation::Replace => Order { target: about(order.target), ..*order },
            // There it would be of all strategies of this host.
            Operation::MassCancel => return self.refuse(order, Reject::VenueRefuses),
        };
        match link.send(out.to_message(), None) {
            Ok(()) => self.note(order, false),
            Err(_) => self.refuse(order, Reject::VenueDown),
        }
    }

    fn note(&mut self, order: &Order, is_own: bool) {
        let open = Open {
            order: *order,
            session: self.session,
            next_number: 0,
            filled: 0,
            is_unknown: false,
            is_own,
        };
        self.open.insert(order.id, open);
    }

    fn refuse(&mut self, order: &Order, reason: Reject) {
        self.orders.refused += 1;
        self.waiting.push_back(refused(order, reason));
    }

    /// Asks the engine to cancel an order of a strategy that is dead here. What is said of the
    /// order comes as its own report.
    fn cancel(&mut self, target: OrderId, link: &mut Link) -> bool {
        let Some(open) = self.open.get(&target) else { return true };
        // No strategy comes to that epoch.
        let id = OrderId::new(target.strategy(), MAX_EPOCH, self.orders.cancels);
        let Order { venue, instrument, side, .. } = open.order;
        let cancel = Order {
            operation: Operation::Cancel,
            instrument,
            side,
            target: target.word(),
            ..Order::new(id, venue)
        };
        if link.send(cancel.to_message(), None).is_err() {
            return false;
        }
        self.orders.cancels += 1;
        self.note(&cancel, true);
        true
    }

    /// Takes what the venue asks, as far as it can be sent.
    fn take(&mut self, link: &mut Link) -> usize {
        let mut taken = 0;
        while let Some(target) = self.cancels.front().copied() {
            if !link.is_up() || link.is_full() || !self.cancel(target, link) {
                break;
            }
            self.cancels.pop_front();
            taken += 1;
        }
        while self.has_given_up || (self.cancels.is_empty() && link.is_up() && !link.is_full()) {
            let Some(ask) = self.lanes.asks.pop() else { break };
            taken += 1;
            match ask {
                Ask::Order(order) if self.has_given_up => self.refuse(&order, Reject::VenueDown),
                Ask::Order(order) => self.send(&order, link),
                Ask::Cancel(scope) => {
                    let of =
                        |open: &&Open| !open.is_own && scope.concerns(open.order.id, open.order.instrument);
                    self.cancels.extend(self.open.values().filter(of).map(|open| open.order.id));
                    self.cancels.make_contiguous().sort_unstable();
                }
            }
        }
        taken
    }

    fn hand_over(&mut self) -> usize {
        let mut given = 0;
        while let Some(report) = self.waiting.front() {
            if self.lanes.reports.push(*report).is_err() {
                break;
            }
            self.waiting.pop_front();
            given += 1;
        }
        given
    }

    /// Nobody answers any more.
    pub fn give_up(&mut self, link: &mut Link) {
        link.abandon();
        while let Some(event) = link.next_event() {
            self.event(event, link);
        }
        self.close_earlier(u64::MAX);
        self.cancels.clear();
        self.has_given_up = true;
    }

    /// Without a bridge: whatever is asked is refused, until the run is over.
    pub fn refuse_all(&mut self) {
        while !self.lanes.ends.is_up() {
            while let Some(ask) = self.lanes.asks.pop() {
                if let Ask::Order(order) = ask {
                    self.refuse(&order, Reject::VenueDown);
                }
            }
            self.lanes.takes.set(true);
            self.hand_over();
            std::thread::sleep(core::time::Duration::from_micros(100));
        }
    }

    /// The run is over: so is the link, as soon as the other side has heard of it.
    fn end(&mut self, since: u64, link: &mut Link, now: u64) -> Turn {
        if link.is_over() || !link.is_up() || now.saturating_sub(since) > END_NS {
            return Turn::Over;
        }
        if self.open.is_empty() {
            link.end();
            return Turn::Idle;
        }
        // Stopped in the middle: to the engine that is a death, and it cancels what is open.
        link.hang_up();
        Turn::Over
    }
}

impl Part for Far<'_> {
    fn event(&mut self, event: Event, _: &mut Link) {
        match event {
            Event::Message(message, passage) => self.report(message, passage),
            Event::Fate { message, fate, .. } => self.fate(message, fate),
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
                // The time is known in the next turn.
                self.down_since = Some(0);
            }
            Event::Over => {}
        }
    }

    fn turn(&mut self, link: &mut Link, now: u64) -> Turn {
        if let Some(since) = &mut self.down_since {
            if *since == 0 {
                *since = now;
            }
            if now.saturating_sub(*since) > PATIENCE_NS && !self.has_given_up {
                self.give_up(link);
            }
        }
        let work = self.take(link) + self.hand_over();
        self.lanes.takes.set(link.is_up() || self.has_given_up);
        if self.lanes.ends.is_up() && self.lanes.asks.is_empty() && self.waiting.is_empty() {
            let since = *self.ends_since.get_or_insert(now);
            return self.end(since, link, now);
        }
        if work > 0 { Turn::Busy } else { Turn::Idle }
    }
}
