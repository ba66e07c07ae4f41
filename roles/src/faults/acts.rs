//! Performs each kind of fault in the strategy's own process.

use super::core_dump::CoreDump;
use super::heap::HeapBlock;
use super::resources::{ResourceGrab, Surroundings};
use protocol::faults::Draws;
use protocol::plan::FaultKind;
use protocol::status::{StatusField, StatusWriter, ThreadState};
use shm::bell;
use shm::futex;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::sync::Ordering;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use system::clock::Timebase;
use system::{fault, memory};

/// Exit code of the fault `exit`.
const EXIT_CODE: i32 = 3;
/// Size of an allocation that always fails, in bytes.
const TOO_MUCH: usize = 1 << 40;
/// Size of a leaked block, in bytes.
const LEAK: usize = 4 << 20;
/// A leak's time per block, in nanoseconds: a GiB in a quarter of a second.
const LEAK_INTERVAL_NS: u64 = 1_000_000;
/// Maximum number of blocks leaked per duty cycle, so that the strategy does not seem to hang.
const MAX_LEAKED_BLOCKS: u64 = 16;
/// Number of words at the start of a region that are hit as often as all others together: header
/// and cursors.
const HEAD_WORDS: u64 = 64;

/// A leak in progress. It grows with time, so that it reaches a limit in as few duty cycles as a
/// thread gets on a busy machine.
#[derive(Debug, Default)]
pub(super) struct Leak {
    /// Tick of its first duty cycle.
    began: Option<u64>,
    blocks: u64,
}

impl Leak {
    /// Counts the blocks that are due in a duty cycle at the tick `now`. Returns their number.
    fn grow(&mut self, now: u64, time: &Timebase) -> u64 {
        let began = *self.began.get_or_insert(now);
        let due = 1 + time.ns(now.saturating_sub(began)) / LEAK_INTERVAL_NS;
        let blocks = due.saturating_sub(self.blocks).min(MAX_LEAKED_BLOCKS);
        self.blocks += blocks;
        blocks
    }
}

/// The state that a strategy's injected faults use: their progress, the memory that they damage,
/// and the process's surroundings.
pub struct FaultContext {
    strategy: u16,
    /// The memory of this process is not limited yet.
    is_unlimited: bool,
    surroundings: Surroundings,
    /// The exhaustion of a shared resource in progress.
    taking: Option<ResourceGrab>,
    /// The heap of a core dump to come.
    core_dump: Option<CoreDump>,
    /// All shared memory of the run that this process can write.
    pub writable: Vec<AtomicWords>,
    /// All shared memory of the run that this process can only read.
    pub read_only: Vec<ReadOnlyWords>,
    /// The strategy is a thread of the engine's process, which an exit would end.
    is_engine_thread: bool,
    /// Memory of other roles, mapped in this process, that a wild write overwrites.
    pub foreign: Vec<AtomicWords>,
    /// The block of another strategy's heap in this process that a wild write overwrites.
    pub(super) foreign_heap: Option<HeapBlock>,
    /// The block of its own heap that another strategy's fault overwrites.
    pub(super) own_heap: Option<HeapBlock>,
    /// The leak in progress.
    pub(super) leak: Option<Leak>,
    /// Whether the strategy floods the submit hand-off, by an injected fault.
    pub should_flood: bool,
    /// Whether the strategy drops its orders, by an injected fault.
    pub should_lose: bool,
    /// Whether the next push is abandoned with its slot claimed and its message not visible, by an
    /// injected fault.
    pub should_hold_claim: bool,
    /// The status block of the strategy's thread.
    pub status: Option<StatusWriter>,
}

impl FaultContext {
    /// Creates the context of a strategy's injected faults, none of which has begun.
    /// `is_unlimited`: the memory of the strategy's process is not limited yet.
    pub const fn new(strategy: u16, is_unlimited: bool, surroundings: Surroundings) -> Self {
        Self {
            strategy,
            is_unlimited,
            surroundings,
            taking: None,
            core_dump: None,
            writable: Vec::new(),
            read_only: Vec::new(),
            is_engine_thread: false,
            foreign: Vec::new(),
            foreign_heap: None,
            own_heap: None,
            leak: None,
            should_flood: false,
            should_lose: false,
            should_hold_claim: false,
            status: None,
        }
    }

    /// Sets whether the strategy is a thread of the engine's process, so that a fault ends only
    /// this thread, by a panic.
    #[must_use]
    pub fn as_engine_thread(self, is_engine_thread: bool) -> Self {
        Self { is_engine_thread, ..self }
    }

