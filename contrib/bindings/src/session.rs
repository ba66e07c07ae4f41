//! A strategy's session with its run, for a program with its own loop: the agent of every strategy
//! ([`StrategyAgent`]), driven by the caller: a poll is a duty cycle. Technique and clock are known
//! only after attaching, so a call goes through a trait object, compiled for them.

use crate::inbox::Inbox;
use protocol::agent::{AgentRunner, CycleOutcome};
use protocol::control::Control;
use protocol::market::MarketTick;
use protocol::plan::Plan;
use protocol::status::{StatusField, StatusWriter};
use protocol::wire::{OrderId, Report};
use shm::idle::IdleStrategy;
use shm::ring::Producer;
use strategy::{Context, OrderRequest, Orders, Refused, StrategyAgent};
use system::clock::Clock;

/// The error that a strategy's session has ended: its orders are answered, or the run is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionOver;

/// Facts about a strategy's run that do not change while it lasts.
#[derive(Clone)]
pub(crate) struct RunInfo {
    pub context: Context,
    /// Number of instruments, at least 1.
    pub instruments: u16,
}

impl RunInfo {
    /// Combines a strategy's identity, schedule and settings (`context`) with the number of
    /// instruments from the run's plan.
    pub fn new(plan: &Plan, context: Context) -> Self {
        Self { context, instruments: plan.trading().instrument_count().min(u16::MAX.into()) as u16 }
    }
}

/// The operations of an attached strategy: only `finish` waits longer than asked, none allocates.
pub(crate) trait AttachedSession {
    /// Takes up to `max` reports; if none is buffered, after a duty cycle and up to `wait_ns` of
    /// idling.
    fn poll(&mut self, max: usize, wait_ns: u64) -> Result<&[Report], SessionOver>;

    /// Sends an order ([`Orders::send`]) due `due_ns` nanoseconds after the start of the run.
    fn send(&mut self, order: OrderRequest, due_ns: Option<u64>) -> Result<OrderId, Refused>;

    fn next_tick(&mut self) -> Option<MarketTick>;

    fn has_market_data(&self) -> bool;

    /// Returns the nanoseconds from the start of the run to a time in ticks; `None`: to now.
    fn since_start(&self, ticks: Option<u64>) -> u64;

    /// Publishes a heartbeat, so that the strategy does not count as hung.
    fn heartbeat(&self);

    fn run_info(&self) -> &RunInfo;

    /// Finishes the strategy: waits for its open orders, and publishes that it is done.
    fn finish(self: Box<Self>);

    fn fail(&self, why: &str);
}

/// An attached strategy, generic over its technique's producer and the run's clock.
pub(crate) struct AttachedStrategy<P, C> {
    agent: StrategyAgent<Inbox, P>,
    cycle: protocol::agent::Cycle<C>,
    running: AgentRunner,
    idle: IdleStrategy,
    status: StatusWriter,
    control: Control,
    facts: RunInfo,
    is_over: bool,
}

impl<P: Producer, C: Clock> AttachedStrategy<P, C> {
    /// Starts, on the calling thread, the agent of a strategy whose program has attached to a run.
    /// The caller has waited for the run's start (the start barrier) before.
    pub fn begin(
        mut agent: StrategyAgent<Inbox, P>,
        (mut cycle, status): (protocol::agent::Cycle<C>, StatusWriter),
        idle: IdleStrategy,
        control: &Control,
        facts: RunInfo,
    ) -> Self {
        let running = AgentRunner::begin(&mut agent, &mut cycle, &status);
        Self { agent, cycle, running, idle, status, control: control.clone(), facts, is_over: false }
    }

    /// Runs one duty cycle, with its idling.
    #[inline]
    fn turn(&mut self, wait_ns: u64) -> Result<(), SessionOver> {
        let Self { agent, cycle, running, idle, status, control, .. } = self;
        match running.run_once(agent, cycle, status, control) {
            CycleOutcome::Busy => running.on_busy(idle, cycle),
            CycleOutcome::Idle(_) if wait_ns == 0 => {}
            CycleOutcome::Idle(ns) => running.idle(idle, ns.min(wait_ns), &cycle.clock),
            CycleOutcome::Finished => {
                self.is_over = true;
                return Err(SessionOver);
            }
        }
        Ok(())
    }
}

