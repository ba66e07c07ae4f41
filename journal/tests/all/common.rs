//! Distinguishable records, and the check of a recovered log.

use journal::{JournalError, LogEnd, Recovered, Writer, recover};
use serde::{Deserialize, Serialize};
use shm::random::SplitMix64;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Creates a directory in memory, where a sync costs nothing.
pub fn folder() -> TempDir {
    tempfile::Builder::new().prefix("journal-test-").tempdir_in("/dev/shm").expect("space in /dev/shm")
}

pub fn is_slow() -> bool {
    std::env::var_os("BULKHEAD_SLOW").is_some_and(|value| value == "1")
}

/// Returns the payload of a record: 1 to 90 bytes.
pub fn payload(sequence: u64) -> Vec<u8> {
    let mut random = SplitMix64(sequence);
    (0..=random.below(90)).map(|_| random.below(256) as u8).collect()
}

/// A state that depends on every record: one that is missing, duplicated, changed or out of order
/// changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub records: u64,
    pub digest: u64,
}

impl State {
    pub fn apply(&mut self, payload: &[u8]) {
        self.records += 1;
        for byte in payload {
            self.digest = (self.digest.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    pub fn after(last: u64) -> Self {
        let mut state = Self::default();
        (1..=last).for_each(|sequence| state.apply(&payload(sequence)));
        state
    }

    pub fn encode(&self) -> Vec<u8> {
        journal::codec::encode(1, self).expect("encodable")
    }
}

/// Recovers a directory and checks every record. Returns the resulting state.
pub fn recovered(folder: &Path) -> Result<(State, LogEnd), JournalError> {
    let mut state = State::default();
    let end = recover(folder, |part| match part {
        Recovered::Snapshot { state: bytes, sequence } => {
            state = journal::codec::decode(1, bytes).expect("its CRC was right");
            assert_eq!(state.records, sequence);
        }
        Recovered::Record { sequence, payload: bytes } => {
            assert_eq!(bytes, payload(sequence), "record {sequence}");
            state.apply(bytes);
            assert_eq!(state.records, sequence);
        }
    })?;
    assert_eq!(state.records, end.last);
    Ok((state, end))
}

pub fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        if let Err(error) = std::fs::copy(entry.path(), to.join(entry.file_name())) {
            assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{error}");
        }
    }
}

pub fn append(writer: &mut Writer, records: u64) {
    for _ in 0..records {
        let next = writer.last() + 1;
        assert_eq!(writer.append(&payload(next)).expect("taken"), next);
    }
}

pub fn wait_until(condition: &str, mut is_done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < Duration::from_secs(60), "{condition}");
        std::thread::yield_now();
    }
}
