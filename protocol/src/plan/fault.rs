//! Faults that a plan injects into roles.

use system::names;

names! {
    /// What is done to a strategy on purpose, or what it does.
    FaultKind {
        /// SIGKILL.
        Kill = "kill",
        /// SIGSTOP: it is there and does nothing.
        Stop = "stop",
        /// Spins for ever inside a duty cycle.
        Hang = "hang",
        /// Touches memory that is not there (SIGSEGV).
        Segv = "segv",
        /// Aborts (SIGABRT).
        Abort = "abort",
        /// Exits with code 3.
        Exit = "exit",
        /// Asks for more memory than it may have, at once.
        Oom = "oom",
        /// Takes memory bit by bit and never gives it back.
        Leak = "leak",
        /// Writes random and adversarial words over all the memory that it can write.
        Scribble = "scribble",
        /// Sends orders as fast as it can, beyond its limits.
        Flood = "flood",
        /// Claims to live, with a heartbeat of the far future, and spins for ever.
        Forge = "forge",
        /// Claims to be done, and spins for ever.
        Feign = "feign",
        /// Claims a place of the submit ring, never writes it, and goes on with its duty cycles.
        Hold = "hold",
        /// Overwrites the headers of all the memory that it can write, and goes on.
        ForgeHeader = "forge-header",
        /// Rings for nothing and writes over all doorbells that it can write, for ever.
        Jam = "jam",
        /// From then on its orders do not arrive, and each push says that it went well.
        Lose = "lose",
        /// Starts processes, up to a bound that no machine minds, and ends: with [`FaultKind::GOT`]
        /// or [`FaultKind::REFUSED`].
        Forkbomb = "forkbomb",
        /// Opens files, likewise.
        Descriptors = "descriptors",
        /// Fills the disk, likewise.
        Disk = "disk",
        /// Takes memory in processes that it starts, likewise.
        Children = "children",
        /// Looks into another process, and ends likewise.
        Peek = "peek",
        /// Looks for a way to a network, and ends likewise.
        Network = "network",
        /// Takes the memory of its own segments from under everybody who has them mapped, and ends
        /// likewise.
        Punch = "punch",
        /// Of a venue: each of its reports comes later.
        Slow = "slow",
        /// Of a venue: it closes the session, cancels what is open there and refuses what comes.
        Disconnect = "disconnect",
        /// Of a venue: it refuses every order.
        Reject = "reject",
        /// Of a venue: it takes orders and says nothing.
        Mute = "mute",
        /// Of a venue: what it says is wrong.
        Garble = "garble",
    }
}

impl FaultKind {
    /// How a process ends that got all that it was after: the code.
    pub const GOT: i32 = 40;

    /// How a process ends that was refused it.
    pub const REFUSED: i32 = 41;

    /// Whether it takes what is everybody's: then it says how far it came by the code that it ends
    /// with.
    pub const fn takes(self) -> bool {
        matches!(
            self,
            Self::Forkbomb
                | Self::Descriptors
                | Self::Disk
                | Self::Children
                | Self::Peek
                | Self::Network
                | Self::Punch
        )
    }

    /// Whether it is a venue's; else it is a process's.
    pub const fn is_of_venue(self) -> bool {
        matches!(self, Self::Slow | Self::Disconnect | Self::Reject | Self::Mute | Self::Garble)
    }
}
