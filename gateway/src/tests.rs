//! A gateway on a virtual clock, between two rings.

use super::*;
use protocol::stamps::Record;
use protocol::status::LOG_OFFSET;
use protocol::wire::{CancelScope, MESSAGE_WORDS, OrderId, OrderRequest, OrderStatus, PLACEHOLDER, Report};
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc_mux::SpscMuxProducer;
use shm::sync::Ordering;
use system::clock::{Timebase, VirtualClock};

fn order(sequence: u64, delay_ns: u64) -> Order {
    OrderRequest { delay_ns, price: 100, quantity: 5, ..OrderRequest::to_venue(0) }
        .with_id(OrderId::new(0, 0, sequence))
}

struct Bench<V> {
    gateway: Gateway<SpscMuxProducer, V>,
    inbox: spsc::Producer,
    completion: spsc::Consumer,
    cycle: Cycle<VirtualClock>,
    segment: AtomicWords,
}

/// A duty cycle of 1 ns a tick.
fn cycle(segment: &AtomicWords) -> Cycle<VirtualClock> {
    let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
    Cycle { clock: VirtualClock::default(), now: 1, time, draining: false, log: StampLog::new(segment) }
}

fn bench_of<V: Venue>(completion_capacity: usize, venue: V) -> Bench<V> {
    let (inbox, inbox_end) = spsc::heap_ring::<MESSAGE_WORDS>(64);
    let (completion, completion_end) = spsc::heap_ring::<MESSAGE_WORDS>(completion_capacity);
    let segment = Region::heap(LOG_OFFSET + 4096).words();
    let gateway = Gateway::new(0, inbox_end, SpscMuxProducer(completion), None, venue);
    Bench { gateway, inbox, completion: completion_end, cycle: cycle(&segment), segment }
}

fn bench(completion_capacity: usize, max_held: usize) -> Bench<DelayVenue> {
    bench_of(completion_capacity, DelayVenue::with_capacity(InFull, max_held))
}

impl<V: Venue> Bench<V> {
    fn send(&mut self, orders: impl IntoIterator<Item = Order>) {
        for order in orders {
            self.inbox.try_push(&order.to_message()).unwrap();
        }
    }

    fn at(&mut self, ticks: u64) -> Vec<Report> {
        self.cycle.clock.set(ticks);
        self.cycle.now = ticks;
        self.gateway.duty_cycle(&mut self.cycle);
        std::iter::from_fn(|| self.completion.try_pop().unwrap())
            .filter(|message| *message != PLACEHOLDER)
            .map(|message| Report::from_message(message).unwrap())
            .collect()
    }

    fn log(&self) -> Vec<Record> {
        let words = self.segment[LOG_OFFSET..].iter().map(|word| word.load(Ordering::Relaxed));
        let words: Vec<u64> = words.collect();
        words.chunks(2).map_while(|pair| Record::from_words(pair[0], pair[1])).collect()
    }

    fn deadline(&self) -> u64 {
        Agent::<VirtualClock>::next_deadline(&self.gateway, false)
    }
}

#[test]
fn order_is_reported_after_its_delay() {
    let mut bench = bench(64, 8);
    bench.send([order(0, 500), order(1, 100)]);
    assert_eq!(bench.at(10), []);
    assert_eq!(bench.deadline(), 110);
    assert_eq!(bench.at(109), []);
    let early = bench.at(110);
    assert_eq!(early.iter().map(|r| r.id.sequence()).collect::<Vec<_>>(), [1], "the shorter delay first");
    assert_eq!((early[0].status, early[0].filled), (OrderStatus::Filled, 5));
    assert_eq!(bench.at(600).len(), 1);
    assert_eq!(bench.deadline(), u64::MAX);
}

#[test]
fn a_full_completion_ring_delays_and_loses_nothing() {
    let mut bench = bench(2, 8);
    bench.send((0..6).map(|n| order(n, 1)));
    let mut seen = bench.at(0);
    for tick in 1..10 {
        seen.extend(bench.at(tick * 10));
    }
    let sequences: Vec<u64> = seen.iter().map(|r| r.id.sequence()).collect();
    assert_eq!(sequences, [0, 1, 2, 3, 4, 5]);
    assert!(bench.gateway.outbox.full >= 1);
    assert_eq!(bench.gateway.outbox.completed, 6);
}

