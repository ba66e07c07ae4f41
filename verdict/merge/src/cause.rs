//! Causes that the time of slow orders is attributed to, and of gaps in a thread's duty cycles.
//! `tail` computes them; summaries and pages show them.

use serde::{Deserialize, Serialize};
use system::named_enum;

named_enum! {
    /// A cause of a slow order's time in the engine, in the order of saved documents; a new one is
    /// appended.
    #[derive(PartialOrd, Ord)]
    Cause {
        /// A thread that had to act was not running: the kernel or the hypervisor had taken its
        /// core away.
        Machine = "machine",
        /// A page fault or cold cache lines.
        Memory = "memory",
        /// The receiver served earlier orders that a gap had affected.
        Backlog = "backlog",
        /// The receiver served earlier orders that no gap had affected.
        Queueing = "queueing",
        /// Time up to the median of the stage.
        Usual = "usual",
        /// No stamp and no gap explains the time.
        Unexplained = "unexplained",
        /// The receiver was asleep: its own idle strategy had given its core away.
        WakeUp = "wake-up",
    }
}

impl Cause {
    /// All causes of slow orders' time, such as queueing or a lost core, in the order in which
    /// tables and pages show them. External causes come first, then the thread's own behavior, then
    /// the remainder.
    pub const DISPLAY_ORDER: [Self; 7] = [
        Self::Machine,
        Self::WakeUp,
        Self::Memory,
        Self::Backlog,
        Self::Queueing,
        Self::Usual,
        Self::Unexplained,
    ];
}

/// The number of causes in documents of the oldest supported build.
const MIN_CAUSES: usize = 6;

/// The time of orders split by cause of delay, in nanoseconds, in the order of [`Cause::ALL`].
/// Documents of earlier builds have fewer entries; the missing ones count as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>")]
pub struct NanosByCause(pub [u64; Cause::ALL.len()]);

impl NanosByCause {
    /// Returns the nanoseconds of orders' time that are attributed to one cause.
    pub const fn get(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// Returns the nanoseconds of orders' time that are attributed to all causes together.
    /// Saturates, since a file may hold any values.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Iterates over the causes to which time is attributed, with their nanoseconds, in display
    /// order.
    pub fn nonzero(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::DISPLAY_ORDER.into_iter().map(|cause| (cause, self.get(cause))).filter(|(_, time)| *time > 0)
    }
}

impl TryFrom<Vec<u64>> for NanosByCause {
    type Error = String;

    fn try_from(times: Vec<u64>) -> Result<Self, String> {
        let mut causes = Self::default();
        if !(MIN_CAUSES..=causes.0.len()).contains(&times.len()) {
            return Err(format!("{} causes, and this build knows {}", times.len(), causes.0.len()));
        }
        causes.0[..times.len()].copy_from_slice(&times);
        Ok(causes)
    }
}

named_enum! {
    /// What took the core away from a thread in a gap.
    #[derive(PartialOrd, Ord)]
    GapClass {
        /// The hypervisor ran another guest.
        Steal = "steal",
        /// The kernel ran another thread on the core.
        Preempted = "preempted",
        /// A page fault.
        Fault = "fault",
        /// An interrupt handler.
        Interrupt = "interrupt",
        /// The run recorded nothing that tells.
        Other = "other",
    }
}

/// Length from which a gap (a time without the CPU core) is called *long*: 15,000 nanoseconds,
/// longer than a duty cycle that handles an order.
pub const LONG_GAP_NS: u64 = 15_000;

/// The number and the total length of a thread's gaps (times without the CPU core) of one class,
/// such as preempted or steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapTotal {
    /// Class of the gaps: what took the core away from the thread.
    pub class: GapClass,
    /// Number of gaps.
    pub gaps: u64,
    /// Total length of the gaps, in nanoseconds.
    pub ns: u64,
    /// Number of the gaps of 15 µs or longer.
    #[serde(default)]
    pub long: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_indexed_and_displayed_once() {
        for (index, cause) in Cause::ALL.iter().copied().enumerate() {
            assert_eq!(cause as usize, index);
            assert!(Cause::DISPLAY_ORDER.contains(&cause));
        }
        assert_eq!(Cause::DISPLAY_ORDER.last(), Some(&Cause::Unexplained));
    }

    #[test]
    fn shorter_cause_lists_are_padded_with_zero() {
        let parse = |text: &str| serde_json::from_str::<NanosByCause>(text);
        assert_eq!(parse("[1,2,3,4,5,6]").unwrap(), NanosByCause([1, 2, 3, 4, 5, 6, 0]));
        let new = NanosByCause([1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(parse(&serde_json::to_string(&new).unwrap()).unwrap(), new);
        for wrong in ["[]", "[1,2,3,4,5]", "[1,2,3,4,5,6,7,8]", "[1,2,3,4,5,-6]"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("[1,2,3,4,5,6,7,8]").unwrap_err().to_string().contains("8 causes"));
    }
}
