//! Snapshots of a book of 10,000 orders: taken, encoded, decoded, restored, and recovered from.

use super::super::harness::subject::{Case, Counts, Figure, Group, Unit::Microseconds, Unit::Milliseconds};
use super::folder;
use exchange::{Capacity, Command, Event, Exchange, Instrument, NewOrder, Side, State};
use journal::{Durability, Options, Recovered, Writer, codec};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::rc::Rc;

/// Version of the encoded states.
const VERSION: u32 = 1;
/// Records between the snapshot and the crash, for each order in the snapshot.
const RECORDS_PER_ORDER: usize = 1;

const TAKE: &str = "Exchange::state, eleven fields an order; theirs has six. 10,000 bids at 5,000 prices in all \
                    rows of snapshots";
const ENCODE: &str = "the state of an exchange, eleven fields an order, integers of variable width; theirs has \
                      six fields of fixed width";
const DECODE: &str = "the same state; theirs does not check it";
const SIX: &str =
    "six fields an order, as theirs, through the journal's codec, whose integers have variable width";
const RESTORE: &str = "a new exchange of 20,000 orders, Exchange::restore, which checks each order and the whole, \
                       and its drop; theirs enters the orders again";
const CYCLE: &str = "state and encode together; theirs is the sum of two figures";
const RECOVERY: &str = "read and check a snapshot and 10,000 records after it from the page cache, decode, \
                        restore, and apply: cancels and new orders in turns; theirs is an estimate";

/// An order as the document's snapshot has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SixFields {
    id: u64,
    trader: u64,
    side: Side,
    price: i64,
    quantity: u64,
    time: u64,
}

/// Returns the snapshots' benchmarks of the published document.
pub fn groups(count: usize) -> Vec<Group> {
    let full = Rc::new(book(count));
    let state = Rc::new(full.state());
    let encoded = Rc::new(codec::encode(VERSION, &*state).expect("encodable"));
    let six: Rc<Vec<SixFields>> = Rc::new((1..=count as u64).map(six_fields).collect());
    let from_state = |state: &Rc<State>| {
        let state = state.clone();
        move || (state.clone(), Vec::new())
    };
    let us = |name, theirs, remark| Figure::new(name, theirs, Microseconds, remark);
    let ms = |name, theirs, remark| Figure::new(name, theirs, Milliseconds, remark);
    let encode = |(state, bytes): &mut (Rc<State>, Vec<u8>)| {
        *bytes = codec::encode(VERSION, &**state).expect("encodable");
    };
    let exchange = |full: &Rc<Exchange>| {
        let full = full.clone();
        move || full.clone()
    };
    vec![
        row(
            us("snapshot/all_resting_orders_10k", 55.0, TAKE),
            exchange(&full),
            |full| drop(black_box(full.state())),
            |full| Counts::from([("orders", full.open_orders() as u64)]),
        ),
        row(us("snapshot/bincode_serialize_10k", 71.0, ENCODE), from_state(&state), encode, |(_, bytes)| {
            Counts::from([("bytes", bytes.len() as u64)])
        }),
        row(
            us("snapshot/serialize_six_fields_10k", 71.0, SIX),
            move || (six.clone(), Vec::new()),
            |(six, bytes)| *bytes = codec::encode(VERSION, &**six).expect("encodable"),
            |(six, bytes)| {
                let decoded: Vec<SixFields> = codec::decode(VERSION, &bytes).expect("decodable");
                Counts::from([("orders", decoded.len() as u64), ("equal", u64::from(decoded == *six))])
            },
        ),
        row(
            us("snapshot/bincode_deserialize_10k", 163.0, DECODE),
            move || (encoded.clone(), state.clone(), None),
            |(encoded, _, decoded)| {
                *decoded = Some(codec::decode::<State>(VERSION, encoded).expect("decodable"));
            },
            |(_, state, decoded)| Counts::from([("equal", u64::from(decoded.as_ref() == Some(&*state)))]),
        ),
        restore(ms("snapshot/restore_from_orders_10k", 1.39, RESTORE), full.clone()),
        row(
            us("snapshot/full_cycle_10k", 126.0, CYCLE),
            exchange(&full),
            |full| drop(black_box(codec::encode(VERSION, &full.state()))),
            |full| Counts::from([("orders", full.open_orders() as u64)]),
        ),
        recovery(ms("recovery/snapshot+10k_records", 1.4, RECOVERY), &full, count),
    ]
}

fn row<I: 'static>(
    figure: Figure,
    prepare: impl FnMut() -> I + 'static,
    run: impl FnMut(&mut I) + 'static,
    count: impl FnMut(I) -> Counts + 'static,
) -> Group {
    Group::timed(figure, Case { batch: 5, operations: 1, prepare, run, drop_is_timed: true, count })
}

