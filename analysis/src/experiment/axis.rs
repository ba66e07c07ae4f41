//! The axes along which experiments vary settings.

use system::named_enum;

named_enum! {
    /// A setting or load that a sweep varies: first what is compared, then the conditions under
    /// which it is. All but the rate are settings of a run.
    #[derive(Hash, PartialOrd, Ord)]
    Axis {
        /// The technique that carries the submit and completion hand-offs.
        Technique = "technique",
        /// The isolation level between strategies and engine.
        Isolation = "isolation",
        /// Which processes the engine's roles are in.
        Process = "process",
        /// The idle strategy of threads.
        Idle = "idle",
        /// Slots of every ring.
        Capacity = "capacity",
        /// Which points of an order's way are stamped.
        Stamps = "stamps",
        /// The journal of exchanges and engine.
        Journal = "journal",
        /// The orchestrator's extra work.
        Work = "work",
        /// The number of strategies.
        Strategies = "strategies",
        /// The number of venues.
        Venues = "venues",
        /// Orders a second of all strategies together; becomes the number of orders in the window.
        Rate = "rate",
    }
}

impl Axis {
    /// Returns `true` if the axis' values are alternated against each other.
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
