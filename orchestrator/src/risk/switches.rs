//! Kill switches. One that is on stays on until its own scope, or everybody, is revived.

use super::{Positions, Risk};
use protocol::kill::Scope;
use protocol::wire::{Operation, Order};

impl Risk {
    /// Turns a switch. Returns `None` if the run has no such scope. Reviving everybody turns every
    /// switch off. A revived strategy's rejections are forgotten, and its accounts that the
    /// execution throttle stopped are on again.
    #[cold]
    pub(crate) fn turn(&mut self, scope: Scope, is_on: bool, positions: &Positions) -> Option<()> {
        self.has(scope).then_some(())?;
        self.switches.retain(|on| *on != scope && (is_on || scope != Scope::All));
        if is_on {
            self.switches.push(scope);
        } else {
            self.enable(scope, positions);
        }
        Some(())
    }

    fn enable(&mut self, scope: Scope, positions: &Positions) {
        let instruments = self.traded.len();
        for (index, limits) in self.accounts.iter_mut().enumerate() {
            let (strategy, instrument) = (index / instruments, (index % instruments) as u16);
            let row = &mut self.strategies[strategy];
            let is_meant = !matches!(scope, Scope::Venue(_))
                && scope.contains(strategy as u16, row.credential, 0, instrument);
            if is_meant {
                limits.enable(positions.account(strategy, instrument).fills);
                row.rejections = 0;
            }
        }
    }

    /// Returns `true` if a kill switch stops an order that passed the controls before. Cancels are
    /// never stopped.
    #[cold]
    pub(crate) fn stops(&self, order: &Order) -> bool {
        matches!(order.operation, Operation::New | Operation::Replace)
            && is_any_on(&self.switches, order, self.credential(order.id.strategy().into()))
    }

    /// Returns `true` if the strategy's own kill switch is on.
    pub(crate) fn is_killed(&self, strategy: usize) -> bool {
        self.switches.contains(&Scope::Strategy(strategy as u16))
    }
}

/// Returns `true` if one of these switches concerns an order of a credential.
#[cold]
#[inline(never)]
pub(super) fn is_any_on(switches: &[Scope], order: &Order, credential: u16) -> bool {
    let strategy = order.id.strategy();
    switches.iter().any(|scope| scope.contains(strategy, credential, order.venue, order.instrument))
}
