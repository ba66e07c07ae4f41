//! What each strategy has open and what it holds, in each instrument.

mod account;
mod open;
mod order;
mod state;
mod table;
mod window;

pub use account::Account;
pub(crate) use order::{Kind, OpenOrder};
pub(crate) use state::PositionsState;

use open::OpenOrders;
use protocol::record::{Point, PositionField};
use protocol::stamps::StampLog;
use protocol::wire::{Operation, Order, OrderId, OrderStatus, Report, Side};
use shm::prefetch::prefetch_lines;

/// All accounts, and all open orders.
pub struct Positions {
    /// Strategy after strategy.
    accounts: Box<[Account]>,
    instruments: usize,
    strategies: Box<[OfStrategy]>,
    /// Requests with nothing open of their own are kept, too.
    tracks_requests: bool,
}

/// What a strategy has at its venues.
struct OfStrategy {
    /// Requests of the living incarnation that are not settled: also cancels.
    requests: u64,
    orders: OpenOrders,
}

/// What a report, or an order that was sent, has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// In which instrument.
    pub instrument: u16,
    /// By how much the position grew that all open buy orders would make.
    pub long: i64,
    /// The same of sell orders.
    pub short: i64,
    /// The quantity that was filled; bought above 0.
    pub filled: i64,
    /// An order that a kill switch cancels is not open any more.
    pub killed: Option<Closed>,
}

/// Where an order was that is not open any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// At which venue.
    pub venue: u16,
    /// In which instrument.
    pub instrument: u16,
}

impl Positions {
    /// Nothing held and nothing open; room for so many open orders of each strategy.
    pub fn new(strategies: usize, instruments: usize, max_open: usize) -> Self {
        let one = |_| OfStrategy { requests: 0, orders: OpenOrders::new(max_open) };
        let instruments = instruments.max(1);
        Self {
            accounts: vec![Account::default(); strategies * instruments].into(),
            instruments,
            strategies: (0..strategies).map(one).collect(),
            tracks_requests: false,
        }
    }

    /// Keeps every open request, not only those that hold a quantity: [`Positions::open_at`] then finds all of them.
    pub(crate) const fn track_requests(&mut self, tracks: bool) {
        self.tracks_requests = tracks;
    }

    /// The account of a strategy in an instrument.
    #[inline(always)]
    pub fn account(&self, strategy: usize, instrument: u16) -> &Account {
        &self.accounts[strategy * self.instruments + usize::from(instrument)]
    }

    /// How many instruments there are.
    pub fn instruments(&self) -> usize {
        self.instruments
    }

    /// Requests of a strategy's living incarnation that are not settled.
    #[inline(always)]
    pub fn open(&self, strategy: usize) -> u64 {
        self.strategies[strategy].requests
    }

    /// Requests of all strategies' living incarnations that are not settled.
    pub(crate) fn requests(&self) -> u64 {
        self.strategies.iter().map(|of| of.requests).fold(0, u64::saturating_add)
    }

    /// Whether another order of the strategy has room: not where several of its incarnations died at once with all that they may
    /// have open.
    #[inline(always)]
    pub(crate) fn has_room(&self, strategy: usize) -> bool {
        self.strategies[strategy].orders.has_room()
    }

    /// An order that is open.
    #[inline]
    pub(crate) fn order(&self, id: OrderId) -> Option<OpenOrder> {
        self.strategies[usize::from(id.strategy())].orders.get(id)
    }

