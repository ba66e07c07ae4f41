//! A strategy's line to its run, for a program that has a loop of its own.
//!
//! It is the agent of every strategy ([`StrategyAgent`]), turned by who calls instead of by
//! [`protocol::agent::run`]: a poll is a duty cycle. Which technique carries its orders and which
//! clock stamps them is known only once the program has attached, so a call goes through one table
//! of functions; behind it everything is compiled for its types.

use crate::inbox::Inbox;
use protocol::agent::{CycleOutcome, Running};
use protocol::control::Control;
use protocol::market::Tick;
use protocol::plan::Plan;
use protocol::status::{Field, StatusWriter};
use protocol::wire::{OrderId, Report};
use shm::idle::IdleStrategy;
use shm::ring::Producer;
use strategy::{Context, NewOrder, Orders, Refused, StrategyAgent};
use system::clock::Clock;

/// There is nothing more to come: all orders are sent and answered, or the run is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over;

/// What there is to know of a run beside its messages.
#[derive(Clone)]
pub(crate) struct Facts {
    pub context: Context,
    /// Instruments, at least one.
    pub instruments: u16,
}

impl Facts {
    /// Those of that plan.
    pub fn new(plan: &Plan, context: Context) -> Self {
        Self { context, instruments: plan.trading().instrument_count().min(u16::MAX.into()) as u16 }
    }
}

/// What a caller can do. Nothing but [`Line::finish`] waits for longer than it is told; nothing
/// allocates.
pub(crate) trait Line {
    /// One duty cycle, unless reports of the last one are still to be taken: the next reports, at
    /// most so many. Without any it idles as the plan says, for at most so many nanoseconds; 0: not
    /// at all.
    fn poll(&mut self, most: usize, wait_ns: u64) -> Result<&[Report], Over>;

    /// Sends an order that was due at that time, in nanoseconds since the start of the run, if it
    /// was due at one: see [`Orders::send`].
    fn send(&mut self, order: NewOrder, due_ns: Option<u64>) -> Result<OrderId, Refused>;

    /// The next touch that was not heard yet.
    fn next_tick(&mut self) -> Option<Tick>;

    /// Whether there is market data.
    fn hears(&self) -> bool;

    /// Nanoseconds from the start of the run to that time in ticks; `None`: to now.
    fn since_start(&self, ticks: Option<u64>) -> u64;

    /// Says that the thread lives.
    fn beat(&self);

    /// What there is to know of the run.
    fn facts(&self) -> &Facts;

    /// Sends no more, waits for what is open, and says that the strategy is done.
    fn finish(self: Box<Self>);

    /// Says why the strategy cannot go on.
    fn fail(&self, why: &str);
}

/// The line over a technique's producer, with the run's clock.
pub(crate) struct Seat<P, C> {
    agent: StrategyAgent<Inbox, P>,
    cycle: protocol::agent::Cycle<C>,
    running: Running,
    idle: IdleStrategy,
    status: StatusWriter,
    control: Control,
    facts: Facts,
    is_over: bool,
}

impl<P: Producer, C: Clock> Seat<P, C> {
    /// Begins, on the calling thread, which has passed the barrier.
    pub fn begin(
        mut agent: StrategyAgent<Inbox, P>,
        (mut cycle, status): (protocol::agent::Cycle<C>, StatusWriter),
        idle: IdleStrategy,
        control: &Control,
        facts: Facts,
    ) -> Self {
        let running = Running::begin(&mut agent, &mut cycle, &status);
        Self { agent, cycle, running, idle, status, control: control.clone(), facts, is_over: false }
    }

    /// One duty cycle, with its idling: whether there are more to come.
    #[inline]
    fn turn(&mut self, wait_ns: u64) -> Result<(), Over> {
        let Self { agent, cycle, running, idle, status, control, .. } = self;
        match running.turn(agent, cycle, status, control) {
            CycleOutcome::Busy => running.busy(idle, cycle),
            CycleOutcome::Idle(_) if wait_ns == 0 => {}
            CycleOutcome::Idle(ns) => running.idle(idle, ns.min(wait_ns), &cycle.clock),
            CycleOutcome::Over => {
                self.is_over = true;
                return Err(Over);
            }
        }
        Ok(())
    }
}

