//! An exchange that crashes before any stamp or trade and recovers from its journal: its gateways
//! receive each report in the journal once, and the journal has every order. The expected reports
//! come from an exchange that gets only the journal, and sends everything.

mod standby;

use core::cell::Cell;
use exchange::{Capacity, Exchange, Instrument};
use journal::{Disk, Durability, Options};
use proptest::prelude::*;
use protocol::agent::{Agent, Cycle};
use protocol::log_scan::LogTotals;
use protocol::session::{SessionNumbers, number_instruction, report_number};
use protocol::stamps::{Point, Record, StampLog, TopOfBookWritten};
use protocol::status::LOG_OFFSET;
use protocol::wire::{Instruction, Message, Operation, Order, OrderId, Report, Side};
use shm::board;
use shm::memory::{AtomicWords, Region};
use shm::ring::spsc;
use standby::StandbyReplica;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use system::clock::{CrashClock, Timebase};
use venue::{ExchangeAgent, MarketBoard, MarketSetup, OutputWatermarks, SessionEnd, Trade, TradeTape};

const CAPACITY: usize = 64;
/// Slots of the report rings: few, so that stamped reports are queued when their exchange dies.
const REPORT_SLOTS: usize = 2;
const OPEN_ORDERS: usize = 256;
const SESSIONS: usize = 2;

/// The memory that survives a crash of the exchange.
pub struct SurvivingMemory {
    /// Instructions and reports of each session.
    rings: Vec<[AtomicWords; 2]>,
    log: AtomicWords,
    board: AtomicWords,
    tape: Arc<Mutex<Vec<(u64, u64, u64)>>>,
    /// The disk of its journal.
    pub disk: Arc<dyn Disk>,
}

pub struct SharedTape(Arc<Mutex<Vec<(u64, u64, u64)>>>);

impl TradeTape for SharedTape {
    fn trade(&mut self, trade: &Trade, _: u64) {
        self.0.lock().unwrap().push((trade.maker, trade.taker, trade.quantity));
    }

    fn close(&mut self, _: &Exchange) {}
}

fn ring(capacity: usize) -> AtomicWords {
    let words = Region::heap(spsc::ring_words(capacity, 7)).words();
    spsc::write_header::<7>(&words, capacity);
    words
}

/// The behavior of a successor. `Correct` and the variants with snapshots or a follower must
/// recover; the others are defective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Successor {
    Correct,
    /// Sends every report again.
    ResendsReports,
    /// Stamps every report again.
    RestampsReports,
    /// Assumes that the last order's trigger is in the log.
    SkipsTrigger,
    /// Has lost its journal.
    HasNoJournal,
    /// Recovers from a snapshot.
    HasSnapshots,
    /// Finds the newest of them damaged.
    HasDamagedSnapshot,
    /// Has followed its predecessor.
    FollowsJournal,
    /// Has followed its predecessor, and counts all reports as sent.
    ForgetsReports,
}

impl SurvivingMemory {
    pub fn new() -> Self {
        Self {
            rings: (0..SESSIONS).map(|_| [ring(CAPACITY), ring(REPORT_SLOTS)]).collect(),
            log: Region::heap(LOG_OFFSET + (1 << 14)).words(),
            board: board::heap(protocol::market::shape(1).unwrap()),
            tape: Arc::default(),
            disk: Arc::new(journal::OsDisk),
        }
    }

