//! Kill switches: who is killed. A switch that is on is on until its own scope, or everybody, is revived.

use super::{Positions, Risk};
use protocol::kill::Scope;
use protocol::wire::{Operation, Order};
use serde::{Deserialize, Serialize};

/// All switches.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Switches {
    all: bool,
    strategies: Box<[bool]>,
    credentials: Box<[bool]>,
    venues: Box<[bool]>,
    instruments: Box<[bool]>,
}

impl Switches {
    pub(super) fn new(strategies: usize, credentials: usize, venues: usize, instruments: usize) -> Self {
        let off = |n: usize| vec![false; n].into();
        Self {
            all: false,
            strategies: off(strategies),
            credentials: off(credentials),
            venues: off(venues),
            instruments: off(instruments),
        }
    }

    /// Whether both are of the same run's scopes.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        let lengths = |switches: &Self| {
            let Self { strategies, credentials, venues, instruments, .. } = switches;
            [strategies, credentials, venues, instruments].map(|some| some.len())
        };
        lengths(self) == lengths(other)
    }

    fn of(&mut self, scope: Scope) -> Option<&mut bool> {
        match scope {
            Scope::All => Some(&mut self.all),
            Scope::Strategy(index) => self.strategies.get_mut(usize::from(index)),
            Scope::Credential(index) => self.credentials.get_mut(usize::from(index)),
            Scope::Venue(index) => self.venues.get_mut(usize::from(index)),
            Scope::Instrument(index) => self.instruments.get_mut(usize::from(index)),
        }
    }
}

impl Risk {
    /// Turns a switch; `false`: the run has no such scope. Reviving everybody turns every switch off. Who is revived is forgiven its
    /// rejections, and its accounts that the execution throttle had stopped are on again.
    #[cold]
    pub(crate) fn turn(&mut self, scope: Scope, on: bool, positions: &Positions) -> bool {
        let Some(switch) = self.switches.of(scope) else { return false };
        *switch = on;
        if !on {
            if scope == Scope::All {
                let (strategies, credentials) = (self.strategies.len(), self.messages.len());
                self.switches = Switches::new(strategies, credentials, self.venues.len(), self.traded.len());
            }
            self.enable(scope, positions);
        }
        self.fold();
        true
    }

    /// Writes the switches into the rows that checks read.
    pub(super) fn fold(&mut self) {
        let switches = &self.switches;
        for (row, on) in self.strategies.iter_mut().zip(&switches.strategies) {
            row.is_killed = switches.all | *on | switches.credentials[usize::from(row.credential)];
        }
        self.venues.copy_from_slice(&switches.venues);
        for (traded, on) in self.traded.iter_mut().zip(&switches.instruments) {
            traded.is_killed = *on;
        }
    }

    fn enable(&mut self, scope: Scope, positions: &Positions) {
        let instruments = self.traded.len();
        for (index, limits) in self.accounts.iter_mut().enumerate() {
            let (strategy, instrument) = (index / instruments, (index % instruments) as u16);
            let row = &mut self.strategies[strategy];
            let is_meant = match scope {
                Scope::Venue(_) => false,
                Scope::Instrument(_) => scope == Scope::Instrument(instrument),
                _ => scope.concerns(strategy as u16, row.credential, 0, instrument),
            };
            if is_meant {
                limits.enable(positions.account(strategy, instrument).fills);
                row.forgive();
            }
        }
    }

    /// Whether a kill switch stops an order that passed the controls before. Cancels are never stopped.
    #[cold]
    pub(crate) fn stops(&self, order: &Order) -> bool {
        matches!(order.operation, Operation::New | Operation::Replace)
            && (self.strategies[usize::from(order.id.strategy())].is_killed
                || self.traded.get(usize::from(order.instrument)).is_some_and(|traded| traded.is_killed)
                || self.venues.get(usize::from(order.venue)).is_some_and(|is_killed| *is_killed))
    }

    /// Whether a kill switch of the strategy's own is on.
    pub(crate) fn is_killed(&self, strategy: usize) -> bool {
        self.switches.strategies[strategy]
    }
}