    /// Panics if another strategy has overwritten the block on this strategy's heap.
    pub fn check_heap(&self) {
        assert!(self.own_heap.is_none_or(HeapBlock::is_intact), "another strategy has overwritten its heap");
    }

    /// Limits this process's memory, so that a leak cannot bring down the machine.
    fn limit_memory(&mut self) {
        if std::mem::take(&mut self.is_unlimited) {
            memory::limit_growth(memory::STRATEGY_MEMORY_BYTES)
                .expect("an ordinary process may limit its memory");
        }
    }

    /// Leaks the strategy's memory that is due at the tick `now`, if the injected fault is a leak.
    pub fn leak(&mut self, now: u64, time: &Timebase) {
        let blocks = self.leak.as_mut().map_or(0, |leak| leak.grow(now, time));
        (0..blocks).for_each(|_| std::mem::forget(std::hint::black_box(vec![1u8; LEAK])));
    }

    /// Fills more of the strategy's heap, if the injected fault is a core dump. Aborts once it is
    /// full.
    pub fn fill_heap(&mut self) {
        if let Some(dump) = &mut self.core_dump
            && dump.fill()
        {
            dump.dump()
        }
    }

    /// Takes another part of a shared resource, such as disk space, if the injected fault exhausts
    /// one. Exits once it has all or is refused.
    pub fn take_resources(&mut self) {
        if let Some(has_all) = self.taking.as_mut().and_then(ResourceGrab::step) {
            fault::exit(if has_all { FaultKind::EXIT_GOT } else { FaultKind::EXIT_REFUSED })
        }
    }
}

/// Executes an injected fault in the strategy's process. Returns only if the strategy continues:
/// after a stop, leaking, filling a heap, flooding, dropping orders, holding a slot, or with
/// overwritten headers.
pub fn perform(kind: FaultKind, context: &mut FaultContext) {
    match kind {
        FaultKind::Kill => fault::kill(),
        FaultKind::Stop => fault::stop(),
        FaultKind::Hang => hang(),
        FaultKind::Segv => fault::segv(),
        FaultKind::Abort => std::process::abort(),
        FaultKind::Exit => fault::exit(EXIT_CODE),
        FaultKind::Panic => panic!("injected"),
        FaultKind::Oom => {
            context.limit_memory();
            // The allocation fails, which aborts.
            drop(std::hint::black_box(Vec::<u8>::with_capacity(TOO_MUCH)));
            std::process::abort()
        }
        FaultKind::Leak => {
            context.limit_memory();
            context.leak = Some(Leak::default());
        }
        FaultKind::CoreDump => context.core_dump = Some(CoreDump::new(&context.surroundings.folder)),
        FaultKind::Scribble => scribble(context),
        FaultKind::Flood => context.should_flood = true,
        FaultKind::Forge | FaultKind::Feign => {
            forge_status(kind, context);
            hang()
        }
        FaultKind::Lose => context.should_lose = true,
        FaultKind::HoldClaim => context.should_hold_claim = true,
        FaultKind::WildRing | FaultKind::WildLog | FaultKind::WildEngine => {
            match context.foreign.as_slice() {
                [] => fault::segv(),
                foreign => overwrite(foreign),
            }
        }
        FaultKind::WildHeap => match context.foreign_heap {
            None => fault::segv(),
            Some(block) => block.overwrite(),
        },
        FaultKind::WildCode => fault::write_code(),
        FaultKind::ReadOthers => read_others(context),
        FaultKind::ForgeHeader => forge_headers(&context.writable),
        FaultKind::Jam => jam(&context.writable),
        FaultKind::Forkbomb
        | FaultKind::Descriptors
        | FaultKind::Disk
        | FaultKind::Children
        | FaultKind::Peek
        | FaultKind::Network
        | FaultKind::Punch
        | FaultKind::Requeue => {
            let grab = ResourceGrab::new(kind, context.surroundings.clone(), context.writable.clone());
            context.taking = Some(grab.with_read_only(context.read_only.clone()));
        }
        // Disturbances have a time from which on they go on: see `storm`. Faults of venues: the
        // planner refuses them for strategies.
        FaultKind::Calm
        | FaultKind::ForkStorm
        | FaultKind::MapStorm
        | FaultKind::AllocStorm
        | FaultKind::FaultStorm
        | FaultKind::SignalStorm
        | FaultKind::IoStorm
        | FaultKind::SyscallStorm
        | FaultKind::Thrash
        | FaultKind::SquatCore
        | FaultKind::DescriptorStorm
        | FaultKind::Debugger
        | FaultKind::Slow
        | FaultKind::Disconnect
        | FaultKind::Reject
        | FaultKind::Mute
        | FaultKind::Garble => {}
    }
}