impl<P: Producer, C: Clock> AttachedSession for AttachedStrategy<P, C> {
    fn poll(&mut self, max: usize, wait_ns: u64) -> Result<&[Report], SessionOver> {
        if self.is_over {
            return Err(SessionOver);
        }
        if self.agent.strategy().is_empty() {
            self.turn(wait_ns)?;
        } else {
            self.heartbeat();
        }
        Ok(self.agent.strategy().take(max))
    }

    fn send(&mut self, order: OrderRequest, due_ns: Option<u64>) -> Result<OrderId, Refused> {
        if self.is_over {
            return Err(Refused::Ending);
        }
        let time = self.cycle.time;
        // A time in the future counts as now: no order is sent before it is due.
        let due = due_ns.map(|ns| time.at(ns).min(self.cycle.clock.peek()));
        let sent = self.agent.orders(&mut self.cycle).send_due(order, due)?;
        self.agent.strategy().record_work();
        Ok(sent)
    }

    fn next_tick(&mut self) -> Option<MarketTick> {
        let tick = self.agent.orders(&mut self.cycle).next_tick()?;
        self.agent.strategy().record_work();
        Some(tick)
    }

    fn has_market_data(&self) -> bool {
        self.agent.has_market_data()
    }

    fn since_start(&self, ticks: Option<u64>) -> u64 {
        let time = self.cycle.time;
        let ticks = ticks.unwrap_or_else(|| self.cycle.clock.peek());
        time.ns(ticks.saturating_sub(time.start_ticks))
    }

    fn heartbeat(&self) {
        self.status.set(StatusField::HeartbeatTicks, self.cycle.clock.peek());
    }

    fn run_info(&self) -> &RunInfo {
        &self.facts
    }

    fn finish(mut self: Box<Self>) {
        self.agent.strategy().finish();
        while !self.is_over && self.turn(u64::MAX).is_ok() {}
        let Self { mut agent, mut cycle, running, status, .. } = *self;
        running.end(&mut agent, &mut cycle, &status);
    }

