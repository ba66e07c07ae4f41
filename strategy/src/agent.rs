//! The agent around a strategy: moves reports in and orders out.

use crate::{NewOrder, Orders, Refused, Session, Strategy};
use protocol::agent::{Agent, Cycle};
use protocol::counters::CounterSlots;
use protocol::labels::StrategyCounter;
use protocol::market::{Market, MarketTick};
use protocol::stamps::StampLog;
use protocol::wire::OrderId;
use shm::prefetch::prefetch_lines;
use shm::ring::Producer;
use system::clock::{Clock, Timebase};

/// How many lines of the agent are kept warm, the strategy with it: a whole one that is in the
/// library, in a sixteenth of a first-level cache.
const LINES: usize = 32;

/// How many reports one duty cycle takes before the strategy may send again.
pub const BATCH: usize = 16;

/// A strategy on its session.
///
/// One that is driven by market data looks at it in each duty cycle, before it looks at the time.
/// Nobody rings for a new touch: where threads park, it looks after [`LONGEST_DEAF`] at the latest.
pub struct StrategyAgent<S, P> {
    strategy: S,
    session: Session<P>,
    /// What the strategy hears of the market; nothing where it does not want any or there is none.
    hearing: Option<Hearing>,
}

/// The market, and when it was looked at.
struct Hearing {
    market: Market,
    /// In ticks.
    looked: u64,
    /// [`LONGEST_DEAF`] in ticks; 0 before the first look.
    deaf: u64,
}

/// How long a parked strategy that is driven by market data does not look at it, in nanoseconds:
/// its thread sleeps on its own bell, which an exchange has no right to ring.
pub const LONGEST_DEAF: u64 = 1_000_000;

impl<S: Strategy, P: Producer> StrategyAgent<S, P> {
    /// Puts the two together.
    pub fn new(strategy: S, session: Session<P>) -> Self {
        Self { strategy, session, hearing: None }
    }

    /// The same, driven by the market if the strategy wants that.
    #[must_use]
    pub fn hearing(self, market: Option<Market>) -> Self {
        let market = market.filter(|_| self.strategy.wants_market_data());
        Self { hearing: market.map(|market| Hearing { market, looked: 0, deaf: 0 }), ..self }
    }

    /// The strategy.
    #[inline]
    pub const fn strategy(&mut self) -> &mut S {
        &mut self.strategy
    }

    /// Whether it hears of the market.
    pub const fn hears(&self) -> bool {
        self.hearing.is_some()
    }

    /// What the strategy can do between two duty cycles, for a program that has a loop of its own.
    #[inline]
    pub fn orders<'a, C: Clock>(&'a mut self, cycle: &'a mut Cycle<C>) -> impl Orders {
        CycleOrders { session: &mut self.session, hearing: &mut self.hearing, cycle }
    }

    /// Takes reports, and pushes the order that waits. Not inlined: the idle loop is to be small.
    #[inline(never)]
    fn move_on<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut work = 0;
        while work < BATCH {
            let Some(report) = self.session.receive(cycle) else { break };
            let Self { strategy, session, hearing } = self;
            strategy.on_report(&report, &mut CycleOrders { session, hearing, cycle });
            work += 1;
        }
        work + self.session.flush()
    }
}

/// A session during one duty cycle: what the strategy sees.
struct CycleOrders<'a, P, C> {
    session: &'a mut Session<P>,
    hearing: &'a mut Option<Hearing>,
    cycle: &'a mut Cycle<C>,
}

