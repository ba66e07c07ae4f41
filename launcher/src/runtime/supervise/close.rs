//! When trading is over: an order may rest at an exchange for ever, so what rests expires once nothing more is to come.
//!
//! That is when every order that the plan has was sent and has arrived where it goes; or, where strategies send fewer, when nothing
//! has moved for some seconds and no order is due: before the run would be said to stall. Then exchanges close and the engine settles.

use super::stall::StallWatch;
use super::{GRACE, Supervisor, at_venues, orchestrator};
use crate::runtime::comebacks::Comebacks;
use crate::runtime::outages::Outages;
use analysis::record::Outcome;
use anyhow::Result;
use core::time::Duration;
use protocol::control::RunState;
use protocol::labels::{ExchangeCounter, GatewayCounter, OrchestratorCounter};
use protocol::plan::{Plan, Role};
use protocol::status::{self, Field};
use protocol::tape::TapeView;
use shm::memory::View;
use std::time::Instant;
use system::clock::Clock;

/// An engine that was idle for so long has nothing more to do.
const SETTLED: Duration = Duration::from_millis(20);
/// So often it is looked whether every exchange has closed.
const CLOSED: Duration = Duration::from_millis(1);
/// How long nothing moves at the end of trading.
const QUIET: Duration = Duration::from_secs(5);

