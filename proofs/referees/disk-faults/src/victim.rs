//! The program whose system calls fail: it appends records and reports those that are durable.

use journal::{Durability, JournalError, Options, Recovered, Writer, recover};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Records that the victim appends, each time after opening the log: without a snapshot the first
/// time.
const RECORDS: [u64; 3] = [7, 40, 40];
/// All records of a victim.
pub const ALL_RECORDS: u64 = RECORDS[0] + RECORDS[1] + RECORDS[2];
/// A few records a segment, so that there are many of them.
const SEGMENT_BYTES: u64 = 4096;
const SNAPSHOT_EVERY: u64 = 15;
/// A mode that reports records which are never synced, to show that lost ones are found.
const NEVER: &str = "never";
/// A mode that reports nothing.
const QUIET: &str = "quiet";
const PATIENCE: Duration = Duration::from_secs(10);

/// A broken variant of the victim, which the check must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    No,
    /// It reports the record after the next one.
    ReportsEarly,
    /// It hides the journal's errors.
    HidesErrors,
}

/// Returns the payload of a record: 8 to 400 bytes that follow from its sequence.
pub fn payload(sequence: u64) -> Vec<u8> {
    let mixed = sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let length = 8 + (mixed % 393) as usize;
    mixed
        .to_le_bytes()
        .into_iter()
        .cycle()
        .zip(sequence.to_le_bytes().into_iter().cycle().skip(3))
        .take(length)
        .map(|(one, other)| one ^ other)
        .collect()
}

/// Folds a record into the state, which a snapshot holds.
fn fold(state: u64, payload: &[u8]) -> u64 {
    payload.iter().fold(state, |state, byte| state.wrapping_mul(31).wrapping_add(u64::from(*byte) + 1))
}

/// The state of a log, checked against what was appended.
#[derive(Default)]
pub struct Checked {
    pub last: u64,
    state: u64,
    pub wrong: Option<String>,
}

impl Checked {
    pub fn apply(&mut self, part: Recovered<'_>) {
        match part {
            Recovered::Snapshot { sequence, state } => {
                self.state = (1..=sequence).fold(0, |state, at| fold(state, &payload(at)));
                self.last = sequence;
                if state != self.state.to_le_bytes() {
                    self.wrong = Some(format!("the snapshot after record {sequence} has another state"));
                }
            }
            Recovered::Record { sequence, payload: found } => {
                if sequence != self.last + 1 || found != payload(sequence) {
                    self.wrong = Some(format!("record {sequence} after {} is another one", self.last));
                }
                self.last = sequence;
                self.state = fold(self.state, found);
            }
        }
    }
}

fn options(mode: &str) -> Options {
    let durability = match mode {
        "group" => Durability::GroupCommit { records: 4, within: Duration::from_micros(300) },
        NEVER => Durability::Process,
        _ => Durability::EveryRecord,
    };
    Options { durability, segment_bytes: SEGMENT_BYTES, snapshot_every: SNAPSHOT_EVERY, ..Options::default() }
}

/// Reports that records up to this one are durable. It does not matter whether that fails.
fn acknowledge(sequence: u64) {
    let _ = std::io::stdout().write_all(format!("{sequence}\n").as_bytes());
}

fn append(folder: &Path, mode: &str, count: u64, broken: Broken) -> Result<(), JournalError> {
    let mut checked = Checked::default();
    let mut writer = Writer::open(folder, &options(mode), |part| checked.apply(part))?;
    for _ in 0..count {
        let next = payload(checked.last + 1);
        if broken == Broken::ReportsEarly {
            acknowledge(checked.last + 2);
        }
        let sequence = match writer.append(&next) {
            Ok(sequence) => sequence,
            Err(_) if broken == Broken::HidesErrors => return Ok(()),
            Err(error) => return Err(error),
        };
        checked.apply(Recovered::Record { sequence, payload: &next });
        match mode {
            "every" | NEVER => acknowledge(sequence),
            "group" => acknowledge(writer.durable_sequence()),
            _ => {}
        }
        if writer.is_snapshot_due() {
            writer.snapshot(checked.state.to_le_bytes().to_vec())?;
        }
    }
    let (watermark, start) = (writer.watermark(), Instant::now());
    while mode == "group" && watermark.durable() < checked.last && start.elapsed() < PATIENCE {
        watermark.wait(checked.last, Duration::from_millis(10))?;
    }
    if mode == "group" {
        acknowledge(watermark.durable());
    }
    writer.close()
}

/// Appends to a log three times, opening it each time. Returns the exit code: 3 if the journal reports an
/// error.
pub fn run(folder: &Path, mode: &str, broken: Broken) -> i32 {
    for records in RECORDS {
        if let Err(error) = append(folder, mode, records, broken) {
            if broken == Broken::HidesErrors {
                return 0;
            }
            // Standard error may fail as well.
            let _ = writeln!(std::io::stderr(), "{error}");
            return 3;
        }
    }
    0
}

/// Recovers a log, then appends to it and recovers it again. Returns its last record before that.
///
/// # Errors
/// The journal's errors, and records that are not those which were appended.
pub fn check(folder: &Path) -> Result<u64, String> {
    let read = || {
        let mut checked = Checked::default();
        let end = recover(folder, |part| checked.apply(part)).map_err(|error| error.to_string())?;
        if checked.last != end.last {
            return Err(format!("recovery ends at {} and passes {}", end.last, checked.last));
        }
        checked.wrong.map_or(Ok(end.last), Err)
    };
    let before = read()?;
    append(folder, QUIET, 3, Broken::No).map_err(|error| format!("it cannot go on: {error}"))?;
    let after = read()?;
    if after == before + 3 { Ok(before) } else { Err(format!("3 records after {before} give {after}")) }
}
