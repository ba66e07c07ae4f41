//! What a strategy does to itself because the plan has a fault for it: at a time, or within the push of an order.
//!
//! Two wrappers, used only for such a strategy; all others run the code that they always run.
//!
//! | wrapper | around | when |
//! |---|---|---|
//! | [`FaultyProducer`] | the technique's producer | at a step of the push of an order |
//! | [`FaultyAgent`] | the strategy's agent | at the first duty cycle after a time |
//!
//! Only the first incarnation has faults: one that was started again is healthy. What the launcher does by signal is in
//! [`crate::faults::schedule`].

pub use super::acts::Means;
pub(crate) use super::acts::{act, forge_headers, lie, scribble_once};
use crate::faults::schedule;
use crate::faults::takings::Place;
use core::ops::ControlFlow;
use protocol::agent::{Agent, Cycle};
use protocol::counters::Slots;
use protocol::plan::{FaultKind, Isolation, Plan, Role, Target, When};
use protocol::stamps::StampLog;
use protocol::status::StatusWriter;
use protocol::topology::{self, Segment};
use protocol::wire::{Message, Order, OrderId};
use shm::attached::Access;
use shm::memory::{SHM_DIR, Words};
use shm::ring::{Full, Producer, Step};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use system::clock::Clock;

/// How many orders one duty cycle of a flood tries to push.
const FLOOD_BATCH: usize = 1024;
/// How long their venue keeps them: so that they are open all at once, and the limit of open orders is passed.
const FLOOD_DELAY_NS: u64 = 10_000_000_000;

/// Where a push is left by who holds its place: it is claimed, or its own, and nothing shows the message yet.
pub const HOLDS_AT: [Step; 3] = [Step::Claimed, Step::HalfWritten, Step::Written];

/// How a strategy does a fault to itself: `act` in a process. Returns only where the strategy goes on.
pub type Act = fn(FaultKind, &mut Means);

/// The faults of one strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnFaults {
    strategy: u16,
    venues: u16,
    /// The strategy shares its process, so its memory is not limited yet.
    is_thread: bool,
    /// Nanoseconds after the start, the last first.
    at: Vec<(u64, FaultKind)>,
    pushes: Vec<(u64, Step, FaultKind)>,
    /// What it knows of its surroundings.
    place: Place,
}

impl OwnFaults {
    /// What this incarnation of a strategy does to itself; `None`: nothing.
    pub fn of(plan: &Plan, strategy: u16, epoch: u16) -> Option<Self> {
        let (mut at, mut pushes) = (Vec::new(), Vec::new());
        let mine = |fault: &&protocol::plan::Fault| {
            epoch == 0 && fault.target == Target::Strategy(strategy) && !schedule::by_signal(fault)
        };
        for fault in plan.faults.iter().filter(mine) {
            match fault.when {
                When::At { ns } => at.push((ns, fault.kind)),
                When::Push { order, step } => pushes.push((order, step, fault.kind)),
            }
        }
        if at.is_empty() && pushes.is_empty() {
            return None;
        }
        at.sort_by_key(|(ns, _)| core::cmp::Reverse(*ns));
        let (venues, is_thread) = (plan.trading().venues, plan.isolation == Isolation::Thread);
        let role = Role::Strategy(strategy);
        let is_own = |segment: &Segment| segment.access([role]) == Some(Access::Write);
        let path = |segment: Segment| PathBuf::from(SHM_DIR).join(plan.segment_name(&segment.spec.what));
        let own = topology::segments(plan).into_iter().filter(is_own).map(path).collect();
        let place = Place { folder: plan.folder.clone().into(), launcher: plan.launcher_pid, own };
        Some(Self { strategy, venues, is_thread, at, pushes, place })
    }

    /// The technique's producer, with the faults within its pushes.
    pub fn producer<P: Producer>(&self, producer: P, act: Act) -> FaultyProducer<P> {
        let means = Means::new(self.strategy, self.is_thread, self.place.clone());
        let (strategy, venues, pushes) = (self.strategy, self.venues, self.pushes.clone());
        FaultyProducer(Arc::new(Mutex::new(Shared {
            strategy,
            venues,
            producer,
            pushes,
            next_sequence: 0,
            is_held: false,
            means,
            act,
        })))
    }

    /// The strategy's agent, whose session has (a clone of) that producer, with the faults at a time.
    pub fn agent<A, P: Producer>(self, agent: A, producer: FaultyProducer<P>) -> FaultyAgent<A, P> {
        FaultyAgent { agent, producer, at: self.at }
    }
}

/// What both wrappers share. Only one thread ever has it.
struct Shared<P> {
    strategy: u16,
    venues: u16,
    producer: P,
    /// What is due at which step of which order's push.
    pushes: Vec<(u64, Step, FaultKind)>,
    /// The sequence of the first order that was not pushed yet.
    next_sequence: u64,
    /// A push was left in its middle: this producer pushes nothing more.
    is_held: bool,
    means: Means,
    act: Act,
}

/// A producer with faults at steps of a push.
pub struct FaultyProducer<P>(Arc<Mutex<Shared<P>>>);

