//! The axes along which experiments vary settings.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A setting or load that a sweep varies, such as the technique or the rate. All but the rate are
/// settings of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// The technique that carries the submit and completion hand-offs.
    Technique,
    /// The isolation level between strategies and engine.
    Isolation,
    /// Which processes the engine's roles are in.
    Process,
    /// The idle strategy of threads.
    Idle,
    /// Slots of every ring.
    Capacity,
    /// Which points of an order's way are stamped.
    Stamps,
    /// The journal of exchanges and engine.
    Journal,
    /// The orchestrator's extra work.
    Work,
    /// The number of strategies.
    Strategies,
    /// The number of venues.
    Venues,
    /// Orders a second of all strategies together; becomes the number of orders in the window.
    Rate,
}

impl Axis {
    /// All axes of experiments: first the compared settings, then the measuring conditions.
    pub const ALL: [Axis; 11] = [
        Axis::Technique,
        Axis::Isolation,
        Axis::Process,
        Axis::Idle,
        Axis::Capacity,
        Axis::Stamps,
        Axis::Journal,
        Axis::Work,
        Axis::Strategies,
        Axis::Venues,
        Axis::Rate,
    ];

    /// Returns the name of the axis' command-line flag, without the dashes.
    pub const fn name(self) -> &'static str {
        [
            "technique",
            "isolation",
            "process",
            "idle",
            "capacity",
            "stamps",
            "journal",
            "work",
            "strategies",
            "venues",
            "rate",
        ][self as usize]
    }

    /// Returns the axis with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|axis| axis.name() == name)
    }

    /// Returns `true` if the axis' values are alternated against each other, rather than being a
    /// shared condition.
    pub const fn is_compared(self) -> bool {
        matches!(
            self,
            Axis::Technique
                | Axis::Isolation
                | Axis::Process
                | Axis::Idle
                | Axis::Capacity
                | Axis::Stamps
                | Axis::Journal
        )
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
