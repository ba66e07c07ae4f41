//! Records of orders and cancels: encoded with their checksum, and appended to a log.

use super::super::harness::subject::{Case, Counts, Figure, Group, Unit};
use super::folder;
use journal::{Durability, Options, Writer};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const ENCODE: &str = "a record with header, 40 bytes of an order or 16 of a cancel, and CRC-32C, into 64 MB of \
                      memory in turn; theirs are 40 or 16 bytes and CRC-32 into one buffer. Both encode and \
                      do not append, and the document names no sync";
const APPEND: &str = "an append of an order to the log's mapped file, which survives the process; theirs, which \
                      its page calls the append's overhead, is the encode into a buffer of the row \
                      wal/encode_new_order. It names no sync";
const SYNCED: &str = "a record of a group of 256 that is appended and waited for until fdatasync has returned; \
                      the document has no such row";
/// Records of a group that is synced together.
const GROUP: usize = 256;
/// First bytes of a payload.
const ORDER: u8 = 1;
const CANCEL: u8 = 2;

#[derive(Clone, Copy)]
enum Input {
    Order { id: u64, is_sell: bool, owner: u64, price: i64, quantity: u64 },
    Cancel { id: u64 },
}

impl Input {
    fn order(id: u64) -> Self {
        let (is_sell, price) = (id % 2 == 1, 10_000 + (id % 100) as i64);
        Input::Order { id, is_sell, owner: 1, price, quantity: 100 }
    }

    /// Four orders, then a cancel of the last of them.
    fn mixed(n: u64) -> Self {
        if n.is_multiple_of(5) { Input::Cancel { id: n - 1 } } else { Input::order(n) }
    }

    /// Passes the bytes of the record to `f`.
    #[inline]
    fn with_payload<T>(self, f: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Input::Order { id, is_sell, owner, price, quantity } => {
                let head = u64::from_le_bytes([ORDER, u8::from(is_sell), 0, 0, 0, 0, 0, 0]);
                journal::codec::with_bytes([head, id, owner, price as u64, quantity], 5, f)
            }
            Input::Cancel { id } => journal::codec::with_bytes([u64::from(CANCEL), id], 2, f),
        }
    }
}

/// A writer and its folder, which all runs of a row share.
struct Log {
    writer: Writer,
    _folder: tempfile::TempDir,
}

impl Log {
    fn new(durability: Durability) -> Rc<RefCell<Self>> {
        let folder = folder();
        let options = Options { durability, ..Options::default() };
        let writer = Writer::open(folder.path(), &options, |_| {}).expect("a new log");
        Rc::new(RefCell::new(Log { writer, _folder: folder }))
    }

    #[inline]
    fn append(&mut self, inputs: &[Input]) {
        for input in inputs {
            input.with_payload(|payload| self.writer.append(payload)).expect("taken");
        }
    }
}

/// Inputs to append, and the log that takes them.
struct Appends {
    inputs: Vec<Input>,
    log: Rc<RefCell<Log>>,
    /// Records in the log before.
    before: u64,
}

/// Returns the log's benchmarks of the published document, with `count` records each.
pub fn groups(count: usize) -> Vec<Group> {
    let order = |count: usize| (1..=count as u64).map(Input::order).collect::<Vec<_>>();
    let mixed: Vec<Input> = (1..=count as u64).map(Input::mixed).collect();
    let (ns, us) = (Unit::Nanoseconds, Unit::Microseconds);
    let encode = Figure::new("wal/encode_new_order", 56.0, ns, ENCODE);
    let append = Figure::new("wal/append_new_order", 56.0, ns, APPEND);
    let synced = Figure::new("wal/append_synced_by_256", 0.0, us, SYNCED).unpublished();
    let durability = Durability::GroupCommit { records: GROUP as u64, within: Duration::from_millis(1) };
    vec![
        row(encode, Durability::None, vec![Input::order(1); count], count),
        row(Figure::new("wal/encode+crc_10k", 572.0, us, ENCODE), Durability::None, order(count), 1),
        row(Figure::new("wal/mixed_encode+crc_10k", 498.0, us, ENCODE), Durability::None, mixed, 1),
        row(append, Durability::Process, order(count), count),
        row(synced, durability, order(GROUP.min(count)), GROUP.min(count)),
    ]
}

fn row(figure: Figure, durability: Durability, inputs: Vec<Input>, operations: usize) -> Group {
    // Created with the first run: its threads and its file are not there for rows that do not run.
    let mut shared = None;
    let prepare = move || {
        let log = shared.get_or_insert_with(|| Log::new(durability)).clone();
        let before = log.borrow().writer.last();
        Appends { inputs: inputs.clone(), log, before }
    };
    let run = |appends: &mut Appends| {
        let log = &mut *appends.log.borrow_mut();
        log.append(&appends.inputs);
        if log.writer.is_group_commit() {
            let is_durable = log.writer.watermark().wait(log.writer.last(), Duration::from_secs(60));
            assert!(is_durable.expect("synced"), "within a minute");
        }
    };
    let count = |appends: Appends| {
        let log = appends.log.borrow();
        let records = log.writer.last() - appends.before;
        Counts::from([("records", records), ("durable", log.writer.durable_sequence())])
    };
    Group::timed(figure, Case { batch: 1, operations, prepare, run, drop_is_timed: false, count })
}
