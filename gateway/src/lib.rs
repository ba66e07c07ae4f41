//! The gateway: the engine's agent for one venue. It takes orders from its inbox, holds each for its venue's delay and
//! sends the report through the completion hand-off.
#![forbid(unsafe_code)]

mod disconnect;
mod held;
mod venue;

pub use held::Held;
pub use venue::{DelayVenue, Venue, VenueContext, in_full};

use disconnect::Disconnects;
use protocol::agent::{Agent, Cycle};
use protocol::checksum::{Checksum, digest};
use protocol::counters::Slots;
use protocol::labels::GatewayCounter;
use protocol::stamps::{HandOff, LinkEnd, Point, StampLog};
use protocol::wire::{Instruction, Message, Order, OrderId, Report};
use shm::bell::Bell;
use shm::clock::Clock;
use shm::ring::{Producer, spsc};

/// How many orders are taken and how many reports sent in one duty cycle, so that agents which share a thread all get
/// their turn.
const BATCH: usize = 16;

/// The agent of one venue.
pub struct Gateway<P, V = DelayVenue> {
    /// Its venue's index in the plan, below [`MAX_VENUES`](protocol::wire::MAX_VENUES).
    index: u16,
    inbox: spsc::Consumer,
    completion: P,
    /// Rings for the orchestrator, where that parks.
    bell: Option<Bell>,
    venue: V,
    held: Held,
    /// Strategies that died and whose orders are being cancelled.
    disconnects: Disconnects,
    /// A report that found the completion ring full. It keeps its stamp and its place: nothing overtakes it.
    waiting: Option<Message>,
    received: u64,
    completed: u64,
    full: u64,
    faults: u64,
    /// What was handed over, word for word.
    dispatched: Checksum,
    reported: Checksum,
}

impl<P: Producer, V: Venue> Gateway<P, V> {
    /// The gateway of the venue with this index in the plan. It holds at most `max_held` orders; past that it takes no more
    /// from its inbox.
    pub fn new(
        index: u16,
        inbox: spsc::Consumer,
        completion: P,
        bell: Option<Bell>,
        venue: V,
        max_held: usize,
    ) -> Self {
        let held = Held::with_capacity(max_held);
        Self {
            index,
            inbox,
            completion,
            bell,
            venue,
            held,
            disconnects: Disconnects::new(),
            waiting: None,
            received: 0,
            completed: 0,
            full: 0,
            faults: 0,
            dispatched: Checksum::default(),
            reported: Checksum::default(),
        }
    }

    fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }

    /// Sends the report that waits for room, if there is one. `false` if there still is none.
    fn flush(&mut self) -> bool {
        let Some(message) = &self.waiting else { return true };
        if self.completion.try_push(message).is_err() {
            return false;
        }
        self.waiting = None;
        self.completed += 1;
        self.ring_bell();
        true
    }

    /// Sends the reports of the orders whose delay has passed.
    #[inline]
    fn complete<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut sent = 0;
        while sent < BATCH {
            let Some(order) = self.held.pop_due(cycle.now) else { break };
            sent += 1;
            let report = Report { id: order.id, ..self.venue.execute(&order) };
            if !self.send(&report, cycle) {
                break;
            }
        }
        sent
    }

    /// Stamps and sends a report; `false` if it has to wait for room.
    #[inline]
    fn send<C: Clock>(&mut self, report: &Report, cycle: &mut Cycle<C>) -> bool {
        let message = report.to_message();
        cycle.stamp_with(Point::GatewayDone, report.id, report.number);
        let is_pushed = self.completion.try_push(&message).is_ok();
        // After the push, off the report's way. Also for one that waits: it is pushed as it is, or the run does not end.
        self.reported.add(digest(&message));
        if !is_pushed {
            self.full += 1;
            self.waiting = Some(message);
            return false;
        }
        self.completed += 1;
        self.ring_bell();
        true
    }

    /// Cancels orders of strategies that died.
    #[cold]
    fn cancel<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut sent = 0;
        let mut looks = disconnect::LOOKS;
        while sent < BATCH {
            let Some(order) = self.disconnects.next(&mut self.held, &mut looks) else { break };
            sent += 1;
            cycle.stamp(Point::Cancelled, order.id);
            let report = Report { id: order.id, ..self.venue.cancel(&order) };
            if !self.send(&report, cycle) {
                break;
            }
        }
        // Looking is work too: a thread must not go to sleep in the middle.
        sent.max(1)
    }

    /// Takes orders from the inbox.
    #[inline]
    fn receive<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> usize {
        let mut taken = 0;
        while taken < BATCH && !self.held.is_full() {
            match self.inbox.try_pop() {
                Ok(None) => break,
                Ok(Some(message)) => {
                    match Instruction::from_message(message) {
                        Ok(Instruction::Order(order)) => self.hold(order, cycle),
                        Ok(Instruction::CancelAll(id)) => self.disconnects.add(id),
                        // The orchestrator is in our own process: this is a bug, not a hostile peer. Count, go on.
                        Err(_) => self.faults += 1,
                    }
                    // After the stamp, off the order's way.
                    self.dispatched.add(digest(&message));
                }
                Err(_) => {
                    self.faults += 1;
                    break;
                }
            }
            taken += 1;
        }
        taken
    }

    #[inline]
    fn hold<C: Clock>(&mut self, order: Order, cycle: &mut Cycle<C>) {
        let id: OrderId = order.id;
        let received = cycle.stamp_with(Point::GatewayRecv, id, self.index as u8);
        let release = received.saturating_add(cycle.time.ticks(self.venue.delay_ns(&order)));
        cycle.log.append(Point::Release, id, release);
        self.received += 1;
        self.held.push(release, order);
    }
}

