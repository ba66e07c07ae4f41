//! Recomputes positions from the logged fills and compares them with the orchestrator's final
//! positions.
//!
//! An account is one strategy's position in one instrument. Its figures follow from its fills in
//! integer arithmetic:
//!
//! ```text
//! net       Σ quantity, bought above 0, sold below
//! cost      Σ quantity × price
//! realized  average cost: a fill that closes c of n realizes c × price − basis × c / n, truncated
//! basis     cost + realized: the price paid (or received) for the open quantity
//! ```
//!
//! A gateway logs a fill after the t5 of the report that carries it: quantity, then price. A fill
//! without a matching report, or with the number of another report, shows that the log is wrong.
//!
//! The realized profit depends on the order of the fills, which is the order in which the
//! orchestrator processed their reports: its t6. A fill is therefore kept, in 24 bytes, from its t5
//! to the t6 of its report. In a run without t6 stamps the realized profit is not compared.

use super::violation::{Findings, ViolationKind, Violations, order_name};
use protocol::index::StrategyIndex;
use protocol::instrument::MAX_INSTRUMENTS;
use protocol::stamps::{PositionField, Record};
use protocol::wire::OrderId;
use std::collections::{BTreeMap, VecDeque};

/// A strategy's account in one instrument, computed from the fills in the logs: net quantity, cost
/// and profit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Net quantity (bought − sold), in 1e-8 units.
    pub net: i64,
    /// Signed sum of quantity × price of all fills, in cents × 1e-8 units.
    pub cost: i128,
    /// Realized profit, in cents × 1e-8 units.
    pub realized: i128,
    /// Number of fills.
    pub fills: u64,
    /// Total quantity of all fills, in 1e-8 units.
    pub volume: u128,
    /// Unsigned sum of quantity × price of all fills, in cents × 1e-8 units.
    pub turnover: u128,
}

impl Account {
    /// Adds one fill to the position: quantity in 1e-8 units, price in cents.
    #[inline]
    pub fn fill(&mut self, quantity: i64, price: i64) {
        let (net, wide) = (i128::from(self.net), i128::from(price));
        if net.signum() * i128::from(quantity.signum()) < 0 {
            let (all, basis) = (net.abs(), self.basis());
            let closed = i128::from(quantity.unsigned_abs()).min(all);
            // Computes basis × closed / all without the full product, which may overflow.
            let released = (basis / all).wrapping_mul(closed).wrapping_add((basis % all) * closed / all);
            let proceeds = (net.signum() * closed).wrapping_mul(wide);
            self.realized = self.realized.wrapping_add(proceeds.wrapping_sub(released));
        }
        let cost = i128::from(quantity).wrapping_mul(wide);
        self.net = self.net.wrapping_add(quantity);
        self.cost = self.cost.wrapping_add(cost);
        self.fills += 1;
        self.volume = self.volume.wrapping_add(quantity.unsigned_abs().into());
        self.turnover = self.turnover.wrapping_add(cost.unsigned_abs());
    }

    /// Returns the cost basis of the open position, in cents × 1e-8 units; negative for a short
    /// position.
    pub const fn basis(&self) -> i128 {
        self.cost.wrapping_add(self.realized)
    }

    /// Returns the additional profit from closing the position at `price`, in cents × 1e-8 units.
    pub fn unrealized(&self, price: i64) -> i128 {
        i128::from(self.net).wrapping_mul(price.into()).wrapping_sub(self.basis())
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastPrice {
    ticks: u64,
    price: i64,
}

/// The last report in the current log, whose fill may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OpenReport {
    id: OrderId,
    number: u8,
    ticks: u64,
    /// Gateway, and position among the gateway's reports.
    pushed: Option<(usize, u64)>,
    /// Quantity of its fill, whose price must follow.
    quantity: Option<i64>,
    is_filled: bool,
    /// The order has no row, or a duplicate stamp: reported elsewhere.
    is_reported_elsewhere: bool,
}

/// A fill whose report the orchestrator has not processed yet.
#[derive(Clone, Copy, Debug)]
struct PendingFill {
    /// Position among the gateway's reports (40 bits), strategy (8), instrument (16).
    key: u64,
    quantity: i64,
    price: i64,
}

const _: () = assert!(size_of::<PendingFill>() == 24);

impl PendingFill {
    const fn position(&self) -> u64 {
        self.key >> 24
    }
}

/// The positions of all strategies, computed from fills while the logs are read.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// By strategy and instrument.
    filled: Vec<Vec<Account>>,
    prices: Vec<LastPrice>,
    /// Pending fills by gateway, in the order of their reports.
    pending: Vec<VecDeque<PendingFill>>,
    /// For each gateway: whether it died. A fill whose report the orchestrator never processed died
    /// with it: the engine closed the order without having received the fill.
    dead: Vec<bool>,
    /// Some fills were counted in another order than the orchestrator's.
    is_unordered: bool,
    last: Option<OpenReport>,
    stated: BTreeMap<(u16, u16), [Option<u64>; PositionField::ALL.len()]>,
    /// Violations in the records of fills and positions themselves.
    pub found: Violations,
}