/// Writes a forged heartbeat or a forged end state into the status block of the faulty strategy's
/// own thread.
pub fn forge_status(kind: FaultKind, context: &FaultContext) {
    let Some(status) = &context.status else { return };
    match kind {
        FaultKind::Forge => status.set(StatusField::HeartbeatTicks, u64::MAX),
        _ => status.set_state(ThreadState::Done),
    }
}

fn hang() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// Overwrites the headers of all shared-memory regions that the faulty process can write.
pub fn forge_headers(writable: &[AtomicWords]) {
    for word in writable.iter().flat_map(|words| &words[..HEADER_WORDS]) {
        word.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Overwrites all words behind the headers.
fn overwrite(foreign: &[AtomicWords]) {
    for word in foreign.iter().flat_map(|words| &words[HEADER_WORDS..]) {
        word.store(u64::MAX, Ordering::Relaxed);
    }
}

/// Reads memory of others: what this process has mapped, else what it can open by name. Ends the
/// strategy in a way that tells how far it got.
fn read_others(context: &FaultContext) -> ! {
    let words = context.foreign.iter().flat_map(|words| words.iter());
    let sum = words.fold(0, |sum, word| sum ^ word.load(Ordering::Relaxed));
    std::hint::black_box(sum ^ context.foreign_heap.map_or(0, HeapBlock::read));
    if !context.foreign.is_empty() || context.foreign_heap.is_some() {
        if context.is_engine_thread {
            panic!("{}", FaultKind::READ_MAPPED);
        }
        fault::exit(FaultKind::EXIT_GOT)
    }
    let can_read =
        |path: &PathBuf| File::open(path).and_then(|mut file| file.read_exact(&mut [0; 64])).is_ok();
    let is_open = context.surroundings.others_segments.iter().any(can_read);
    fault::exit(if is_open { FaultKind::EXIT_OPENED } else { FaultKind::EXIT_REFUSED })
}

/// Overwrites its doorbells and wakes their sleepers, forever. The headers stay.
fn jam(writable: &[AtomicWords]) -> ! {
    let is_bell = |words: &&AtomicWords| words.header(bell::KIND).is_ok();
    let bells: Vec<&AtomicWords> = writable.iter().filter(is_bell).collect();
    for round in 0u64.. {
        for word in bells.iter().flat_map(|words| &words[HEADER_WORDS..]) {
            // Alternates between the values of a sleeping thread, a running thread, and garbage.
            word.store([1, 0, u64::MAX][round as usize % 3].wrapping_mul(round | 1), Ordering::Relaxed);
            futex::wake_all(word);
        }
    }
    hang()
}

/// Scribbles over all writable memory, forever.
fn scribble(context: &FaultContext) -> ! {
    let mut draws = Draws::new(context.strategy.into(), Draws::SCRIBBLES);
    loop {
        scribble_once(&context.writable, &mut draws);
    }
}

/// Overwrites one word of writable shared memory with a dangerous or random value. Cursors,
/// sequences and lengths are sensitive to it.
pub fn scribble_once(writable: &[AtomicWords], draws: &mut Draws) {
    let Some(words) = writable.get(draws.below(writable.len() as u64) as usize) else { return };
    let len = words.len() as u64;
    let within = if draws.below(2) == 0 { len.min(HEAD_WORDS) } else { len };
    let index = draws.below(within) as usize;
    let current = words[index].load(Ordering::Relaxed);
    let value = match draws.below(7) {
        0 => 0,
        1 => u64::MAX,
        2 => current.wrapping_add(1),
        3 => current.wrapping_sub(1),
        4 => draws.below(16),
        5 => words[(index + 1) % words.len()].load(Ordering::Relaxed),
        _ => draws.below(u64::MAX),
    };
    words[index].store(value, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use system::memory::STRATEGY_MEMORY_BYTES;

    #[test]
    fn leak_reaches_limit_in_few_duty_cycles() {
        let time = Timebase { start_ticks: 0, ns_per_tick: 1.0 };
        // A parked thread of a busy machine, and one that spins.
        for (cycle_ns, seconds) in [(50_000_000, 1), (1_000, 1)] {
            let mut leak = Leak::default();
            let cycles = (0..seconds * 1_000_000_000 / cycle_ns).map(|cycle| cycle * cycle_ns);
            let blocks: u64 = cycles.map(|now| leak.grow(now, &time)).sum();
            assert!(blocks * LEAK as u64 > STRATEGY_MEMORY_BYTES, "{cycle_ns}: {blocks}");
        }
        let mut leak = Leak::default();
        assert!((0..100).all(|cycle| leak.grow(cycle * 1_000_000_000, &time) <= MAX_LEAKED_BLOCKS));
    }
}
