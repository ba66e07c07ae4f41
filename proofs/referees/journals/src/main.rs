//! The journal next to other crates with the same durability, in one run: `cargo run --release --
//! [DIR]` here. DIR is on the disk to be measured; `target` by default.
//!
//! Durability `process` is measured on a memory file system, where a sync is nearly free: okaywal
//! and redb sync with every commit; raft-engine is configured not to.

#[path = "../../../../experiments/benches/journal/rows.rs"]
mod rows;

use okaywal::{LogVoid, WriteAheadLog};
use raft_engine::{Config, Engine, LogBatch};
use redb::{Database, TableDefinition};
use rows::{Subject, alternate, print_group, subject};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::time::{Duration, Instant};

const PAYLOAD: [u8; 64] = [0x5a; 64];
const TABLE: TableDefinition<u64, &[u8]> = TableDefinition::new("log");

fn crcs() -> Vec<Subject<'static>> {
    let bytes = PAYLOAD;
    vec![
        subject("crc-fast (CRC-32C)", move || {
            black_box(crc_fast::crc32_iscsi(black_box(&bytes)));
        }),
        subject("crc32c (CRC-32C)", move || {
            black_box(crc32c::crc32c(black_box(&bytes)));
        }),
        subject("crc32fast (CRC-32, not C)", move || {
            black_box(crc32fast::hash(black_box(&bytes)));
        }),
    ]
}

fn engine(folder: &Path) -> Engine {
    let dir = folder.display().to_string();
    Engine::open(Config { dir, ..Default::default() }).expect("raft-engine opens")
}

fn raft_append(engine: &Engine, batch: &mut LogBatch, key: u64, sync: bool) {
    batch.put(1, key.to_le_bytes().to_vec(), PAYLOAD.to_vec()).expect("taken");
    engine.write(batch, sync).expect("written");
}

fn peers(memory: &Path) -> Vec<Subject<'static>> {
    let wal = WriteAheadLog::recover(memory.join("okaywal"), LogVoid).expect("okaywal opens");
    let (raft, mut batch, mut key) =
        (engine(&memory.join("raft-engine")), LogBatch::with_capacity(16), 0_u64);
    let redb = Database::create(memory.join("redb")).expect("redb opens");
    let mut row = 0_u64;
    vec![
        subject("okaywal", move || {
            let mut entry = wal.begin_entry().expect("begun");
            entry.write_chunk(&PAYLOAD).expect("written");
            entry.commit().expect("committed");
        }),
        subject("raft-engine, sync off", move || {
            key = (key + 1) % 1024;
            raft_append(&raft, &mut batch, key, false);
        }),
        subject("redb, a transaction each", move || {
            row += 1;
            let write = redb.begin_write().expect("begun");
            write.open_table(TABLE).expect("a table").insert(row, &PAYLOAD[..]).expect("inserted");
            write.commit().expect("committed");
        }),
    ]
}

/// Returns records per second and the median time of a call in nanoseconds.
fn measure(duration: Duration, records: u64, mut call: impl FnMut()) -> (f64, f64) {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < duration {
        let at = Instant::now();
        call();
        times.push(at.elapsed().as_nanos() as f64);
    }
    let rate = records as f64 * times.len() as f64 / begun.elapsed().as_secs_f64();
    (rate, benches::quantile(&mut times, 0.5))
}

/// Measures threads that each write one record and wait for it.
fn threads(threads: u64, duration: Duration, call: impl Fn(u64) + Sync) -> (f64, f64) {
    let start = Barrier::new(threads as usize);
    let measured: Vec<(f64, f64)> = std::thread::scope(|scope| {
        let spawn_thread = |thread| {
            let (call, start) = (&call, &start);
            scope.spawn(move || {
                start.wait();
                measure(duration, 1, || call(thread))
            })
        };
        let running: Vec<_> = (0..threads).map(spawn_thread).collect();
        running.into_iter().map(|thread| thread.join().expect("a thread")).collect()
    });
    let mut p50: Vec<f64> = measured.iter().map(|(_, p50)| *p50).collect();
    p50.sort_by(f64::total_cmp);
    (measured.iter().map(|(rate, _)| rate).sum(), p50[p50.len() / 2])
}

fn main() {
    let folder = std::env::args().nth(1).unwrap_or("target".to_owned());
    let disk = PathBuf::from(folder).join("journal-peers");
    let memory = PathBuf::from("/dev/shm/journal-peers");
    for folder in [&disk, &memory] {
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).expect("a folder");
    }
    alternate("CRC of 64 bytes", 3000, crcs());
    let mut subjects = rows::appends(&memory, &disk);
    subjects.swap(0, 1);
    subjects.extend(peers(&memory));
    alternate("Append of 64 bytes that survives the process, memory file system unless said", 3000, subjects);
    rows::snapshots(&disk, 10_000);

    println!("\n64-byte records that survive the machine, on the disk\n");
    println!("| what | outstanding | records/s | p50 of a record's or group's wait |\n|---|---:|---:|---:|");
    let duration = Duration::from_secs(2);
    for outstanding in [1, 16, 256] {
        let [journal, raw] = rows::groups(&disk, outstanding, 2 * duration);
        print_group("journal, group commit", outstanding, journal);
        let raft = engine(&disk.join(format!("raft-{outstanding}")));
        let measured = threads(outstanding, duration, |thread| {
            raft_append(&raft, &mut LogBatch::with_capacity(16), thread, true);
        });
        print_group("raft-engine, a thread each", outstanding, measured);
        let wal =
            WriteAheadLog::recover(disk.join(format!("okaywal-{outstanding}")), LogVoid).expect("opens");
        let measured = threads(outstanding, duration, |_| {
            let mut entry = wal.begin_entry().expect("begun");
            entry.write_chunk(&PAYLOAD).expect("written");
            entry.commit().expect("committed");
        });
        print_group("okaywal, a thread each", outstanding, measured);
        print_group("write + fdatasync in a loop", outstanding, raw);
    }
    for folder in [disk, memory] {
        let _ = std::fs::remove_dir_all(folder);
    }
}