impl Accounts {
    /// Creates the trading accounts of a run's strategies, without fills. `dead` holds for each
    /// gateway whether it died.
    pub fn new(strategies: u16, dead: Vec<bool>) -> Self {
        let waiting = vec![VecDeque::new(); dead.len()];
        Self { filled: vec![Vec::new(); strategies.into()], pending: waiting, dead, ..Self::default() }
    }

    /// Ends the last report of a log, and counts a violation if its fill has no price.
    pub fn end_log(&mut self) {
        self.end_report();
        self.last = None;
    }

    /// Begins a report at its stamp t5 (its gateway pushed it); the fill records that follow belong
    /// to it.
    #[inline]
    pub fn on_report(&mut self, id: OrderId, number: u8, ticks: u64, pushed: Option<(usize, u64)>) {
        if self.last.is_some_and(|last| last.quantity.is_some()) {
            self.end_report();
        }
        self.last = Some(OpenReport {
            id,
            number,
            ticks,
            pushed,
            quantity: None,
            is_filled: false,
            is_reported_elsewhere: false,
        });
    }

    /// Begins a report whose stamp t5 occurs twice or belongs to an impossible order. The violation
    /// is reported elsewhere; a fill of it still counts.
    #[cold]
    pub fn on_unexpected_report(&mut self, id: OrderId, number: u8, ticks: u64) {
        self.on_report(id, number, ticks, None);
        self.last = self.last.map(|last| OpenReport { is_reported_elsewhere: true, ..last });
    }

    #[cold]
    fn end_report(&mut self) {
        if let Some(OpenReport { id, number, quantity: Some(_), .. }) = self.last {
            add_fill_violation(&mut self.found, id, || format!("the fill of report {number} has no price"));
        }
    }

    /// Handles a log record with the quantity of a fill, which belongs to the report before it.
    #[inline]
    pub fn on_fill_quantity(&mut self, Record { id, detail, value, .. }: Record) {
        let quantity = value.cast_signed();
        let what = match &mut self.last {
            Some(last) if (last.id, last.number) == (id, detail) => {
                if last.is_filled || last.quantity.is_some() {
                    format!("report {detail} is filled twice")
                } else if quantity == 0 {
                    format!("the fill in report {detail} has zero quantity")
                } else {
                    last.quantity = Some(quantity);
                    return;
                }
            }
            _ => format!("a fill of report {detail}, which has no t5 before it"),
        };
        add_fill_violation(&mut self.found, id, || what);
    }

    /// Completes a fill with its price from a log record; the fill counts once the orchestrator has
    /// processed the report.
    #[inline]
    pub fn on_fill_price(&mut self, Record { id, detail, value, .. }: Record, instrument: u16) {
        let price = value.cast_signed();
        let last = self.last.as_mut().filter(|last| (last.id, last.number) == (id, detail));
        let Some((quantity, OpenReport { ticks, pushed, is_reported_elsewhere, .. })) =
            last.and_then(|last| {
                last.is_filled = true;
                Some((last.quantity.take()?, *last))
            })
        else {
            return add_fill_violation(&mut self.found, id, || {
                format!("a price of report {detail}, which has no fill")
            });
        };
        let index = usize::from(instrument);
        if index >= MAX_INSTRUMENTS {
            return add_fill_violation(&mut self.found, id, || {
                format!("a fill in instrument {instrument}: there is none")
            });
        }
        let key = u64::from(id.strategy().0) << 16 | u64::from(instrument);
        match pushed.and_then(|(gateway, position)| Some((self.pending.get_mut(gateway)?, position))) {
            Some((waiting, position)) => {
                waiting.push_back(PendingFill { key: position << 24 | key, quantity, price })
            }
            None => {
                if is_reported_elsewhere {
                    self.is_unordered = true;
                } else {
                    add_fill_violation(&mut self.found, id, || {
                        format!("a fill of report {detail}, and no gateway had taken the order")
                    });
                }
                self.count(PendingFill { key, quantity, price });
            }
        }
        if self.prices.len() <= index {
            self.prices.resize(index + 1, LastPrice::default());
        }
        if self.prices[index].ticks <= ticks {
            self.prices[index] = LastPrice { ticks, price };
        }
    }

