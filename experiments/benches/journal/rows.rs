//! The benchmark's rows, and the measurement of subjects that alternate batch by batch in one run.

use benches::quantile;
use journal::{Durability, Options, Recovered, Writer, codec, recover};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of journal operations between two clock reads.
pub const BATCH: u32 = 32;

/// A subject of the journal benchmark: an operation with its name.
pub struct Subject<'a> {
    pub name: String,
    pub batch: Box<dyn FnMut(u32) + 'a>,
    /// Operations in a batch: few for slow ones.
    pub operations: u32,
}

/// Creates a subject of the journal benchmark from the operation that is timed.
pub fn subject<'a>(name: impl Into<String>, mut operation: impl FnMut() + 'a) -> Subject<'a> {
    let batch = move |operations| (0..operations).for_each(|_| operation());
    Subject { name: name.into(), batch: Box::new(batch), operations: BATCH }
}

/// Measures all of the benchmark's subjects in turns. Prints the time of one operation of each: p50
/// and p99 over the batches, and p50 as a multiple of the first subject's.
pub fn alternate(title: &str, rounds: usize, mut subjects: Vec<Subject<'_>>) {
    let samples = benches::alternate(rounds, &mut subjects, |subject| {
        let started = Instant::now();
        (subject.batch)(subject.operations);
        started.elapsed().as_nanos() as f64 / f64::from(subject.operations)
    });
    println!("\n{title}\n\n| row | p50 | p99 of batches | × the first |\n|---|---:|---:|---:|");
    let mut first = None;
    for (subject, mut samples) in subjects.iter().zip(samples) {
        // The first tenth warms up.
        samples.drain(..rounds / 10);
        let [p50, p99] = [0.5, 0.99].map(|share| quantile(&mut samples, share));
        let base = *first.get_or_insert(p50);
        println!("| {} | {} | {} | {:.2} |", subject.name, time(p50), time(p99), p50 / base);
    }
}

/// Formats a time of `ns` nanoseconds.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1000.0 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

/// Creates a journal writer in a new directory below `below`.
pub fn writer(below: &Path, name: &str, durability: Durability) -> Writer {
    let options = Options { durability, ..Options::default() };
    let folder = below.join(format!("{name}-{}", std::process::id()));
    Writer::open(&folder, &options, |_| {}).expect("a new journal")
}

/// Returns the benchmark's subjects that append 64 bytes to a journal, in memory and to files.
pub fn appends<'a>(memory: &Path, disk: &Path) -> Vec<Subject<'a>> {
    let payload = [0x5a_u8; 64];
    let append = |name: &str, mut writer: Writer| {
        subject(name, move || {
            black_box(writer.append(black_box(&payload)).expect("taken"));
        })
    };
    let subjects = vec![
        append("WAL encode + CRC (none: no file)", writer(memory, "none", Durability::None)),
        append("true append, process, memory file system", writer(memory, "process", Durability::Process)),
        append("true append, process, disk", writer(disk, "process", Durability::Process)),
    ];
    // The helpers touch the segments' pages first.
    std::thread::sleep(Duration::from_millis(500));
    subjects
}

#[derive(Clone, Serialize, Deserialize)]
struct Order {
    id: u64,
    price: u64,
    quantity: u64,
    owner: u32,
    is_bid: bool,
}

fn book(orders: u64) -> Vec<Order> {
    let order = |id: u64| Order {
        id,
        price: 10_000 + id % 512,
        quantity: 1 + id % 97,
        owner: 7,
        is_bid: id.is_multiple_of(2),
    };
    (1..=orders).map(order).collect()
}

/// Measures a journal snapshot of `orders` orders: encode, write with its syncs, decode, and
/// restore with the log after it.
pub fn snapshots(disk: &Path, orders: u64) {
    let state = book(orders);
    let encoded = codec::encode(1, &state).expect("encodable");
    let mut sealed = writer(disk, "snapshots", Durability::Process);
    let folder = disk.join(format!("snapshots-{}", std::process::id()));
    let payload = [1_u8; 64];
    (0..1000).for_each(|_| drop(black_box(sealed.append(&payload))));
    let watermark = sealed.watermark();
    let mut write = || {
        let sequence = sealed.append(&payload).expect("taken");
        sealed.snapshot(encoded.clone()).expect("taken");
        let name = folder.join(format!("snapshot-{sequence:020}"));
        while !name.exists() {
            watermark.check().expect("written");
            std::hint::spin_loop();
        }
    };
    let slow = |subject| Subject { operations: 1, ..subject };
    write();
    let restored = folder.clone();
    alternate(
        &format!("Snapshot of {orders} orders, {} bytes", encoded.len()),
        60,
        vec![
            slow(subject("snapshot encode", || drop(black_box(codec::encode(1, black_box(&state)))))),
            slow(subject("snapshot write, with its syncs, until its name is there", write)),
            slow(subject("snapshot decode", || drop(black_box(codec::decode::<Vec<Order>>(1, &encoded))))),
            slow(subject("restore: find, check, decode, read the log after it", move || {
                let mut records = 0;
                let end = recover(&restored, |part| match part {
                    Recovered::Snapshot { state, .. } => {
                        drop(black_box(codec::decode::<Vec<Order>>(1, state)))
                    }
                    Recovered::Record { payload, .. } => records += payload.len(),
                });
                black_box((records, end.expect("recovers").last));
            })),
        ],
    );
}

/// Measures groups of `outstanding` journal records that are appended and waited for, and a bare
/// loop of one write and one `fdatasync` for the same bytes. Both alternate, group by group.
/// Returns the rates and medians of both.
pub fn groups(disk: &Path, outstanding: u64, duration: Duration) -> [(f64, f64); 2] {
    use std::os::unix::fs::FileExt;
    let durability = Durability::GroupCommit { records: outstanding, within: Duration::from_millis(1) };
    let mut writer = writer(disk, &format!("group-{outstanding}"), durability);
    let watermark = writer.watermark();
    let payload = [2_u8; 64];
    let path = disk.join(format!("raw-{outstanding}-{}", std::process::id()));
    let file = std::fs::File::create(&path).expect("a file");
    file.write_all_at(&vec![0; 64 << 20], 0).and_then(|()| file.sync_all()).expect("written");
    let block = vec![3_u8; outstanding as usize * 80];
    let mut at = 0;
    let mut times = [Vec::new(), Vec::new()];
    let started = Instant::now();
    while started.elapsed() < duration {
        let start = Instant::now();
        let last = (0..outstanding).map(|_| writer.append(&payload).expect("taken")).last().unwrap_or(0);
        assert!(watermark.wait(last, Duration::from_secs(60)).expect("synced"));
        times[0].push(start.elapsed().as_nanos() as f64);
        let start = Instant::now();
        file.write_all_at(&block, at).and_then(|()| file.sync_data()).expect("synced");
        at = (at + block.len() as u64) % (63 << 20);
        times[1].push(start.elapsed().as_nanos() as f64);
    }
    let _ = std::fs::remove_file(path);
    times.map(|mut times| {
        let rate = outstanding as f64 * times.len() as f64 * 1e9 / times.iter().sum::<f64>();
        (rate, quantile(&mut times, 0.5))
    })
}

/// Prints a row of the journal benchmark: records a second, and the median time of a group.
pub fn print_group(name: &str, outstanding: u64, (rate, p50): (f64, f64)) {
    println!("| {name} | {outstanding} | {rate:.0} | {} |", time(p50));
}