fn empty(orders: usize) -> Exchange {
    let instrument = Instrument::default();
    Exchange::new(&[instrument], Capacity::for_orders(2 * orders)).expect("a valid configuration")
}

fn bid(id: u64) -> Command {
    let price = 10_000 - (id % 5_000) as i64;
    Command::New(NewOrder {
        id,
        owner: id as u32,
        side: Side::Buy,
        price,
        quantity: 100,
        ..NewOrder::default()
    })
}

fn six_fields(id: u64) -> SixFields {
    SixFields {
        id,
        trader: id,
        side: Side::Buy,
        price: 10_000 - (id % 5_000) as i64,
        quantity: 100,
        time: id,
    }
}

fn book(orders: usize) -> Exchange {
    let mut exchange = empty(orders);
    let mut events = Vec::<Event>::new();
    (1..=orders as u64).for_each(|id| exchange.apply(bid(id), &mut events));
    exchange
}

fn restore(figure: Figure, full: Rc<Exchange>) -> Group {
    let orders = full.open_orders();
    let state = Rc::new(full.state());
    row(
        figure,
        move || (state.clone(), None),
        move |(state, restored)| {
            let exchange = restored.insert(Box::new(empty(orders)));
            exchange.restore(state).expect("a state of these instruments");
        },
        move |(state, restored)| {
            let restored = restored.map(|exchange| exchange.state());
            Counts::from([("equal", u64::from(restored.as_ref() == Some(&*state)))])
        },
    )
}

/// A record of the log that recovery applies: a cancel and a new order in turns.
fn record(n: u64, orders: u64) -> Command {
    if n.is_multiple_of(2) {
        Command::Cancel { id: n / 2 + 1, owner: n as u32 / 2 + 1 }
    } else {
        bid(orders + n)
    }
}

/// Writes a log with a snapshot and the records after it.
fn write_log(folder: &Path, full: &Exchange, records: usize) {
    let options = Options { durability: Durability::Process, ..Options::default() };
    let mut writer = Writer::open(folder, &options, |_| {}).expect("a new log");
    writer.append(&[0]).expect("taken");
    writer.snapshot(codec::encode(VERSION, &full.state()).expect("encodable")).expect("taken");
    for n in 0..records as u64 {
        let [kind, id, price, quantity] = match record(n, full.open_orders() as u64) {
            Command::New(order) => [0, order.id, order.price as u64, order.quantity],
            Command::Cancel { id, .. } => [1, id, 0, 0],
            _ => continue,
        };
        codec::with_bytes([kind, id, id, price, quantity], 5, |payload| writer.append(payload))
            .expect("taken");
    }
    writer.close().expect("written");
}

fn decode_record(payload: &[u8]) -> Option<Command> {
    let words: Vec<u64> = codec::words(payload)?.collect();
    match *words.as_slice() {
        [0, id, owner, price, quantity] => {
            let (owner, price) = (owner as u32, price as i64);
            Some(Command::New(NewOrder { id, owner, price, quantity, ..NewOrder::default() }))
        }
        [1, id, owner, ..] => Some(Command::Cancel { id, owner: owner as u32 }),
        _ => None,
    }
}

fn recovery(figure: Figure, full: &Rc<Exchange>, count: usize) -> Group {
    let (full, mut log) = (full.clone(), None);
    let prepare = move || {
        let log = log.get_or_insert_with(|| {
            let folder = folder();
            write_log(folder.path(), &full, count * RECORDS_PER_ORDER);
            Rc::new(folder)
        });
        (log.clone(), Box::new(empty(full.open_orders())), 0)
    };
    let run = |(folder, exchange, records): &mut (Rc<tempfile::TempDir>, Box<Exchange>, u64)| {
        let mut events = Vec::new();
        let end = journal::recover(folder.path(), |part| match part {
            Recovered::Snapshot { state, .. } => {
                let state = codec::decode::<State>(VERSION, state).expect("decodable");
                exchange.restore(&state).expect("a state of these instruments");
            }
            Recovered::Record { payload, .. } => {
                *records += 1;
                events.clear();
                exchange.apply(decode_record(payload).expect("a command"), &mut events);
            }
        });
        end.expect("recovers");
    };
    let count = |(_, exchange, records): (_, Box<Exchange>, u64)| {
        Counts::from([("records", records), ("orders", exchange.open_orders() as u64)])
    };
    Group::timed(figure, Case { batch: 1, operations: 1, prepare, run, drop_is_timed: false, count })
}
