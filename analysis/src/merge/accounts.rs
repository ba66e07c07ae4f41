//! Positions, recomputed: every fill that a gateway logged, against what the orchestrator says in
//! the end.
//!
//! An account is a strategy in an instrument. Its figures follow from its fills, in integers:
//!
//! ```text
//! net       Σ quantity, bought above 0, sold below
//! cost      Σ quantity × price
//! realised  average cost: a fill that closes c of n releases basis × c / n, cut toward 0, and realises c × price less that
//! basis     cost + realised: what is open was bought or sold for that
//! ```
//!
//! A gateway logs a fill behind the t5 of the report that carries it: quantity, then price. A fill
//! elsewhere has no report, or has the number of one that has another; both say that the log lies.
//!
//! What is realised depends on the order of the fills, and that is the order in which the
//! orchestrator took their reports: its t6. A fill therefore waits, in 24 bytes, from its t5 to the
//! t6 of its report. A run that stamps no t6 has no such order: there what is realised is not
//! compared, all the rest is.

use super::violation::{Findings, ViolationKind, Violations, name_of};
use protocol::instrument::MAX_INSTRUMENTS;
use protocol::stamps::{PositionField, Record};
use protocol::wire::OrderId;
use std::collections::{BTreeMap, VecDeque};

/// What a strategy has bought and sold of an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bought less sold, in 1e-8 units.
    pub net: i64,
    /// Quantity times price of all fills, signed: cents times 1e-8 units.
    pub cost: i128,
    /// Realised profit, in the same.
    pub realised: i128,
    /// Fills.
    pub fills: u64,
    /// Quantity of all fills, in 1e-8 units.
    pub volume: u128,
    /// Quantity times price of all fills, unsigned.
    pub turnover: u128,
}

impl Account {
    /// Counts one fill.
    #[inline]
    pub fn fill(&mut self, quantity: i64, price: i64) {
        let (net, wide) = (i128::from(self.net), i128::from(price));
        if net.signum() * i128::from(quantity.signum()) < 0 {
            let (all, basis) = (net.abs(), self.basis());
            let closed = i128::from(quantity.unsigned_abs()).min(all);
            // basis × closed / all without the product, which may not fit.
            let released = (basis / all).wrapping_mul(closed).wrapping_add((basis % all) * closed / all);
            let proceeds = (net.signum() * closed).wrapping_mul(wide);
            self.realised = self.realised.wrapping_add(proceeds.wrapping_sub(released));
        }
        let cost = i128::from(quantity).wrapping_mul(wide);
        self.net = self.net.wrapping_add(quantity);
        self.cost = self.cost.wrapping_add(cost);
        self.fills += 1;
        self.volume = self.volume.wrapping_add(quantity.unsigned_abs().into());
        self.turnover = self.turnover.wrapping_add(cost.unsigned_abs());
    }

    /// What was paid for what is open; below 0 what was got for it.
    pub const fn basis(&self) -> i128 {
        self.cost.wrapping_add(self.realised)
    }

    /// What closing everything at that price would realise beyond what is realised.
    pub fn unrealised(&self, price: i64) -> i128 {
        i128::from(self.net).wrapping_mul(price.into()).wrapping_sub(self.basis())
    }
}

/// The price of the last trade in an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastPrice {
    ticks: u64,
    price: i64,
}

/// A report whose fill may follow in the log that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Report {
    id: OrderId,
    number: u8,
    ticks: u64,
    /// Its gateway, and its place among that gateway's reports.
    pushed: Option<(usize, u64)>,
    /// It has a fill of that quantity, whose price must follow.
    quantity: Option<i64>,
    is_filled: bool,
    /// Its order has no row of its own, as is judged elsewhere.
    is_excused: bool,
}

/// A fill whose report the orchestrator has not taken yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The place among the gateway's reports (40 bits), strategy (8), instrument (16).
    key: u64,
    quantity: i64,
    price: i64,
}

const _: () = assert!(size_of::<Waiting>() == 24);

impl Waiting {
    const fn position(&self) -> u64 {
        self.key >> 24
    }
}

/// All accounts of a run.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    /// By strategy and instrument.
    filled: Vec<Vec<Account>>,
    prices: Vec<LastPrice>,
    /// By gateway, in the order of their reports.
    waiting: Vec<VecDeque<Waiting>>,
    /// For each gateway: it died by the record. A fill whose report the orchestrator never took
    /// died with it: the engine has closed its order, and does not know of the fill.
    dead: Vec<bool>,
    /// Some fills were counted in another order than the orchestrator's.
    is_unordered: bool,
    last: Option<Report>,
    stated: BTreeMap<(u16, u16), [Option<u64>; PositionField::ALL.len()]>,
    /// What is wrong with the records themselves.
    found: Violations,
}

