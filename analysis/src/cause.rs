//! The causes that the time of slow orders is divided among: `tail` finds them, summaries and pages
//! show them.

use serde::{Deserialize, Serialize};

/// Why time passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// A thread was not running.
    Machine,
    /// A page fault, or cold lines.
    Memory,
    /// Behind orders that a gap had touched.
    Backlog,
    /// Behind orders that none had.
    Queueing,
    /// The stage's own median.
    Usual,
    /// Nothing says why.
    Unexplained,
    /// The thread had given its core away by its own idle strategy, and was not back yet.
    WakeUp,
}

impl Cause {
    /// All of them, in the order in which documents have them: a new one comes last.
    pub const ALL: [Self; 7] = [
        Self::Machine,
        Self::Memory,
        Self::Backlog,
        Self::Queueing,
        Self::Usual,
        Self::Unexplained,
        Self::WakeUp,
    ];

    /// All of them, in the order in which people are shown them: what was done to a thread, what it
    /// did itself, the rest.
    pub const SHOWN: [Self; 7] = [
        Self::Machine,
        Self::WakeUp,
        Self::Memory,
        Self::Backlog,
        Self::Queueing,
        Self::Usual,
        Self::Unexplained,
    ];

    /// The name that tables have.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Memory => "memory",
            Self::Backlog => "backlog",
            Self::Queueing => "queueing",
            Self::Usual => "usual",
            Self::Unexplained => "unexplained",
            Self::WakeUp => "wake-up",
        }
    }
}

/// Causes that every document has, whatever build wrote it.
const FEWEST: usize = 6;

/// A time by cause, in the order of [`Cause::ALL`]. A document of an earlier build has fewer: it
/// counted nothing for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u64>")]
pub struct Causes(pub [u64; Cause::ALL.len()]);

impl Causes {
    /// That of one cause.
    pub const fn of(&self, cause: Cause) -> u64 {
        self.0[cause as usize]
    }

    /// All together; a file that somebody else wrote may hold anything.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, part| sum.saturating_add(*part))
    }

    /// Those that are not nothing, as people are shown them.
    pub fn shown(&self) -> impl Iterator<Item = (Cause, u64)> + '_ {
        Cause::SHOWN.into_iter().map(|cause| (cause, self.of(cause))).filter(|(_, time)| *time > 0)
    }
}

impl TryFrom<Vec<u64>> for Causes {
    type Error = String;

    fn try_from(times: Vec<u64>) -> Result<Self, String> {
        let mut causes = Self::default();
        if !(FEWEST..=causes.0.len()).contains(&times.len()) {
            return Err(format!("{} causes, and this build knows {}", times.len(), causes.0.len()));
        }
        causes.0[..times.len()].copy_from_slice(&times);
        Ok(causes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_place_and_is_shown_once() {
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, place);
            assert_eq!(Cause::SHOWN.iter().filter(|other| **other == cause).count(), 1);
        }
        assert_eq!(Cause::SHOWN.last(), Some(&Cause::Unexplained));
    }

    #[test]
    fn documents_of_earlier_builds_are_read() {
        let of = |text: &str| serde_json::from_str::<Causes>(text);
        assert_eq!(of("[1,2,3,4,5,6]").unwrap(), Causes([1, 2, 3, 4, 5, 6, 0]));
        let new = Causes([1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(of(&serde_json::to_string(&new).unwrap()).unwrap(), new);
        for wrong in ["[]", "[1,2,3,4,5]", "[1,2,3,4,5,6,7,8]", "[1,2,3,4,5,-6]"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        assert!(of("[1,2,3,4,5,6,7,8]").unwrap_err().to_string().contains("8 causes"));
    }
}
