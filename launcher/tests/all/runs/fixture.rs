//! A run's folder made up: plan, record and logs of an honest run, for tests to spoil before they write it.
//!
//! Every stage has a fixed length in ticks ([`STAGES`]), only the venue's delay varies, so the figures of a run
//! are known in advance. Logs hold their records in the order of the times, like real ones.
#![allow(dead_code)] // the bench uses less of it than the tests

use analysis::document::Document;
use analysis::machine::Machine;
use analysis::merge::Account;
use analysis::record::{Clock, Exit, Floor, InputRecord, OpenOrders, Outcome, RunRecord};
use protocol::counters::AGENT_WORDS;
use protocol::instrument::Instrument;
use protocol::plan::{ExchangePlacement, Idle, Pacing, Plan, Role, Threading, Trading};
use protocol::stamps::{HandOff, LinkEnd, Point, Record, TouchWritten, key};
use protocol::status::{COUNTERS_OFFSET, Field, LOG_OFFSET, STATUS_WORDS, StatusWriter, ThreadState};
use protocol::wire::OrderId;
use shm::memory::Region;
use shm::memory::header::{MAGIC, VERSION, run_hash};
use shm::sync::Ordering;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// Slip, submit, pre-dispatch, dispatch, lateness, completion, post-process, return; in ticks.
pub const STAGES: [u64; 8] = [100, 400, 60, 300, 50, 420, 80, 320];
/// Through a session to an exchange and back, in ticks.
pub const SESSION: [u64; 2] = [120, 90];
/// From the write of a touch to the t1 of the order that it triggers, in ticks.
pub const TICK: u64 = 60;
/// rt_venue of every order, in ticks: all stages but the slip and the venue (delay and lateness).
pub const RT_VENUE: u64 = 400 + 60 + 300 + 420 + 80 + 320;
/// Two ticks are a nanosecond.
pub const NS_PER_TICK: f64 = 0.5;
/// Time zero of the schedule.
pub const START: u64 = 1_000_000;

/// What kind of run.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub strategies: u16,
    pub venues: u16,
    /// Of each strategy.
    pub orders: u64,
    pub threading: Threading,
    pub pacing: Pacing,
    /// Every so many-th order of a strategy is rejected; 0: none.
    pub reject_every: u64,
    /// Ticks between two orders.
    pub period: u64,
    /// Every order is filled with its report, in one of two instruments.
    pub fills: bool,
    /// The venues are exchanges on threads of their own.
    pub book: bool,
    /// They write a touch for each order, [`TICK`] before it is sent, and that triggers it.
    pub market: bool,
    /// Delays go from `delay` to three times that, in ticks.
    pub delay: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            strategies: 2,
            venues: 2,
            orders: 20,
            threading: Threading::Dedicated,
            pacing: Pacing::Scheduled,
            reject_every: 0,
            period: 10_000,
            fills: false,
            book: false,
            market: false,
            delay: 50_000,
        }
    }
}

/// A run that is not yet written.
pub struct Fixture {
    pub record: RunRecord,
    /// Of each thread of the plan.
    pub logs: Vec<Vec<Record>>,
    pub statuses: Vec<[u64; STATUS_WORDS]>,
    /// What the agents of each thread counted.
    pub counters: Vec<Vec<u64>>,
    /// What stands behind all stamps of each log: the checksums of its ends of the links.
    pub sums: Vec<Vec<(LinkEnd, u64)>>,
}