    pub fn exchange(
        &self,
        folder: &Path,
        durability: Durability,
        successor: Successor,
        follower: Option<ReplicaFollower>,
    ) -> Result<ExchangeAgent<SharedTape>, String> {
        let session = |[orders, reports]: &[AtomicWords; 2]| {
            let producer = match successor {
                Successor::ResendsReports => spsc::Producer::attach(reports),
                _ => spsc::Producer::resume(reports),
            };
            SessionEnd::new(
                spsc::Consumer::resume(orders).unwrap(),
                producer.unwrap(),
                None,
                SessionEnd::queue(OPEN_ORDERS),
            )
        };
        let sessions = self.rings.iter().map(session).collect();
        let tape = SharedTape(Arc::clone(&self.tape));
        let (standby, reader) = match follower.map(ReplicaFollower::into_parts) {
            Some((standby, reader)) => (standby, Some(reader)),
            None => (venue::ExchangeReplica::new(setup(), time()), None),
        };
        let board = MarketBoard::new(0, board::Writer::attach(&self.board).unwrap());
        let mut logged = LogTotals::new(1);
        logged.scan(&self.log.clone().into());
        let mut watermarks = OutputWatermarks {
            orders_stamped: logged.count(Point::ExchangeRecv),
            last_stamped: logged.last(Point::ExchangeRecv),
            reports_stamped: logged.count(Point::ExchangeDone),
            trades: self.tape.lock().unwrap().len() as u64,
            last_triggered: logged.last(Point::Trigger),
            touches: logged.versions().to_vec(),
        };
        match successor {
            Successor::RestampsReports => watermarks.reports_stamped = 0,
            Successor::SkipsTrigger => watermarks.last_triggered = watermarks.last_stamped,
            Successor::HasNoJournal => std::fs::remove_dir_all(folder).unwrap_or(()),
            Successor::HasDamagedSnapshot => {
                let files = std::fs::read_dir(folder).unwrap().flatten().map(|file| file.path());
                let is_one = |path: &std::path::PathBuf| path.to_str().unwrap().contains("snapshot-0");
                if let Some(newest) = files.filter(is_one).max() {
                    let mut bytes = std::fs::read(&newest).unwrap();
                    *bytes.last_mut().unwrap() ^= 1;
                    std::fs::write(newest, bytes).unwrap();
                }
            }
            _ => {}
        }
        let disk = Arc::clone(&self.disk);
        let options = Options { durability, segment_bytes: 1 << 16, disk, ..Options::default() };
        let agent = standby.promote(reader, (folder, &options), &watermarks, (sessions, tape, Some(board)));
        agent.map_err(|error| error.to_string())
    }
}

fn setup() -> MarketSetup {
    let exchange = Exchange::new(&[Instrument::default()], Capacity::for_orders(OPEN_ORDERS)).unwrap();
    let capacity = OPEN_ORDERS;
    MarketSetup { venue: 0, exchange, instruments: 1, sessions: SESSIONS, capacity, sequencer: None }
}

pub type ReplicaFollower = journal::JournalFollower<venue::ExchangeReplica>;

impl SurvivingMemory {
    fn received(self, gateways: GatewayEnds) -> RunOutput {
        let word = |offset: usize| self.log[LOG_OFFSET + offset].load(shm::sync::Ordering::Relaxed);
        let records = (0..).map(|record| Record::from_words(word(2 * record), word(2 * record + 1)));
        let records: Vec<Record> = records.map_while(|record| record).collect();
        let of_trigger = records.iter().filter(|record| record.point == Point::Trigger);
        let mut triggers: Vec<(OrderId, u64)> = of_trigger.map(|record| (record.id, record.value)).collect();
        triggers.sort();
        let versions =
            records.iter().filter_map(TopOfBookWritten::from_record).map(|written| written.version).collect();
        let last_version = board::Writer::attach(&self.board).unwrap().version(0);
        let stamps = records.iter().map(|record| (record.point, record.id, record.detail));
        let trades = self.tape.lock().unwrap().clone();
        let mut stamps: Vec<_> = stamps.collect();
        stamps.sort();
        RunOutput { reports: gateways.received, trades, stamps, triggers, versions, last_version }
    }
}

fn session_of(order: &Order) -> usize {
    order.id.strategy().as_usize() % SESSIONS
}

const fn time() -> Timebase {
    Timebase { start_ticks: 0, ns_per_tick: 1.0 }
}

/// The gateways' ends of the sessions.
pub struct GatewayEnds {
    orders: Vec<(spsc::Producer, SessionNumbers)>,
    reports: Vec<(spsc::Consumer, SessionNumbers)>,
    /// By session.
    pub received: Vec<Vec<Report>>,
}

