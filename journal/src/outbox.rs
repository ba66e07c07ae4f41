//! A transactional outbox: outputs in the order in which a log produces them. Those that may not
//! have been sent are kept.
//!
//! The log alone decides which outputs there are and in which order. So a count of those that have
//! gone out says which ones they are, and a successor sends exactly the others.

use crate::error::RecoveryError;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Outputs to one receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox<T> {
    /// Outputs produced so far.
    given: u64,
    /// The last of them.
    kept: VecDeque<T>,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { given: 0, kept: VecDeque::new() }
    }
}

impl<T> Outbox<T> {
    /// Adds an output.
    pub fn push(&mut self, output: T) {
        self.given += 1;
        self.kept.push_back(output);
    }

    /// Number of outputs produced so far.
    pub const fn given(&self) -> u64 {
        self.given
    }

    /// Number of outputs that are not kept, because they have gone out.
    pub fn dropped(&self) -> u64 {
        self.given - self.kept.len() as u64
    }

    /// The outputs that may not have gone out, in order.
    pub const fn kept(&self) -> &VecDeque<T> {
        &self.kept
    }

    /// Takes out the first kept output if it is among the first `gone`.
    pub fn next_of(&mut self, gone: u64) -> Option<T> {
        if self.dropped() < gone { self.kept.pop_front() } else { None }
    }

    /// Drops the outputs among the first `gone`.
    pub fn has_gone(&mut self, gone: u64) {
        while self.next_of(gone).is_some() {}
    }

    /// Takes an output back that has not gone out. Returns whether it was kept: it may have been
    /// dropped because one after it has gone out. Returns `None` if no output is left that could be
    /// it.
    pub fn take_back(&mut self, output: &T) -> Option<bool>
    where
        T: PartialEq,
    {
        let index = self.kept.iter().position(|kept| kept == output);
        if index.is_none() && self.dropped() == 0 {
            return None;
        }
        self.given -= 1;
        Some(index.and_then(|index| self.kept.remove(index)).is_some())
    }

    /// Drops what is kept: nobody is there to take it.
    pub fn forget(&mut self) {
        self.kept.clear();
    }

    /// Checks that exactly the first `there` outputs can be said to have gone out.
    ///
    /// # Errors
    /// [`RecoveryError::Short`] if the log produced fewer; [`RecoveryError::Dropped`] if more were
    /// dropped, and are lost.
    pub fn check(&self, what: &'static str, index: usize, there: u64) -> Result<(), RecoveryError> {
        RecoveryError::check_count(what, index, self.given, there)?;
        let dropped = self.dropped();
        if dropped <= there { Ok(()) } else { Err(RecoveryError::Dropped { what, index, dropped, there }) }
    }

    /// Returns `false` for a decoded value that no sequence of calls leads to.
    pub fn is_sound(&self) -> bool {
        self.kept.len() as u64 <= self.given
    }

    /// The outputs that may not have gone out.
    pub fn into_kept(self) -> VecDeque<T> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whenever it is told how much has gone out, it keeps exactly the rest.
        #[test]
        fn rest_is_kept_for_any_counts(counts in prop::collection::vec((0u64..5, 0u64..20), 0..20)) {
            let mut outbox = Outbox::default();
            let mut gone = 0;
            for (pushes, count) in counts {
                (0..pushes).for_each(|_| outbox.push(outbox.given()));
                outbox.has_gone(count);
                gone = gone.max(count.min(outbox.given()));
                prop_assert!(outbox.kept().iter().copied().eq(gone..outbox.given()));
                prop_assert!(outbox.is_sound() && outbox.dropped() == gone);
            }
        }
    }

    #[test]
    fn count_beyond_what_was_given_or_dropped_is_an_error() {
        let mut outbox = Outbox::default();
        (0..5).for_each(|output| outbox.push(output));
        outbox.has_gone(3);
        let check = |there| outbox.check("outputs to", 0, there);
        assert!(check(3).is_ok() && check(5).is_ok());
        assert!(matches!(check(6), Err(RecoveryError::Short { journal: 5, there: 6, .. })));
        assert!(matches!(check(2), Err(RecoveryError::Dropped { dropped: 3, there: 2, .. })));
    }

    #[test]
    fn output_taken_back_is_not_counted() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.take_back(&'a'), None, "nothing was given");
        "abcd".chars().for_each(|output| outbox.push(output));
        assert_eq!(outbox.take_back(&'c'), Some(true));
        assert_eq!(outbox.take_back(&'z'), None, "nothing has gone out");
        // b goes after the others and is taken back: one of those that were counted as gone is
        // still there.
        outbox.has_gone(2);
        assert_eq!(outbox.take_back(&'b'), Some(false));
        assert_eq!((outbox.given(), outbox.dropped()), (2, 1));
        outbox.has_gone(2);
        assert!(outbox.kept().is_empty());
    }
}