impl Accounts {
    /// No fills yet. `dead` says of each gateway whether it died by the record.
    pub fn new(strategies: u16, dead: Vec<bool>) -> Self {
        let waiting = vec![VecDeque::new(); dead.len()];
        Self { filled: vec![Vec::new(); strategies.into()], waiting, dead, ..Self::default() }
    }

    /// A log ends.
    pub fn end_log(&mut self) {
        self.end_report();
        self.last = None;
    }

    /// What was found wrong while the logs were read.
    pub fn take_found(&mut self) -> Violations {
        std::mem::take(&mut self.found)
    }

    /// A gateway has stamped the t5 of a report.
    #[inline]
    pub fn reported(&mut self, id: OrderId, number: u8, ticks: u64, pushed: Option<(usize, u64)>) {
        if self.last.is_some_and(|last| last.quantity.is_some()) {
            self.end_report();
        }
        self.last =
            Some(Report { id, number, ticks, pushed, quantity: None, is_filled: false, is_excused: false });
    }

    /// The same for a t5 that the order had already, or an order that the run cannot have had: that
    /// is judged elsewhere, and its fill counts all the same.
    #[cold]
    pub fn reported_amiss(&mut self, id: OrderId, number: u8, ticks: u64) {
        self.reported(id, number, ticks, None);
        self.last = self.last.map(|last| Report { is_excused: true, ..last });
    }

    #[cold]
    fn end_report(&mut self) {
        if let Some(Report { id, number, quantity: Some(_), .. }) = self.last {
            broken(&mut self.found, id, &|| format!("the fill of report {number} has no price"));
        }
    }

    /// The quantity of a fill.
    #[inline]
    pub fn quantity(&mut self, Record { id, detail, value, .. }: Record) {
        let quantity = value.cast_signed();
        match &mut self.last {
            Some(last) if (last.id, last.number) != (id, detail) => {
                broken(&mut self.found, id, &|| {
                    format!("a fill of report {detail}, which has no t5 before it")
                });
            }
            None => broken(&mut self.found, id, &|| {
                format!("a fill of report {detail}, which has no t5 before it")
            }),
            Some(last) if last.is_filled || last.quantity.is_some() => {
                broken(&mut self.found, id, &|| format!("report {detail} is filled twice"));
            }
            Some(_) if quantity == 0 => {
                broken(&mut self.found, id, &|| format!("the fill in report {detail} has zero quantity"));
            }
            Some(last) => last.quantity = Some(quantity),
        }
    }

    /// The price of the fill whose quantity came last: counts it.
    #[inline]
    pub fn price(&mut self, Record { id, detail, value, .. }: Record, instrument: u16) {
        let price = value.cast_signed();
        let last = self.last.as_mut().filter(|last| (last.id, last.number) == (id, detail));
        let Some((quantity, Report { ticks, pushed, is_excused, .. })) = last.and_then(|last| {
            last.is_filled = true;
            Some((last.quantity.take()?, *last))
        }) else {
            return broken(&mut self.found, id, &|| format!("a price of report {detail}, which has no fill"));
        };
        let place = usize::from(instrument);
        if place >= MAX_INSTRUMENTS {
            return broken(&mut self.found, id, &|| {
                format!("a fill in instrument {instrument}: there is none")
            });
        }
        let key = u64::from(id.strategy()) << 16 | u64::from(instrument);
        match pushed.and_then(|(gateway, position)| Some((self.waiting.get_mut(gateway)?, position))) {
            Some((waiting, position)) => {
                waiting.push_back(Waiting { key: position << 24 | key, quantity, price })
            }
            None if is_excused => {
                self.is_unordered = true;
                self.count(Waiting { key, quantity, price });
            }
            None => {
                broken(&mut self.found, id, &|| {
                    format!("a fill of report {detail}, and no gateway had taken the order")
                });
                self.count(Waiting { key, quantity, price });
            }
        }
        if self.prices.len() <= place {
            self.prices.resize(place + 1, LastPrice::default());
        }
        if self.prices[place].ticks <= ticks {
            self.prices[place] = LastPrice { ticks, price };
        }
    }

    /// The orchestrator has taken that report of a gateway: its fill counts now.
    #[inline]
    pub fn taken(&mut self, (gateway, position): (usize, u64)) {
        // One before it was not taken in its turn, as is found elsewhere.
        while let Some(waiting) = self
            .waiting
            .get_mut(gateway)
            .and_then(|waiting| waiting.pop_front_if(|first| first.position() <= position))
        {
            // One before it was stamped by an incarnation that died with its report.
            if waiting.position() == position || !self.dead[gateway] {
                self.count(waiting);
            }
        }
    }

    #[inline]
    fn count(&mut self, Waiting { key, quantity, price }: Waiting) {
        let (strategy, place) = ((key >> 16) as u8, key as u16);
        let Some(accounts) = self.filled.get_mut(usize::from(strategy)) else { return };
        if accounts.len() <= usize::from(place) {
            accounts.resize(usize::from(place) + 1, Account::default());
        }
        accounts[usize::from(place)].fill(quantity, price);
    }