impl Supervisor<'_> {
    /// Watches for the end of trading, if there is any: the plan has exchanges.
    pub(super) fn closing(&self) -> Option<StallWatch> {
        self.plan.trading().books().next().map(|_| StallWatch::silent_for(QUIET))
    }

    /// Whether trading is over. `sent`: so many orders were sent.
    pub(super) fn is_trading_over(&self, quiet: &mut StallWatch, sent: u64) -> bool {
        let of_dead = |gateway| self.outages.as_ref().and_then(|outages| outages.orders_of_dead(gateway));
        (sent >= self.plan.trading().total_orders()
            && have_all_arrived(self.plan, self.threads, sent, of_dead))
            || (!self.is_any_due() && self.is_silent(quiet))
    }

    /// Whether a strategy that is there has an order to come whose time is known.
    fn is_any_due(&self) -> bool {
        let now = self.ns(self.plan.clock.now());
        let mut strategies = 0..self.plan.trading().strategies;
        strategies.any(|strategy| self.awaits(strategy) && self.due_after(strategy, now).is_some())
    }

    /// What the dead had sent is still on its way, and nobody waits for it; nor for that of a strategy that says that it is done
    /// and is not. Until the engine has a report of each order that it dispatched and has found nothing more to do for a while;
    /// not for long, should it never have.
    pub(super) fn let_the_engine_settle(&mut self) -> Result<Option<Outcome>> {
        let died = self.incidents.as_ref().is_some_and(|incidents| !incidents.list().is_empty());
        let is_open = |all: &Self| all.engine().is_some_and(|engine| at_venues(&engine) > 0);
        let engine = self.plan.thread_of(Role::Orchestrator);
        let Some(engine) = engine.filter(|_| died || is_open(self)) else { return Ok(None) };
        let mut patience = self.patience(GRACE);
        let mut last = None;
        while !self.has_waited(&mut patience) {
            let busy = self.status(engine).get(Field::BusyTicks);
            if last == Some(busy) && !is_open(self) {
                break;
            }
            last = Some(busy);
            let until = Instant::now() + SETTLED;
            // Who comes back may have died just now.
            while Instant::now() < until {
                if let Some(outcome) = self.look_within(until.saturating_duration_since(Instant::now()))? {
                    return Ok(Some(outcome));
                }
            }
        }
        Ok(None)
    }

    /// Trading is over: until every exchange has written down its last book, which it does when it finds the run draining. With all
    /// orders back nobody else waits for that; not for long, should one never do it.
    pub(super) fn let_exchanges_close(&mut self) -> Result<Option<Outcome>> {
        let is_open =
            |(_, tape): &(u16, View)| TapeView::new(tape.clone()).is_some_and(|tape| !tape.is_closed());
        let mut patience = self.patience(GRACE);
        while self.tapes.iter().any(is_open) && !self.has_waited(&mut patience) {
            self.control.set_state(RunState::Drain);
            if let Some(outcome) = self.look_within(CLOSED)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Nobody has a fault any more, and who died just now comes back: it has something to say at the end.
    pub(super) fn let_the_dead_come_back(&mut self) -> Result<Option<Outcome>> {
        self.faults.end();
        let mut patience = self.patience(GRACE);
        let is_busy = |all: &Self| {
            all.comebacks.as_ref().is_some_and(Comebacks::is_busy)
                || all.outages.as_ref().is_some_and(Outages::is_busy)
        };
        while is_busy(self) && !self.has_waited(&mut patience) {
            if let Some(outcome) = self.look_within(CLOSED)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }
}

/// Whether every order that was sent is refused, at its venue, or closed with its gateway: by what all threads have counted. `of_dead`
/// gives the orders of a gateway that is dead and resumes nothing.
pub fn have_all_arrived(
    plan: &Plan,
    threads: &[View],
    sent: u64,
    of_dead: impl Fn(u16) -> Option<u64>,
) -> bool {
    let trading = plan.trading();
    let Some(engine) = orchestrator(plan, threads) else { return false };
    let dispatched = engine.get(OrchestratorCounter::Dispatched);
    let received = |gateway| {
        let counted = || count(plan, threads, Role::Gateway(gateway), GatewayCounter::Received);
        of_dead(gateway).unwrap_or_else(counted)
    };
    let at_gateways: u64 = (0..trading.gateways()).map(received).sum();
    // A gateway that answers for its venue does not hand it all that it takes; nor did one that is dead.
    let may_keep = |gateway| plan.is_checked(gateway) || of_dead(gateway).is_some();
    let may_answer = |venue| trading.gateways_of(venue).any(may_keep);
    let at_exchange = |venue: u16| {
        let taken: u64 = trading.gateways_of(venue).map(received).sum();
        may_answer(venue) || count(plan, threads, Role::Exchange(venue), ExchangeCounter::Received) >= taken
    };
    dispatched.saturating_add(engine.get(OrchestratorCounter::Rejected)) >= sent
        && at_gateways >= dispatched
        && trading.books().all(at_exchange)
}

fn count(plan: &Plan, threads: &[View], role: Role, counter: impl protocol::labels::Counter) -> u64 {
    plan.thread_of(role).map_or(0, |thread| {
        status::counters_of(&threads[thread], &plan.threads[thread].roles, role).get(counter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::labels::Counter;
    use protocol::plan::{ExchangePlacement, Placement, Threading, Trading};
    use protocol::status::{LOG_OFFSET, StatusWriter};
    use shm::memory::Region;

    /// An engine that dispatched seven orders, of which gateway 0 has four and gateway 1 `second`. The exchange of the former has all four,
    /// and that of the latter has two. Returns whether all seven have arrived.
    fn has_arrived(second: u64, of_dead: impl Fn(u16) -> Option<u64>) -> bool {
        let mut trading = Trading::new(1, 2);
        (trading.venue_kinds, trading.exchange) = (vec![Trading::BOOK.into()], ExchangePlacement::Process);
        let (placement, threading) = (Placement::EachGateway, Threading::Dedicated);
        let plan = Plan { placement, threading, ..Plan::of(trading) }.arranged();
        let segments: Vec<_> = plan.threads.iter().map(|_| Region::heap(LOG_OFFSET).words()).collect();
        let counted = |role, counter: &dyn Fn(&protocol::counters::Slot<'_>)| {
            counter(&StatusWriter::new(&segments[plan.thread_of(role).unwrap()]).slots().take());
        };
        counted(Role::Orchestrator, &set_to(OrchestratorCounter::Dispatched, 7));
        counted(Role::Gateway(0), &set_to(GatewayCounter::Received, 4));
        counted(Role::Gateway(1), &set_to(GatewayCounter::Received, second));
        counted(Role::Exchange(0), &set_to(ExchangeCounter::Received, 4));
        counted(Role::Exchange(1), &set_to(ExchangeCounter::Received, 2));
        let views: Vec<View> = segments.into_iter().map(View::from).collect();
        have_all_arrived(&plan, &views, 7, of_dead)
    }

    fn set_to(counter: impl Counter, value: u64) -> impl Fn(&protocol::counters::Slot<'_>) {
        move |slot| slot.set(counter, value)
    }

    #[test]
    fn orders_of_dead_gateway_count_as_arrived() {
        let dead = |orders| move |gateway| (gateway == 1).then_some(orders);
        assert!(!has_arrived(2, |_| None), "one is on its way to a gateway");
        assert!(!has_arrived(3, |_| None), "or from there to its exchange");
        assert!(has_arrived(2, dead(3)), "what was closed with the gateway comes no more");
        assert!(!has_arrived(2, dead(2)), "one is on its way to the other");
    }
}
