//! Kill switches: each stays on until its scope, or everything, is revived.

use super::{Positions, Risk};
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::kill::Scope;
use protocol::wire::{Operation, Order};

impl Risk {
    /// Turns a kill switch on or off; reviving [`Scope::All`] turns off all of them. Revived
    /// strategies lose their rejections, and their accounts are on again. Returns `None` for an
    /// unknown scope.
    #[cold]
    pub(crate) fn set_switch(&mut self, scope: Scope, is_on: bool, positions: &Positions) -> Option<()> {
        self.has_scope(scope).then_some(())?;
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
            let strategy = StrategyIndex((index / instruments) as u16);
            let instrument = (index % instruments) as u16;
            let row = &mut self.strategies[strategy];
            if !matches!(scope, Scope::Venue(_))
                && scope.contains(strategy, row.credential, VenueIndex(0), instrument)
            {
                limits.enable(positions.account(strategy, instrument).fills);
                row.rejections = 0;
            }
        }
    }

    /// Returns `true` if a kill switch stops an order that other controls accept; never a cancel.
    #[cold]
    pub(crate) fn is_stopped(&self, order: &Order) -> bool {
        matches!(order.request.operation, Operation::New | Operation::Replace)
            && is_any_on(&self.switches, order, self.credential(order.id.strategy()))
    }

    pub(crate) fn is_killed(&self, strategy: StrategyIndex) -> bool {
        self.switches.contains(&Scope::Strategy(strategy))
    }
}

#[cold]
#[inline(never)]
pub(super) fn is_any_on(switches: &[Scope], order: &Order, credential: u16) -> bool {
    let (venue, instrument) = (VenueIndex(order.request.venue), order.request.instrument);
    switches.iter().any(|scope| scope.contains(order.id.strategy(), credential, venue, instrument))
}
