//! The kinds of faults that a plan injects.

use system::named_enum;

named_enum! {
    /// A kind of fault that is injected into a process, or simulated by a strategy or a venue.
    FaultKind {
        /// The process is killed with SIGKILL.
        Kill = "kill",
        /// The process is stopped with SIGSTOP: it exists and makes no progress.
        Stop = "stop",
        /// Spins for ever inside a duty cycle.
        Hang = "hang",
        /// Accesses unmapped memory (SIGSEGV).
        Segv = "segv",
        /// Aborts (SIGABRT).
        Abort = "abort",
        /// Exits with code 3.
        Exit = "exit",
        /// Panics: the strategy's thread ends, and its process too if the strategy has one of its
        /// own.
        Panic = "panic",
        /// Allocates more memory than the strategy's limit, at once.
        Oom = "oom",
        /// Allocates memory step by step and never frees it.
        Leak = "leak",
        /// Writes random and adversarial words over all memory that it can write.
        Scribble = "scribble",
        /// Overwrites another strategy's submit ring.
        WildRing = "wild-ring",
        /// Overwrites another strategy's log and status.
        WildLog = "wild-log",
        /// Overwrites a block of another strategy's heap.
        WildHeap = "wild-heap",
        /// Overwrites the engine's log and status.
        WildEngine = "wild-engine",
        /// Writes into the memory of executable code.
        WildCode = "wild-code",
        /// Fills a large heap, then aborts with core dumps on (SIGABRT).
        CoreDump = "core-dump",
        /// Sends orders as fast as possible, beyond its limits.
        Flood = "flood",
        /// Publishes a heartbeat of the far future, and spins for ever.
        Forge = "forge",
        /// Publishes that its thread is done, and spins for ever.
        Feign = "feign",
        /// Claims a slot of the submit ring, never writes it, and continues its duty cycles.
        #[serde(rename = "hold")]
        HoldClaim = "hold",
        /// Overwrites the headers of all memory that it can write, and continues.
        ForgeHeader = "forge-header",
        /// Rings without reason and overwrites all doorbells that the strategy can write, for ever.
        Jam = "jam",
        /// Drops the strategy's orders from then on, while each push reports success.
        Lose = "lose",
        /// Starts processes, up to a bound; exits with [`FaultKind::EXIT_GOT`] or `EXIT_REFUSED`.
        Forkbomb = "forkbomb",
        /// Opens files, up to a bound, and exits with [`FaultKind::EXIT_GOT`] or `EXIT_REFUSED`.
        Descriptors = "descriptors",
        /// Fills the disk, up to a bound, and exits with [`FaultKind::EXIT_GOT`] or `EXIT_REFUSED`.
        Disk = "disk",
        /// Allocates memory in child processes, up to a bound, and exits with
        /// [`FaultKind::EXIT_GOT`] or `EXIT_REFUSED`.
        Children = "children",
        /// Reads another strategy's submit ring, log and heap: panics with
        /// [`FaultKind::READ_MAPPED`] where it is a thread of the engine, else exits with
        /// [`FaultKind::EXIT_GOT`], `EXIT_REFUSED` or `EXIT_OPENED`.
        ReadOthers = "read-others",
        /// Reads another process's memory, and exits with [`FaultKind::EXIT_GOT`] or
        /// `EXIT_REFUSED`.
        Peek = "peek",
        /// Opens network connections, and exits with [`FaultKind::EXIT_GOT`] or `EXIT_REFUSED`.
        Network = "network",
        /// Punches holes into its own segments, which others map, and exits with
        /// [`FaultKind::EXIT_GOT`] or `EXIT_REFUSED`.
        Punch = "punch",
        /// Moves the threads that wait on memory that it maps to a word of its own, and exits with
        /// [`FaultKind::EXIT_GOT`] or `EXIT_REFUSED`.
        Requeue = "requeue",
        /// Does nothing: a control, with which disturbing strategies are compared.
        Calm = "calm",
        /// Starts a process and waits for the end of that process, again and again.
        ForkStorm = "fork-storm",
        /// Maps 64 KiB and unmaps them, again and again.
        MapStorm = "map-storm",
        /// Allocates 40 MiB, writes 4 of them, and returns all to the kernel, again and again.
        AllocStorm = "alloc-storm",
        /// Touches fresh pages for the first time, again and again.
        FaultStorm = "fault-storm",
        /// Sends signals to its own process, which handles and ignores them.
        SignalStorm = "signal-storm",
        /// Writes to a file and waits until that is on disk, again and again.
        IoStorm = "io-storm",
        /// Makes system calls that do nothing.
        SyscallStorm = "syscall-storm",
        /// Streams through more memory than the caches hold.
        Thrash = "thrash",
        /// Moves itself onto the engine's core and works there.
        SquatCore = "squat-core",
        /// Holds many open files, and opens and closes more, again and again.
        DescriptorStorm = "descriptor-storm",
        /// A child process stops all threads of the strategy's process by `ptrace` and single-steps
        /// the strategy's, again and again.
        Debugger = "debugger",
        /// Venue: each report is delayed.
        Slow = "slow",
        /// Venue: closes the session, cancels the session's open orders and refuses new ones.
        Disconnect = "disconnect",
        /// Venue: refuses every order.
        Reject = "reject",
        /// Venue: accepts orders and sends no reports.
        Mute = "mute",
        /// Venue: sends invalid reports.
        Garble = "garble",
    }
}

impl FaultKind {
    /// The exit code of a process whose fault succeeded: it got all that it tried to take or to
    /// read.
    pub const EXIT_GOT: i32 = 40;

    /// The exit code of a process whose fault was refused: it did not get all that it tried to take
    /// or to read.
    pub const EXIT_REFUSED: i32 = 41;

    /// The exit code of a process that read another strategy's memory only after it had opened it
    /// by its name.
    pub const EXIT_OPENED: i32 = 42;

    /// The panic message of a faulty thread of the engine that has read another strategy's memory.
    pub const READ_MAPPED: &'static str = "read another strategy's memory";

    /// Returns `true` if the fault tries to get resources or data that strategies must not have;
    /// its exit code shows the outcome.
    pub const fn is_resource_fault(self) -> bool {
        matches!(
            self,
            Self::Forkbomb
                | Self::Descriptors
                | Self::Disk
                | Self::Children
                | Self::ReadOthers
                | Self::Peek
                | Self::Network
                | Self::Punch
                | Self::Requeue
        )
    }

    /// Returns `true` if the strategy continues to trade and makes no mistake, but may disturb its
    /// neighbors. Its own orders are in no percentile.
    pub const fn is_disturbance(self) -> bool {
        matches!(
            self,
            Self::Calm
                | Self::ForkStorm
                | Self::MapStorm
                | Self::AllocStorm
                | Self::FaultStorm
                | Self::SignalStorm
                | Self::IoStorm
                | Self::SyscallStorm
                | Self::Thrash
                | Self::SquatCore
                | Self::DescriptorStorm
                | Self::Debugger
        )
    }

    /// Returns `true` if the fault makes a strategy write once to memory that is not its own. Where
    /// that is not mapped, the write is to an address without memory.
    pub const fn is_wild_write(self) -> bool {
        matches!(self, Self::WildRing | Self::WildLog | Self::WildHeap | Self::WildEngine | Self::WildCode)
    }

    /// Returns `true` if the fault is one of a venue (such as slow or disconnected), `false` if one
    /// of a process.
    pub const fn is_of_venue(self) -> bool {
        matches!(self, Self::Slow | Self::Disconnect | Self::Reject | Self::Mute | Self::Garble)
    }
}