impl<P: Producer, C: Clock> Line for Seat<P, C> {
    fn poll(&mut self, most: usize, wait_ns: u64) -> Result<&[Report], Over> {
        if self.is_over {
            return Err(Over);
        }
        if self.agent.strategy().is_empty() {
            self.turn(wait_ns)?;
        } else {
            self.beat();
        }
        Ok(self.agent.strategy().take(most))
    }

    fn send(&mut self, order: NewOrder, due_ns: Option<u64>) -> Result<OrderId, Refused> {
        if self.is_over {
            return Err(Refused::Ending);
        }
        let time = self.cycle.time;
        // One that lies ahead would be sent before it was due, which no order is.
        let due = due_ns.map(|ns| time.at(ns).min(self.cycle.clock.peek()));
        let order = NewOrder { due, ..order };
        let sent = self.agent.orders(&mut self.cycle).send(order)?;
        self.agent.strategy().did();
        Ok(sent)
    }

    fn next_tick(&mut self) -> Option<Tick> {
        let tick = self.agent.orders(&mut self.cycle).next_tick()?;
        self.agent.strategy().did();
        Some(tick)
    }

    fn hears(&self) -> bool {
        self.agent.hears()
    }

    fn since_start(&self, ticks: Option<u64>) -> u64 {
        let time = self.cycle.time;
        let ticks = ticks.unwrap_or_else(|| self.cycle.clock.peek());
        time.ns(ticks.saturating_sub(time.start_ticks))
    }

    fn beat(&self) {
        self.status.set(Field::HeartbeatTicks, self.cycle.clock.peek());
    }

