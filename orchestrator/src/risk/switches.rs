//! Kill switches. One that is on stays on until its own scope, or everybody, is revived.

use super::{Positions, Risk};
use protocol::kill::Scope;
use protocol::wire::{Operation, Order};

impl Risk {
    /// Turns a switch. Returns `None` if the run has no such scope. Reviving everybody turns every switch off. A revived
    /// strategy's rejections are forgotten, and its accounts that the execution throttle stopped are on again.
    #[cold]
    pub(crate) fn turn(&mut self, scope: Scope, is_on: bool, positions: &Positions) -> Option<()> {
        self.has(scope).then_some(())?;
        self.switches.retain(|on| *on != scope && (is_on || scope != Scope::All));
        if is_on {
            self.switches.push(scope);
        } else {
            self.enable(scope, positions);
        }
        // Into the rows that checks read.
        let is_on = |scope| self.switches.contains(&scope);
        for (index, row) in (0..).zip(&mut self.strategies) {
            let scopes = [Scope::All, Scope::Strategy(index), Scope::Credential(row.credential)];
            row.is_killed = scopes.into_iter().any(is_on);
        }
        (0..).zip(&mut self.venues).for_each(|(index, venue)| *venue = is_on(Scope::Venue(index)));
        (0..).zip(&mut self.traded).for_each(|(index, of)| of.is_killed = is_on(Scope::Instrument(index)));
        Some(())
    }

    fn enable(&mut self, scope: Scope, positions: &Positions) {
        let instruments = self.traded.len();
        for (index, limits) in self.accounts.iter_mut().enumerate() {
            let (strategy, instrument) = (index / instruments, (index % instruments) as u16);
            let row = &mut self.strategies[strategy];
            let is_meant = !matches!(scope, Scope::Venue(_))
                && scope.concerns(strategy as u16, row.credential, 0, instrument);
            if is_meant {
                limits.enable(positions.account(strategy, instrument).fills);
                row.rejections = 0;
            }
        }
    }

    /// Returns `true` if a kill switch stops an order that passed the controls before. Cancels are never stopped.
    #[cold]
    pub(crate) fn stops(&self, order: &Order) -> bool {
        matches!(order.operation, Operation::New | Operation::Replace)
            && (self.strategies[usize::from(order.id.strategy())].is_killed
                || self.traded.get(usize::from(order.instrument)).is_some_and(|traded| traded.is_killed)
                || self.venues.get(usize::from(order.venue)).is_some_and(|is_killed| *is_killed))
    }

    /// Returns `true` if the strategy's own kill switch is on.
    pub(crate) fn is_killed(&self, strategy: usize) -> bool {
        self.switches.contains(&Scope::Strategy(strategy as u16))
    }
}
