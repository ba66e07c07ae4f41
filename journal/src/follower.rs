//! A state that follows a log beside its writer: it carries out what is written, writes the snapshots so that the writer never stands
//! still for one, and is what the writer's successor goes on from.

use crate::disk::Os;
use crate::error::JournalError;
use crate::reader::{Reader, Record};
use crate::recovery::{self, Recovered};
use crate::snapshot;
use std::path::{Path, PathBuf};

/// Snapshots that are kept: should the newest be damaged, there is another.
const KEPT: usize = 2;

/// The state behind a record of a log.
pub trait State {
    /// Why it cannot go on.
    type Error: From<JournalError>;

    /// Goes on from the bytes of a snapshot behind that record. Nothing in them is believed.
    ///
    /// # Errors
    /// They are none of such a state; it is of no use then.
    fn restore(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), Self::Error>;

    /// Carries out a record.
    ///
    /// # Errors
    /// It is none of such a state; that is of no use then.
    fn carry_out(&mut self, record: Record<'_>) -> Result<(), Self::Error>;

    /// The state as bytes.
    ///
    /// # Errors
    /// They cannot be made.
    fn encode(&self) -> Result<Vec<u8>, Self::Error>;

    /// How many records it is worth about: a snapshot before so many were written would cost more than it saves.
    fn size(&self) -> u64;

    /// What comes now is a successor's to carry out.
    fn is_over(&self) -> bool {
        false
    }

    /// Takes a part of what is recovered.
    ///
    /// # Errors
    /// As [`State::restore`] and [`State::carry_out`].
    fn take(&mut self, part: Recovered<'_>) -> Result<(), Self::Error> {
        match part {
            Recovered::Snapshot { sequence, state } => self.restore(sequence, state),
            Recovered::Record { sequence, payload } => self.carry_out(Record { sequence, payload }),
        }
    }
}

/// A state, and how far it has followed the log.
pub struct Follower<S> {
    /// The state behind [`Follower::last`].
    pub state: S,
    reader: Reader,
    folder: PathBuf,
    snapshot_at: u64,
}

impl<S: State> Follower<S> {
    /// Begins in the newest good snapshot of that folder, if there is one; else `state` is that before the first record.
    ///
    /// # Errors
    /// As [`State::restore`]; that the folder is not there.
    pub fn begin(folder: &Path, mut state: S) -> Result<Self, S::Error> {
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

    /// Carries out what was written since, at most so many records; how many that were. Not beyond where [`State::is_over`].
    ///
    /// # Errors
    /// As [`State::carry_out`]; what the system refused. The state is of no use then.
    pub fn follow(&mut self, most: usize) -> Result<usize, S::Error> {
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

    /// Whether so many records were written since the last snapshot, and more than the state is worth.
    pub fn snapshot_is_due(&self, every: u64) -> bool {
        !self.state.is_over() && self.last() - self.snapshot_at >= every.max(self.state.size())
    }

    /// Writes a snapshot of this state, and removes older ones but for one, with the segments that nobody needs any more.
    ///
    /// # Errors
    /// As [`State::encode`]; what the system refused. The journal is as good as before.
    pub fn snapshot(&mut self) -> Result<(), S::Error> {
        self.snapshot_at = self.last();
        let state = self.state.encode()?;
        Ok(snapshot::write_beside(&Os, &self.folder, &self.reader, &state, KEPT)?)
    }

    /// The state, and what the writer that goes on from it begins behind ([`crate::Writer::recover`]).
    pub fn into_parts(self) -> (S, Reader) {
        (self.state, self.reader)
    }
}