    fn facts(&self) -> &Facts {
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
    use system::clock::{Timebase, Virtual};

    /// A line of that many orders, and what stands at its other end.
    struct Run {
        line: Option<Box<dyn Line>>,
        submitted: spsc::Consumer<MESSAGE_WORDS>,
        returns: spsc::Producer<MESSAGE_WORDS>,
        segment: ReadOnlyWords,
        clock: Virtual,
        launching: ControlWriter,
    }

    impl Run {
        fn new(orders: u64, ring: usize) -> Self {
            let (submit, submitted) = spsc::heap_ring::<MESSAGE_WORDS>(ring);
            let (returns, taken) = spsc::heap_ring::<MESSAGE_WORDS>(64);
            let session = Session::new(0, 32, SpscMuxProducer(submit), None, taken).with_budget(orders);
            let agent = StrategyAgent::new(Inbox::new(), session);
            let segment = Region::heap(LOG_OFFSET + 256 * RECORD_WORDS).words();
            let (status, log) = (StatusWriter::new(&segment), StampLog::new(&segment));
            let (clock, time) = (Virtual::default(), Timebase { start_ticks: 0, ns_per_tick: 1.0 });
            let cycle = Cycle { clock: clock.clone(), now: 0, time, draining: false, log };
            let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
            launching.go(0);
            let schedule = Region::heap(HEADER_WORDS).words().into();
            let context = Context::new(0, schedule, 0, Pacing::Closed);
            let facts = Facts { context, instruments: 1 };
            let idle = IdleStrategy::Yield(Yield);
            let seat = Seat::begin(agent, (cycle, status), idle, &launching.control(), facts);
            let line: Option<Box<dyn Line>> = Some(Box::new(seat));
            Self { line, submitted, returns, segment: segment.into(), clock, launching }
        }

        fn line(&mut self) -> &mut dyn Line {
            self.line.as_deref_mut().unwrap()
        }

        /// Answers all that was sent; how many orders.
        fn answer(&mut self) -> u64 {
            let mut answered = 0;
            while let Some(message) = self.submitted.try_pop().unwrap() {
                let order = Order::from_message(message).unwrap();
                let report = Report::whole_fill(&order);
                self.returns.try_push(&report.to_message()).unwrap();
                answered += 1;
            }
            answered
        }

        /// Polls once; the sequences of the reports.
        fn poll(&mut self, most: usize) -> Result<Vec<u64>, Over> {
            let reports = self.line().poll(most, 1)?;
            Ok(reports.iter().map(|report| report.id.sequence()).collect())
        }
    }

    #[test]
    fn reports_come_in_order_in_pieces_and_the_line_is_over_with_the_last_one() {
        let mut run = Run::new(20, 64);
        for sequence in 0..20 {
            assert_eq!(run.line().send(NewOrder::to_venue(0), None).unwrap().sequence(), sequence);
        }
        assert_eq!(run.line().send(NewOrder::to_venue(0), None), Err(Refused::Spent));
        assert_eq!(run.poll(16).unwrap(), []);
        assert_eq!(run.answer(), 20);
        let mut taken = Vec::new();
        for most in [5, 0, 16, 3, 16] {
            taken.extend(run.poll(most).unwrap());
        }
        assert!(taken.iter().copied().eq(0..20), "{taken:?}");
        assert!(run.poll(16).is_err() && run.poll(16).is_err(), "over, and it stays so");
        run.line.take().unwrap().finish();
        let status = status::read(&run.segment);
        assert_eq!((status.state(), status.get(Field::RecordsDropped)), (ThreadState::Done, 0));
        let stamps = [Point::StrategySend, Point::StrategyRecv].map(|point| count_point(&run.segment, point));
        assert_eq!(stamps, [20, 20]);
    }

    #[test]
    fn an_order_that_finds_the_ring_full_waits_and_the_poll_sends_it() {
        let mut run = Run::new(20, 4);
        let sent = (0..20).map_while(|_| run.line().send(NewOrder::to_venue(0), None).ok()).count() as u64;
        assert!(sent < 20 && run.line().send(NewOrder::to_venue(0), None) == Err(Refused::Busy));
        assert_eq!(run.answer(), sent - 1, "one waits");
        assert_eq!(run.poll(16).unwrap().len() as u64, sent - 1);
        assert_eq!(run.answer(), 1);
    }

    #[test]
    fn every_poll_is_a_sign_of_life_and_so_is_a_beat() {
        let mut run = Run::new(5, 64);
        let beat = |run: &Run| status::read(&run.segment).get(Field::HeartbeatTicks);
        run.line().send(NewOrder::to_venue(0), None).unwrap();
        run.line().send(NewOrder::to_venue(0), None).unwrap();
        run.answer();
        for ticks in [10, 20, 30] {
            run.clock.set(ticks);
            // The second takes what the first duty cycle brought.
            run.poll(1).unwrap();
            assert_eq!(beat(&run), ticks);
        }
        run.clock.set(40);
        run.line().beat();
        assert_eq!((beat(&run), run.line().since_start(None), run.line().since_start(Some(7))), (40, 40, 7));
    }

    #[test]
    fn a_line_that_is_finished_early_waits_for_what_is_open() {
        let mut run = Run::new(5, 64);
        run.line().send(NewOrder::to_venue(0), None).unwrap();
        run.answer();
        run.line.take().unwrap().finish();
        assert_eq!(count_point(&run.segment, Point::StrategyRecv), 1, "its report is taken and dropped");
    }

    #[test]
    fn a_run_that_is_stopped_is_over() {
        let mut run = Run::new(5, 64);
        run.line().send(NewOrder::to_venue(0), None).unwrap();
        // The turn that publishes it has work.
        assert_eq!(run.poll(16).unwrap(), []);
        run.launching.set_state(RunState::Stop);
        assert!(run.poll(16).is_err());
        assert_eq!(run.line().send(NewOrder::to_venue(0), None), Err(Refused::Ending));
    }
}
