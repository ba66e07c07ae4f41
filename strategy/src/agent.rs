//! The agent around a strategy: delivers reports and market data to it, and sends its orders.

use crate::{Orders, Refused, Session, Strategy, WorkingSet};
use protocol::agent::{Agent, Cycle};
use protocol::counters::CounterSlots;
use protocol::labels::StrategyCounter;
use protocol::market::{Market, MarketTick};
use protocol::stamps::StampLog;
use protocol::wire::{OrderId, OrderRequest};
use shm::prefetch::prefetch_lines;
use shm::ring::Producer;
use system::clock::{Clock, Timebase};

/// Maximum number of cache lines of the agent that are prefetched: a sixteenth of an L1 cache,
/// enough for each built-in strategy.
const PREFETCH_LINES: usize = 32;

/// Maximum number of reports that one duty cycle takes from the ring before the strategy may send
/// again.
pub const BATCH: usize = 16;

/// The agent that runs a strategy: it delivers reports and market data and sends orders.
pub struct StrategyAgent<S, P> {
    strategy: S,
    session: Session<P>,
    market_feed: Option<MarketFeed>,
    working_set: Option<Box<WorkingSet>>,
}

struct MarketFeed {
    market: Market,
    /// In ticks.
    last_poll: u64,
    /// [`MARKET_POLL_NS`] in ticks; 0 before the first poll.
    poll_interval: u64,
}

/// Maximum time between two polls of market data by a parked strategy, in nanoseconds. Its thread
/// sleeps on its own doorbell, which an exchange has no right to ring.
const MARKET_POLL_NS: u64 = 1_000_000;

impl<S: Strategy, P: Producer> StrategyAgent<S, P> {
    /// Creates the agent that runs `strategy`; `session` is the strategy's connection to the
    /// engine.
    pub fn new(strategy: S, session: Session<P>) -> Self {
        Self { strategy, session, market_feed: None, working_set: None }
    }

    /// Sets the source of market data for the agent's strategy; ignored if the strategy requests no
    /// market data.
    #[must_use]
    pub fn with_market_data(self, market: Option<Market>) -> Self {
        let market = market.filter(|_| self.strategy.wants_market_data());
        Self {
            market_feed: market.map(|market| MarketFeed { market, last_poll: 0, poll_interval: 0 }),
            ..self
        }
    }

    /// Adds a working set: heap memory that the agent reads between the strategy's orders, as the
    /// data of a larger strategy would be.
    #[must_use]
    pub fn with_working_set(self, working_set: Option<WorkingSet>) -> Self {
        Self { working_set: working_set.map(Box::new), ..self }
    }

    /// Returns the agent's strategy.
    #[inline]
    pub const fn strategy(&mut self) -> &mut S {
        &mut self.strategy
    }

    /// Returns `true` if the agent delivers market data to the strategy.
    pub const fn has_market_data(&self) -> bool {
        self.market_feed.is_some()
    }

    /// Returns the operations, such as sending an order, for a program that runs its own loop and
    /// trades between two duty cycles.
    #[inline]
    pub fn orders<'a, C: Clock>(&'a mut self, cycle: &'a mut Cycle<C>) -> impl Orders {
        CycleOrders { session: &mut self.session, market_feed: &mut self.market_feed, cycle }
    }

    /// Delivers reports and pushes the queued order. Not inlined, to keep the idle loop small.
    #[inline(never)]
    fn receive_reports<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut work = 0;
        while work < BATCH {
            let Some(report) = self.session.receive(cycle) else { break };
            let Self { strategy, session, market_feed, .. } = self;
            strategy.on_report(&report, &mut CycleOrders { session, market_feed, cycle });
            work += 1;
        }
        work + self.session.flush()
    }

    /// Walks a step of the working set, if it is owed and nothing else is to be done.
    #[inline(never)]
    fn advance_walk<C: Clock>(&mut self, is_idle: bool, cycle: &Cycle<C>) -> usize {
        let Some(set) = &mut self.working_set else { return 0 };
        let due = if cycle.draining { u64::MAX } else { self.strategy.next_due() };
        set.advance(self.session.sent(), is_idle, due, &cycle.clock, cycle.time)
    }
}

struct CycleOrders<'a, P, C> {
    session: &'a mut Session<P>,
    market_feed: &'a mut Option<MarketFeed>,
    cycle: &'a mut Cycle<C>,
}

