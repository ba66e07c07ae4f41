//! A transactional outbox: outputs in the order in which a log produces them, kept until they are
//! confirmed as sent.
//!
//! The log alone determines the outputs and their order. The number of sent outputs therefore
//! identifies them, and a successor sends exactly the others.

use crate::error::RecoveryError;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Outputs for which an outbox keeps memory. Much more, as after a catch-up with a long log, is
/// freed when outputs are confirmed: a successor would have to do it while others wait for it.
const KEPT_CAPACITY: usize = 1024;

/// A transactional outbox for one receiver: the count of all outputs, and the unconfirmed ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbox<T> {
    /// Number of outputs produced so far.
    produced: u64,
    /// The last of them, which may not have been sent.
    unconfirmed: VecDeque<T>,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self { produced: 0, unconfirmed: VecDeque::new() }
    }
}

impl<T> Outbox<T> {
    /// Adds an output of the state machine that the receiver has not confirmed.
    pub fn push(&mut self, output: T) {
        self.produced += 1;
        self.unconfirmed.push_back(output);
    }

    /// Returns the number of outputs of the state machine so far, whether sent or not.
    pub const fn produced(&self) -> u64 {
        self.produced
    }

    /// Returns the number of the state machine's outputs that the receiver has confirmed.
    pub fn confirmed(&self) -> u64 {
        self.produced - self.unconfirmed.len() as u64
    }

    /// Returns the state machine's outputs that the receiver has not confirmed, in order.
    pub const fn unconfirmed(&self) -> &VecDeque<T> {
        &self.unconfirmed
    }

    /// Removes and returns the oldest unconfirmed output if it is among the first `count` outputs.
    /// These are the ones that the receiver has confirmed.
    pub fn pop_confirmed(&mut self, count: u64) -> Option<T> {
        if self.confirmed() < count { self.unconfirmed.pop_front() } else { None }
    }

    /// Marks the first `count` outputs of the state machine as confirmed and drops them.
    pub fn confirm(&mut self, count: u64) {
        while self.pop_confirmed(count).is_some() {}
        let wanted = self.unconfirmed.len().max(KEPT_CAPACITY);
        if self.unconfirmed.capacity() > 4 * wanted {
            self.unconfirmed.shrink_to(wanted);
        }
    }

    /// Takes back an output of the state machine that was not sent. Returns whether it was
    /// unconfirmed: it may have been confirmed together with a later one. Returns `None` if it can
    /// be none of the outputs.
    pub fn retract(&mut self, output: &T) -> Option<bool>
    where
        T: PartialEq,
    {
        let index = self.unconfirmed.iter().position(|kept| kept == output);
        if index.is_none() && self.confirmed() == 0 {
            return None;
        }
        self.produced -= 1;
        Some(index.and_then(|index| self.unconfirmed.remove(index)).is_some())
    }

    /// Drops the unconfirmed outputs, whose receiver is gone, and counts them as confirmed.
    pub fn clear(&mut self) {
        self.unconfirmed.clear();
    }

    /// Checks that the receiver can have got exactly the first `observed` outputs.
    ///
    /// # Errors
    /// [`RecoveryError::Incomplete`] if the log produced fewer;
    /// [`RecoveryError::DroppedUnsent`] if more were dropped, and are lost.
    pub fn check(&self, what: &'static str, index: usize, observed: u64) -> Result<(), RecoveryError> {
        RecoveryError::check_count(what, index, self.produced, observed)?;
        let dropped = self.confirmed();
        if dropped <= observed {
            Ok(())
        } else {
            Err(RecoveryError::DroppedUnsent { what, index, dropped, observed })
        }
    }

    /// Returns `false` if a decoded outbox has more unconfirmed outputs than produced ones.
    pub fn is_sound(&self) -> bool {
        self.unconfirmed.len() as u64 <= self.produced
    }

    /// Returns the outputs that the receiver has not confirmed, which a successor must send again.
    pub fn into_unconfirmed(self) -> VecDeque<T> {
        self.unconfirmed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn memory_of_a_catch_up_is_freed_when_its_outputs_are_confirmed() {
        let mut outbox = Outbox::default();
        (0..64 * KEPT_CAPACITY).for_each(|output| outbox.push(output));
        outbox.confirm(1);
        assert!(outbox.unconfirmed.capacity() >= 64 * KEPT_CAPACITY, "most of it is in use");
        outbox.confirm(64 * KEPT_CAPACITY as u64);
        assert!(outbox.unconfirmed.capacity() < 2 * KEPT_CAPACITY);
    }

    proptest! {
        /// After any confirmations exactly the other outputs are unconfirmed.
        #[test]
        fn unconfirmed_is_exact_for_any_counts(counts in prop::collection::vec((0u64..5, 0u64..20), 0..20)) {
            let mut outbox = Outbox::default();
            let mut confirmed = 0;
            for (pushes, count) in counts {
                (0..pushes).for_each(|_| outbox.push(outbox.produced()));
                outbox.confirm(count);
                confirmed = confirmed.max(count.min(outbox.produced()));
                prop_assert!(outbox.unconfirmed().iter().copied().eq(confirmed..outbox.produced()));
                prop_assert!(outbox.is_sound() && outbox.confirmed() == confirmed);
            }
        }
    }

    #[test]
    fn count_above_produced_or_below_confirmed_is_an_error() {
        let mut outbox = Outbox::default();
        (0..5).for_each(|output| outbox.push(output));
        outbox.confirm(3);
        let check = |observed| outbox.check("outputs to", 0, observed);
        assert!(check(3).is_ok() && check(5).is_ok());
        assert!(matches!(check(6), Err(RecoveryError::Incomplete { journal: 5, observed: 6, .. })));
        assert!(matches!(check(2), Err(RecoveryError::DroppedUnsent { dropped: 3, observed: 2, .. })));
    }

    #[test]
    fn retracted_output_is_not_counted() {
        let mut outbox = Outbox::default();
        assert_eq!(outbox.retract(&'a'), None, "nothing was produced");
        "abcd".chars().for_each(|output| outbox.push(output));
        assert_eq!(outbox.retract(&'c'), Some(true));
        assert_eq!(outbox.retract(&'z'), None, "none was confirmed");
        // The two that were sent are `a` and `d`. `b` is retracted although it was counted as
        // confirmed, and `d` is still listed.
        outbox.confirm(2);
        assert_eq!(outbox.retract(&'b'), Some(false));
        assert_eq!((outbox.produced(), outbox.confirmed()), (2, 1));
        outbox.confirm(2);
        assert!(outbox.unconfirmed().is_empty());
    }
}
