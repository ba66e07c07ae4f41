//! Positions and open orders of each strategy and instrument.

mod account;
mod open;
mod order;
mod slots;
mod table;

pub use account::Account;
pub use open::OpenOrders;
pub(crate) use open::SavedOrders;
pub(crate) use order::{Kind, OpenOrder};

use protocol::index::{PerStrategy, StrategyIndex};
use protocol::record::{Point, PositionField, Record};
use protocol::wire::{Operation, Order, OrderId, OrderStatus, Report, Side};
use serde::{Deserialize, Serialize};
use shm::prefetch::prefetch_lines;

/// The positions and open orders of all strategies of a run, in all instruments.
#[derive(Serialize, Deserialize)]
pub struct Positions {
    pub(crate) accounts: Box<[Account]>,
    instruments: usize,
    pub(crate) strategies: PerStrategy<Requests>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Requests {
    /// Number of open requests of the running incarnation, cancels included.
    pub count: u64,
    /// Of all incarnations. A snapshot has them apart: see [`Positions::open_orders`].
    #[serde(skip)]
    orders: OpenOrders,
}

/// The change of a strategy's position and open quantities in one instrument, caused by a sent
/// order or a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Index of the instrument whose position changes.
    pub instrument: u16,
    /// Change of the net quantity as it would be with all open buy orders filled.
    pub long: i64,
    /// Change of the net quantity as it would be with all open sell orders filled.
    pub short: i64,
    /// Filled quantity: positive if bought, negative if sold.
    pub filled: i64,
    /// The venue at which an order that a kill switch cancels is no longer open; `None` if there is
    /// none.
    pub killed_at: Option<u16>,
}

impl Positions {
    /// Creates empty positions for all strategies, with capacity for `max_open` open orders per
    /// strategy.
    pub fn new(strategies: usize, instruments: usize, max_open: usize) -> Self {
        let instruments = instruments.max(1);
        Self {
            accounts: vec![Account::default(); strategies * instruments].into(),
            instruments,
            strategies: (0..strategies)
                .map(|_| Requests { count: 0, orders: OpenOrders::new(max_open) })
                .collect(),
        }
    }

    pub(crate) fn open_orders(&self) -> Vec<SavedOrders> {
        self.strategies.iter().map(|requests| requests.orders.save()).collect()
    }

    /// Replaces the positions by those of a snapshot. `empty` are accounts without open orders.
    /// Returns `None` if the snapshot is not of these strategies and instruments.
    pub(crate) fn restore(&mut self, empty: Self, saved: &[SavedOrders]) -> Option<()> {
        let lengths =
            |requests: &Self| [requests.instruments, requests.accounts.len(), requests.strategies.len()];
        (lengths(self) == lengths(&empty) && saved.len() == self.strategies.len()).then_some(())?;
        let empty = empty.strategies.into_iter().zip(saved);
        for ((strategy, requests), (empty, saved)) in self.strategies.enumerate_mut().zip(empty) {
            let is_possible = |order: &OpenOrder| {
                let is_own = order.id().strategy() == strategy && order.is_of(order.id());
                is_own && usize::from(order.instrument) < self.instruments
            };
            saved.iter().flatten().all(is_possible).then_some(())?;
            requests.orders = empty.orders;
            requests.orders.restore(saved)?;
        }
        Some(())
    }

    /// Returns a strategy's position and open quantities in an instrument.
    #[inline(always)]
    pub fn account(&self, strategy: StrategyIndex, instrument: u16) -> &Account {
        &self.accounts[strategy.as_usize() * self.instruments + usize::from(instrument)]
    }

    /// Returns a strategy's positions in all instruments.
    pub(crate) fn accounts_of(&self, strategy: StrategyIndex) -> &[Account] {
        &self.accounts[strategy.as_usize() * self.instruments..][..self.instruments]
    }

    /// Returns the number of open orders, replaces and cancels of a strategy's running incarnation.
    #[inline(always)]
    pub fn open(&self, strategy: StrategyIndex) -> u64 {
        self.strategies[strategy].count
    }