impl<P: Producer, C: Clock> Orders for CycleOrders<'_, P, C> {
    #[inline]
    fn send(&mut self, order: NewOrder) -> Result<OrderId, Refused> {
        self.session.send(order, self.cycle)
    }
    #[inline]
    fn next_tick(&mut self) -> Option<MarketTick> {
        let Hearing { market, looked, deaf } = self.hearing.as_mut()?;
        let tick = market.next_tick();
        if tick.is_none() {
            *looked = self.cycle.now;
            if *deaf == 0 {
                *deaf = self.cycle.time.ticks(LONGEST_DEAF).max(1);
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
        let mut work = if self.session.looks_idle() { 0 } else { self.move_on(cycle) };
        if !cycle.draining && !self.session.is_waiting() {
            let Self { strategy, session, hearing } = self;
            work += strategy.on_turn(&mut CycleOrders { session, hearing, cycle });
        }
        work
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        // Before the first look nobody wants to look: a program with a loop of its own may never.
        let look = |hearing: &Hearing| match hearing.deaf {
            0 => u64::MAX,
            deaf => hearing.looked.saturating_add(deaf),
        };
        let look = self.hearing.as_ref().map_or(u64::MAX, look);
        if self.session.is_waiting() {
            0
        } else if draining {
            // The strategy has no turns any more, and waits for reports.
            u64::MAX
        } else if !self.session.may_send() {
            // Whatever is due would be refused before a report has come.
            look
        } else {
            self.strategy.next_due().min(look)
        }
    }

    fn finished(&self, draining: bool) -> bool {
        let sends_no_more = draining || self.session.is_spent() || self.strategy.finished();
        sends_no_more && self.session.open() == 0
    }

    fn seal(&self, log: &mut StampLog) {
        self.session.seal(log);
    }

    fn prefetch_hot(&self, _: usize) {
        prefetch_lines(self, LINES);
    }

    #[inline]
    fn publish(&mut self, slots: &mut CounterSlots<'_>) {
        let slot = slots.next_agent();
        self.session.publish(&slot);
        if let Some(Hearing { market, .. }) = &self.hearing {
            slot.set(StrategyCounter::Ticks, market.received());
            slot.set(StrategyCounter::TicksMissed, market.missed());
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
            usize::from(orders.send(NewOrder::to_venue(0)).is_ok())
        }

        fn next_due(&self) -> u64 {
            1
        }

        fn finished(&self) -> bool {
            false
        }
    }

    fn cycle() -> Cycle<VirtualClock> {
        Cycle {
            clock: VirtualClock::default(),
            now: 100,
            time: Timebase { start_ticks: 0, ns_per_tick: 1.0 },
            draining: false,
            log: StampLog::new(&Region::heap(LOG_OFFSET + RECORD_WORDS).words()),
        }
    }

    #[test]
    fn what_would_be_refused_wakes_nobody() {
        let (submit, mut submit_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
        let (mut returns, returns_end) = spsc::heap_ring::<MESSAGE_WORDS>(8);
        let session = Session::new(0, 2, SpscMuxProducer(submit), None, returns_end).with_budget(3);
        let mut agent = StrategyAgent::new(Overdue, session);
        let mut cycle = cycle();
        let deadline =
            |agent: &StrategyAgent<_, _>, draining| Agent::<VirtualClock>::next_deadline(agent, draining);
        assert_eq!(
            (deadline(&agent, false), deadline(&agent, true)),
            (1, u64::MAX),
            "a run that ends takes none"
        );
        for _ in 0..4 {
            agent.duty_cycle(&mut cycle);
        }
        assert_eq!(deadline(&agent, false), u64::MAX, "as many are open as may be");
        let order = Order::from_message(submit_end.try_pop().unwrap().unwrap()).unwrap();
        returns.try_push(&Report::full_fill(&order).to_message()).unwrap();
        assert!(agent.move_on(&mut cycle) > 0);
        assert_eq!(deadline(&agent, false), 1, "one more may be sent");
        agent.duty_cycle(&mut cycle);
        while let Some(message) = submit_end.try_pop().unwrap() {
            returns
                .try_push(&Report::full_fill(&Order::from_message(message).unwrap()).to_message())
                .unwrap();
        }
        agent.move_on(&mut cycle);
        assert_eq!(
            (agent.session.open(), deadline(&agent, false)),
            (0, u64::MAX),
            "all that it may send are sent"
        );
    }

    /// Whether what the last push announced still stands: 1.
    struct Announcing(Arc<AtomicU64>);

    impl Producer for Announcing {
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
    fn nothing_stands_announced_behind_a_duty_cycle() {
        let stands = Arc::new(AtomicU64::new(0));
        let (_, returns) = spsc::heap_ring::<MESSAGE_WORDS>(8);
        let session = Session::new(0, 2, Announcing(Arc::clone(&stands)), None, returns);
        let mut agent = StrategyAgent::new(Overdue, session);
        let segment = Region::heap(LOG_OFFSET + RECORD_WORDS).words();
        let mut turns = DutyCycle::default();
        let control = ControlWriter::new(Region::heap(PLAN + 8).words()).control();
        let turn = turns.run_once(&mut agent, &mut cycle(), &StatusWriter::new(&segment), &control);
        assert!(matches!(turn, CycleOutcome::Busy), "it has sent");
        assert_eq!(stands.load(Ordering::Relaxed), 0);
    }
}