    /// All logs are read: counts the fills whose reports the orchestrator never took, but for those
    /// of dead gateways.
    pub fn end(&mut self) {
        self.end_log();
        let waiting = std::mem::take(&mut self.waiting);
        let dead = std::mem::take(&mut self.dead);
        for (fills, _) in waiting.into_iter().zip(dead).filter(|(_, is_dead)| !is_dead) {
            for fill in fills {
                self.is_unordered = true;
                self.count(fill);
            }
        }
    }

    /// A figure of a position, as the orchestrator states it.
    pub fn state(&mut self, record: Record) {
        let Record { id, detail, value, .. } = record;
        let place = PositionField::from_code(detail).zip(u16::try_from(id.sequence()).ok());
        let Some((field, instrument)) = place.filter(|_| usize::from(id.strategy()) < self.filled.len())
        else {
            return self.found.add(ViolationKind::Position, || {
                format!(
                    "a position of strategy {}, instrument {}: the plan has none",
                    id.strategy(),
                    id.sequence()
                )
            });
        };
        let figure = &mut self.stated.entry((id.strategy(), instrument)).or_default()[field as usize];
        if figure.replace(value).is_some() {
            self.found.add(ViolationKind::Position, || {
                format!("strategy {} instrument {instrument}: {field:?} is stated twice", id.strategy())
            });
        }
    }

    /// Whether anything was filled or stated.
    fn is_empty(&self) -> bool {
        self.filled.iter().all(Vec::is_empty) && self.stated.is_empty()
    }

    /// Every account with fills, or that the orchestrator speaks of: strategy and instrument.
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

    fn of(&self, (strategy, instrument): (u16, u16)) -> Account {
        let accounts = self.filled.get(usize::from(strategy));
        accounts.and_then(|accounts| accounts.get(usize::from(instrument))).copied().unwrap_or_default()
    }

    /// What the orchestrator counted as open in the end.
    fn open(&self, key: (u16, u16), field: PositionField) -> i64 {
        self.stated.get(&key).and_then(|figures| figures[field as usize]).unwrap_or(0).cast_signed()
    }

    /// Compares what the orchestrator states with what was filled, to the last unit. Only of a run
    /// that ended in order: in any other fills were on their way. There each order has had its last
    /// report (one that has not is found elsewhere), so nothing is open. Each account with fills
    /// has every figure.
    pub fn check(&self, findings: &mut Findings) {
        for key in self.keys() {
            let account = self.of(key);
            let (cost, realised) = (account.cost.cast_unsigned(), account.realised.cast_unsigned());
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

    /// All accounts in their order, with the price of the last trade in the instrument.
    pub fn into_positions(self) -> Vec<Position> {
        if self.is_empty() {
            return Vec::new();
        }
        let position = |key: (u16, u16)| {
            let price = self.prices.get(usize::from(key.1)).filter(|last| last.ticks > 0);
            Position {
                strategy: key.0,
                instrument: key.1,
                account: self.of(key),
                last_price: price.map(|last| last.price),
                open_buy: self.open(key, PositionField::OpenBuy),
                open_sell: self.open(key, PositionField::OpenSell),
            }
        };
        self.keys().into_iter().map(position).collect()
    }
}

/// What a strategy holds of an instrument when the run ends, by the logged fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The strategy.
    pub strategy: u16,
    /// The instrument, by its index.
    pub instrument: u16,
    /// Its figures.
    pub account: Account,
    /// The price of the last trade in the instrument, in cents; none if it had none.
    pub last_price: Option<i64>,
    /// What the orchestrator counted as open of its buy orders in the end, in 1e-8 units.
    pub open_buy: i64,
    /// The same of its sell orders.
    pub open_sell: i64,
}

#[cold]
fn broken(found: &mut Violations, id: OrderId, what: &dyn Fn() -> String) {
    found.add(ViolationKind::Fill, || format!("{}: {}", name_of(id), what()));
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
            (account.net, account.basis(), account.realised)
        };
        assert_eq!(after(10, 100), (10, 1_000, 0));
        assert_eq!(after(10, 110), (20, 2_100, 0));
        assert_eq!(after(-5, 120), (15, 1_575, 75), "a quarter of the basis is released");
        assert_eq!(after(-20, 90), (-5, -450, 75 - 225), "closed, and five sold short");
        assert_eq!(after(5, 80), (0, 0, 75 - 225 + 50));
        assert_eq!(account.cost, -account.realised, "nothing is open");
        assert_eq!((account.fills, account.volume), (5, 50));
        account.fill(3, 100);
        assert_eq!(account.unrealised(107), 21);
    }

    proptest! {
        /// The rule in its plainest form: closing and opening apart, the product whole.
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
                prop_assert_eq!((account.net.into(), account.basis(), account.realised), (net, basis, realised));
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