impl Fixture {
    /// An honest run.
    pub fn new(shape: Shape) -> Self {
        let mut record = record(shape);
        let plan = &record.plan;
        let orchestrator = plan.thread_of(Role::Orchestrator).unwrap();
        let mut logs: Vec<Vec<Record>> = vec![Vec::new(); plan.threads.len()];
        let mut open_ticks = 0;
        let mut fills = Vec::new();
        let mut touches = Vec::new();
        let mut versions: BTreeMap<(u16, u16), u64> = BTreeMap::new();
        for sequence in 0..shape.orders {
            for strategy in 0..shape.strategies {
                let id = OrderId::new(strategy, 0, sequence);
                let number = sequence * u64::from(shape.strategies) + u64::from(strategy);
                let sender = plan.thread_of(Role::Strategy(strategy)).unwrap();
                let venue = (number % u64::from(shape.venues)) as u16;
                let gateway = plan.thread_of(Role::Gateway(venue)).unwrap();
                let mut push = |thread: usize, point, value| {
                    // A gateway names its venue with t4.
                    let detail = if point == Point::GatewayRecv { venue as u8 } else { 0 };
                    logs[thread].push(Record { point, id, detail, value });
                };

                let due = START + number * shape.period;
                let t1 = due + STAGES[0];
                let t2 = t1 + STAGES[1];
                if shape.pacing == Pacing::Scheduled {
                    push(sender, Point::Due, due);
                }
                push(sender, Point::StrategySend, t1);
                push(orchestrator, Point::OrchRecvSubmit, t2);
                let t6 = if shape.reject_every > 0 && (sequence + 1) % shape.reject_every == 0 {
                    push(orchestrator, Point::Rejected, 3);
                    t2
                } else {
                    let t3 = t2 + STAGES[2];
                    let t4 = t3 + STAGES[3];
                    let release = t4 + shape.delay + scatter(number) % (2 * shape.delay + 1);
                    let t5 = release + STAGES[4];
                    push(orchestrator, Point::OrchDispatch, t3);
                    push(gateway, Point::GatewayRecv, t4);
                    if shape.book {
                        let exchange = plan.thread_of(Role::Exchange(venue)).unwrap();
                        push(exchange, Point::ExchangeRecv, t4 + SESSION[0]);
                        if shape.market {
                            let instrument = if shape.fills { fill_of(number).0 } else { 0 };
                            let version = versions.entry((venue, instrument)).or_default();
                            *version += 1;
                            push(exchange, Point::Trigger, *version);
                            let ticks = t1 - TICK;
                            let written = TouchWritten { venue, instrument, version: *version, ticks };
                            touches.push((exchange, written.record()));
                        }
                        push(exchange, Point::ExchangeDone, t5 - SESSION[1]);
                    } else {
                        push(gateway, Point::Release, release);
                    }
                    push(gateway, Point::GatewayDone, t5);
                    if shape.fills {
                        let (instrument, quantity, price) = fill_of(number);
                        fills.push((t5 + STAGES[5], (strategy, instrument), (quantity, price)));
                        if instrument > 0 {
                            push(gateway, Point::Instrument, instrument.into());
                        }
                        push(gateway, Point::FillQuantity, quantity.cast_unsigned());
                        push(gateway, Point::FillPrice, price.cast_unsigned());
                    }
                    push(orchestrator, Point::OrchRecvCompletion, t5 + STAGES[5]);
                    t5 + STAGES[5]
                };
                let t8 = t6 + STAGES[6] + STAGES[7];
                push(orchestrator, Point::OrchReturn, t6 + STAGES[6]);
                push(sender, Point::StrategyRecv, t8);
                open_ticks += t8 - t1;
            }
        }
        touches.into_iter().for_each(|(thread, record)| logs[thread].push(record));
        for log in &mut logs {
            sort_by_event(log);
        }
        // In the order in which the orchestrator takes them.
        fills.sort_by_key(|(t6, ..)| *t6);
        let mut positions: BTreeMap<(u16, u16), Account> = BTreeMap::new();
        for (_, key, (quantity, price)) in fills {
            positions.entry(key).or_default().fill(quantity, price);
        }
        for ((strategy, instrument), account) in &positions {
            logs[orchestrator].extend(position(*strategy, *instrument, account));
        }
        let statuses = (0..logs.len()).map(|thread| status(&record, thread, &logs[thread])).collect();
        let counters =
            logs.iter().zip(&plan.threads).map(|(log, thread)| counters(log, &thread.roles)).collect();
        let sums = plan.threads.iter().map(|thread| sums(&thread.roles, shape)).collect();
        // As if the launcher had looked at every change.
        record.open_orders = Some(OpenOrders { samples: 200, order_ticks: open_ticks as f64, variance: 0.0 });
        Self { record, logs, statuses, counters, sums }
    }

    /// The thread of that name.
    pub fn thread(&self, name: &str) -> usize {
        self.record.plan.threads.iter().position(|thread| thread.name == name).unwrap()
    }

    /// Where a stamp stands: thread and place in its log.
    pub fn find(&self, point: Point, id: OrderId) -> (usize, usize) {
        let places = self.logs.iter().enumerate().flat_map(|(thread, log)| {
            let hit = log.iter().position(|record| record.point == point && record.id == id);
            hit.map(|place| (thread, place))
        });
        places.into_iter().next().unwrap()
    }

