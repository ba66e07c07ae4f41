//! The waits before and after trading: until every thread is ready; until trading is over,
//! exchanges have closed and the engine has settled.
//!
//! An order may rest at an exchange for ever, so what rests expires once nothing more is to come.
//! That is when every order that the plan has was sent and has arrived where it goes; or, where
//! strategies send fewer, when nothing has moved for some seconds and no order is due: before the
//! run would be said to stall. Then exchanges close and the engine settles.

use super::{GRACE, LOOK, Phase, Supervisor, at_venues, orchestrator};
use crate::runtime::stuck::StallWatch;
use analysis::record::RunOutcome;
use anyhow::Result;
use protocol::control::RunState;
use protocol::labels::{Counter, ExchangeCounter, GatewayCounter, OrchestratorCounter};
use protocol::plan::{Plan, Role};
use protocol::status::{self, StatusField, ThreadState};
use protocol::tape::TapeView;
use shm::memory::ReadOnlyWords;
use std::time::{Duration, Instant};

/// An engine that was idle for so long has nothing more to do.
const SETTLED: Duration = Duration::from_millis(20);
/// How often the launcher looks for an end that is near.
const CLOSED: Duration = Duration::from_millis(1);
/// How long nothing moves at the end of trading.
const QUIET: Duration = Duration::from_secs(5);

