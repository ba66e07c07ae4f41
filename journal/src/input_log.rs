//! Where inputs are recorded before they are applied: a log, or nowhere. A type parameter of
//! whoever takes them, not a flag.

use crate::error::JournalError;
use crate::recovery::End;
use crate::writer::Writer;

/// A log of inputs.
pub trait InputLog: Send {
    /// Whether inputs are recorded.
    const IS_KEPT: bool;

    /// Appends an input before it is applied.
    ///
    /// # Errors
    /// [`JournalError::Failed`]: the input must not be applied.
    fn record(&mut self, payload: &[u8]) -> Result<(), JournalError>;

    /// Returns the record that an output must wait for, under group commit; `has_deferred`: others
    /// wait already.
    fn undurable(&self, has_deferred: bool) -> Option<u64>;

    /// The last durable record.
    fn durable(&self) -> u64;

    /// Why the log can record no more, if it cannot.
    fn failure(&self) -> Option<JournalError>;

    /// The last record, and what was recovered.
    fn progress(&self) -> (u64, Option<&End>);
}

/// No log: nothing is recorded, and nothing is compiled for it.
impl InputLog for () {
    const IS_KEPT: bool = false;

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

    fn progress(&self) -> (u64, Option<&End>) {
        (0, None)
    }
}

impl InputLog for Writer {
    const IS_KEPT: bool = true;

    #[inline(always)]
    fn record(&mut self, payload: &[u8]) -> Result<(), JournalError> {
        self.append(payload).map(drop)
    }

    #[inline(always)]
    fn undurable(&self, has_deferred: bool) -> Option<u64> {
        (self.waits() && (has_deferred || self.settled() < self.last())).then(|| self.last())
    }

    #[inline(always)]
    fn durable(&self) -> u64 {
        self.settled()
    }

    fn failure(&self) -> Option<JournalError> {
        Writer::failure(self)
    }

    fn progress(&self) -> (u64, Option<&End>) {
        (self.last(), Some(self.recovered()))
    }
}
