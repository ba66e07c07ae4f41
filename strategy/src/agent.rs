//! The agent around a strategy: moves reports in and orders out.

use crate::{NewOrder, Orders, Refused, Session, Strategy};
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::stamps::StampLog;
use protocol::wire::OrderId;
use shm::clock::{Clock, Timebase};
use shm::ring::Producer;

/// How many reports one duty cycle takes before the strategy may send again.
const BATCH: usize = 16;

/// A strategy on its session.
pub struct StrategyAgent<S, P> {
    strategy: S,
    session: Session<P>,
}

impl<S: Strategy, P: Producer> StrategyAgent<S, P> {
    /// Puts the two together.
    pub fn new(strategy: S, session: Session<P>) -> Self {
        Self { strategy, session }
    }
}

impl<S: Strategy, P: Producer> StrategyAgent<S, P> {
    /// Takes reports, and pushes the order that waits. Not inlined: the idle loop is to be small.
    #[inline(never)]
    fn move_on<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut work = 0;
        while work < BATCH {
            let Some(report) = self.session.receive(cycle) else { break };
            self.strategy.on_report(&report, &mut CycleOrders { session: &mut self.session, cycle });
            work += 1;
        }
        work + self.session.flush()
    }
}

/// A session during one duty cycle: what the strategy sees.
struct CycleOrders<'a, P, C> {
    session: &'a mut Session<P>,
    cycle: &'a mut Cycle<C>,
}

impl<P: Producer, C: Clock> Orders for CycleOrders<'_, P, C> {
    #[inline]
    fn send(&mut self, order: NewOrder) -> Result<OrderId, Refused> {
        self.session.send(order, self.cycle)
    }
    #[inline]
    fn open(&self) -> u64 {
        self.session.open()
    }
    #[inline]
    fn now(&self) -> u64 {
        self.cycle.now
    }
    #[inline]
    fn time(&self) -> Timebase {
        self.cycle.time
    }
}

impl<S: Strategy, P: Producer, C: Clock> Agent<C> for StrategyAgent<S, P> {
    #[inline(always)]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut work = if self.session.looks_idle() { 0 } else { self.move_on(cycle) };
        if !cycle.draining && !self.session.is_waiting() {
            work += self.strategy.on_cycle(&mut CycleOrders { session: &mut self.session, cycle });
        }
        work
    }

    fn next_deadline(&self) -> u64 {
        if self.session.is_waiting() { 0 } else { self.strategy.next_due() }
    }

    fn finished(&self, draining: bool) -> bool {
        let sends_no_more = draining || self.session.is_spent() || self.strategy.finished();
        sends_no_more && self.session.open() == 0
    }

    fn seal(&self, log: &mut StampLog) {
        self.session.seal(log);
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.session.publish(&slots.take());
    }
}