#[test]
fn a_dead_strategys_orders_are_cancelled_at_once() {
    let mut bench = bench(64, 64);
    let of = |strategy, epoch, n| Order { id: OrderId::new(strategy, epoch, n), ..order(n, 1000) };
    bench.send([of(0, 0, 0), of(1, 0, 0), of(0, 1, 0), of(0, 0, 1), of(0, 2, 0)]);
    assert_eq!(bench.at(1), []);
    let scope = CancelScope::for_strategy(OrderId::new(0, 1, 0));
    bench.inbox.try_push(&Instruction::CancelAll(scope).to_message()).unwrap();
    let mut reports = bench.at(2);
    reports.extend(bench.at(3));
    assert!(reports.iter().all(|report| report.status == OrderStatus::Cancelled && report.filled == 0));
    let ids: Vec<_> = reports.iter().map(|report| (report.id.epoch(), report.id.sequence())).collect();
    assert_eq!(ids, [(0, 0), (1, 0), (0, 1)], "its own, up to that epoch");
    assert_eq!(bench.log().iter().filter(|record| record.point == Point::Cancelled).count(), 3);
    let left = bench.at(2000);
    assert_eq!(left.iter().map(|report| report.id.strategy()).collect::<Vec<_>>(), [1, 0]);
    assert!(left.iter().all(|report| report.status == OrderStatus::Filled));
    assert_eq!(bench.deadline(), u64::MAX);
}

#[test]
fn a_full_gateway_leaves_orders_in_the_inbox() {
    let mut bench = bench(64, 2);
    bench.send((0..3).map(|n| order(n, 100)));
    assert_eq!(bench.at(0), []);
    assert_eq!(bench.gateway.received, 2);
    assert_eq!(bench.at(100).len(), 2);
    assert_eq!(bench.gateway.received, 3);
}

/// Reports each order twice: at once, and `GAP` ticks later. What finds no room it keeps.
struct Twice {
    held: TimerWheel<Order>,
    lies: bool,
}

const GAP: u64 = 100;

impl Venue for Twice {
    const INFO: VenueInfo =
        VenueInfo { reports_per_order: 2, immediate_reports: 1, announces_release: false };

    fn has_capacity(&self) -> bool {
        !self.held.is_full()
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        self.held.push(now + GAP, *order);
        let number = if self.lies { 2 } else { 0 };
        let accepted =
            Report { status: OrderStatus::Accepted, filled: 0, number, is_last: false, ..in_full(order) };
        reports.send(accepted).expect("promised");
        None
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        while reports.has_capacity() {
            let Some(order) = self.held.pop_due(now) else { break };
            reports.send(Report { number: 1, ..in_full(&order) }).expect("asked before");
            if self.lies {
                // One more than it has room for an order.
                let _ = reports.send(Report { number: 1, ..in_full(&order) });
            }
        }
    }

    fn next_deadline(&self) -> u64 {
        self.held.next_release()
    }

    fn try_cancel_all(&mut self, _: &mut CancelSweep, _: &mut impl Reports) -> bool {
        true
    }
}

fn twice(completion_capacity: usize, max_held: usize) -> Bench<Twice> {
    bench_of(completion_capacity, Twice { held: TimerWheel::with_capacity(max_held), lies: false })
}

fn numbers(reports: &[Report]) -> Vec<(u64, u8, bool)> {
    reports.iter().map(|report| (report.id.sequence(), report.number, report.is_last)).collect()
}

#[test]
fn an_order_has_several_reports_and_each_its_stamp() {
    let mut bench = twice(64, 8);
    bench.send([order(0, 0), order(1, 0)]);
    assert_eq!(numbers(&bench.at(10)), [(0, 0, false), (1, 0, false)], "at once");
    assert_eq!(bench.deadline(), 110);
    assert_eq!(bench.at(109), []);
    assert_eq!(numbers(&bench.at(110)), [(0, 1, true), (1, 1, true)]);
    assert_eq!(bench.deadline(), u64::MAX);
    // t4 and two t5 each, what was filled, and no release: this venue returns none.
    let points: Vec<(Point, u64, u8)> =
        bench.log().into_iter().map(|record| (record.point, record.value, record.detail)).collect();
    let more = 1 << 7;
    let accepted = [(Point::GatewayRecv, 10, 0), (Point::GatewayDone, 10, more)];
    let filled = [(Point::GatewayDone, 110, 1), (Point::FillQuantity, 5, 1), (Point::FillPrice, 100, 1)];
    assert_eq!(points, [[accepted; 2].concat(), [filled; 2].concat()].concat());
}

