//! A state that follows a log beside its writer: it carries out what is written, writes the
//! snapshots so that the writer never stands still for one, and is what the writer's successor goes
//! on from.

use crate::codec;
use crate::disk::Os;
use crate::error::RecoveryError;
use crate::reader::{Reader, Record};
use crate::recovery::{self, Recovered};
use crate::snapshot;
use serde::{Serialize, de::DeserializeOwned};
use std::error::Error as StdError;
use std::path::{Path, PathBuf};

/// Snapshots that are kept: should the newest be damaged, there is another.
const KEPT: usize = 2;

/// The state after a record of a log.
pub trait State {
    /// The version of [`State::Saved`]: a snapshot of another version is refused.
    const VERSION: u32;
    /// The state as a value that a snapshot holds.
    type Saved: DeserializeOwned;

    /// Returns the state as a value that is written as a [`State::Saved`]. The same records lead to
    /// the same value, wherever they were applied.
    fn save(&self) -> impl Serialize;

    /// Continues from a saved state. Nothing in it is trusted.
    ///
    /// # Errors
    /// What cannot be in such a state; it is of no use then.
    fn restore(&mut self, saved: Self::Saved) -> Result<(), Box<dyn StdError + Send + Sync>>;

    /// Applies a record.
    ///
    /// # Errors
    /// [`RecoveryError::Foreign`]: it is no record of such a state, which is of no use then.
    fn carry_out(&mut self, record: Record<'_>) -> Result<(), RecoveryError>;

    /// How many records it is worth about: a snapshot before so many were written would cost more
    /// than it saves.
    fn size(&self) -> u64;

    /// Returns `true` if what comes now is a successor's to apply.
    fn is_over(&self) -> bool {
        false
    }

    /// Returns the bytes of a snapshot.
    ///
    /// # Errors
    /// [`RecoveryError::Unencoded`].
    fn encode(&self) -> Result<Vec<u8>, RecoveryError> {
        Ok(codec::encode(Self::VERSION, &self.save())?)
    }

    /// Continues from the bytes of the snapshot after the record `sequence`.
    ///
    /// # Errors
    /// [`RecoveryError::Encoded`], [`RecoveryError::State`].
    fn decode(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), RecoveryError> {
        let saved = codec::decode(Self::VERSION, bytes);
        let saved = saved.map_err(|error| RecoveryError::Encoded(sequence, error))?;
        self.restore(saved).map_err(|error| RecoveryError::State(sequence, error))
    }

    /// Takes a part of what is recovered.
    ///
    /// # Errors
    /// As [`State::decode`] and [`State::carry_out`].
    fn take(&mut self, part: Recovered<'_>) -> Result<(), RecoveryError> {
        match part {
            Recovered::Snapshot { sequence, state } => self.decode(sequence, state),
            Recovered::Record { sequence, payload } => self.carry_out(Record { sequence, payload }),
        }
    }
}

/// A state, and how far it has followed the log.
pub struct JournalFollower<S> {
    /// The state behind [`Follower::last`].
    pub state: S,
    reader: Reader,
    folder: PathBuf,
    snapshot_at: u64,
}

impl<S: State> JournalFollower<S> {
    /// Begins in the newest good snapshot of that folder, if there is one; else `state` is that
    /// before the first record.
    ///
    /// # Errors
    /// As [`State::decode`]; that the folder is not there.
    pub fn begin(folder: &Path, mut state: S) -> Result<Self, RecoveryError> {
        let (mut failed, mut snapshot_at) = (None, 0);
        let reader = recovery::follow(folder, |part| {
            if let Recovered::Snapshot { sequence, .. } = part {
                snapshot_at = sequence;
            }
            failed = state.take(part).err();
        })?;
        match failed {
            Some(error) => Err(error),
            None => Ok(Self { state, reader, folder: folder.to_owned(), snapshot_at }),
        }
    }

    /// Carries out what was written since, at most so many records; how many that were. Not beyond
    /// where [`State::is_over`].
    ///
    /// # Errors
    /// As [`State::carry_out`]; what the system refused. The state is of no use then.
    pub fn follow(&mut self, most: usize) -> Result<usize, RecoveryError> {
        for count in 0..most {
            if self.state.is_over() {
                return Ok(count);
            }
            let Some(record) = self.reader.next()? else { return Ok(count) };
            self.state.carry_out(record)?;
        }
        Ok(most)
    }

    /// The last record that was carried out.
    pub fn last(&self) -> u64 {
        self.reader.due() - 1
    }

    /// Whether so many records were written since the last snapshot, and more than the state is
    /// worth.
    pub fn snapshot_is_due(&self, every: u64) -> bool {
        !self.state.is_over() && self.last() - self.snapshot_at >= every.max(self.state.size())
    }

    /// Writes a snapshot of this state, and removes older ones but for one, with the segments that
    /// nobody needs any more.
    ///
    /// # Errors
    /// As [`State::encode`]; what the system refused. The journal is as good as before.
    pub fn snapshot(&mut self) -> Result<(), RecoveryError> {
        self.snapshot_at = self.last();
        let state = self.state.encode()?;
        Ok(snapshot::write_beside(&Os, &self.folder, &self.reader, &state, KEPT)?)
    }

    /// The state, and what the writer that goes on from it begins behind
    /// ([`crate::Writer::recover`]).
    pub fn into_parts(self) -> (S, Reader) {
        (self.state, self.reader)
    }
}
