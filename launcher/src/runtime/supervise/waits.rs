//! Waits until every thread is ready, until trading is over and exchanges have closed, and until
//! the engine has drained.
//!
//! An order may rest at an exchange for ever, so resting orders expire once no more orders come:
//! every planned order was sent and has arrived; or, where strategies send fewer, there was no
//! progress for some seconds and no order is due. That is before the run counts as stalled. Then
//! exchanges close and the engine drains.

use super::{POLL_INTERVAL, SHUTDOWN_GRACE, Supervisor, has_drained, orchestrator};
use crate::runtime::setup::count;
use crate::runtime::stuck::StallWatch;
use analysis::record::RunOutcome;
use anyhow::Result;
use protocol::control::RunState;
use protocol::labels::{ExchangeCounter, GatewayCounter, OrchestratorCounter};
use protocol::plan::{Plan, Role};
use protocol::status::{StatusField, ThreadState};
use protocol::tape::TapeView;
use shm::memory::ReadOnlyWords;
use std::time::{Duration, Instant};

/// An engine that was idle this long has drained.
const ENGINE_IDLE: Duration = Duration::from_millis(20);
/// Poll interval near the end.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Maximum time without progress at the end of trading.
pub(super) const QUIET: Duration = Duration::from_secs(5);

impl Supervisor<'_> {
    /// Waits until every thread reports ready.
    pub(super) fn wait_until_ready(&mut self, timeout: Duration) -> Result<RunOutcome> {
        let began = Instant::now();
        let mut deadline = self.deadline(timeout);
        loop {
            self.note_ready_processes();
            let late = (0..self.plan.threads.len()).find(|thread| self.state(*thread) < ThreadState::Ready);
            let Some(late) = late else { return Ok(RunOutcome::Complete) };
            if self.interrupts > 0 {
                return Ok(RunOutcome::Interrupted);
            }
            if self.is_wait_over(&mut deadline) {
                let what =
                    format!("hangs at the start: not ready after {timeout:?}{}", self.attach_hint(late));
                return Ok(self.failure_of(late, what));
            }
            // The interval grows with the time: each start-up is known to within a twentieth.
            let pause = (began.elapsed() / 20).clamp(Duration::from_millis(1), POLL_INTERVAL);
            if let Some(outcome) = self.poll_within(pause)? {
                return Ok(outcome);
            }
        }
    }

    /// Marks the processes whose threads have all reached the barrier.
    fn note_ready_processes(&mut self) {
        for (index, process) in self.plan.processes.iter().enumerate() {
            let is_there = |thread: &u32| self.state(*thread as usize) >= ThreadState::Ready;
            if !self.processes.all[index].account.is_ready() && process.threads.iter().all(is_there) {
                self.processes.all[index].mark_ready();
            }
        }
    }

    /// Returns a hint for a thread that never became ready, if it belongs to a user's program.
    pub(super) fn attach_hint(&self, thread: usize) -> String {
        let program = self.plan.program_of(&self.plan.processes[self.owner_index(thread)]);
        program.map_or_else(String::new, |program| format!(": {program} has not attached (bh_attach)"))
    }

    /// Returns `true` if all orders have arrived at their venues, or none is due and nothing moves.
    /// `sent`: orders sent so far.
    pub(super) fn is_trading_over(&self, quiet: &mut StallWatch, sent: u64) -> bool {
        let now = self.now_ns();
        let is_any_due = || self.awaited().any(|strategy| self.due_after(strategy, now).is_some());
        let of_dead = |gateway| self.containment.orders_of_dead(gateway);
        (sent >= self.plan.trading().total_orders()
            && have_all_arrived(self.plan, &self.segments.threads, sent, of_dead))
            || (!is_any_due() && self.is_stalled(quiet))
    }

    /// Waits at the end of trading until exchanges, engine and restarting roles have finished, each
    /// for a bounded time. That is until every exchange has written its last book, which it does
    /// when it finds the run draining; until the engine has drained; and until roles that died just
    /// now have restarted, since they have final records to write. A role that waits for a core or
    /// for the disk of its journal gets longer.
    pub(super) fn wait_for_orderly_end(&mut self) -> Result<Option<RunOutcome>> {
        let is_open = |(_, tape): &(u16, ReadOnlyWords)| {
            TapeView::new(tape.clone()).is_some_and(|tape| !tape.is_closed())
        };
        let close = |all: &mut Self| {
            let is_any_open = all.segments.tapes.iter().any(is_open);
            if is_any_open {
                all.segments.control.set_state(RunState::Drain);
            }
            is_any_open
        };
        if let Some(outcome) = self.wait_while(close)? {
            return Ok(Some(outcome));
        }
        if let Some(outcome) = self.wait_for_engine_drain()? {
            return Ok(Some(outcome));
        }
        // No more faults are injected.
        self.faults.clear();
        self.wait_while(|all| all.containment.is_restarting())
    }

    /// Polls for failures while `condition` holds, for a bounded time.
    fn wait_while(&mut self, mut is_so: impl FnMut(&mut Self) -> bool) -> Result<Option<RunOutcome>> {
        let mut deadline = self.deadline(SHUTDOWN_GRACE);
        let began = self.now_ns();
        while is_so(self) && !self.is_wait_over(&mut deadline) {
            let waited_ns = self.now_ns().saturating_sub(began);
            self.query_excuses(waited_ns, SHUTDOWN_GRACE);
            if let Some(outcome) = self.poll_within(CLOSE_POLL_INTERVAL)? {
                return Ok(Some(outcome));
            }
        }
        Ok(None)
    }

    /// Waits until the engine has a report of each dispatched order and was idle for a while, for a
    /// bounded time. Orders of dead strategies are still in flight then, and so are those of a
    /// strategy that falsely reported done: the engine may not have taken them yet.
    fn wait_for_engine_drain(&mut self) -> Result<Option<RunOutcome>> {
        let is_open = |all: &Self| all.engine().is_some_and(|engine| !has_drained(&engine));
        let Some(engine) = self.plan.thread_of(Role::Orchestrator) else { return Ok(None) };
        let mut deadline = self.deadline(SHUTDOWN_GRACE);
        let (mut last, began) = (None, self.now_ns());
        while !self.is_wait_over(&mut deadline) {
            let waited_ns = self.now_ns().saturating_sub(began);
            self.query_excuses(waited_ns, SHUTDOWN_GRACE);
            let busy = self.status(engine).get(StatusField::BusyTicks);
            if last == Some(busy) && !is_open(self) {
                break;
            }
            last = Some(busy);
            let until = Instant::now() + ENGINE_IDLE;
            // A restarted role may have died just now.
            while Instant::now() < until {
                if let Some(outcome) = self.poll_within(until.saturating_duration_since(Instant::now()))? {
                    return Ok(Some(outcome));
                }
            }
        }
        Ok(None)
    }
}

/// Returns `true` if every sent order was refused, arrived at its venue, or was closed with its
/// gateway. It uses the counters of all threads. `of_dead` returns the orders of a gateway that is
/// permanently dead.
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
    let at_gateways: u64 = (0..trading.venues).map(received).sum();
    // A gateway that answers for its venue does not forward all orders; nor did one that died.
    let may_keep = |gateway| plan.validates_venue(gateway) || of_dead(gateway).is_some();
    let at_exchange = |venue: u16| {
        let taken = count(plan, threads, Role::Exchange(venue), ExchangeCounter::Received);
        may_keep(venue) || taken >= received(venue)
    };
    dispatched.saturating_add(engine.get(OrchestratorCounter::Rejected)) >= sent
        && at_gateways >= dispatched
        && trading.books().all(at_exchange)
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
