//! The log of a state machine's inputs as a type parameter: a journal, or `()` for none.

use crate::error::JournalError;
use crate::recovery::LogEnd;
use crate::writer::Writer;

/// A log that records the inputs of a state machine before they are applied.
pub trait InputLog: Send {
    /// `true` if this log records inputs (`()` records none).
    const IS_ENABLED: bool;

    /// Records an input before it is applied.
    ///
    /// # Errors
    /// [`JournalError::Failed`]. The input must not be applied then.
    fn record(&mut self, payload: &[u8]) -> Result<(), JournalError>;

    /// Returns the sequence of the record that must be durable before an output may be sent (group
    /// commit). With `has_deferred`, other outputs wait already.
    fn undurable(&self, has_deferred: bool) -> Option<u64>;

    /// Returns the sequence of the last durable record.
    fn durable(&self) -> u64;

    /// Returns the reason why the log has failed, if it has.
    fn failure(&self) -> Option<JournalError>;

    /// Returns the sequence of the last record, and the end of the log that recovery found.
    fn progress(&self) -> (u64, Option<&LogEnd>);
}

/// No log: nothing is recorded, at no cost.
impl InputLog for () {
    const IS_ENABLED: bool = false;

    #[inline(always)]
    fn record(&mut self, _: &[u8]) -> Result<(), JournalError> {
        Ok(())
    }

    #[inline(always)]
    fn undurable(&self, _: bool) -> Option<u64> {
        None
    }

    #[inline(always)]
    fn durable(&self) -> u64 {
        u64::MAX
    }

    fn failure(&self) -> Option<JournalError> {
        None
    }

    fn progress(&self) -> (u64, Option<&LogEnd>) {
        (0, None)
    }
}

impl InputLog for Writer {
    const IS_ENABLED: bool = true;

    #[inline(always)]
    fn record(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        self.append(payload).map(drop)
    }

    #[inline(always)]
    fn undurable(&self, has_deferred: bool) -> Option<u64> {
        (self.is_group_commit() && (has_deferred || self.durable_sequence() < self.last()))
            .then(|| self.last())
    }

    #[inline(always)]
    fn durable(&self) -> u64 {
        self.durable_sequence()
    }

    fn failure(&self) -> Option<JournalError> {
        Writer::failure(self)
    }

    fn progress(&self) -> (u64, Option<&LogEnd>) {
        (self.last(), Some(self.recovered()))
    }
}
