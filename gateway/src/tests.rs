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

struct GatewayBench<V> {
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

fn bench_with_venue<V: Venue>(completion_capacity: usize, venue: V) -> GatewayBench<V> {
    let (inbox, inbox_end) = spsc::heap_ring::<MESSAGE_WORDS>(64);
    let (completion, completion_end) = spsc::heap_ring::<MESSAGE_WORDS>(completion_capacity);
    let segment = Region::heap(LOG_OFFSET + 4096).words();
    let gateway = Gateway::new(0, inbox_end, SpscMuxProducer(completion), None, venue);
    GatewayBench { gateway, inbox, completion: completion_end, cycle: cycle(&segment), segment }
}

fn bench(completion_capacity: usize, max_held: usize) -> GatewayBench<DelayVenue> {
    bench_with_venue(completion_capacity, DelayVenue::with_capacity(InFull, max_held))
}

impl<V: Venue> GatewayBench<V> {
    fn send(&mut self, orders: impl IntoIterator<Item = Order>) {
        for order in orders {
            self.inbox.try_push(&order.to_message()).unwrap();
        }
    }

    fn run_at(&mut self, ticks: u64) -> Vec<Report> {
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
    assert_eq!(bench.run_at(10), []);
    assert_eq!(bench.deadline(), 110);
    assert_eq!(bench.run_at(109), []);
    let early = bench.run_at(110);
    assert_eq!(early.iter().map(|r| r.id.sequence()).collect::<Vec<_>>(), [1], "the shorter delay first");
    assert_eq!((early[0].status, early[0].filled), (OrderStatus::Filled, 5));
    assert_eq!(bench.run_at(600).len(), 1);
    assert_eq!(bench.deadline(), u64::MAX);
}

#[test]
fn full_completion_ring_delays_reports_without_loss() {
    let mut bench = bench(2, 8);
    bench.send((0..6).map(|n| order(n, 1)));
    let mut seen = bench.run_at(0);
    for tick in 1..10 {
        seen.extend(bench.run_at(tick * 10));
    }
    let sequences: Vec<u64> = seen.iter().map(|r| r.id.sequence()).collect();
    assert_eq!(sequences, [0, 1, 2, 3, 4, 5]);
    assert!(bench.gateway.outbox.full >= 1);
    assert_eq!(bench.gateway.outbox.completed, 6);
}

#[test]
fn orders_of_dead_strategy_are_cancelled_immediately() {
    let mut bench = bench(64, 64);
    let order_of = |strategy, epoch, n| Order { id: OrderId::new(strategy, epoch, n), ..order(n, 1000) };
    bench.send([
        order_of(0, 0, 0),
        order_of(1, 0, 0),
        order_of(0, 1, 0),
        order_of(0, 0, 1),
        order_of(0, 2, 0),
    ]);
    assert_eq!(bench.run_at(1), []);
    let scope = CancelScope::for_strategy(OrderId::new(0, 1, 0));
    bench.inbox.try_push(&Instruction::CancelAll(scope).to_message()).unwrap();
    let mut reports = bench.run_at(2);
    reports.extend(bench.run_at(3));
    assert!(reports.iter().all(|report| report.status == OrderStatus::Cancelled && report.filled == 0));
    let ids: Vec<_> = reports.iter().map(|report| (report.id.epoch(), report.id.sequence())).collect();
    assert_eq!(ids, [(0, 0), (1, 0), (0, 1)], "the strategy's own, up to the dead epoch");
    assert_eq!(bench.log().iter().filter(|record| record.point == Point::Cancelled).count(), 3);
    let remaining = bench.run_at(2000);
    assert_eq!(remaining.iter().map(|report| report.id.strategy().0).collect::<Vec<_>>(), [1, 0]);
    assert!(remaining.iter().all(|report| report.status == OrderStatus::Filled));
    assert_eq!(bench.deadline(), u64::MAX);
}

#[test]
fn full_gateway_leaves_orders_in_inbox() {
    let mut bench = bench(64, 2);
    bench.send((0..3).map(|n| order(n, 100)));
    assert_eq!(bench.run_at(0), []);
    assert_eq!(bench.gateway.received, 2);
    assert_eq!(bench.run_at(100).len(), 2);
    assert_eq!(bench.gateway.received, 3);
}

/// A venue that reports each order twice: immediately, and `GAP` ticks later. Reports without space
/// stay queued.
struct TwoReportVenue {
    held: TimerWheel<Order>,
    exceeds_report_limit: bool,
}

const GAP: u64 = 100;

impl Venue for TwoReportVenue {
    const INFO: VenueInfo =
        VenueInfo { reports_per_order: 2, immediate_reports: 1, reports_release_time: false };

    fn has_capacity(&self) -> bool {
        !self.held.is_full()
    }

    fn accept(&mut self, order: &Order, now: u64, reports: &mut impl Reports) -> Option<u64> {
        self.held.push(now + GAP, *order);
        let number = if self.exceeds_report_limit { 2 } else { 0 };
        let accepted =
            Report { status: OrderStatus::Accepted, filled: 0, number, is_last: false, ..in_full(order) };
        reports.send(accepted).expect("space for an immediate report");
        None
    }