impl GatewayEnds {
    pub fn new(memory: &SurvivingMemory) -> Self {
        let orders = |[orders, _]: &[AtomicWords; 2]| {
            (spsc::Producer::attach(orders).unwrap(), SessionNumbers::default())
        };
        let reports = |[_, reports]: &[AtomicWords; 2]| {
            (spsc::Consumer::attach(reports).unwrap(), SessionNumbers::default())
        };
        Self {
            orders: memory.rings.iter().map(orders).collect(),
            reports: memory.rings.iter().map(reports).collect(),
            received: vec![Vec::new(); SESSIONS],
        }
    }

    /// Sends an order; `false`: the session is full.
    pub fn try_send(&mut self, order: &Order) -> bool {
        let (ring, numbers) = &mut self.orders[session_of(order)];
        if !ring.has_room() {
            return false;
        }
        let mut message: Message = Instruction::Order(*order).to_message();
        number_instruction(&mut message, numbers.next_number());
        ring.try_push(&message).is_ok()
    }

    pub fn receive_reports(&mut self) -> Result<(), String> {
        for ((ring, numbers), received) in self.reports.iter_mut().zip(&mut self.received) {
            while let Some(message) = ring.try_pop().map_err(|fault| format!("{fault:?}"))? {
                if !numbers.try_accept(report_number(&message)) {
                    return Err(format!("report {} is not the next", report_number(&message)));
                }
                received.push(Report::from_message(message).map_err(|error| format!("{error:?}"))?);
            }
        }
        Ok(())
    }
}

/// Returns the results of a run with crashes after these numbers of clock reads.
#[derive(Debug, PartialEq)]
struct RunOutput {
    /// By session.
    reports: Vec<Vec<Report>>,
    trades: Vec<(u64, u64, u64)>,
    /// Orders and reports that have their stamp, in the order of the log.
    stamps: Vec<(Point, OrderId, u8)>,
    /// Orders whose trigger is in the log.
    triggers: Vec<(OrderId, u64)>,
    /// Versions of the touch in the log, and the board's last one.
    versions: Vec<u64>,
    last_version: u64,
}

fn run_with_crashes(
    orders: &[Order],
    crash_points: &[u64],
    durability: Durability,
    successor: Successor,
) -> Result<(RunOutput, RunOutput, usize), String> {
    let folder = tempfile::tempdir().unwrap();
    let (memory, mut unsent) = (SurvivingMemory::new(), orders.iter());
    let mut gateways = GatewayEnds::new(&memory);
    let (mut waiting, mut crashes) = (unsent.next(), 0);
    let mut remaining_crash_points = crash_points.iter().copied();
    let mut crash_at = remaining_crash_points.next().unwrap_or(u64::MAX);
    let mut agent = memory.exchange(folder.path(), durability, Successor::Correct, None)?;
    let mut standby = StandbyReplica::new(successor);
    let reads = Rc::new(Cell::new(0));
    let (mut idle, mut cycles) = (0, 0);
    while idle < 3 {
        cycles += 1;
        if cycles > 100_000 {
            return Err("the run does not end".into());
        }
        for _ in 0..5 {
            if waiting.is_some_and(|order| gateways.try_send(order)) {
                waiting = unsent.next();
            }
        }
        let clock = CrashClock { reads: Rc::clone(&reads), crash_at };
        let work =
            catch_unwind(AssertUnwindSafe(|| run_cycle(&memory, &mut agent, clock, waiting.is_none())));
        idle = if work.as_ref().is_ok_and(|work| *work == 0) && waiting.is_none() { idle + 1 } else { 0 };
        if work.is_err() {
            crashes += 1;
            // As after SIGKILL: nothing is closed, but the kernel unlocks the journal.
            drop(agent);
            agent = memory.exchange(folder.path(), durability, successor, standby.take())?;
            reads.set(0);
            crash_at = remaining_crash_points.next().unwrap_or(u64::MAX);
        }
        standby.run_cycle(&memory, folder.path());
        gateways.receive_reports()?;
    }
    drop(agent);
    let expected = expected_output(standby.archive.path(), orders);
    Ok((memory.received(gateways), expected, crashes))
}

