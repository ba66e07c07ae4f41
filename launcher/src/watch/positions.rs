//! Current positions and kill switches, from the engine's logs. The merge after the run computes
//! exact ones.

use protocol::kill::{KillCause, KillSwitch, Scope};
use protocol::record::{Point, Record};
use protocol::wire::OrderId;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// Orders whose instrument is remembered. Beyond that, positions are marked incomplete.
const ORDERS: usize = 1 << 20;
/// Maximum number of accounts: a scribbled log creates no more.
const ACCOUNTS: usize = 1 << 14;

/// A strategy's current position in an instrument.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Position {
    /// The instrument, by its index.
    pub instrument: u64,
    /// Bought minus sold, in 1e-8 units.
    pub net: i64,
    pub fills: u64,
}

/// Current positions and kill switches, computed from the engine's logs.
#[derive(Default)]
pub struct PositionTracker {
    positions: BTreeMap<(u16, u64), (i64, u64)>,
    instruments: HashMap<OrderId, u64>,
    pub is_incomplete: bool,
    /// Kill switches that are on, and their causes.
    on: BTreeMap<Scope, KillCause>,
}

impl PositionTracker {
    /// Processes a record of a gateway's or the orchestrator's log.
    pub fn observe(&mut self, record: &Record) {
        match record.point {
            Point::Instrument if self.instruments.len() < ORDERS => {
                self.instruments.insert(record.id, record.value);
            }
            Point::Instrument => self.is_incomplete = true,
            Point::FillQuantity => self.fill(record.id, record.value as i64),
            Point::KillSeen => self.apply_switch(KillSwitch::from_record(record)),
            _ => {}
        }
    }

    fn fill(&mut self, id: OrderId, quantity: i64) {
        let instrument = self.instruments.get(&id).copied().unwrap_or(0);
        let key = (id.strategy(), instrument);
        if self.positions.len() >= ACCOUNTS && !self.positions.contains_key(&key) {
            self.is_incomplete = true;
            return;
        }
        let (net, fills) = self.positions.entry(key).or_default();
        *net = net.saturating_add(quantity);
        *fills += 1;
    }

    fn apply_switch(&mut self, switch: Option<KillSwitch>) {
        match switch {
            Some(KillSwitch { scope, is_on: true, cause, .. }) => {
                self.on.insert(scope, cause);
            }
            Some(KillSwitch { scope: Scope::All, .. }) => self.on.clear(),
            Some(KillSwitch { scope, .. }) => {
                self.on.remove(&scope);
            }
            None => {}
        }
    }

    /// Returns a strategy's current positions by instrument.
    pub fn positions_of(&self, strategy: u16) -> Vec<Position> {
        let mine = self.positions.range((strategy, 0)..=(strategy, u64::MAX));
        mine.map(|(&(_, instrument), &(net, fills))| Position { instrument, net, fills }).collect()
    }

    /// Returns the kill switches that are on, with their causes.
    pub fn switches(&self) -> impl Iterator<Item = (Scope, KillCause)> + '_ {
        self.on.iter().map(|(scope, cause)| (*scope, *cause))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(point: Point, strategy: u16, value: u64) -> Record {
        Record { point, id: OrderId::new(strategy, 0, value), detail: 0, value }
    }

    #[test]
    fn fills_add_up_by_strategy_and_instrument() {
        let mut accounts = PositionTracker::default();
        let in_three = OrderId::new(1, 0, 9);
        accounts.observe(&Record { point: Point::Instrument, id: in_three, detail: 0, value: 3 });
        accounts.observe(&Record {
            point: Point::FillQuantity,
            id: in_three,
            detail: 0,
            value: -7i64 as u64,
        });
        accounts.observe(&record(Point::FillQuantity, 1, 5));
        accounts.observe(&record(Point::FillQuantity, 1, i64::MAX as u64));
        accounts.observe(&record(Point::FillQuantity, 2, 1));
        let position = |instrument, net, fills| Position { instrument, net, fills };
        assert_eq!(accounts.positions_of(1), [position(0, i64::MAX, 2), position(3, -7, 1)]);
        assert_eq!((accounts.positions_of(2).len(), accounts.positions_of(0).len()), (1, 0));
    }

    #[test]
    fn switches_are_turned_on_and_off() {
        let mut accounts = PositionTracker::default();
        let mut turn = |scope, is_on| {
            let (id, detail) = KillSwitch { number: 0, scope, is_on, cause: KillCause::Death }.to_record();
            accounts.observe(&Record { point: Point::KillSeen, id, detail, value: 1 });
            accounts.switches().map(|(scope, _)| scope).collect::<Vec<_>>()
        };
        assert_eq!(turn(Scope::Strategy(2), true), [Scope::Strategy(2)]);
        assert_eq!(turn(Scope::All, true), [Scope::All, Scope::Strategy(2)]);
        assert_eq!(turn(Scope::Strategy(2), false), [Scope::All]);
        turn(Scope::Venue(1), true);
        assert_eq!(turn(Scope::All, false), []);
    }

    #[test]
    fn corrupt_log_creates_bounded_accounts() {
        let mut accounts = PositionTracker::default();
        for word in 0..3 * ACCOUNTS as u64 {
            let id = OrderId::new(7, 0, word);
            accounts.observe(&Record { point: Point::Instrument, id, detail: 0, value: word });
            accounts.observe(&Record { point: Point::FillQuantity, id, detail: 0, value: u64::MAX });
        }
        assert_eq!(accounts.positions_of(7).len(), ACCOUNTS);
        assert!(accounts.is_incomplete);
    }
}