    /// Takes a stamp out.
    pub fn remove(&mut self, point: Point, id: OrderId) -> Record {
        let (thread, place) = self.find(point, id);
        self.logs[thread].remove(place)
    }

    /// Changes a stamp's value, without moving the record.
    pub fn set(&mut self, point: Point, id: OrderId, value: impl FnOnce(u64) -> u64) {
        let (thread, place) = self.find(point, id);
        let record = &mut self.logs[thread][place];
        record.value = value(record.value);
    }

    /// Swaps the places of the stamps of two orders, times included or not.
    pub fn swap(&mut self, point: Point, a: OrderId, b: OrderId) {
        let ((thread, i), (_, j)) = (self.find(point, a), self.find(point, b));
        self.logs[thread].swap(i, j);
    }

    /// Sets a word of a thread's status.
    pub fn status(&mut self, thread: &str, field: Field, value: u64) {
        let thread = self.thread(thread);
        self.statuses[thread][field as usize] = value;
    }

    /// Sets the counter of that name of the first agent of a thread.
    pub fn counter(&mut self, thread: &str, name: &str, value: u64) {
        let thread = self.thread(thread);
        let place = place_of(self.record.plan.threads[thread].roles[0], name);
        self.counters[thread][place] = value;
    }

    /// Marks the run as failed because a process was killed.
    pub fn fail(&mut self, process: &str) {
        let what = "signal 9 (SIGKILL)".to_owned();
        self.record.outcome = Outcome::Failed { process: process.into(), pid: 77, what: what.clone() };
        for exit in self.record.exits.iter_mut().filter(|exit| exit.process == process) {
            exit.how.clone_from(&what);
        }
    }

    /// The bytes of a thread's log.
    pub fn bytes(&self, thread: usize) -> Vec<u8> {
        let log = &self.logs[thread];
        let [front, behind] = self.around(thread, log.len() as u64);
        let records = log.iter().flat_map(Record::words).flat_map(u64::to_le_bytes);
        front.into_iter().chain(records).chain(behind).collect()
    }

    /// What stands before and behind so many records in a thread's log.
    pub fn around(&self, thread: usize, records: u64) -> [Vec<u8>; 2] {
        let mut words = vec![0; LOG_OFFSET];
        let capacity = records + 64;
        let bytes = (LOG_OFFSET as u64 + capacity * 2) * 8;
        let run = run_hash(&self.record.plan.run);
        let kind = protocol::status::KIND;
        let header = [MAGIC, VERSION, kind.layout, bytes, kind.code, capacity, 2, 1, 1, run, thread as u64];
        words[..header.len()].copy_from_slice(&header);
        words[16..16 + STATUS_WORDS].copy_from_slice(&self.statuses[thread]);
        words[COUNTERS_OFFSET..LOG_OFFSET].copy_from_slice(&self.counters[thread]);
        let sums = self.sums[thread].iter().flat_map(|(end, sum)| [key(Point::Checksum, end.id()), *sum]);
        let bytes = |words: &mut dyn Iterator<Item = u64>| words.flat_map(u64::to_le_bytes).collect();
        [bytes(&mut words.into_iter()), bytes(&mut sums.into_iter())]
    }

    /// Writes the folder.
    pub fn write(&self) -> TempDir {
        let folder = tempfile::Builder::new().prefix("bulkhead-test-").tempdir().unwrap();
        self.write_to(folder.path());
        folder
    }

    /// Writes the folder's files.
    pub fn write_to(&self, folder: &Path) {
        self.record.save(folder).unwrap();
        for (thread, plan) in self.record.plan.threads.iter().enumerate() {
            std::fs::write(folder.join(format!("{}.stamps", plan.name)), self.bytes(thread)).unwrap();
        }
    }
}