impl<P: Producer, V: Venue, C: Clock> Agent<C> for Gateway<P, V> {
    #[inline]
    fn duty_cycle(&mut self, cycle: &mut Cycle<C>) -> usize {
        if !self.flush() {
            // Nothing can be sent; taking orders still helps the orchestrator.
            return self.receive(cycle);
        }
        let mut work = self.complete(cycle);
        if !self.disconnects.is_empty() && self.waiting.is_none() {
            work += self.cancel(cycle);
        }
        work + self.receive(cycle)
    }

    fn next_deadline(&self) -> u64 {
        // A report that waits for room is tried again at once.
        let at_once = self.waiting.is_some() || !self.disconnects.is_empty();
        if at_once { 0 } else { self.held.next_release() }
    }

    fn seal(&self, log: &mut StampLog) {
        log.append_checksum(LinkEnd::receiver(HandOff::Inbox, self.index, 0), self.dispatched);
        log.append_checksum(LinkEnd::sender(HandOff::Completion, self.index, 0), self.reported);
    }

    #[inline]
    fn publish(&mut self, slots: &mut Slots<'_>) {
        let slot = slots.take();
        slot.set(GatewayCounter::Received, self.received);
        slot.set(GatewayCounter::Completed, self.completed);
        slot.set(GatewayCounter::Full, self.full);
        slot.set(GatewayCounter::ProtocolErrors, self.faults);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::stamps::StampLog;
    use protocol::status::LOG_OFFSET;
    use protocol::wire::{MESSAGE_WORDS, Operation, OrderStatus, Side};
    use shm::clock::{Timebase, Virtual};
    use shm::memory::Region;
    use shm::ring::spsc_mux::SpscMuxProducer;

    fn order(sequence: u64, delay_ns: u64) -> Order {
        Order {
            id: OrderId::new(0, 0, sequence),
            venue: 0,
            operation: Operation::New,
            side: Side::Buy,
            delay_ns,
            price: 100,
            quantity: 5,
            target: 0,
        }
    }

    struct Bench {
        gateway: Gateway<SpscMuxProducer>,
        inbox: spsc::Producer,
        completion: spsc::Consumer,
        clock: Virtual,
        cycle: Cycle<Virtual>,
    }

    /// A gateway between two heap rings on a virtual clock of 1 ns a tick.
    fn bench(completion_capacity: usize, max_held: usize) -> Bench {
        let (inbox, inbox_end) = spsc::heap_ring::<MESSAGE_WORDS>(64);
        let (completion, completion_end) = spsc::heap_ring::<MESSAGE_WORDS>(completion_capacity);
        let clock = Virtual::default();
        let cycle = Cycle {
            clock: clock.clone(),
            now: 0,
            time: Timebase { start_ticks: 0, ns_per_tick: 1.0 },
            draining: false,
            log: StampLog::new(&Region::heap(LOG_OFFSET + 1024).words()),
        };
        let gateway = Gateway::new(0, inbox_end, SpscMuxProducer(completion), None, DelayVenue, max_held);
        Bench { gateway, inbox, completion: completion_end, clock, cycle }
    }

    impl Bench {
        fn at(&mut self, ticks: u64) -> Vec<Report> {
            self.clock.set(ticks);
            self.cycle.now = ticks;
            self.gateway.duty_cycle(&mut self.cycle);
            std::iter::from_fn(|| self.completion.try_pop().unwrap())
                .map(|message| Report::from_message(message).unwrap())
                .collect()
        }
    }

    #[test]
    fn an_order_comes_back_when_its_delay_has_passed() {
        let mut bench = bench(64, 8);
        bench.inbox.try_push(&order(0, 500).to_message()).unwrap();
        bench.inbox.try_push(&order(1, 100).to_message()).unwrap();
        assert_eq!(bench.at(10), []);
        assert_eq!(Agent::<Virtual>::next_deadline(&bench.gateway), 110);
        assert_eq!(bench.at(109), []);
        let early = bench.at(110);
        assert_eq!(early.iter().map(|r| r.id.sequence()).collect::<Vec<_>>(), [1], "the shorter delay first");
        assert_eq!((early[0].status, early[0].filled), (OrderStatus::Done, 5));
        assert_eq!(bench.at(600).len(), 1);
        assert_eq!(Agent::<Virtual>::next_deadline(&bench.gateway), u64::MAX);
    }

    #[test]
    fn a_full_completion_ring_delays_and_loses_nothing() {
        let mut bench = bench(2, 8);
        (0..6).for_each(|n| bench.inbox.try_push(&order(n, 1).to_message()).unwrap());
        let mut seen = bench.at(0);
        for tick in 1..10 {
            seen.extend(bench.at(tick * 10));
        }
        let sequences: Vec<u64> = seen.iter().map(|r| r.id.sequence()).collect();
        assert_eq!(sequences, [0, 1, 2, 3, 4, 5]);
        assert!(bench.gateway.full >= 1);
    }

    #[test]
    fn a_dead_strategys_orders_are_cancelled_at_once() {
        let mut bench = bench(64, 64);
        let of = |strategy, epoch, n| Order { id: OrderId::new(strategy, epoch, n), ..order(n, 1000) };
        for order in [of(0, 0, 0), of(1, 0, 0), of(0, 1, 0), of(0, 0, 1), of(0, 2, 0)] {
            bench.inbox.try_push(&order.to_message()).unwrap();
        }
        assert_eq!(bench.at(1), []);
        bench.inbox.try_push(&Instruction::CancelAll(OrderId::new(0, 1, 0)).to_message()).unwrap();
        let mut reports = bench.at(2);
        reports.extend(bench.at(3));
        assert!(reports.iter().all(|report| report.status == OrderStatus::Cancelled && report.filled == 0));
        let ids: Vec<_> = reports.iter().map(|report| (report.id.epoch(), report.id.sequence())).collect();
        assert_eq!(ids, [(0, 0), (1, 0), (0, 1)], "its own, up to that epoch");
        let left = bench.at(2000);
        assert_eq!(left.iter().map(|report| report.id.strategy()).collect::<Vec<_>>(), [1, 0]);
        assert!(left.iter().all(|report| report.status == OrderStatus::Done));
        assert_eq!(Agent::<Virtual>::next_deadline(&bench.gateway), u64::MAX);
    }

    #[test]
    fn a_full_gateway_leaves_orders_in_the_inbox() {
        let mut bench = bench(64, 2);
        (0..3).for_each(|n| bench.inbox.try_push(&order(n, 100).to_message()).unwrap());
        assert_eq!(bench.at(0), []);
        assert_eq!(bench.gateway.received, 2);
        assert_eq!(bench.at(100).len(), 2);
        assert_eq!(bench.gateway.received, 3);
    }
}
