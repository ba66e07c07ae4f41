//! The orchestrator between heap rings, on a virtual clock.

use super::*;
use crate::engine::{
    SessionState,
    tests::{order, priced},
};
use crate::risk::{Reject, RiskSetup};
use journal::InputLog;
use protocol::agent::{Agent, Cycle};
use protocol::control::{ControlWriter, PLAN};
use protocol::index::StrategyIndex;
use protocol::positions::{self, POSITION_WORDS};
use protocol::sender::Sender;
use protocol::stamps::{Point, Record, StampLog, count_records};
use protocol::status::{LOG_OFFSET, StatusWriter};
use protocol::supervision::{ProofOfDeath, REPAIRS_WORDS, Repairs, RepairsWriter};
use protocol::wire::{CancelScope, Instruction, MESSAGE_WORDS, Order, OrderId, Report};
use shm::memory::Region;
use shm::memory::header::HEADER_WORDS;
use shm::ring::spsc;
use shm::ring::spsc_mux::Mux;
use shm::sync::Ordering;
use system::clock::{Timebase, VirtualClock};
use system::work::TimedWork;

struct Bench<J = ()> {
    orchestrator: Orchestrator<Mux, J>,
    submit: Vec<spsc::Producer>,
    inboxes: Vec<spsc::Consumer>,
    completion: spsc::Producer,
    returns: Vec<spsc::Consumer>,
    cycle: Cycle<VirtualClock>,
    segment: shm::memory::AtomicWords,
}

/// Two strategies and two venues; rings of `capacity`; at most `max_open` orders open.
fn bench(capacity: usize, max_open: u64) -> Bench {
    let rings = |n: usize| -> (Vec<spsc::Producer>, Vec<spsc::Consumer>) {
        (0..n).map(|_| spsc::heap_ring::<MESSAGE_WORDS>(capacity)).unzip()
    };
    let (submit, submit_ends) = rings(2);
    let (mut completion, completion_ends) = rings(1);
    let (inbox_ends, inboxes) = rings(2);
    let (return_ends, returns) = rings(2);
    let segment = Region::heap(LOG_OFFSET + 4096).words();
    let (clock, log) = (VirtualClock::default(), StampLog::new(&segment));
    let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
    let cycle = Cycle { clock, now: 0, time, draining: false, log };
    let core = Core::new(&RiskSetup::open_orders(2, 2, max_open)).unwrap();
    let outputs = Outputs::new(
        inbox_ends.into_iter().map(|ring| Sender::new(ring, None, 64)).collect(),
        return_ends.into_iter().map(|ring| Sender::bounded(ring, None, 8)).collect(),
        TimedWork::new(0),
    );
    let orchestrator = Orchestrator::new(Mux::new(submit_ends), Mux::new(completion_ends), core, outputs, ());
    Bench { orchestrator, submit, inboxes, completion: completion.remove(0), returns, cycle, segment }
}

mod gateways;
mod kills;
mod waiting;

impl<J: InputLog> Bench<J> {
    /// A turn as the runner gives one: its counters are published.
    fn cycle(&mut self) -> usize {
        let work = self.turn();
        let status = StatusWriter::new(&Region::heap(LOG_OFFSET).words());
        Agent::<VirtualClock>::publish(&mut self.orchestrator, &mut status.slots());
        work
    }

    /// Runs one of the two duty cycles per iteration that the engine has if gateways share its
    /// thread.
    fn turn(&mut self) -> usize {
        self.orchestrator.duty_cycle(&mut self.cycle)
    }

    /// Requests that are open and what is held of the first instrument.
    fn position(&self, strategy: u16) -> (u64, i64) {
        let positions = &self.orchestrator.core.positions;
        (positions.open(StrategyIndex(strategy)), positions.account(StrategyIndex(strategy), 0).net)
    }

    fn faults(&self) -> u64 {
        self.orchestrator.core.counts.faults
    }

    fn queued(&self) -> u64 {
        self.orchestrator.outputs.pending
    }

    fn send(&mut self, order: &Order) {
        self.submit[order.id.strategy().as_usize()].try_push(&order.to_message()).unwrap();
    }

    /// Fills an order at its venue, without a duty cycle.
    fn fill(&mut self, order: &Order) {
        self.completion.try_push(&Report::full_fill(order).to_message()).unwrap();
    }

    /// Lets each gateway take what its inbox holds.
    fn take_all(&mut self, venue: usize) -> Vec<Instruction> {
        let messages = std::iter::from_fn(|| self.inboxes[venue].try_pop().unwrap());
        messages.map(|message| Instruction::from_message(message).unwrap()).collect()
    }

    fn reports(&mut self, strategy: usize) -> Vec<Report> {
        let messages = std::iter::from_fn(|| self.returns[strategy].try_pop().unwrap());
        messages.map(|message| Report::from_message(message).unwrap()).collect()
    }

    fn points(&self) -> Vec<Point> {
        let records = &self.segment[LOG_OFFSET..];
        (0..count_records(&self.segment.clone().into()))
            .map(|i| {
                let word = |offset: usize| records[2 * i + offset].load(Ordering::Relaxed);
                Record::from_words(word(0), word(1)).unwrap().point
            })
            .collect()
    }
}

fn supervised(capacity: usize) -> (Bench, ControlWriter, Repairs) {
    supervise(bench(capacity, 100))
}