    fn advance(&mut self, now: u64, reports: &mut impl Reports) {
        while reports.has_capacity() {
            let Some(order) = self.held.pop_due(now) else { break };
            reports.send(Report { number: 1, ..in_full(&order) }).expect("space was checked");
            if self.exceeds_report_limit {
                // One more report than it may send for an order.
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

fn two_report_bench(completion_capacity: usize, max_held: usize) -> GatewayBench<TwoReportVenue> {
    bench_with_venue(
        completion_capacity,
        TwoReportVenue { held: TimerWheel::with_capacity(max_held), exceeds_report_limit: false },
    )
}

fn numbers(reports: &[Report]) -> Vec<(u64, u8, bool)> {
    reports.iter().map(|report| (report.id.sequence(), report.number, report.is_last)).collect()
}

#[test]
fn each_report_of_an_order_is_stamped() {
    let mut bench = two_report_bench(64, 8);
    bench.send([order(0, 0), order(1, 0)]);
    assert_eq!(numbers(&bench.run_at(10)), [(0, 0, false), (1, 0, false)], "immediately");
    assert_eq!(bench.deadline(), 110);
    assert_eq!(bench.run_at(109), []);
    assert_eq!(numbers(&bench.run_at(110)), [(0, 1, true), (1, 1, true)]);
    assert_eq!(bench.deadline(), u64::MAX);
    // t4 and two t5 for each order, the fills, and no release: this venue returns none.
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
fn immediate_reports_always_have_space() {
    let mut bench = two_report_bench(2, 64);
    bench.send((0..60).map(|n| order(n, 0)));
    let mut seen = Vec::new();
    for tick in 1..200 {
        let reports = bench.run_at(tick * 10);
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

/// The logs have capacity for the number of reports in [`VenueInfo`], so more are not sent.
#[test]
fn excess_reports_are_refused_and_counted() {
    let mut bench = two_report_bench(64, 64);
    bench.gateway.venue.exceeds_report_limit = true;
    bench.send((0..4).map(|n| order(n, 0)));
    let mut seen = bench.run_at(1);
    assert_eq!(seen.len(), 4, "a wrong number is left to the merge while reports are owed");
    for tick in 1..10 {
        seen.extend(bench.run_at(tick * 100 + 1));
    }
    assert_eq!(seen.len(), 8, "two reports for each order, and no more");
    assert_eq!(bench.gateway.outbox.refused, 4);
    bench.send([order(9, 0)]);
    bench.run_at(2_000);
    bench.run_at(3_000);
    assert_eq!(bench.gateway.outbox.refused, 7, "the excess reports use up those of the new order");
    assert_eq!(bench.gateway.outbox.completed, 15, "each report or its placeholder was handed over");
}

fn report_of(n: u64) -> Report {
    in_full(&order(n, 0))
}

const REPORT_COUNT: u64 = 12;

/// Returns the reports of two gateways, the second of which resumes the first. The first crashes
/// before it releases its slots. Every third message of the exchange is invalid. Unless
/// `are_invalid_counted`, those of the first gateway are not counted.
fn reports_with_invalid_messages(are_invalid_counted: bool) -> Vec<Option<Report>> {
    let ring = || {
        let words = Region::heap(spsc::ring_words(64, MESSAGE_WORDS)).words();
        spsc::write_header::<MESSAGE_WORDS>(&words, 64);
        words
    };
    let (to_exchange, from_exchange, completion) = (ring(), ring(), ring());
    let mut exchange = spsc::Producer::<MESSAGE_WORDS>::attach(&from_exchange).unwrap();
    let mut received = spsc::Consumer::<MESSAGE_WORDS>::attach(&completion).unwrap();
    let mut cycle = cycle(&Region::heap(LOG_OFFSET + 4096).words());
    for (incarnation, cycles) in [(0, 1), (1, 3)] {
        for n in incarnation * REPORT_COUNT / 2..(incarnation + 1) * REPORT_COUNT / 2 {
            let mut message = report_of(n).to_message();
            if n % 3 == 2 {
                message[1..].fill(u64::MAX - n);
            }
            exchange.try_push(&message).unwrap();
        }
        let handed_over = spsc::Producer::resume(&completion).unwrap();
        let uncounted = if are_invalid_counted { 0 } else { incarnation * REPORT_COUNT / 6 };
        let completed = handed_over.published() - uncounted;
        let mut reports = spsc::Consumer::resume(&from_exchange).unwrap();
        reports.skip_to(completed);
        let session = SessionVenue::new(spsc::Producer::resume(&to_exchange).unwrap(), None, reports);
        let (_orders, inbox) = spsc::heap_ring::<MESSAGE_WORDS>(64);
        let resume_point =
            GatewayResumePoint { orders: REPORT_COUNT, completed, ..GatewayResumePoint::default() };
        let gateway = Gateway::new(0, inbox, SpscMuxProducer(handed_over), None, session);
        let mut gateway = gateway.resume_from(resume_point);
        (0..cycles).for_each(|_| _ = gateway.duty_cycle(&mut cycle));
    }
    let handed_over = std::iter::from_fn(|| received.try_pop().unwrap());
    handed_over.map(|message| Report::from_message(message).ok()).collect()
}

#[test]
fn invalid_reports_are_counted() {
    let expected: Vec<_> = (0..REPORT_COUNT).map(|n| (n % 3 != 2).then(|| report_of(n))).collect();
    assert_eq!(reports_with_invalid_messages(true), expected);
    assert_ne!(reports_with_invalid_messages(false), expected, "reports are repeated");
}