/// Log order is event order; a release is written together with its t4, a rejection with its t2.
pub fn sort_by_event(log: &mut [Record]) {
    let mut last_of = std::collections::HashMap::new();
    let mut keyed: Vec<(u64, Record)> = Vec::with_capacity(log.len());
    let is_done = |record: &&Record| record.point == Point::GatewayDone;
    let done_of: std::collections::HashMap<OrderId, u64> =
        log.iter().filter(is_done).map(|record| (record.id, record.value)).collect();
    for record in log.iter() {
        let when = match record.point {
            Point::Instrument | Point::FillQuantity | Point::FillPrice => done_of[&record.id],
            Point::Release | Point::Rejected | Point::Trigger => {
                last_of.get(&record.id).copied().unwrap_or(record.value)
            }
            _ => record.value,
        };
        if matches!(record.point, Point::OrchRecvSubmit | Point::GatewayRecv | Point::ExchangeRecv) {
            last_of.insert(record.id, when);
        }
        keyed.push((when, *record));
    }
    keyed.sort_by_key(|(when, _)| *when);
    for (slot, (_, record)) in log.iter_mut().zip(keyed) {
        *slot = record;
    }
}

/// What an order trades and is filled with: instrument, signed quantity, price.
pub fn fill_of(number: u64) -> (u16, i64, i64) {
    let drawn = scatter(number ^ 0xF111);
    let quantity = 1 + (drawn >> 8) as i64 % 500;
    (
        (drawn & 1) as u16,
        if drawn & 2 == 0 { quantity } else { -quantity },
        40_000 + (drawn >> 32) as i64 % 2_000,
    )
}

/// What the orchestrator says of an account in the end.
pub fn position(strategy: u16, instrument: u16, account: &Account) -> Vec<Record> {
    let id = OrderId::new(strategy, 0, instrument.into());
    let (cost, realised) = (account.cost.cast_unsigned(), account.realised.cast_unsigned());
    let low = |value: u128| value as u64;
    let figures = [
        account.net.cast_unsigned(),
        low(cost),
        low(cost >> 64),
        low(realised),
        low(realised >> 64),
        account.fills,
        0,
        0,
    ];
    let record = |(detail, value)| Record { point: Point::Position, id, detail, value };
    (0..).zip(figures).map(record).collect()
}