impl Supervisor<'_> {
    /// Waits until every thread says that it is ready.
    pub(super) fn wait_until_ready(&mut self, timeout: Duration) -> Result<Phase> {
        let began = Instant::now();
        let mut deadline = self.deadline(timeout);
        loop {
            self.note_ready_processes();
            let late = (0..self.threads.len()).find(|thread| self.state(*thread) < ThreadState::Ready);
            let Some(late) = late else { return Ok(Phase::Over) };
            if self.signals.take() > 0 {
                return Ok(Phase::Interrupted);
            }
            if self.has_waited(&mut deadline) {
                let what =
                    format!("hangs at the start: not ready after {timeout:?}{}", self.unattached(late));
                return Ok(Phase::Failed(self.failure_of(late, what)));
            }
            // The longer it takes, the more rarely: each start-up is known to within a twentieth.
            let pause = (began.elapsed() / 20).clamp(Duration::from_millis(1), LOOK);
            if let Some(outcome) = self.look_within(pause)? {
                return Ok(Phase::Failed(outcome));
            }
        }
    }

    /// Takes note of the processes whose threads have all come to the barrier.
    fn note_ready_processes(&mut self) {
        for (index, process) in self.plan.processes.iter().enumerate() {
            let is_there = |thread: &u32| self.state(*thread as usize) >= ThreadState::Ready;
            if !self.processes.all[index].account.is_ready() && process.threads.iter().all(is_there) {
                self.processes.all[index].ready();
            }
        }
    }

    /// What to say of a thread that never came to be ready, if it is that of somebody else's
    /// program.
    pub(super) fn unattached(&self, thread: usize) -> String {
        let program = self.plan.program_of(&self.plan.processes[self.owner_index(thread)]);
        program.map_or_else(String::new, |program| format!(": {program} has not attached (bh_attach)"))
    }

    /// Watches for the end of trading, if there is any: the plan has exchanges.
    pub(super) fn closing(&self) -> Option<StallWatch> {
        self.plan.trading().books().next().map(|_| StallWatch::silent_for(QUIET))
    }

    /// Returns `true` if trading is over. `sent`: so many orders were sent.
    pub(super) fn is_trading_over(&self, quiet: &mut StallWatch, sent: u64) -> bool {
        let now = self.now_ns();
        let is_any_due = || self.awaited().any(|strategy| self.due_after(strategy, now).is_some());
        let of_dead =
            |gateway| self.contained.outages.as_ref().and_then(|outages| outages.orders_of_dead(gateway));
        (sent >= self.plan.trading().total_orders()
            && have_all_arrived(self.plan, self.threads, sent, of_dead))
            || (!is_any_due() && self.is_silent(quiet))
    }

    /// Trading is over: until every exchange has written down its last book, which it does when it
    /// finds the run draining; until the engine has settled; and until whoever died just now is
    /// back: it has something to say at the end. Each for a bounded time.
    pub(super) fn let_everybody_finish(&mut self) -> Result<Option<RunOutcome>> {
        let is_open = |(_, tape): &(u16, ReadOnlyWords)| {
            TapeView::new(tape.clone()).is_some_and(|tape| !tape.is_closed())
        };
        let close = |all: &mut Self| {
            let is_any_open = all.tapes.iter().any(is_open);
            if is_any_open {
                all.control.set_state(RunState::Drain);
            }
            is_any_open
        };
        if let Some(outcome) = self.wait_while(close)? {
            return Ok(Some(outcome));
        }
        if let Some(outcome) = self.let_the_engine_settle()? {
            return Ok(Some(outcome));
        }
        // Nobody has a fault any more.
        self.faults.end();
        self.wait_while(|all| all.contained.is_returning())
    }

    /// Looks for trouble as long as that is so, for a bounded time.
    fn wait_while(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) -> Result<Option<RunOutcome>> {
        let mut deadline = self.deadline(GRACE);
        while is_so(self) && !self.has_waited(&mut deadline) {
            if let Some(outcome) = self.look_within(CLOSED)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// What the dead had sent is still on its way, and nobody waits for it; nor for that of a
    /// strategy that says that it is done and is not. Until the engine has a report of each order
    /// that it dispatched and has found nothing more to do for a while; not for long, should it
    /// never have.
    fn let_the_engine_settle(&mut self) -> Result<Option<RunOutcome>> {
        let died = self.contained.incidents.as_ref().is_some_and(|incidents| !incidents.list().is_empty());
        let is_open = |all: &Self| all.engine().is_some_and(|engine| at_venues(&engine) > 0);
        let engine = self.plan.thread_of(Role::Orchestrator);
        let Some(engine) = engine.filter(|_| died || is_open(self)) else { return Ok(None) };
        let mut deadline = self.deadline(GRACE);
        let mut last = None;
        while !self.has_waited(&mut deadline) {
            let busy = self.status(engine).get(StatusField::BusyTicks);
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
}

/// Returns `true` if every order that was sent is refused, at its venue, or closed with its
/// gateway: by what all threads have counted. `of_dead` gives the orders of a gateway that is dead
/// and resumes nothing.
pub fn have_all_arrived(
    plan: &Plan,
    threads: &[ReadOnlyWords],
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
    // A gateway that answers for its venue does not hand it all that it takes; nor did a dead one.
    let may_keep = |gateway| plan.validates_venue(gateway) || of_dead(gateway).is_some();
    let may_answer = |venue| trading.gateways_of(venue).any(may_keep);
    let at_exchange = |venue: u16| {
        let taken: u64 = trading.gateways_of(venue).map(received).sum();
        may_answer(venue) || count(plan, threads, Role::Exchange(venue), ExchangeCounter::Received) >= taken
    };
    dispatched.saturating_add(engine.get(OrchestratorCounter::Rejected)) >= sent
        && at_gateways >= dispatched
        && trading.books().all(at_exchange)
}

fn count(plan: &Plan, threads: &[ReadOnlyWords], role: Role, counter: impl Counter) -> u64 {
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

    /// An engine that dispatched seven orders, of which gateway 0 has four and gateway 1 `second`.
    /// The exchange of the former has all four, and that of the latter has two. Returns whether all
    /// seven have arrived.
    fn has_arrived(second: u64, of_dead: impl Fn(u16) -> Option<u64>) -> bool {
        let mut trading = Trading::new(1, 2);
        (trading.venue_kinds, trading.exchange) = (vec![Trading::BOOK.into()], ExchangePlacement::Process);
        let (placement, threading) = (Placement::EachGateway, Threading::Dedicated);
        let plan = Plan { placement, threading, ..Plan::for_trading(trading) }.arranged();
        let segments: Vec<_> = plan.threads.iter().map(|_| Region::heap(LOG_OFFSET).words()).collect();
        let counted = |role, counter: &dyn Fn(&protocol::counters::AgentSlot<'_>)| {
            counter(&StatusWriter::new(&segments[plan.thread_of(role).unwrap()]).slots().next_agent());
        };
        counted(Role::Orchestrator, &set_to(OrchestratorCounter::Dispatched, 7));
        counted(Role::Gateway(0), &set_to(GatewayCounter::Received, 4));
        counted(Role::Gateway(1), &set_to(GatewayCounter::Received, second));
        counted(Role::Exchange(0), &set_to(ExchangeCounter::Received, 4));
        counted(Role::Exchange(1), &set_to(ExchangeCounter::Received, 2));
        let views: Vec<ReadOnlyWords> = segments.into_iter().map(ReadOnlyWords::from).collect();
        have_all_arrived(&plan, &views, 7, of_dead)
    }

    fn set_to(counter: impl Counter, value: u64) -> impl Fn(&protocol::counters::AgentSlot<'_>) {
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