    /// Adds a gateway's pending fills to the accounts, up to the gateway's report number `position`
    /// (from 0), which the orchestrator has processed.
    #[inline]
    pub fn on_report_taken(&mut self, (gateway, position): (usize, u64)) {
        // An earlier one that was not processed in order: reported elsewhere.
        while let Some(waiting) = self
            .pending
            .get_mut(gateway)
            .and_then(|waiting| waiting.pop_front_if(|first| first.position() <= position))
        {
            // An earlier one was stamped by an incarnation that died with its report.
            if waiting.position() == position || !self.dead[gateway] {
                self.count(waiting);
            }
        }
    }

    #[inline]
    fn count(&mut self, PendingFill { key, quantity, price }: PendingFill) {
        let (strategy, index) = ((key >> 16) as u8, key as u16);
        let Some(accounts) = self.filled.get_mut(usize::from(strategy)) else { return };
        if accounts.len() <= usize::from(index) {
            accounts.resize(usize::from(index) + 1, Account::default());
        }
        accounts[usize::from(index)].fill(quantity, price);
    }

    /// Ends the last log and counts fills whose reports the orchestrator never processed. Those of
    /// dead gateways are excepted.
    pub fn finish(&mut self) {
        self.end_log();
        let waiting = std::mem::take(&mut self.pending);
        let dead = std::mem::take(&mut self.dead);
        for (fills, _) in waiting.into_iter().zip(dead).filter(|(_, is_dead)| !is_dead) {
            for fill in fills {
                self.is_unordered = true;
                self.count(fill);
            }
        }
    }

    /// Stores one figure, such as the net quantity, of a final position that the orchestrator
    /// logged, for the comparison with the fills.
    pub fn on_position(&mut self, record: Record) {
        let Record { id, detail, value, .. } = record;
        let index = PositionField::from_code(detail).zip(u16::try_from(id.sequence()).ok());
        let Some((field, instrument)) = index.filter(|_| id.strategy().as_usize() < self.filled.len()) else {
            return self.found.add(ViolationKind::Position, || {
                format!(
                    "a position of strategy {}, instrument {}: the plan has none",
                    id.strategy().0,
                    id.sequence()
                )
            });
        };
        let figure = &mut self.stated.entry((id.strategy().0, instrument)).or_default()[field as usize];
        if figure.replace(value).is_some() {
            self.found.add(ViolationKind::Position, || {
                format!("strategy {} instrument {instrument}: {field:?} is stated twice", id.strategy())
            });
        }
    }