impl<P: Producer, C: Clock> Orders for CycleOrders<'_, P, C> {
    #[inline]
    fn send_due(&mut self, order: OrderRequest, due: Option<u64>) -> Result<OrderId, Refused> {
        self.session.send(order, due, self.cycle)
    }
    #[inline]
    fn next_tick(&mut self) -> Option<MarketTick> {
        let feed = self.market_feed.as_mut()?;
        let tick = feed.market.next_tick();
        if tick.is_none() {
            feed.last_poll = self.cycle.now;
            if feed.poll_interval == 0 {
                feed.poll_interval = self.cycle.time.ticks(MARKET_POLL_NS).max(1);
            }
        }
        tick
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
        let mut work = if self.session.is_idle() { 0 } else { self.receive_reports(cycle) };
        if !cycle.draining && !self.session.is_waiting() {
            let Self { strategy, session, market_feed, .. } = self;
            work += strategy.on_turn(&mut CycleOrders { session, market_feed, cycle });
        }
        if self.working_set.is_some() {
            work += self.advance_walk(work == 0, cycle);
        }
        work
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        // Not before the first poll: a program with its own loop may never poll.
        let next_poll = |feed: &MarketFeed| match feed.poll_interval {
            0 => u64::MAX,
            interval => feed.last_poll.saturating_add(interval),
        };
        let next_poll = self.market_feed.as_ref().map_or(u64::MAX, next_poll);
        if self.session.is_waiting() {
            0
        } else if draining {
            // The strategy is not called any more and waits for reports.
            u64::MAX
        } else if !self.session.can_send() {
            // An order would be refused until a report has come.
            next_poll
        } else {
            self.strategy.next_due().min(next_poll)
        }
    }

    fn finished(&self, draining: bool) -> bool {
        let has_sent_all = draining || self.session.is_spent() || self.strategy.finished();
        has_sent_all && self.session.open() == 0
    }

    fn seal(&self, log: &mut StampLog) {
        self.session.seal(log);
        self.working_set.iter().for_each(|set| set.end());
    }

    fn prefetch_hot(&self, _: usize) {
        prefetch_lines(self, PREFETCH_LINES);
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        let slot = slots.next_agent();
        self.session.publish(&slot);
        if let Some(MarketFeed { market, .. }) = &self.market_feed {
            slot.set(StrategyCounter::Ticks, market.received());
            slot.set(StrategyCounter::TicksMissed, market.missed());
        }
        if let Some(set) = &self.working_set {
            set.publish(&slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::ops::ControlFlow;
    use protocol::agent::{CycleOutcome, DutyCycle};
    use protocol::control::{ControlWriter, PLAN};
    use protocol::stamps::RECORD_WORDS;
    use protocol::status::{LOG_OFFSET, StatusWriter};
    use protocol::wire::{MESSAGE_WORDS, Message, Order, Report};
    use shm::memory::Region;
    use shm::ring::spsc_mux::SpscMuxProducer;
    use shm::ring::{Full, Step, spsc};
    use shm::sync::{AtomicU64, Ordering};
    use std::sync::Arc;
    use system::clock::VirtualClock;

    /// The next order is always due.
    struct Overdue;

    impl Strategy for Overdue {
        fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
            usize::from(orders.send(OrderRequest::to_venue(0)).is_ok())
        }

        fn next_due(&self) -> u64 {
            1
        }

        fn finished(&self) -> bool {
            false
        }
    }

    fn cycle() -> Cycle<VirtualClock> {
        let log = StampLog::new(&Region::heap(LOG_OFFSET + RECORD_WORDS).words());
        let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
        Cycle { clock: VirtualClock::default(), now: 100, time, draining: false, log }
    }

    #[test]
    fn refused_order_does_not_wake_thread() {
        let (submit, mut submit_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
        let (mut returns, returns_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
        let session = Session::new(0, 2, SpscMuxProducer(submit), None, returns_end).with_budget(3);
        let mut agent = StrategyAgent::new(Overdue, session);
        let mut cycle = cycle();
        let deadline =
            |agent: &StrategyAgent<_, _>, draining| Agent::<VirtualClock>::next_deadline(agent, draining);
        let deadlines = (deadline(&agent, false), deadline(&agent, true));
        assert_eq!(deadlines, (1, u64::MAX), "a draining run sends none");
        for _ in 0..4 {
            agent.duty_cycle(&mut cycle);
        }
        assert_eq!(deadline(&agent, false), u64::MAX, "the limit of open orders is reached");
        let order = Order::from_message(submit_end.try_pop().unwrap().unwrap()).unwrap();
        returns.try_push(&Report::full_fill(&order).to_message()).unwrap();
        assert!(agent.receive_reports(&mut cycle) > 0);
        assert_eq!(deadline(&agent, false), 1, "one more may be sent");
        agent.duty_cycle(&mut cycle);
        while let Some(message) = submit_end.try_pop().unwrap() {
            let order = Order::from_message(message).unwrap();
            returns.try_push(&Report::full_fill(&order).to_message()).unwrap();
        }
        agent.receive_reports(&mut cycle);
        assert_eq!((agent.session.open(), deadline(&agent, false)), (0, u64::MAX), "all are sent");
    }

    /// A producer whose flag is 1 while the announcement of the last push is not withdrawn.
    struct AnnouncingProducer(Arc<AtomicU64>);

    impl Producer for AnnouncingProducer {
        fn try_push_with(
            &mut self,
            _: &Message,
            _: &mut impl FnMut(Step) -> ControlFlow<()>,
        ) -> Result<(), Full> {
            self.0.store(1, Ordering::Relaxed);
            Ok(())
        }

        fn withdraw(&mut self) {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    #[test]
    fn no_announcement_remains_after_duty_cycle() {
        let announced = Arc::new(AtomicU64::new(0));
        let (_, returns) = spsc::heap_ring::<MESSAGE_WORDS>(8);
        let session = Session::new(0, 2, AnnouncingProducer(Arc::clone(&announced)), None, returns);
        let mut agent = StrategyAgent::new(Overdue, session);
        let segment = Region::heap(LOG_OFFSET + RECORD_WORDS).words();
        let mut duty_cycle = DutyCycle::default();
        let control = ControlWriter::new(Region::heap(PLAN + 8).words()).control();
        let outcome = duty_cycle.run_once(&mut agent, &mut cycle(), &StatusWriter::new(&segment), &control);
        assert!(matches!(outcome, CycleOutcome::Busy), "it has sent");
        assert_eq!(announced.load(Ordering::Relaxed), 0);
    }
}