    /// Returns the same number of every `step`th strategy from `first` on together.
    #[cold]
    pub(crate) fn open_of_every(&self, first: usize, step: usize) -> u64 {
        let members = self.strategies.iter().skip(first).step_by(step);
        members.map(|requests| requests.count).fold(0, u64::saturating_add)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.strategies.iter().map(|requests| requests.count).fold(0, u64::saturating_add)
    }

    /// Returns `true` if there is memory for another open order of the strategy. There is none if
    /// several of its incarnations died in a row with the maximum of open orders each.
    #[inline(always)]
    pub(crate) fn has_room(&self, strategy: StrategyIndex) -> bool {
        self.strategies[strategy].orders.has_room()
    }

    #[inline]
    pub(crate) fn order(&self, id: OrderId) -> Option<OpenOrder> {
        self.strategies[id.strategy()].orders.get(id)
    }

    /// Prefetches the open order that the report on it will need. The strategy is one of the run's.
    #[inline(always)]
    pub(crate) fn prefetch(&self, id: OrderId) {
        self.strategies[id.strategy()].orders.prefetch(id);
    }

    pub(crate) fn prefetch_strategy(&self, strategy: StrategyIndex, lines: usize) {
        prefetch_lines(&self.strategies[strategy], lines);
        prefetch_lines(self.accounts_of(strategy), lines);
    }

    /// Marks the open orders that a kill switch concerns: those for which `concerns(strategy,
    /// venue, instrument)`. Returns how many.
    pub(crate) fn mark_killed(&mut self, concerns: impl Fn(StrategyIndex, u16, u16) -> bool) -> u64 {
        let mark = |(strategy, requests): (StrategyIndex, &mut Requests)| {
            requests.orders.mark(|venue, instrument| concerns(strategy, venue, instrument))
        };
        self.strategies.enumerate_mut().map(mark).sum()
    }

    /// Records a sent order, replace or cancel as open, and returns the change of the strategy's
    /// open quantities.
    #[inline]
    pub fn send(&mut self, order: &Order) -> Change {
        let strategy = order.id.strategy();
        let (kind, leaves, change) = match order.request.operation {
            Operation::New => {
                let quantity = order.request.quantity.cast_signed();
                let change = self.reserve(strategy, order.request.instrument, order.request.side, quantity);
                (Kind::Order(order.request.side), order.request.quantity, change)
            }
            Operation::Replace => {
                let change = self.change(strategy, target(order), |open| {
                    open.wanted = open.wanted.max(order.request.quantity);
                    open.replaces += 1;
                });
                change.map_or((Kind::Other, 0, Change::default()), |change| {
                    (Kind::Replace, target(order).word(), change)
                })
            }
            Operation::Cancel | Operation::MassCancel => (Kind::Other, 0, Change::default()),
        };
        let requests = &mut self.strategies[strategy];
        requests.count += 1;
        requests.orders.insert(OpenOrder::new(
            order.id,
            kind,
            leaves,
            order.request.instrument,
            order.request.venue,
        ));
        change
    }

    pub(crate) fn open_at(&self, strategy: StrategyIndex, venue: u16) -> Vec<OpenOrder> {
        let mut open = self.strategies[strategy].orders.save().concat();
        open.retain(|order| order.venue == venue);
        open.sort_unstable_by_key(OpenOrder::id);
        open
    }

    /// Forgets the unsettled replaces and cancels of a strategy's dead incarnation. Its orders are
    /// open until the venue reports otherwise.
    pub(crate) fn renew(&mut self, strategy: StrategyIndex) {
        self.strategies[strategy].count = 0;
    }

