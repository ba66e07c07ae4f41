//! Named points within a push at which tests kill a producer, with the state of its message in the
//! ring at each.

use super::message::Full;
use crate::sync::{AtomicU64, Ordering};
use core::ops::ControlFlow;

/// A point within a push at which a test can kill the producer or a fault can interrupt it. Not
/// every technique has every step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Step {
    /// The push has begun; the ring is as it was.
    Entered,
    /// The push has a new block for the end of the list, not yet linked (technique `linked`).
    Allocated,
    /// The new block follows the last one, but is not yet recorded as the last (technique
    /// `linked`).
    Linked,
    /// The slot that the push is about to claim is announced (rings with several producers).
    Announced,
    /// The position is claimed: no other producer will write it.
    Claimed,
    /// Some words of the message are written, others not.
    HalfWritten,
    /// All words of the message are written, but the message is not published yet.
    Written,
    /// The message is published: the consumer can take it. What is left is to withdraw the
    /// announcement or to wake the receiver.
    Published,
}

impl Step {
    /// All points within a push into a ring at which a fault can interrupt it, in order.
    pub const ALL: &[Step] = &[
        Step::Entered,
        Step::Allocated,
        Step::Linked,
        Step::Announced,
        Step::Claimed,
        Step::HalfWritten,
        Step::Written,
        Step::Published,
    ];

    /// Returns the name, for users, of a step of a push, such as `claimed`.
    pub const fn name(self) -> &'static str {
        match self {
            Step::Entered => "entered",
            Step::Allocated => "allocated",
            Step::Linked => "linked",
            Step::Announced => "announced",
            Step::Claimed => "claimed",
            Step::HalfWritten => "half-written",
            Step::Written => "written",
            Step::Published => "published",
        }
    }

    /// Returns the step of a push with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|step| step.name() == name)
    }
}

impl core::fmt::Display for Step {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// Calls a test's function `at` at one step of a push; if `at` returns `Break`, the push ends
/// there, as after a crash. Compiles to nothing for an `at` that always continues.
///
/// # Errors
/// [`Full`] if `at` broke off.
#[inline(always)]
pub fn reach(at: &mut impl FnMut(Step) -> ControlFlow<()>, step: Step) -> Result<(), Full> {
    if at(step).is_break() { Err(Full) } else { Ok(()) }
}

/// Runs a push whose inner steps are invisible: calls `at` only before and after it.
///
/// # Errors
/// [`Full`] if `push` returns it or `at` broke off.
#[inline(always)]
pub fn whole(
    at: &mut impl FnMut(Step) -> ControlFlow<()>,
    push: impl FnOnce() -> Result<(), Full>,
) -> Result<(), Full> {
    reach(at, Step::Entered)?;
    push()?;
    // The message is there, whatever happens to its producer now.
    let _ = at(Step::Published);
    Ok(())
}

/// Writes a message's words into its slot, and calls `at` before the second half and after the last
/// word. The steps are [`Step::HalfWritten`] and [`Step::Written`].
///
/// # Errors
/// [`Full`] if `at` broke off.
#[inline(always)]
pub fn write<const W: usize>(
    slot: &[AtomicU64],
    message: &[u64; W],
    at: &mut impl FnMut(Step) -> ControlFlow<()>,
) -> Result<(), Full> {
    for (place, (word, value)) in slot.iter().zip(message).enumerate() {
        if place == W / 2 {
            reach(at, Step::HalfWritten)?;
        }
        // Relaxed: the Release store that shows the message publishes it.
        word.store(*value, Ordering::Relaxed);
    }
    reach(at, Step::Written)
}
