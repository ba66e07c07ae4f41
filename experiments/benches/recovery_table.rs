//! The table of recovery times that the benchmarks of exchange and engine fill in.
//!
//! For each number of open orders, with a log of 64 MB: from the whole log, from a snapshot with
//! the whole log after it, from a snapshot of a few thousand records before the end, and from the
//! state of a standby that has followed all but the last few hundred records. In turns, median of
//! the rounds, with the fastest and the slowest. `--quick`: once each, with a log of 8 MB.

use journal::{Durability, JournalFollower, Options, State};
use std::path::Path;
use std::time::Duration;

const ROUNDS: usize = 5;
/// Bytes of a record of a message with its header.
const RECORD: u64 = 88;
/// Segment length in bytes, as in a run.
const SEGMENT: u64 = 4 << 20;
const RECORDS_AFTER_SNAPSHOT: u64 = 16_384;
const RECORDS_BEHIND_STANDBY: u64 = 400;

/// Returns the options of the journal that the benchmark recovers.
pub fn options() -> Options {
    Options { durability: Durability::Process, segment_bytes: SEGMENT, ..Options::default() }
}

/// A case of the recovery benchmark: a journal in a folder, its number of records and of open
/// orders.
#[derive(Clone, Copy)]
pub struct RecoveryCase<'a> {
    pub folder: &'a Path,
    pub records: u64,
    /// Number of open orders after recovery.
    pub open: u64,
    /// Record after which a snapshot is written.
    pub snapshot: Option<u64>,
    is_standby: bool,
}

impl RecoveryCase<'_> {
    /// Returns a follower of the case's journal that began with `state`, if the case has one.
    pub fn followed<S: State>(&self, state: impl FnOnce() -> S) -> Option<JournalFollower<S>> {
        self.is_standby.then(|| {
            let mut follower = JournalFollower::open(self.folder, state()).expect("a snapshot or a log");
            let end = self.records - RECORDS_BEHIND_STANDBY;
            while follower.last() < end {
                follower.poll((end - follower.last()).min(512) as usize).expect("records");
            }
            follower
        })
    }

    /// Writes a snapshot of the state after all records, starting from `state`. `confirm` marks all
    /// outputs as sent.
    pub fn snapshot<S: State>(&self, state: S, confirm: impl FnOnce(&mut S)) {
        let mut follower = JournalFollower::open(self.folder, state).expect("a log");
        while follower.poll(4096).expect("records") > 0 {}
        confirm(&mut follower.state);
        follower.snapshot().expect("space for it");
    }
}

/// Prints the table of recovery times; a short one with the argument `--quick`. `recover` writes
/// the journal and recovers from it. It returns the duration of the recovery and the number of open
/// orders after it.
pub fn table(mut recover: impl FnMut(RecoveryCase<'_>) -> (Duration, u64)) {
    let is_quick = std::env::args().any(|word| word == "--quick");
    let (rounds, megabytes) = if is_quick { (1, 8) } else { (ROUNDS, 64) };
    println!(
        "open orders  log       from                                    median   fastest   slowest open then"
    );
    for open in [1_000_u64, 100_000] {
        let records = open + (megabytes << 20) / RECORD;
        let whole_log_after_snapshot = format!("a snapshot, {megabytes} MB after it");
        let cases = [
            ("the whole log", None, false),
            (&whole_log_after_snapshot, Some(open), false),
            ("a snapshot, 16,384 records after it", Some(records - RECORDS_AFTER_SNAPSHOT), false),
            ("a standby, 400 records behind", Some(records - RECORDS_AFTER_SNAPSHOT), true),
        ];
        let mut times = vec![Vec::new(); cases.len()];
        let mut orders = 0;
        for _ in 0..rounds {
            for (times, (_, snapshot, is_standby)) in times.iter_mut().zip(cases) {
                let folder = tempfile::tempdir().expect("a folder");
                let (elapsed, open_after) =
                    recover(RecoveryCase { folder: folder.path(), records, open, snapshot, is_standby });
                times.push(elapsed);
                orders = open_after;
            }
        }
        for (mut times, (name, ..)) in times.into_iter().zip(cases) {
            times.sort();
            let ms = |time: Duration| format!("{:.2} ms", time.as_secs_f64() * 1e3);
            let (median, fastest, slowest) = (times[rounds / 2], times[0], times[rounds - 1]);
            println!(
                "{open:<12} {:<9} {name:<36} {:>9} {:>9} {:>9} {orders:>9}",
                format!("{} MB", (records * RECORD) >> 20),
                ms(median),
                ms(fastest),
                ms(slowest)
            );
        }
    }
}
