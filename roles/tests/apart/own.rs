//! Faults that a strategy has by its plan: at a time, and within the push of an order.

use core::ops::ControlFlow;
use protocol::agent::{Agent, Cycle};
use protocol::index::StrategyIndex;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime, Isolation, Plan};
use protocol::stamps::StampLog;
use protocol::status::LOG_OFFSET;
use protocol::wire::{Message, Order, OrderId};
use protocol::workload::Trading;
use roles::BoxedProducer;
use roles::faults::own::{FaultyProducer, OwnFaults, perform};
use shm::memory::Region;
use shm::ring::{Full, Producer, Step};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use system::clock::{Monotonic, Timebase};

/// Accepts a limited number of messages, then is full.
struct Taker {
    taken: Arc<Mutex<Vec<OrderId>>>,
    room: usize,
}

impl Producer for Taker {
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        shm::ring::step::whole(at, || {
            let mut taken = self.taken.lock().unwrap();
            if taken.len() == self.room {
                return Err(Full);
            }
            taken.push(Order::from_message(*message).unwrap().id);
            Ok(())
        })
    }
}

/// A fault of strategy 1.
fn fault(kind: FaultKind, when: FaultTime) -> Fault {
    Fault { kind, target: FaultTarget::Strategy(StrategyIndex(1)), when, every_ns: None, lasts_ns: None }
}

fn at(kind: FaultKind, ns: u64) -> Fault {
    fault(kind, FaultTime::At { ns })
}

fn at_order(kind: FaultKind, order: u64) -> Fault {
    fault(kind, FaultTime::Push { order, step: Step::Entered })
}

fn plan(faults: &[Fault]) -> Plan {
    let plan = Plan::for_trading(Trading { orders: vec![10, 10], ..Trading::new(2, 3) });
    Plan { isolation: Isolation::Thread.into(), faults: faults.into(), ..plan }.arranged()
}

/// The faults, the producer with them, and what its ring takes.
fn faulty(faults: &[Fault], room: usize) -> (OwnFaults, FaultyProducer, Arc<Mutex<Vec<OrderId>>>) {
    let faults = OwnFaults::for_strategy(&plan(faults), StrategyIndex(1), 0).unwrap();
    let taken = Arc::default();
    let producer = faults.producer(BoxedProducer::new(Taker { taken: Arc::clone(&taken), room }), perform);
    (faults, producer, taken)
}

fn message(sequence: u64) -> Message {
    let order = Order::new(OrderId::new(1, 0, sequence), 0);
    order.to_message()
}

/// Counts its duty cycles.
#[derive(Clone, Default)]
struct Honest(Rc<Cell<usize>>);

impl Agent<Monotonic> for Honest {
    fn duty_cycle(&mut self, _: &mut Cycle<Monotonic>) -> usize {
        self.0.set(self.0.get() + 1);
        0
    }
    fn finished(&self, _: bool) -> bool {
        true
    }
}

#[test]
fn only_first_incarnation_of_target_has_faults() {
    let others = [FaultTarget::Strategy(StrategyIndex(0)), FaultTarget::Any]
        .map(|target| Fault { target, ..at(FaultKind::Kill, 9) });
    let mine = [at(FaultKind::Hang, 1_000_000_000), at_order(FaultKind::Kill, 5), at(FaultKind::Stop, 7)];
    let plan = plan(&[&others[..], &mine].concat());
    assert_eq!(OwnFaults::for_strategy(&plan, StrategyIndex(0), 0), None, "signals are the launcher's");
    assert_eq!(OwnFaults::for_strategy(&plan, StrategyIndex(1), 1), None);
    let faults = OwnFaults::for_strategy(&plan, StrategyIndex(1), 0).unwrap();
    assert_eq!(faults.timed, [(1_000_000_000, FaultKind::Hang)]);
    assert_eq!(faults.pushes, [(5, Step::Entered, FaultKind::Kill)]);
}

#[test]
fn flood_starts_at_its_order_without_gap() {
    let (faults, mut producer, taken) = faulty(&[at_order(FaultKind::Flood, 2)], 1500);
    assert_eq!((0..2).map(|n| producer.try_push(&message(n))).collect::<Vec<_>>(), [Ok(()), Ok(())]);
    assert_eq!(producer.try_push(&message(2)), Err(Full), "the order waits");
    let honest = Honest::default();
    let mut agent = faults.agent(honest.clone(), producer);
    let mut cycle = cycle();
    for _ in 0..3 {
        assert!(agent.duty_cycle(&mut cycle) > 0, "it looks busy");
    }
    assert_eq!(honest.0.get(), 0, "and does nothing honest any more");
    assert!(taken.lock().unwrap().iter().copied().eq((0..1500).map(|n| OrderId::new(1, 0, n))));
}

#[test]
fn lost_orders_count_as_sent() {
    let (_, mut producer, taken) = faulty(&[at_order(FaultKind::Lose, 2)], 10);
    for n in 0..5 {
        assert_eq!(producer.try_push(&message(n)), Ok(()));
    }
    assert_eq!(taken.lock().unwrap().len(), 2);
}

/// A push with all steps of a ring that several write.
struct Steps(Arc<Mutex<Option<Step>>>);

impl Producer for Steps {
    fn try_push_with(
        &mut self,
        _: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        for step in [Step::Entered, Step::Announced, Step::Claimed, Step::HalfWritten, Step::Written] {
            *self.0.lock().unwrap() = Some(step);
            shm::ring::step::reach(at, step)?;
        }
        Ok(())
    }
}

#[test]
fn held_slot_stays_and_strategy_continues() {
    // From its order on, at the first step at which a place is held, or at the fault's own step.
    for (step, last) in [(Step::Entered, Step::Claimed), (Step::Written, Step::Written)] {
        let hold = fault(FaultKind::HoldClaim, FaultTime::Push { order: 2, step });
        let faults = OwnFaults::for_strategy(&plan(&[hold]), StrategyIndex(1), 0).unwrap();
        let came_to = Arc::default();
        let mut producer = faults.producer(BoxedProducer::new(Steps(Arc::clone(&came_to))), perform);
        let pushed: Vec<_> = (0..5).map(|n| producer.try_push(&message(n))).collect();
        assert_eq!(pushed, [Ok(()), Ok(()), Err(Full), Err(Full), Err(Full)], "{last:?}");
        assert_eq!(*came_to.lock().unwrap(), Some(last));
        let honest = Honest::default();
        faults.agent(honest.clone(), producer).duty_cycle(&mut cycle());
        assert_eq!(honest.0.get(), 1, "it goes on");
    }
}

fn cycle() -> Cycle<Monotonic> {
    let log = StampLog::new(&Region::heap(LOG_OFFSET + 64).words());
    let time = Timebase { start_ticks: 1000, ns_per_tick: 1.0 };
    Cycle { clock: Monotonic, now: 1000, time, draining: false, log }
}

#[test]
fn a_time_is_waited_for() {
    let (faults, producer, _) = faulty(&[at(FaultKind::Flood, 100), at(FaultKind::Hang, 60_000_000_000)], 10);
    let honest = Honest::default();
    let mut agent = faults.agent(honest.clone(), producer);
    let mut cycle = cycle();
    cycle.now += 99;
    assert_eq!(agent.duty_cycle(&mut cycle), 0);
    assert_eq!(honest.0.get(), 1);
    cycle.now += 1;
    assert!(agent.duty_cycle(&mut cycle) > 0);
    assert_eq!(honest.0.get(), 1);
}