impl<P> Clone for FaultyProducer<P> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<P> FaultyProducer<P> {
    /// What the process can write, for scribbling over it, and the status of its own thread, for lies.
    pub fn arm(&self, writable: Vec<Words>, status: StatusWriter) {
        let mut shared = self.shared();
        (shared.means.writable, shared.means.status) = (writable, Some(status));
    }

    fn shared(&self) -> MutexGuard<'_, Shared<P>> {
        self.0.lock().expect("a thread that panics ends its process")
    }
}

impl<P: Producer> Producer for FaultyProducer<P> {
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        let mut shared = self.shared();
        let Shared { producer, pushes, next_sequence, is_held, means, act, .. } = &mut *shared;
        if *is_held {
            return Err(Full);
        }
        let order = Order::from_message(*message).map_or(u64::MAX, |order| order.id.sequence());
        if means.floods || pushes.contains(&(order, Step::Entered, FaultKind::Flood)) {
            // The flood takes over from here: this order waits for it, for ever.
            means.floods = true;
            return Err(Full);
        }
        if means.loses || pushes.contains(&(order, Step::Entered, FaultKind::Lose)) {
            means.loses = true;
            return Ok(());
        }
        producer.try_push_with(message, &mut |step| {
            pushes.retain(|(producer, place, kind)| {
                let is_due = (*producer, *place) == (order, step);
                if is_due {
                    act(*kind, means);
                }
                !is_due
            });
            if means.holds && HOLDS_AT.contains(&step) {
                *is_held = true;
                return ControlFlow::Break(());
            }
            at(step)
        })?;
        *next_sequence = order.wrapping_add(1);
        Ok(())
    }

    fn withdraw(&mut self) {
        let mut shared = self.shared();
        // Who was left in the middle of a push has not come to its end.
        if !shared.is_held {
            shared.producer.withdraw();
        }
    }
}

impl<P: Producer> Shared<P> {
    /// Pushes well-formed orders until the ring is full or it is enough for a duty cycle; how many.
    fn flood(&mut self) -> usize {
        for pushed in 0..FLOOD_BATCH {
            let order = Order {
                delay_ns: FLOOD_DELAY_NS,
                price: 1,
                quantity: 1,
                ..Order::new(
                    OrderId::new(self.strategy, 0, self.next_sequence),
                    (self.next_sequence % u64::from(self.venues)) as u16,
                )
            };
            if self.producer.try_push(&order.to_message()).is_err() {
                return pushed;
            }
            self.next_sequence += 1;
        }
        FLOOD_BATCH
    }
}

/// A strategy with faults at a time, that leaks or floods from then on.
pub struct FaultyAgent<A, P> {
    agent: A,
    producer: FaultyProducer<P>,
    /// What is due when, in nanoseconds after the start, the last first.
    at: Vec<(u64, FaultKind)>,
}