    fn fail(&self, why: &str) {
        self.status.fail(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::agent::Cycle;
    use protocol::control::{ControlWriter, PLAN, RunState};
    use protocol::plan::Pacing;
    use protocol::stamps::{Point, RECORD_WORDS, StampLog, count_point};
    use protocol::status::{self, LOG_OFFSET, ThreadState};
    use protocol::wire::{MESSAGE_WORDS, Order};
    use shm::idle::Yield;
    use shm::memory::header::HEADER_WORDS;
    use shm::memory::{ReadOnlyWords, Region};
    use shm::ring::spsc;
    use shm::ring::spsc_mux::SpscMuxProducer;
    use strategy::Session;
    use system::clock::{Timebase, VirtualClock};

    /// A session with a limited number of orders, and the engine's ends of its rings.
    struct Run {
        line: Option<Box<dyn AttachedSession>>,
        submitted: spsc::Consumer<MESSAGE_WORDS>,
        returns: spsc::Producer<MESSAGE_WORDS>,
        segment: ReadOnlyWords,
        clock: VirtualClock,
        launching: ControlWriter,
    }

    impl Run {
        fn new(orders: u64, ring: usize) -> Self {
            let (submit, submitted) = spsc::heap_ring::<MESSAGE_WORDS>(ring);
            let (returns, received) = spsc::heap_ring::<MESSAGE_WORDS>(64);
            let session = Session::new(0, 32, SpscMuxProducer(submit), None, received).with_budget(orders);
            let agent = StrategyAgent::new(Inbox::new(), session);
            let segment = Region::heap(LOG_OFFSET + 256 * RECORD_WORDS).words();
            let (status, log) = (StatusWriter::new(&segment), StampLog::new(&segment));
            let (clock, time) = (VirtualClock::default(), Timebase { start_ticks: 0, ns_per_tick: 1.0 });
            let cycle = Cycle { clock: clock.clone(), now: 0, time, draining: false, log };
            let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
            launching.go(0);
            let schedule = Region::heap(HEADER_WORDS).words().into();
            let context = Context::new(0, schedule, 0, Pacing::Closed);
            let facts = RunInfo { context, instruments: 1 };
            let idle = IdleStrategy::Yield(Yield);
            let seat = AttachedStrategy::begin(agent, (cycle, status), idle, &launching.control(), facts);
            let line: Option<Box<dyn AttachedSession>> = Some(Box::new(seat));
            Self { line, submitted, returns, segment: segment.into(), clock, launching }
        }

        fn line(&mut self) -> &mut dyn AttachedSession {
            self.line.as_deref_mut().unwrap()
        }

        /// Answers all that was sent; how many orders.
        fn answer(&mut self) -> u64 {
            let mut answered = 0;
            while let Some(message) = self.submitted.try_pop().unwrap() {
                let order = Order::from_message(message).unwrap();
                let report = Report::full_fill(&order);
                self.returns.try_push(&report.to_message()).unwrap();
                answered += 1;
            }
            answered
        }

        /// Polls once; the sequences of the reports.
        fn poll(&mut self, max: usize) -> Result<Vec<u64>, SessionOver> {
            let reports = self.line().poll(max, 1)?;
            Ok(reports.iter().map(|report| report.id.sequence()).collect())
        }
    }

    #[test]
    fn polls_return_reports_in_order_until_session_ends() {
        let mut run = Run::new(20, 64);
        for sequence in 0..20 {
            assert_eq!(run.line().send(OrderRequest::to_venue(0), None).unwrap().sequence(), sequence);
        }
        assert_eq!(run.line().send(OrderRequest::to_venue(0), None), Err(Refused::Spent));
        assert!(run.poll(16).unwrap().is_empty());
        assert_eq!(run.answer(), 20);
        let mut received = Vec::new();
        for max in [5, 0, 16, 3, 16] {
            received.extend(run.poll(max).unwrap());
        }
        assert!(received.iter().copied().eq(0..20), "{received:?}");
        assert!(run.poll(16).is_err() && run.poll(16).is_err(), "over, and it stays so");
        run.line.take().unwrap().finish();
        let status = status::read(&run.segment);
        assert_eq!((status.state(), status.get(StatusField::RecordsDropped)), (ThreadState::Done, 0));
        let stamps = [Point::StrategySend, Point::StrategyRecv].map(|point| count_point(&run.segment, point));
        assert_eq!(stamps, [20, 20]);
    }

    #[test]
    fn queued_order_is_sent_by_poll() {
        let mut run = Run::new(20, 4);
        let sent =
            (0..20).map_while(|_| run.line().send(OrderRequest::to_venue(0), None).ok()).count() as u64;
        assert!(sent < 20 && run.line().send(OrderRequest::to_venue(0), None) == Err(Refused::Busy));
        assert_eq!(run.answer(), sent - 1, "one waits");
        assert_eq!(run.poll(16).unwrap().len() as u64, sent - 1);
        assert_eq!(run.answer(), 1);
    }

    #[test]
    fn polls_and_heartbeats_prove_liveness() {
        let mut run = Run::new(5, 64);
        let beat = |run: &Run| status::read(&run.segment).get(StatusField::HeartbeatTicks);
        run.line().send(OrderRequest::to_venue(0), None).unwrap();
        run.line().send(OrderRequest::to_venue(0), None).unwrap();
        run.answer();
        for ticks in [10, 20, 30] {
            run.clock.set(ticks);
            // The second takes what the first duty cycle brought.
            run.poll(1).unwrap();
            assert_eq!(beat(&run), ticks);
        }
        run.clock.set(40);
        run.line().heartbeat();
        assert_eq!((beat(&run), run.line().since_start(None), run.line().since_start(Some(7))), (40, 40, 7));
    }

    #[test]
    fn early_finish_waits_for_open_orders() {
        let mut run = Run::new(5, 64);
        run.line().send(OrderRequest::to_venue(0), None).unwrap();
        run.answer();
        run.line.take().unwrap().finish();
        assert_eq!(count_point(&run.segment, Point::StrategyRecv), 1, "its report is taken and dropped");
    }

    #[test]
    fn stopped_run_is_over() {
        let mut run = Run::new(5, 64);
        run.line().send(OrderRequest::to_venue(0), None).unwrap();
        // The turn that publishes it has work.
        assert!(run.poll(16).unwrap().is_empty());
        run.launching.set_state(RunState::Stop);
        assert!(run.poll(16).is_err());
        assert_eq!(run.line().send(OrderRequest::to_venue(0), None), Err(Refused::Ending));
    }
}
