//! A replica that follows a log while it is written. It applies each record, writes the snapshots
//! so that the writer never pauses for one, and is the state from which a successor of the writer
//! continues (hot standby).

use crate::codec;
use crate::disk::OsDisk;
use crate::error::RecoveryError;
use crate::reader::{Reader, Record};
use crate::recovery::{self, Recovered};
use crate::snapshot;
use serde::{Serialize, de::DeserializeOwned};
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

/// Number of snapshots kept: one more in case the newest is damaged.
const KEPT_SNAPSHOTS: usize = 2;

/// A state machine that applies a log's records, such as a replica of an engine.
pub trait State {
    /// Version of the format in which snapshots store the state. A snapshot of another version is
    /// refused.
    const VERSION: u32;
    /// The type of the state's value in a snapshot.
    type Saved: DeserializeOwned;

    /// Returns the value to store in a snapshot, which serializes as [`State::Saved`]. Equal
    /// records lead to equal values.
    fn save(&self) -> impl Serialize;

    /// Restores the state from the value in a snapshot, which is not trusted.
    ///
    /// # Errors
    /// The problem with the saved state. The state must not be used then.
    fn restore(&mut self, saved: Self::Saved) -> Result<(), Box<dyn StdError + Send + Sync>>;

    /// Applies a record of the log to the state.
    ///
    /// # Errors
    /// [`RecoveryError::Foreign`] for a record of another kind of state. The state must not be used
    /// then.
    fn apply(&mut self, record: Record<'_>) -> Result<(), RecoveryError>;

    /// Returns the size of the state, as the number of records that would take as much space. A
    /// snapshot after fewer records would cost more than it saves.
    fn size(&self) -> u64;

    /// Returns `true` if the state has ended, so that later records are for its successor.
    fn has_ended(&self) -> bool {
        false
    }

    /// Encodes the state as a snapshot.
    ///
    /// # Errors
    /// [`RecoveryError::Encode`].
    fn encode(&self) -> Result<Vec<u8>, RecoveryError> {
        Ok(codec::encode(Self::VERSION, &self.save())?)
    }

    /// Restores the state from the snapshot after record `sequence`.
    ///
    /// # Errors
    /// [`RecoveryError::Decode`], [`RecoveryError::State`].
    fn decode(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), RecoveryError> {
        let saved = codec::decode(Self::VERSION, bytes);
        let saved = saved.map_err(|error| RecoveryError::Decode(sequence, error))?;
        self.restore(saved).map_err(|error| RecoveryError::State(sequence, error))
    }

    /// Applies a snapshot or a record that recovery found.
    ///
    /// # Errors
    /// As [`State::decode`] and [`State::apply`].
    fn recover(&mut self, part: Recovered<'_>) -> Result<(), RecoveryError> {
        match part {
            Recovered::Snapshot { sequence, state } => self.decode(sequence, state),
            Recovered::Record { sequence, payload } => self.apply(Record { sequence, payload }),
        }
    }
}

/// A state machine that applies a log's records as they are written (replica), with its position.
pub struct JournalFollower<S> {
    /// The state after record [`JournalFollower::last`].
    pub state: S,
    reader: Reader,
    folder: PathBuf,
    snapshot_at: u64,
}

impl<S: State> JournalFollower<S> {
    /// Opens the log in a directory and restores the newest valid snapshot, to follow it. Without
    /// one, `state` is the state before the first record.
    ///
    /// # Errors
    /// As [`State::decode`]; a directory that cannot be read.
    pub fn open(folder: &Path, mut state: S) -> Result<Self, RecoveryError> {
        let (mut failed, mut snapshot_at) = (None, 0);
        let reader = recovery::follow(folder, |part| {
            if let Recovered::Snapshot { sequence, .. } = part {
                snapshot_at = sequence;
            }
            failed = state.recover(part).err();
        })?;
        match failed {
            Some(error) => Err(error),
            None => Ok(Self { state, reader, folder: folder.to_owned(), snapshot_at }),
        }
    }

    /// Applies up to `max` new records of the journal to the state machine. Returns the number
    /// applied. Stops once [`State::has_ended`].
    ///
    /// # Errors
    /// As [`State::apply`]; the system's refusal. The state must not be used then.
    pub fn poll(&mut self, max: usize) -> Result<usize, RecoveryError> {
        for count in 0..max {
            if self.state.has_ended() {
                return Ok(count);
            }
            let Some(record) = self.reader.next_record()? else { return Ok(count) };
            self.state.apply(record)?;
        }
        Ok(max)
    }

    /// Returns the sequence number of the journal's last record that was applied.
    pub fn last(&self) -> u64 {
        self.reader.next_sequence() - 1
    }

    /// Returns `true` if at least `every` and at least [`State::size`] records were applied since
    /// the last snapshot, and the state has not ended.
    pub fn is_snapshot_due(&self, every: u64) -> bool {
        !self.state.has_ended() && self.last() - self.snapshot_at >= every.max(self.state.size())
    }

    /// Writes a snapshot of the state, and removes older snapshots and segments. All but the last
    /// two snapshots go, and the segments before them.
    ///
    /// # Errors
    /// As [`State::encode`]; the system's refusal. The journal stays valid.
    pub fn snapshot(&mut self) -> Result<(), RecoveryError> {
        self.snapshot_at = self.last();
        let state = self.state.encode()?;
        Ok(snapshot::write_snapshot(&OsDisk, &self.folder, &self.reader, &state, KEPT_SNAPSHOTS)?)
    }

    /// Returns the state machine and the reader of its log, from which a new writer continues
    /// ([`crate::Writer::recover`]).
    pub fn into_parts(self) -> (S, Reader) {
        (self.state, self.reader)
    }
}