impl<C: Clock, A: Agent<C>, P: Producer> Agent<C> for FaultyAgent<A, P> {
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut shared = self.producer.shared();
        while self.at.last().is_some_and(|(ns, _)| cycle.time.at(*ns) <= cycle.now) {
            if let Some((_, kind)) = self.at.pop() {
                (shared.act)(kind, &mut shared.means);
            }
        }
        shared.means.leak();
        shared.means.take();
        if shared.means.floods {
            // Neither reports are taken nor limits kept. It looks alive: its duty cycles go on.
            return shared.flood().max(1);
        }
        drop(shared);
        self.agent.duty_cycle(cycle)
    }

    fn next_deadline(&self, draining: bool) -> u64 {
        self.agent.next_deadline(draining)
    }

    fn finished(&self, draining: bool) -> bool {
        self.agent.finished(draining)
    }

    fn failure(&self) -> Option<&str> {
        self.agent.failure()
    }

    fn seal(&self, log: &mut StampLog) {
        self.agent.seal(log);
    }

    fn keep_warm(&self, round: usize) {
        self.agent.keep_warm(round);
    }

    fn publish(&mut self, slots: &mut Slots<'_>) {
        self.agent.publish(slots);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Machine;
    use crate::planner::tests::planned_with;
    use protocol::status::LOG_OFFSET;
    use shm::memory::Region;
    use system::clock::{Monotonic, Timebase};

    /// Takes so many messages, then is full.
    struct Taker {
        taken: Vec<OrderId>,
        room: usize,
    }

    impl Producer for Taker {
        fn try_push_with(
            &mut self,
            message: &Message,
            at: &mut impl FnMut(Step) -> ControlFlow<()>,
        ) -> Result<(), Full> {
            shm::ring::step::whole(at, || {
                if self.taken.len() == self.room {
                    return Err(Full);
                }
                self.taken.push(Order::from_message(*message).unwrap().id);
                Ok(())
            })
        }
    }

    fn plan_on(technique: &str, faults: &str) -> Plan {
        let words = format!("strategies=2 venues=3 isolation=thread orders=10 technique={technique}");
        planned_with(&words, faults, &Machine::default()).unwrap().0
    }

    fn plan(faults: &str) -> Plan {
        plan_on("spsc-mux", faults)
    }

    fn faulty(faults: &str, room: usize) -> (OwnFaults, FaultyProducer<Taker>) {
        let faults = OwnFaults::of(&plan(faults), 1, 0).unwrap();
        let producer = faults.producer(Taker { taken: Vec::new(), room }, act);
        (faults, producer)
    }

    fn message(sequence: u64) -> Message {
        let order = Order::new(OrderId::new(1, 0, sequence), 0);
        order.to_message()
    }

    /// Counts its duty cycles.
    struct Honest(usize);

    impl Agent<Monotonic> for Honest {
        fn duty_cycle(&mut self, _: &mut Cycle<Monotonic>) -> usize {
            self.0 += 1;
            0
        }
        fn finished(&self, _: bool) -> bool {
            true
        }
    }

    #[test]
    fn only_the_first_incarnation_of_the_one_that_is_meant_has_faults() {
        let plan = plan("hang:strategy-1@1s; kill:strategy-1@order:5; kill:strategy-0@1s; stop:any@1s");
        assert_eq!(OwnFaults::of(&plan, 0, 0), None, "signals are the launcher's");
        assert_eq!(OwnFaults::of(&plan, 1, 1), None);
        let faults = OwnFaults::of(&plan, 1, 0).unwrap();
        assert_eq!(faults.at, [(1_000_000_000, FaultKind::Hang)]);
        assert_eq!(faults.pushes, [(5, Step::Entered, FaultKind::Kill)]);
    }

    #[test]
    fn a_flood_begins_at_its_order_and_leaves_no_gap() {
        let (faults, mut producer) = faulty("flood:strategy-1@order:2", 1500);
        assert_eq!((0..2).map(|n| producer.try_push(&message(n))).collect::<Vec<_>>(), [Ok(()), Ok(())]);
        assert_eq!(producer.try_push(&message(2)), Err(Full), "the order waits");
        let mut agent = faults.agent(Honest(0), producer.clone());
        let mut cycle = cycle();
        for _ in 0..3 {
            assert!(agent.duty_cycle(&mut cycle) > 0, "it looks busy");
        }
        assert_eq!(agent.agent.0, 0, "and does nothing honest any more");
        let taken = &producer.shared().producer.taken;
        assert!(taken.iter().copied().eq((0..1500).map(|n| OrderId::new(1, 0, n))));
    }

    #[test]
    fn what_is_lost_is_said_to_have_been_sent() {
        let (_, mut producer) = faulty("lose:strategy-1@order:2", 10);
        for n in 0..5 {
            assert_eq!(producer.try_push(&message(n)), Ok(()));
        }
        assert_eq!(producer.shared().producer.taken.len(), 2);
    }

    /// A push with all steps of a ring that several write.
    struct Steps(Vec<Step>);

    impl Producer for Steps {
        fn try_push_with(
            &mut self,
            _: &Message,
            at: &mut impl FnMut(Step) -> ControlFlow<()>,
        ) -> Result<(), Full> {
            for step in [Step::Entered, Step::Announced, Step::Claimed, Step::HalfWritten, Step::Written] {
                self.0.push(step);
                shm::ring::step::reach(at, step)?;
            }
            Ok(())
        }
    }

    #[test]
    fn a_place_is_held_for_ever_and_the_strategy_goes_on() {
        for (fault, last) in
            [("hold:strategy-1@order:2", Step::Claimed), ("hold:strategy-1@push:written:2", Step::Written)]
        {
            let faults = OwnFaults::of(&plan_on("array-queue", fault), 1, 0).unwrap();
            let mut producer = faults.producer(Steps(Vec::new()), act);
            let pushed: Vec<_> = (0..5).map(|n| producer.try_push(&message(n))).collect();
            assert_eq!(pushed, [Ok(()), Ok(()), Err(Full), Err(Full), Err(Full)], "{fault}");
            assert_eq!(producer.shared().producer.0.last(), Some(&last), "{fault}");
            let mut agent = faults.agent(Honest(0), producer);
            agent.duty_cycle(&mut cycle());
            assert_eq!(agent.agent.0, 1, "it goes on");
        }
    }

    fn cycle() -> Cycle<Monotonic> {
        let log = StampLog::new(&Region::heap(LOG_OFFSET + 64).words());
        let time = Timebase { start_ticks: 1000, ns_per_tick: 1.0 };
        Cycle { clock: Monotonic, now: 1000, time, draining: false, log }
    }

    #[test]
    fn a_time_is_waited_for() {
        let (faults, producer) = faulty("flood:strategy-1@100ns; hang:strategy-1@1m", 10);
        let mut agent = faults.agent(Honest(0), producer);
        let mut cycle = cycle();
        cycle.now += 99;
        assert_eq!(agent.duty_cycle(&mut cycle), 0);
        assert_eq!(agent.agent.0, 1);
        cycle.now += 1;
        assert!(agent.duty_cycle(&mut cycle) > 0);
        assert_eq!(agent.agent.0, 1);
    }
}