/// A number that looks random and is the same every time (splitmix64's finaliser).
pub fn scatter(number: u64) -> u64 {
    let z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The ends of links that the roles of a thread have: each link's sum is a number of its own.
fn sums(roles: &[Role], shape: Shape) -> Vec<(LinkEnd, u64)> {
    let sum = |end: LinkEnd| (end, scatter(end.hand_off as u64 * 1000 + u64::from(end.peer)));
    let of_role = |role: &Role| match *role {
        Role::Strategy(index) => {
            vec![
                sum(LinkEnd::sender(HandOff::Submit, index, 0)),
                sum(LinkEnd::receiver(HandOff::Return, index, 0)),
            ]
        }
        Role::Gateway(index) => vec![
            sum(LinkEnd::receiver(HandOff::Inbox, index, 0)),
            sum(LinkEnd::sender(HandOff::Completion, index, 0)),
        ],
        Role::Exchange(_) => Vec::new(),
        Role::Orchestrator => {
            let strategies = (0..shape.strategies).flat_map(|index| {
                [LinkEnd::receiver(HandOff::Submit, index, 0), LinkEnd::sender(HandOff::Return, index, 0)]
            });
            let inboxes = (0..shape.venues).map(|index| LinkEnd::sender(HandOff::Inbox, index, 0));
            let reported =
                (0..shape.venues).map(|index| sum(LinkEnd::sender(HandOff::Completion, index, 0)).1);
            let reported = reported.fold(0, u64::wrapping_add);
            let ends = strategies.chain(inboxes).map(sum);
            ends.chain([(LinkEnd::receiver(HandOff::Completion, 0, 0), reported)]).collect()
        }
    };
    roles.iter().flat_map(of_role).collect()
}

fn status(record: &RunRecord, thread: usize, log: &[Record]) -> [u64; STATUS_WORDS] {
    let mut words = [0; STATUS_WORDS];
    let mut set = |field: Field, value: u64| words[field as usize] = value;
    let end = log.iter().map(|record| record.value).max().unwrap_or(START);
    set(Field::State, ThreadState::Done as u64);
    set(Field::Pid, 4000 + thread as u64);
    set(Field::Tid, 4000 + thread as u64);
    set(Field::CorePlusOne, record.plan.threads[thread].core.map_or(0, |core| u64::from(core) + 1));
    set(Field::Cycles, 1000);
    set(Field::StartedTicks, START);
    set(Field::EndedTicks, end);
    set(Field::BusyTicks, (end - START) / 4);
    set(Field::LongestGapTicks, 12_000);
    set(Field::VoluntarySwitches, 2);
    set(Field::MinorFaults, 12);
    set(Field::CpuNs, (end - START) / 2);
    words
}

/// Where the counter of that name is in the words of an agent of that role.
fn place_of(role: Role, name: &str) -> usize {
    1 + role.record().counters.iter().position(|label| label.name == name).unwrap()
}

fn counters(log: &[Record], roles: &[Role]) -> Vec<u64> {
    let segment = Region::heap(LOG_OFFSET).words();
    StatusWriter::new(&segment).announce(roles);
    let mut words: Vec<u64> =
        segment[COUNTERS_OFFSET..].iter().map(|word| word.load(Ordering::Relaxed)).collect();
    let count = |point: Point| log.iter().filter(|record| record.point == point).count() as u64;
    for (agent, role) in roles.iter().enumerate() {
        let counted = match role {
            Role::Strategy(_) => [("sent", Point::StrategySend), ("returned", Point::StrategyRecv)],
            Role::Orchestrator => {
                [("dispatched", Point::OrchDispatch), ("settled", Point::OrchRecvCompletion)]
            }
            Role::Gateway(_) => [("received", Point::GatewayRecv), ("completed", Point::GatewayDone)],
            Role::Exchange(_) => [("received", Point::ExchangeRecv), ("completed", Point::ExchangeDone)],
        };
        for (name, point) in counted {
            words[agent * AGENT_WORDS + place_of(*role, name)] = count(point);
        }
        if matches!(role, Role::Strategy(_)) {
            words[agent * AGENT_WORDS + place_of(*role, "in-flight-peak")] = 4;
        }
    }
    words
}

fn record(shape: Shape) -> RunRecord {
    let plan = plan(shape);
    plan.validate().unwrap();
    let exits = plan.processes.iter().enumerate().map(|(index, process)| Exit {
        process: process.name.clone(),
        pid: 4000 + index as u32,
        how: "exit 0".into(),
        usage: None,
    });
    let [before_ns, after_ns, out_of_step_ns] = [104.0, 106.0, 210.0].map(Some);
    RunRecord {
        version: "0.1.0".into(),
        started: "2026-11-20T06:15:02Z".into(),
        machine: Machine { hostname: "host".into(), cpu_model: "a processor".into(), ..Machine::default() },
        input: InputRecord {
            arrivals: "uniform".into(),
            seed: 1,
            hash: "0123456789abcdef".into(),
            offered_per_s: (shape.pacing == Pacing::Scheduled)
                .then_some(1e9 / (shape.period as f64 * NS_PER_TICK)),
            ..InputRecord::default()
        },
        clock: Clock {
            ns_per_tick: NS_PER_TICK,
            read_ns: 12.5,
            step_ns: 10.0,
            drift_ppm: 0.4,
            start_ticks: START,
        },
        floor: Floor { cores: Some((0, 1)), before_ns, after_ns, out_of_step_ns },
        outcome: Outcome::Complete,
        exits: exits.collect(),
        startup_ns: 21_000_000,
        open_orders: None,
        warnings: Vec::new(),
        pss_bytes: None,
        kernel: None,
        incidents: Vec::new(),
        comebacks: Vec::new(),
        outages: Vec::new(),
        commands: Vec::new(),
        strikes: Vec::new(),
        plan,
    }
}

fn plan(shape: Shape) -> Plan {
    let mut trading = Trading {
        capacity: 1024,
        max_open: 1024,
        max_held: 1024,
        pacing: shape.pacing,
        orders: vec![shape.orders; usize::from(shape.strategies)],
        max_delay_ns: shape.delay * 2,
        tells_release: !shape.book,
        ..Trading::new(shape.strategies, shape.venues)
    };
    if shape.book {
        trading.venue_kinds = vec![Trading::BOOK.into()];
        trading.exchange = ExchangePlacement::Thread;
        trading.market_data = shape.market;
        if shape.market && shape.fills {
            let named = |name: &str| Instrument { name: name.into(), ..Instrument::default() };
            trading.instruments = ["A", "B"].map(named).into();
        }
    }
    let (threading, ns_per_tick) = (shape.threading, NS_PER_TICK);
    let mut plan = Plan { threading, ns_per_tick, ..Plan::of(trading) }.arranged();
    for (core, thread) in plan.threads.iter_mut().enumerate() {
        (thread.core, thread.idle, thread.log_records) = (Some(core as u32), Idle::Spin, 1 << 20);
    }
    plan
}