    /// Fetches what is known of an order ahead of [`Positions::settle`]; the strategy is one of the run's.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        self.strategies[usize::from(id.strategy())].orders.prefetch(id);
    }

    /// Fetches what a strategy holds, so many lines of it at most.
    pub(crate) fn prefetch_strategy(&self, strategy: usize, most: usize) {
        prefetch_lines(&self.strategies[strategy], most);
        prefetch_lines(&self.accounts[strategy * self.instruments..][..self.instruments], most);
    }

    /// Marks the open orders that this agrees to (strategy, venue, instrument) as killed; how many there are.
    pub(crate) fn mark_killed(&mut self, concerns: impl Fn(u16, u16, u16) -> bool) -> u64 {
        let strategies = (0..).zip(&mut self.strategies);
        let mark = |(strategy, of): (u16, &mut OfStrategy)| {
            of.orders.mark(|venue, instrument| concerns(strategy, venue, instrument))
        };
        strategies.map(mark).sum()
    }

    /// A request goes to its venue.
    #[inline]
    pub fn send(&mut self, order: &Order) -> Change {
        let strategy = usize::from(order.id.strategy());
        let of = &mut self.strategies[strategy];
        of.requests += 1;
        let (side, more) = match order.operation {
            Operation::New => {
                let kind = Kind::Order(order.side);
                of.orders.insert(OpenOrder::new(
                    order.id,
                    kind,
                    order.quantity,
                    order.instrument,
                    order.venue,
                ));
                (order.side, order.quantity)
            }
            Operation::Replace => {
                let target = target(order);
                let changed = of.orders.change(target, |open| {
                    if open.kind != Kind::Replace {
                        open.wanted = open.wanted.max(order.quantity);
                        open.replaces += 1;
                    }
                });
                let Some((before, after)) = changed else { return self.track(order) };
                let Kind::Order(side) = before.kind else { return self.track(order) };
                let more = after.reserved() - before.reserved();
                let replace =
                    OpenOrder::new(order.id, Kind::Replace, target.word(), order.instrument, order.venue);
                of.orders.insert(replace);
                (side, more)
            }
            Operation::Cancel | Operation::MassCancel => return self.track(order),
        };
        self.reserve(strategy, order.instrument, side, more.cast_signed())
    }

    /// Keeps a request that has nothing open of its own, if such are kept.
    #[inline]
    fn track(&mut self, order: &Order) -> Change {
        if self.tracks_requests {
            let request = OpenOrder::new(order.id, Kind::Other, 0, order.instrument, order.venue);
            self.strategies[usize::from(order.id.strategy())].orders.insert(request);
        }
        Change::default()
    }

    /// Returns every request of a strategy that is open at a venue, by their ids; all of them if requests are tracked.
    pub(crate) fn open_at(&self, strategy: usize, venue: u16) -> Vec<OpenOrder> {
        let all = self.strategies[strategy].orders.all(strategy as u16);
        let mut open: Vec<OpenOrder> =
            all.into_iter().flatten().filter(|order| order.venue == venue).collect();
        open.sort_unstable_by_key(OpenOrder::id);
        open
    }

    /// Closes a request whose end at its venue is unknown; `is_current`: it is of the living incarnation.
    pub(crate) fn abandon(&mut self, id: OrderId, is_current: bool) -> Change {
        let strategy = usize::from(id.strategy());
        let of = &mut self.strategies[strategy];
        of.requests = of.requests.saturating_sub(u64::from(is_current));
        match of.orders.take(id) {
            Some(OpenOrder { kind: Kind::Replace, leaves: target, .. }) => {
                self.replaced(strategy, OrderId::from_word(target))
            }
            Some(order) => self.closed(strategy, &order),
            None => Change::default(),
        }
    }

    /// Takes back a request that did not reach its venue; `is_current`: it is of the living incarnation.
    pub(crate) fn withdraw(&mut self, order: &Order, is_current: bool) -> Change {
        let strategy = usize::from(order.id.strategy());
        let of = &mut self.strategies[strategy];
        of.requests = of.requests.saturating_sub(u64::from(is_current));
        match of.orders.take(order.id) {
            Some(OpenOrder { kind: Kind::Replace, leaves: target, .. }) => {
                self.replaced(strategy, OrderId::from_word(target))
            }
            Some(OpenOrder { kind: Kind::Order(side), leaves, instrument, is_killed, venue, .. }) => {
                let change = self.reserve(strategy, instrument, side, leaves.cast_signed().wrapping_neg());
                Change { killed: is_killed.then_some(Closed { venue, instrument }), ..change }
            }
            Some(OpenOrder { kind: Kind::Other, .. }) | None => Change::default(),
        }
    }

    /// A strategy begins again: requests of its last incarnation do not count as its own. Its orders are open until the venue
    /// says otherwise.
    pub(crate) fn reopen(&mut self, strategy: usize) {
        self.strategies[strategy].requests = 0;
    }

    /// A venue's report comes back; `is_current`: it is about a request of the living incarnation. What a dead one has bought or
    /// sold it has bought or sold all the same. `None`: it names an instrument that is none.
    #[inline]
    pub fn settle(&mut self, report: &Report, is_current: bool) -> Option<Change> {
        let strategy = usize::from(report.id.strategy());
        if usize::from(report.instrument) >= self.instruments {
            return None;
        }
        let of = &mut self.strategies[strategy];
        of.requests = of.requests.saturating_sub(u64::from(is_current && report.is_last));
        let mut change = if report.is_last {
            match of.orders.take(report.id) {
                Some(OpenOrder { kind: Kind::Replace, leaves: target, .. }) => {
                    self.replaced(strategy, OrderId::from_word(target))
                }
                Some(order) => self.closed(strategy, &order),
                None => Change::default(),
            }
        } else {
            self.progress(strategy, report)
        };
        if report.filled > 0 {
            let account = &mut self.accounts[strategy * self.instruments + usize::from(report.instrument)];
            change.filled = account.fill(report.side, report.filled, report.price);
            change.long = change.long.wrapping_add(change.filled);
            change.short = change.short.wrapping_add(change.filled);
        }
        change.instrument = report.instrument;
        Some(change)
    }

    /// The last report of an order came.
    #[inline]
    fn closed(&mut self, strategy: usize, order: &OpenOrder) -> Change {
        let Kind::Order(side) = order.kind else { return Change::default() };
        let less = order.reserved().cast_signed().wrapping_neg();
        let change = self.reserve(strategy, order.instrument, side, less);
        let closed = Closed { venue: order.venue, instrument: order.instrument };
        Change { killed: order.is_killed.then_some(closed), ..change }
    }

    /// What a report that is not the last says of an order that is open.
    #[inline]
    fn progress(&mut self, strategy: usize, report: &Report) -> Change {
        let is_new = report.status == OrderStatus::Replaced;
        let changed = self.strategies[strategy].orders.change(report.id, |open| {
            if open.kind != Kind::Replace {
                // Nothing but a replace gives an order more.
                open.leaves = if is_new { report.leaves } else { report.leaves.min(open.leaves) };
            }
        });
        self.changed(strategy, changed)
    }

    /// The last report of a replace came.
    fn replaced(&mut self, strategy: usize, target: OrderId) -> Change {
        let changed = self.strategies[strategy].orders.change(target, |open| {
            if open.kind != Kind::Replace {
                open.replaces = open.replaces.saturating_sub(1);
                if open.replaces == 0 {
                    open.wanted = 0;
                }
            }
        });
        self.changed(strategy, changed)
    }

    /// An order was changed; what is open of it with that.
    #[inline]
    fn changed(&mut self, strategy: usize, changed: Option<(OpenOrder, OpenOrder)>) -> Change {
        let Some((before, after)) = changed else { return Change::default() };
        let Kind::Order(side) = before.kind else { return Change::default() };
        let more = after.reserved().wrapping_sub(before.reserved()).cast_signed();
        self.reserve(strategy, before.instrument, side, more)
    }

    /// So much more is open; less below 0.
    #[inline]
    fn reserve(&mut self, strategy: usize, instrument: u16, side: Side, more: i64) -> Change {
        let account = &mut self.accounts[strategy * self.instruments + usize::from(instrument)];
        let change = Change { instrument, ..Change::default() };
        match side {
            Side::Buy => {
                account.open_buy = account.open_buy.wrapping_add(more);
                Change { long: more, ..change }
            }
            Side::Sell => {
                account.open_sell = account.open_sell.wrapping_add(more);
                Change { short: more.wrapping_neg(), ..change }
            }
        }
    }

    /// Writes every account that anything happened in: a record for each [`PositionField`].
    pub(crate) fn seal(&self, log: &mut StampLog) {
        for (index, account) in self.accounts.iter().enumerate() {
            if (account.fills, account.open_buy, account.open_sell) == (0, 0, 0) {
                continue;
            }
            let (strategy, instrument) = (index / self.instruments, index % self.instruments);
            let id = OrderId::new(strategy as u16, 0, instrument as u64);
            for field in PositionField::ALL {
                let value = match field {
                    PositionField::Net => account.net.cast_unsigned(),
                    PositionField::CostLow => account.cost as u64,
                    PositionField::CostHigh => (account.cost >> 64) as u64,
                    PositionField::RealisedLow => account.realised as u64,
                    PositionField::RealisedHigh => (account.realised >> 64) as u64,
                    PositionField::Fills => account.fills,
                    PositionField::OpenBuy => account.open_buy.cast_unsigned(),
                    PositionField::OpenSell => account.open_sell.cast_unsigned(),
                };
                log.append_with(Point::Position, id, field as u8, value);
            }
        }
    }
}

/// The order that a replace or a cancel is about.
#[inline]
pub(crate) const fn target(order: &Order) -> OrderId {
    OrderId::new(order.id.strategy(), order.id.epoch(), order.target)
}

#[cfg(test)]
mod tests;