    fn keys(&self) -> Vec<(u16, u16)> {
        let filled = (0..).zip(&self.filled).flat_map(|(strategy, accounts)| {
            let used = (0..).zip(accounts).filter(|(_, account): &(u16, _)| account.fills > 0);
            used.map(move |(instrument, _)| (strategy, instrument))
        });
        let mut keys: Vec<(u16, u16)> = filled.chain(self.stated.keys().copied()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn account(&self, (strategy, instrument): (u16, u16)) -> Account {
        let accounts = self.filled.get(usize::from(strategy));
        accounts.and_then(|accounts| accounts.get(usize::from(instrument))).copied().unwrap_or_default()
    }

    /// Returns the open quantity that the orchestrator logged at the end.
    fn stated_open(&self, key: (u16, u16), field: PositionField) -> i64 {
        self.stated.get(&key).and_then(|figures| figures[field as usize]).unwrap_or(0).cast_signed()
    }

    /// Compares the orchestrator's final positions with those computed from the fills; each
    /// difference is a violation. Only for runs that completed: in others fills were in flight. In
    /// a complete run every order has its last report (otherwise that is a violation), so nothing
    /// is open, and every account with fills has every figure.
    pub fn check(&self, findings: &mut Findings) {
        for key in self.keys() {
            let account = self.account(key);
            let (cost, realised) = (account.cost.cast_unsigned(), account.realized.cast_unsigned());
            let filled = [
                (PositionField::Net, account.net.cast_unsigned()),
                (PositionField::CostLow, cost as u64),
                (PositionField::CostHigh, (cost >> 64) as u64),
                (PositionField::RealisedLow, realised as u64),
                (PositionField::RealisedHigh, (realised >> 64) as u64),
                (PositionField::Fills, account.fills),
                (PositionField::OpenBuy, 0),
                (PositionField::OpenSell, 0),
            ];
            let stated = self.stated.get(&key);
            let is_known = |field| {
                !self.is_unordered
                    || !matches!(field, PositionField::RealisedLow | PositionField::RealisedHigh)
            };
            for (field, filled) in filled.into_iter().filter(|(field, _)| is_known(*field)) {
                let stated = stated.and_then(|figures| figures[field as usize]);
                if stated != Some(filled) {
                    findings.add(None, ViolationKind::Position, || {
                        let stated = stated.map_or("nothing".into(), |value| value.cast_signed().to_string());
                        format!(
                            "strategy {} instrument {}: {field:?} is {} by the gateways' reports, and {stated} by the \
                             orchestrator",
                            key.0,
                            key.1,
                            filled.cast_signed()
                        )
                    });
                    break;
                }
            }
        }
    }

    /// Converts the accounts to final positions, one for each strategy and instrument with fills or
    /// a logged position.
    pub fn into_positions(self) -> Vec<Position> {
        let position = |key: (u16, u16)| {
            let (strategy, instrument) = key;
            let price = self.prices.get(usize::from(instrument)).filter(|last| last.ticks > 0);
            Position {
                strategy: StrategyIndex(strategy),
                instrument,
                account: self.account(key),
                last_price: price.map(|last| last.price),
                open_buy: self.stated_open(key, PositionField::OpenBuy),
                open_sell: self.stated_open(key, PositionField::OpenSell),
            }
        };
        self.keys().into_iter().map(position).collect()
    }
}

/// The final position of a strategy in an instrument, computed from the logged fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Index of the strategy.
    pub strategy: StrategyIndex,
    /// Index of the instrument.
    pub instrument: u16,
    /// The net quantity, cost and fills of the position.
    pub account: Account,
    /// Price of the last trade in the instrument, in cents; `None` without a trade.
    pub last_price: Option<i64>,
    /// Open quantity of the strategy's buy orders at the end, according to the orchestrator, in
    /// 1e-8 units.
    pub open_buy: i64,
    /// Open quantity of the strategy's sell orders at the end, according to the orchestrator, in
    /// 1e-8 units.
    pub open_sell: i64,
}

#[cold]
fn add_fill_violation(found: &mut Violations, id: OrderId, what: impl FnOnce() -> String) {
    found.add(ViolationKind::Fill, || format!("{}: {}", order_name(id), what()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn profit_is_realized_at_average_cost() {
        let mut account = Account::default();
        let mut after = |quantity, price| {
            account.fill(quantity, price);
            (account.net, account.basis(), account.realized)
        };
        assert_eq!(after(10, 100), (10, 1_000, 0));
        assert_eq!(after(10, 110), (20, 2_100, 0));
        assert_eq!(after(-5, 120), (15, 1_575, 75), "a quarter of the basis is released");
        assert_eq!(after(-20, 90), (-5, -450, 75 - 225), "closed, and five sold short");
        assert_eq!(after(5, 80), (0, 0, 75 - 225 + 50));
        assert_eq!(account.cost, -account.realized, "nothing is open");
        assert_eq!((account.fills, account.volume), (5, 50));
        account.fill(3, 100);
        assert_eq!(account.unrealized(107), 21);
    }

    proptest! {
        /// Reference implementation: closing and opening separately, with the full product.
        #[test]
        fn fills_match_plain_average_cost_rule(fills in prop::collection::vec((-1_000i64..1_000, 1i64..10_000), 0..50)) {
            let (mut account, mut net, mut basis, mut realised) = (Account::default(), 0i128, 0i128, 0i128);
            for (quantity, price) in fills.iter().filter(|(quantity, _)| *quantity != 0) {
                account.fill(*quantity, *price);
                let (quantity, price) = (i128::from(*quantity), i128::from(*price));
                let mut rest = quantity;
                if net * quantity < 0 {
                    let closed = -net.signum() * quantity.abs().min(net.abs());
                    let released = basis * closed.abs() / net.abs();
                    realised += -closed * price - released;
                    basis -= released;
                    net += closed;
                    rest -= closed;
                }
                net += rest;
                basis += rest * price;
                prop_assert_eq!((account.net.into(), account.basis(), account.realized), (net, basis, realised));
                prop_assert!(net != 0 || basis == 0);
            }
        }

        #[test]
        fn extreme_fills_do_not_panic(fills in prop::collection::vec((any::<i64>(), any::<i64>()), 0..20)) {
            let mut account = Account::default();
            fills.iter().for_each(|(quantity, price)| account.fill(*quantity, *price));
            prop_assert_eq!(account.fills, fills.len() as u64);
        }
    }
}
