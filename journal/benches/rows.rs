//! What the journal's own steps cost, and how subjects are measured: in turns, batch by batch, in
//! one run.

use journal::{Durability, Options, Recovered, Writer, codec, recover};
use serde::{Deserialize, Serialize};
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

/// Operations between two looks at the clock.
pub const BATCH: u32 = 32;

/// Something that does one batch at a call.
pub struct Subject<'a> {
    /// Its row's name.
    pub name: String,
    /// Does so many operations.
    pub batch: Box<dyn FnMut(u32) + 'a>,
    /// Operations in a batch: few where one takes long.
    pub operations: u32,
}

/// A subject of quick operations.
pub fn subject<'a>(name: impl Into<String>, mut operation: impl FnMut() + 'a) -> Subject<'a> {
    let batch = move |operations| (0..operations).for_each(|_| operation());
    Subject { name: name.into(), batch: Box::new(batch), operations: BATCH }
}

/// Measures all of them in turns and prints for each the time of one operation: p50 and p99 over
/// the batches, and p50 as a multiple of the first one's.
pub fn alternate(title: &str, rounds: usize, mut subjects: Vec<Subject<'_>>) {
    let mut samples = vec![Vec::with_capacity(rounds); subjects.len()];
    for round in 0..rounds {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            let begun = Instant::now();
            (subject.batch)(subject.operations);
            let took = begun.elapsed().as_nanos() as f64 / f64::from(subject.operations);
            if round >= rounds / 10 {
                samples.push(took);
            }
        }
    }
    println!("\n{title}\n\n| row | p50 | p99 of batches | × the first |\n|---|---:|---:|---:|");
    let mut first = None;
    for (subject, samples) in subjects.iter().zip(&mut samples) {
        samples.sort_by(f64::total_cmp);
        let at = |share: f64| samples[((samples.len() - 1) as f64 * share) as usize];
        let base = *first.get_or_insert(at(0.5));
        println!("| {} | {} | {} | {:.2} |", subject.name, time(at(0.5)), time(at(0.99)), at(0.5) / base);
    }
}

/// Nanoseconds for people.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1000.0 => format!("{ns:.1} ns"),
        ns if ns < 1e6 => format!("{:.2} µs", ns / 1e3),
        ns => format!("{:.2} ms", ns / 1e6),
    }
}

/// A writer in a new folder below that one.
pub fn writer(below: &Path, name: &str, durability: Durability) -> Writer {
    let options = Options { durability, ..Options::default() };
    let folder = below.join(format!("{name}-{}", std::process::id()));
    Writer::open(&folder, &options, |_| {}).expect("a new journal")
}

/// Appends of 64 bytes without and with a file behind them.
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
    // Until the helpers have touched the segments' pages.
    std::thread::sleep(Duration::from_millis(500));
    subjects
}

/// An order as a snapshot holds it.
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

/// A snapshot of so many orders: encoded, written with its syncs, decoded, and a state restored
/// from it with a log behind it.
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
            slow(subject("restore: find, check, decode, read the log behind it", move || {
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

/// Throughput and waiting time of groups: so many records are outstanding; each group is waited
/// for.
pub fn group(disk: &Path, outstanding: u64, lasts: Duration) -> (f64, f64) {
    let within = Duration::from_micros(50);
    let mut writer =
        writer(disk, &format!("group-{outstanding}"), Durability::Group { records: outstanding, within });
    let watermark = writer.watermark();
    let payload = [2_u8; 64];
    measure(lasts, outstanding, || {
        let last = (0..outstanding).map(|_| writer.append(&payload).expect("taken")).last().unwrap_or(0);
        assert!(watermark.wait(last, Duration::from_secs(60)).expect("synced"));
    })
}

/// The same for the file system alone: one write of so many records, one `fdatasync`.
pub fn raw(disk: &Path, outstanding: u64, lasts: Duration) -> (f64, f64) {
    use std::os::unix::fs::FileExt;
    let path = disk.join(format!("raw-{outstanding}-{}", std::process::id()));
    let file = std::fs::File::create(&path).expect("a file");
    file.write_all_at(&vec![0; 64 << 20], 0).and_then(|()| file.sync_all()).expect("written");
    let block = vec![3_u8; outstanding as usize * 80];
    let mut at = 0;
    let found = measure(lasts, outstanding, || {
        file.write_all_at(&block, at).and_then(|()| file.sync_data()).expect("synced");
        at = (at + block.len() as u64) % (63 << 20);
    });
    let _ = std::fs::remove_file(path);
    found
}

/// Records a second, and the p50 of a call's time in nanoseconds.
pub fn measure(lasts: Duration, records: u64, mut call: impl FnMut()) -> (f64, f64) {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < lasts {
        let at = Instant::now();
        call();
        times.push(at.elapsed().as_nanos() as f64);
    }
    let rate = records as f64 * times.len() as f64 / begun.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    (rate, times[times.len() / 2])
}

/// A row of a table of groups.
pub fn print_group(name: &str, outstanding: u64, (rate, p50): (f64, f64)) {
    println!("| {name} | {outstanding} | {rate:.0} | {} |", time(p50));
}