/// Immediate reports fit: a gateway with queued reports takes no order that is reported
/// immediately.
#[test]
fn reports_at_once_find_room() {
    let mut bench = twice(2, 64);
    bench.send((0..60).map(|n| order(n, 0)));
    let mut seen = Vec::new();
    for tick in 1..200 {
        let reports = bench.at(tick * 10);
        assert!(bench.gateway.outbox.remaining() <= OUTBOX_CAPACITY);
        seen.extend(reports);
    }
    assert_eq!(seen.len(), 120);
    for n in 0..60 {
        let numbers = seen.iter().filter(|report| report.id.sequence() == n).map(|report| report.number);
        assert!(numbers.eq([0, 1]), "order {n}");
    }
    assert_eq!(bench.gateway.outbox.refused, 0);
}

/// The logs have capacity for the number in the venue's record, so more is not sent.
#[test]
fn reports_beyond_its_record_are_refused_and_counted() {
    let mut bench = twice(64, 64);
    bench.gateway.venue.lies = true;
    bench.send((0..4).map(|n| order(n, 0)));
    let mut seen = bench.at(1);
    assert_eq!(seen.len(), 4, "a number too high is for the merge to find: there is room");
    for tick in 1..10 {
        seen.extend(bench.at(tick * 100 + 1));
    }
    assert_eq!(seen.len(), 8, "two an order, and no more");
    assert_eq!(bench.gateway.outbox.refused, 4);
    bench.send([order(9, 0)]);
    bench.at(2_000);
    bench.at(3_000);
    assert_eq!(bench.gateway.outbox.refused, 7, "what was too many before is missing now");
    assert_eq!(bench.gateway.outbox.completed, 15, "something was handed over for each");
}

fn report_of(n: u64) -> Report {
    in_full(&order(n, 0))
}

const HARMFUL: u64 = 12;

/// Returns what two gateways hand over, the second in place of the first, which crashes before it
/// releases what it has taken. Every third message of the exchange is invalid; a defect does not
/// count those of the first gateway.
fn with_harmful_exchange(are_invalid_counted: bool) -> Vec<Option<Report>> {
    let ring = || {
        let words = Region::heap(spsc::ring_words(64, MESSAGE_WORDS)).words();
        spsc::write_header::<MESSAGE_WORDS>(&words, 64);
        words
    };
    let (out, back, completion) = (ring(), ring(), ring());
    let mut exchange = spsc::Producer::<MESSAGE_WORDS>::attach(&back).unwrap();
    let mut received = spsc::Consumer::<MESSAGE_WORDS>::attach(&completion).unwrap();
    let mut cycle = cycle(&Region::heap(LOG_OFFSET + 4096).words());
    for (life, turns) in [(0, 1), (1, 3)] {
        for n in life * HARMFUL / 2..(life + 1) * HARMFUL / 2 {
            let mut message = report_of(n).to_message();
            if n % 3 == 2 {
                message[1..].fill(u64::MAX - n);
            }
            exchange.try_push(&message).unwrap();
        }
        let handed_over = spsc::Producer::resume(&completion).unwrap();
        let uncounted = if are_invalid_counted { 0 } else { life * HARMFUL / 6 };
        let completed = handed_over.published() - uncounted;
        let mut reports = spsc::Consumer::resume(&back).unwrap();
        reports.skip_to(completed);
        let session = SessionVenue::new(spsc::Producer::resume(&out).unwrap(), None, reports);
        let (_orders, inbox) = spsc::heap_ring::<MESSAGE_WORDS>(64);
        let resume_point = GatewayResumePoint { orders: HARMFUL, completed, ..GatewayResumePoint::default() };
        let gateway = Gateway::new(0, inbox, SpscMuxProducer(handed_over), None, session);
        let mut gateway = gateway.resume_from(resume_point);
        (0..turns).for_each(|_| _ = gateway.duty_cycle(&mut cycle));
    }
    let handed_over = std::iter::from_fn(|| received.try_pop().unwrap());
    handed_over.map(|message| Report::from_message(message).ok()).collect()
}

#[test]
fn invalid_reports_are_counted() {
    let wanted: Vec<_> = (0..HARMFUL).map(|n| (n % 3 != 2).then(|| report_of(n))).collect();
    assert_eq!(with_harmful_exchange(true), wanted);
    assert_ne!(with_harmful_exchange(false), wanted, "reports come twice");
}
