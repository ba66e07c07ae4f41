//! When trading is over: an order may rest at an exchange for ever, so what rests expires once nothing more is to come.
//!
//! That is when every order that the plan has was sent and has arrived where it goes; or, where strategies send fewer, when nothing
//! has moved for some seconds and no order is due: before the run would be said to stall.

use super::Supervisor;
use super::stall::StallWatch;
use core::time::Duration;
use protocol::labels::{ExchangeCounter, GatewayCounter, OrchestratorCounter};
use protocol::plan::Role;
use protocol::status;
use shm::clock::Clock;

/// How long nothing moves at the end of trading.
const QUIET: Duration = Duration::from_secs(5);

impl Supervisor<'_> {
    /// Watches for the end of trading, if there is any: the plan has exchanges.
    pub(super) fn closing(&self) -> Option<StallWatch> {
        self.plan.trading().books().next().map(|_| StallWatch::silent_for(QUIET))
    }

    /// Whether trading is over. `sent`: so many orders were sent.
    pub(super) fn is_trading_over(&self, quiet: &mut StallWatch, sent: u64) -> bool {
        (sent >= self.plan.trading().total_orders() && self.have_all_arrived(sent))
            || (!self.is_any_due() && self.is_silent(quiet))
    }

    /// Whether a strategy that is there has an order to come whose time is known.
    fn is_any_due(&self) -> bool {
        let now = self.ns(self.plan.clock.now());
        let mut strategies = 0..self.plan.trading().strategies;
        strategies.any(|strategy| self.awaits(strategy) && self.due_after(strategy, now).is_some())
    }

    /// Whether every order that was sent is refused, or at its venue.
    fn have_all_arrived(&self, sent: u64) -> bool {
        let trading = self.plan.trading();
        let Some(engine) = self.engine() else { return false };
        let dispatched = engine.get(OrchestratorCounter::Dispatched);
        let received = |gateway| self.count(Role::Gateway(gateway), GatewayCounter::Received);
        let at_gateways: u64 = (0..trading.gateways()).map(received).sum();
        // A gateway that answers for its venue does not hand it all that it takes.
        let may_answer = |venue| trading.gateways_of(venue).any(|gateway| self.plan.is_checked(gateway));
        let at_exchange = |venue: u16| {
            let taken: u64 = trading.gateways_of(venue).map(received).sum();
            may_answer(venue) || self.count(Role::Exchange(venue), ExchangeCounter::Received) >= taken
        };
        dispatched.saturating_add(engine.get(OrchestratorCounter::Rejected)) >= sent
            && at_gateways >= dispatched
            && trading.books().all(at_exchange)
    }

    fn count(&self, role: Role, counter: impl protocol::labels::Counter) -> u64 {
        self.plan.thread_of(role).map_or(0, |thread| {
            status::counters(&self.threads[thread]).of(&self.plan.threads[thread].roles, role).get(counter)
        })
    }
}