/// The bench, supervised: with the launcher's side of fences and repairs.
fn supervise<J: InputLog>(mut bench: Bench<J>) -> (Bench<J>, ControlWriter, Repairs) {
    let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
    let repairs = Region::heap(REPAIRS_WORDS).words();
    let supervision = Supervision::new(launching.control());
    bench.orchestrator = bench.orchestrator.supervised(supervision, RepairsWriter::new(&repairs), 0);
    (bench, launching, Repairs::new(repairs.into()))
}

/// The death of a simulated process without agents.
fn death() -> ProofOfDeath {
    ProofOfDeath::from_simulated::<VirtualClock>(Box::new(Vec::<Orchestrator<Mux>>::new()))
}

#[test]
fn order_reaches_gateway_and_report_its_strategy() {
    let mut bench = bench(8, 8);
    let order = order(1, 0, 1);
    bench.send(&order);
    assert_eq!(bench.cycle(), 1);
    assert_eq!((bench.take_all(0), bench.take_all(1)), (vec![], vec![Instruction::Order(order)]));
    assert_eq!(bench.position(1), (1, 0));
    bench.fill(&order);
    assert_eq!(bench.cycle(), 1);
    assert_eq!(bench.reports(1), [Report::full_fill(&order)]);
    assert_eq!(bench.position(1), (0, -7));
    let expected = [Point::OrchRecvSubmit, Point::OrchDispatch, Point::OrchRecvCompletion, Point::OrchReturn];
    assert_eq!(bench.points(), expected);
}

#[test]
fn slow_strategy_gets_its_reports_and_delays_no_other() {
    let mut bench = bench(2, 100);
    for filled in (0..6).map(|n| order(0, n, 0)).chain([order(1, 0, 0)]) {
        bench.fill(&filled);
        bench.cycle();
    }
    assert_eq!(bench.reports(1).len(), 1, "strategy 1 is served although strategy 0 reads nothing");
    assert_eq!(bench.orchestrator.outputs.returned, 3, "two that fit, and the other one's");
    let mut sequences = Vec::new();
    for _ in 0..5 {
        sequences.extend(bench.reports(0).iter().map(|r| r.id.sequence()));
        bench.cycle();
    }
    assert_eq!(sequences, [0, 1, 2, 3, 4, 5]);
    assert_eq!((bench.faults(), bench.orchestrator.outputs.returned), (0, 7));
}

#[test]
fn strategy_that_never_reads_is_quarantined() {
    let mut bench = bench(2, 100);
    for n in 0..20 {
        bench.fill(&order(0, n, 0));
        bench.cycle();
    }
    // Two in the ring, eight that wait, one that did not fit; the others are nobody's.
    assert_eq!(
        (bench.faults(), bench.orchestrator.core.sessions[StrategyIndex(0)].orphaned),
        (1, 20 - 2 - 8 - 1)
    );
    assert_eq!(bench.orchestrator.core.sessions[StrategyIndex(0)].state, SessionState::Quarantined);
}

#[test]
fn prefetch_tolerates_dead_peers() {
    let mut bench = bench(8, 8);
    bench.orchestrator.core.sessions[StrategyIndex(1)].end_incarnation(SessionState::Dead);
    for round in (0..10).chain([usize::MAX]) {
        Agent::<VirtualClock>::prefetch_hot(&bench.orchestrator, round);
    }
    bench.send(&order(0, 0, 1));
    assert_eq!((bench.cycle(), bench.position(0).0), (1, 1));
}

#[test]
fn first_order_of_new_incarnation_may_precede_its_fence() {
    // In a ring that strategies share, and through a pipe or a socket of its own, which nobody has
    // to open again.
    for from in [None, Some(0)] {
        let (mut bench, launching, repairs) = supervised(8);
        launching.fence(StrategyIndex(0), 0, &death());
        (0..8).for_each(|_| _ = bench.cycle());
        assert_eq!(bench.orchestrator.core.sessions[StrategyIndex(0)].state, SessionState::Dead);
        // In the middle of a duty cycle, which has looked at the fences already.
        launching.renew(StrategyIndex(0), 1);
        for sequence in 0..2 {
            let order = Order { id: OrderId::new(0, 1, sequence), ..order(0, 0, 0) };
            let input = bench.orchestrator.order_input(from, order.to_message(), &mut bench.cycle);
            bench.orchestrator.record_and_apply(input, |_| (), &mut bench.cycle);
        }
        assert_eq!((bench.faults(), repairs.strategy_repair(StrategyIndex(0)).refused), (0, 0), "{from:?}");
        assert_eq!(repairs.strategy_repair(StrategyIndex(0)).quarantined, None, "{from:?}");
        assert_eq!(bench.orchestrator.core.counts.dispatched, 2, "{from:?}");
    }
}

#[test]
fn position_is_published_with_repair() {
    let (mut bench, launching, repairs) = supervised(8);
    let segment = Region::heap(HEADER_WORDS + POSITION_WORDS).words();
    let inherited =
        || positions::read(&segment.clone().into()).map(|position| (position.net, position.average_price));
    let segments = vec![segment.clone(), Region::heap(HEADER_WORDS).words()];
    bench.orchestrator.outputs.inherited_positions = segments.into();
    bench.send(&order(0, 0, 0));
    bench.cycle();
    bench.fill(&order(0, 0, 0));
    bench.cycle();
    assert_eq!((bench.position(0), inherited().count()), ((0, -7), 0), "only once it is dead");
    launching.fence(StrategyIndex(0), 0, &death());
    (0..8).for_each(|_| _ = bench.cycle());
    assert!(repairs.strategy_repair(StrategyIndex(0)).repaired.is_some());
    assert_eq!(inherited().collect::<Vec<_>>(), [(-7, order(0, 0, 0).request.price)]);
}
