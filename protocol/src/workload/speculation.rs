//! The speculation of strategies' processes.

use system::named_enum;

named_enum! {
    /// Whether the processes of strategies use indirect branch speculation (Spectre v2) as by
    /// default.
    #[derive(Default, Hash, PartialOrd, Ord)]
    Speculation {
        /// The kernel's default: other processes on the same core may steer the branch predictions
        /// of strategies.
        #[default]
        Open = "open",
        /// The kernel issues barriers at each switch to and from strategies' processes (IBPB,
        /// STIBP).
        Closed = "closed",
    }
}