    /// Applies a venue's report to the open order and the strategy's position, and returns the
    /// change of the position. `is_current`: the report is about a request of the running
    /// incarnation; fills of earlier incarnations count all the same. Returns `None` if the
    /// instrument does not exist.
    #[inline(always)]
    pub fn settle(&mut self, report: &Report, is_current: bool) -> Option<Change> {
        let strategy = report.id.strategy();
        if usize::from(report.instrument) >= self.instruments {
            return None;
        }
        let mut change = if report.is_last {
            self.close(report.id, is_current)
        } else {
            let is_replaced = report.status == OrderStatus::Replaced;
            self.change(strategy, report.id, |open| {
                // Only a replace gives an order more.
                open.leaves = if is_replaced { report.leaves } else { report.leaves.min(open.leaves) };
            })
            .unwrap_or_default()
        };
        if report.filled > 0 {
            let account =
                &mut self.accounts[strategy.as_usize() * self.instruments + usize::from(report.instrument)];
            change.filled = account.fill(report.side, report.filled, report.price);
            change.long = change.long.wrapping_add(change.filled);
            change.short = change.short.wrapping_add(change.filled);
        }
        change.instrument = report.instrument;
        Some(change)
    }

    /// Removes an order that is completed, or that never reached its venue.
    #[inline(always)]
    pub(crate) fn close(&mut self, id: OrderId, is_current: bool) -> Change {
        let strategy = id.strategy();
        let requests = &mut self.strategies[strategy];
        requests.count = requests.count.saturating_sub(u64::from(is_current));
        let Some(order) = requests.orders.take(id) else { return Change::default() };
        match order.kind {
            Kind::Order(side) => {
                let released = order.reserved().cast_signed().wrapping_neg();
                let killed_at = order.is_killed.then_some(order.venue);
                Change { killed_at, ..self.reserve(strategy, order.instrument, side, released) }
            }
            Kind::Replace => {
                let change = self.change(strategy, OrderId::from_word(order.leaves), |open| {
                    open.replaces = open.replaces.saturating_sub(1);
                    open.wanted = if open.replaces == 0 { 0 } else { open.wanted };
                });
                change.unwrap_or_default()
            }
            Kind::Other => Change::default(),
        }
    }

    #[inline]
    fn change(
        &mut self,
        strategy: StrategyIndex,
        id: OrderId,
        change: impl FnOnce(&mut OpenOrder),
    ) -> Option<Change> {
        let order = self.strategies[strategy].orders.get_mut(id)?;
        let Kind::Order(side) = order.kind else { return None };
        let (before, instrument) = (order.reserved(), order.instrument);
        change(order);
        let additional = order.reserved().wrapping_sub(before).cast_signed();
        Some(self.reserve(strategy, instrument, side, additional))
    }

    /// Adds to the open quantity; below 0 takes from it.
    #[inline(always)]
    fn reserve(&mut self, strategy: StrategyIndex, instrument: u16, side: Side, additional: i64) -> Change {
        let account = &mut self.accounts[strategy.as_usize() * self.instruments + usize::from(instrument)];
        let change = Change { instrument, ..Change::default() };
        match side {
            Side::Buy => {
                account.open_buy = account.open_buy.wrapping_add(additional);
                Change { long: additional, ..change }
            }
            Side::Sell => {
                account.open_sell = account.open_sell.wrapping_add(additional);
                Change { short: additional.wrapping_neg(), ..change }
            }
        }
    }

    /// Returns a record for each [`PositionField`] of every position with activity.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        let is_active = |account: &Account| (account.fills, account.open_buy, account.open_sell) != (0, 0, 0);
        let active = self.accounts.iter().enumerate().filter(move |(_, account)| is_active(account));
        active.flat_map(|(index, account)| {
            let (strategy, instrument) = (index / self.instruments, index % self.instruments);
            let id = OrderId::new(strategy as u16, 0, instrument as u64);
            PositionField::ALL.into_iter().map(move |field| {
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
                Record { point: Point::Position, id, detail: field as u8, value }
            })
        })
    }
}

/// Returns the id of the order that a replace or a cancel targets.
#[inline]
pub(crate) const fn target(order: &Order) -> OrderId {
    order.id.with_sequence(order.request.target)
}

#[cfg(test)]
mod tests;