/// Runs a duty cycle. Returns its work, including queued reports.
pub fn run_cycle(
    memory: &SurvivingMemory,
    agent: &mut ExchangeAgent<SharedTape>,
    clock: CrashClock,
    draining: bool,
) -> usize {
    let mut cycle = Cycle { clock, now: 0, time: time(), draining, log: StampLog::new(&memory.log) };
    let work = agent.duty_cycle(&mut cycle);
    // A deadline of 0: more work is due, or reports wait for the disk.
    work + usize::from(Agent::<CrashClock>::next_deadline(agent, false) == 0)
}

/// Returns the reports that an exchange derives from a journal alone.
fn expected_output(folder: &Path, orders: &[Order]) -> RunOutput {
    let memory = SurvivingMemory::new();
    for (session, [ring, _]) in memory.rings.iter().enumerate() {
        // The ring's cursors are past all orders.
        let mut ends =
            (spsc::Producer::<7>::attach(ring).unwrap(), spsc::Consumer::<7>::attach(ring).unwrap());
        for _ in orders.iter().filter(|order| session_of(order) == session) {
            ends.0.try_push(&[0; 7]).unwrap();
            ends.1.try_pop().unwrap();
        }
    }
    let mut gateways = GatewayEnds::new(&memory);
    let mut agent = memory.exchange(folder, PROCESS, Successor::Correct, None).unwrap();
    let clock = CrashClock { crash_at: u64::MAX, ..CrashClock::default() };
    for _ in 0..1000 {
        if run_cycle(&memory, &mut agent, clock.clone(), true) == 0 {
            break;
        }
        gateways.receive_reports().unwrap();
    }
    memory.received(gateways)
}

/// Draws orders, cancels and replaces of four strategies at a few prices.
fn random_orders() -> impl Strategy<Value = Vec<Order>> {
    let input = (0u16..4, 0u8..10, 95i64..105, 1u64..20, any::<bool>());
    prop::collection::vec(input, 1..120).prop_map(|drawn| {
        let mut next = [0u64; 4];
        let order = |(strategy, what, price, quantity, buys): (u16, u8, i64, u64, bool)| {
            let sequence = next[usize::from(strategy)];
            next[usize::from(strategy)] += 1;
            let mut order = Order::new(OrderId::new(strategy, 0, sequence), 0);
            (order.request.price, order.request.quantity) = (price, quantity);
            order.request.side = if buys { Side::Buy } else { Side::Sell };
            order.request.operation = match what {
                0 => Operation::Cancel,
                1 => Operation::Replace,
                _ => Operation::New,
            };
            order.request.trigger = if quantity % 3 == 0 { 1 + sequence } else { 0 };
            order.request.target = sequence.saturating_sub(u64::from(what) + quantity % 3);
            order
        };
        drawn.into_iter().map(order).collect()
    })
}

/// Returns the first difference from the expected output, if there is one.
fn difference(orders: &[Order], received: &RunOutput, expected: &RunOutput) -> Option<String> {
    // An exchange that has only the journal stamps no order, because it receives none.
    let stamps_at = |received: &RunOutput, point| {
        received.stamps.iter().filter(|stamp| stamp.0 == point).copied().collect::<Vec<_>>()
    };
    if received.reports != expected.reports {
        return Some("reports are not those of the journal".into());
    }
    if received.trades != expected.trades {
        return Some("trades are not those of the journal".into());
    }
    if stamps_at(received, Point::ExchangeDone) != stamps_at(expected, Point::ExchangeDone) {
        return Some("stamps of reports are not those of the journal".into());
    }
    let stamped: Vec<OrderId> =
        stamps_at(received, Point::ExchangeRecv).into_iter().map(|(_, id, _)| id).collect();
    let mut sent: Vec<OrderId> = orders.iter().map(|order| order.id).collect();
    sent.sort();
    if stamped != sent {
        return Some("not every order has its stamp once".into());
    }
    let triggered = orders.iter().filter(|order| order.request.trigger > 0);
    let mut triggers: Vec<(OrderId, u64)> =
        triggered.map(|order| (order.id, order.request.trigger)).collect();
    triggers.sort();
    if received.triggers != triggers {
        return Some("not every trigger is in the log once".into());
    }
    if !received.versions.iter().copied().eq(1..=received.last_version) {
        return Some("not every version of the touch is in the log once".into());
    }
    let mut answered: Vec<OrderId> =
        received.reports.iter().flatten().filter(|report| report.is_last).map(|report| report.id).collect();
    answered.sort();
    (answered != sent).then(|| "not every order has its last report once".into())
}

const PROCESS: Durability = Durability::Process;

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gateways_receive_reports_of_journal(
        orders in random_orders(),
        crash_points in prop::collection::vec(1u64..80, 0..6),
    ) {
        let (orders, crash_points) = (&orders, &crash_points);
        let found = std::thread::scope(|scope| {
            let successors = [
                Successor::Correct,
                Successor::HasSnapshots,
                Successor::HasDamagedSnapshot,
                Successor::FollowsJournal,
            ];
            let runs = successors.map(|successor| {
                scope.spawn(move || {
                    let (received, expected, _) =
                        run_with_crashes(orders, crash_points, PROCESS, successor).unwrap();
                    (successor, difference(orders, &received, &expected))
                })
            });
            runs.map(|run| run.join().unwrap())
        });
        for (successor, difference) in found {
            prop_assert_eq!(difference, None, "{:?}", successor);
        }
    }
}

/// Returns orders that trade, and crash points spread over the run.
pub fn load() -> (Vec<Order>, Vec<u64>) {
    let order = |n: u64| {
        let mut order = Order::new(OrderId::new((n % 4) as u16, 0, n / 4), 0);
        (order.request.price, order.request.quantity, order.request.trigger) =
            (100 + (n % 5) as i64, 1 + n % 7, n % 3);
        order.request.side = if n.is_multiple_of(2) { Side::Buy } else { Side::Sell };
        order
    };
    ((0..200).map(order).collect(), (0..40).map(|n| 1 + n % 17).collect())
}

#[test]
fn defective_successor_is_detected() {
    let (orders, crash_points) = load();
    let (received, expected, died) =
        run_with_crashes(&orders, &crash_points, PROCESS, Successor::Correct).unwrap();
    assert_eq!(died, crash_points.len());
    assert_eq!(difference(&orders, &received, &expected), None);
    let without_journal = run_with_crashes(&orders, &crash_points, PROCESS, Successor::HasNoJournal);
    assert!(without_journal.is_err_and(|error| error.contains("incomplete")));
    for successor in [
        Successor::ResendsReports,
        Successor::RestampsReports,
        Successor::SkipsTrigger,
        Successor::ForgetsReports,
    ] {
        let result = run_with_crashes(&orders, &crash_points, PROCESS, successor);
        assert!(
            result.is_err()
                || result
                    .is_ok_and(|(received, expected, _)| difference(&orders, &received, &expected).is_some()),
            "{successor:?}"
        );
    }
}

/// Reports that wait for the disk do not change the result.
#[test]
fn group_commit_gives_equal_results() {
    let (orders, crash_points) = load();
    let group = Durability::GroupCommit { records: 8, within: Duration::from_micros(100) };
    for successor in [Successor::Correct, Successor::HasSnapshots, Successor::FollowsJournal] {
        let (received, expected, died) =
            run_with_crashes(&orders, &crash_points[..10], group, successor).unwrap();
        assert_eq!((died, difference(&orders, &received, &expected)), (10, None), "{successor:?}");
    }
}
