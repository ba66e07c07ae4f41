//! Disturbances: actions without a mistake by which a strategy can slow its neighbors, a step in
//! each of its duty cycles.
//!
//! Each step is bounded in time and memory and leaves nothing behind. A strategy that is refused
//! one exits with [`FaultKind::EXIT_REFUSED`]; the sandbox ends it at the system call.

use super::resources::{Surroundings, unnamed_file};
use core::num::NonZeroUsize;
use protocol::agent::Cycle;
use protocol::plan::FaultKind;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::time::{Duration, Instant};
use system::clock::Clock;
use system::debugger::Debugger;
use system::{descriptors, fault, pin, storm};

/// What one mapping of a storm maps.
const MAP_BYTES: NonZeroUsize = NonZeroUsize::new(64 << 10).expect("64 KiB");
/// What a step allocates: more than any allocator keeps for the next time (glibc: 32 MiB), so that
/// it goes back to the kernel when freed.
const ALLOC_BYTES: usize = 40 << 20;
/// What a step writes of it.
const ALLOC_USED_BYTES: usize = 4 << 20;
/// Fresh pages of a step.
const FAULT_BYTES: NonZeroUsize = NonZeroUsize::new(64 << 10).expect("64 KiB");
/// What a step writes to disk.
const WRITE_BYTES: usize = 4 << 10;
/// Signals, and system calls, of a step.
const CALLS: usize = 16;
/// Memory through which a step streams [`STREAM_BYTES`].
const THRASH_BYTES: usize = 64 << 20;
const STREAM_BYTES: usize = 256 << 10;
/// The length of a step on the engine's core.
const SQUAT: Duration = Duration::from_micros(200);
/// Files that a storm of descriptors holds open, within half of what the process may open.
const DESCRIPTORS: usize = 1_000;
/// Files that one step opens; it closes the oldest ones once [`DESCRIPTORS`] are open.
const OPENED: usize = 64;
/// Bytes of a cache line.
const LINE: usize = 64;

/// A disturbance in progress.
struct Storm {
    kind: FaultKind,
    /// Writes that were done.
    writes: u64,
    /// The file of a storm of writes.
    file: Option<File>,
    /// The memory through which a storm streams, and its place there.
    memory: Vec<u8>,
    place: usize,
    /// The cores to which it goes back from the engine's.
    own_cores: Vec<u32>,
    /// Open files, oldest first, and how many there may be.
    open: VecDeque<File>,
    max_open: usize,
    debugger: Option<Debugger>,
}

impl Storm {
    /// Prepares a disturbance.
    ///
    /// # Errors
    /// The system refuses what it needs: a file, a signal handler, another core, a process.
    fn begin(kind: FaultKind, surroundings: &Surroundings) -> io::Result<Self> {
        let mut storm = Self {
            kind,
            writes: 0,
            file: None,
            memory: Vec::new(),
            place: 0,
            own_cores: Vec::new(),
            open: VecDeque::new(),
            max_open: 0,
            debugger: None,
        };
        match kind {
            FaultKind::SignalStorm => storm::handle_signal()?,
            FaultKind::IoStorm => storm.file = Some(unnamed_file(&surroundings.folder)?),
            FaultKind::Thrash => storm.memory = vec![1; THRASH_BYTES],
            FaultKind::SquatCore => {
                let core = surroundings.engine_core.ok_or(io::ErrorKind::NotFound)?;
                storm.own_cores = pin::allowed_cores();
                pin::restrict_to(&[core])?;
            }
            FaultKind::DescriptorStorm => {
                storm.max_open = DESCRIPTORS.min(descriptors::limit()? as usize / 2);
                storm.open.reserve(storm.max_open + OPENED);
            }
            FaultKind::Debugger => storm.debugger = Some(Debugger::of_this_process()?),
            _ => {}
        }
        Ok(storm)
    }

    /// Does one step. Returns how many were done: a debugger's stop comes after the step that asks
    /// for it, and is counted by the next one.
    ///
    /// # Errors
    /// The system refuses it.
    fn step(&mut self) -> io::Result<u64> {
        match self.kind {
            FaultKind::ForkStorm => drop(storm::fork_and_wait()?),
            FaultKind::MapStorm => storm::map_and_unmap(MAP_BYTES, false)?,
            FaultKind::FaultStorm => storm::map_and_unmap(FAULT_BYTES, true)?,
            FaultKind::AllocStorm => {
                let mut block: Vec<u8> = Vec::new();
                block.try_reserve_exact(ALLOC_BYTES).map_err(|_| io::ErrorKind::OutOfMemory)?;
                block.resize(ALLOC_USED_BYTES, 1);
                drop(std::hint::black_box(block));
            }
            FaultKind::SignalStorm => (0..CALLS).try_for_each(|_| storm::signal_process())?,
            FaultKind::SyscallStorm => (0..CALLS).try_for_each(|_| storm::ask_kernel())?,
            FaultKind::IoStorm => self.write()?,
            FaultKind::Thrash => self.stream(),
            FaultKind::SquatCore => {
                let begin = Instant::now();
                while begin.elapsed() < SQUAT {
                    std::hint::spin_loop();
                }
            }
            FaultKind::DescriptorStorm => self.open_and_close()?,
            FaultKind::Debugger => {
                let debugger = self.debugger.as_mut().ok_or(io::ErrorKind::NotFound)?;
                return debugger.request_stop();
            }
            _ => {}
        }
        Ok(1)
    }

    /// Opens files, and closes as many if there are enough.
    fn open_and_close(&mut self) -> io::Result<()> {
        if self.open.len() + OPENED > self.max_open {
            self.open.drain(..OPENED.min(self.open.len()));
        }
        for _ in 0..OPENED {
            self.open.push_back(File::open("/dev/null")?);
        }
        Ok(())
    }

    /// Writes to the start of its file, and waits for the disk.
    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(io::ErrorKind::NotFound.into()) };
        self.writes += 1;
        file.rewind()?;
        file.write_all(&[self.writes as u8; WRITE_BYTES])?;
        file.sync_data()
    }

    fn stream(&mut self) {
        for _ in 0..STREAM_BYTES / LINE {
            self.memory[self.place] = self.memory[self.place].wrapping_add(1);
            self.place = (self.place + LINE) % THRASH_BYTES;
        }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        if !self.own_cores.is_empty() {
            // Fails only if these cores are gone.
            let _ = pin::restrict_to(&self.own_cores);
        }
    }
}

/// A disturbance of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Disturbance {
    pub kind: FaultKind,
    /// Begin and end of the disturbance, in nanoseconds after the start.
    pub from_ns: u64,
    pub until_ns: u64,
    /// Time from the begin of one step of the disturbance to the begin of the next, in nanoseconds.
    pub every_ns: u64,
}

/// The disturbances of a strategy, one after the other or side by side.
pub(super) struct Storms {
    surroundings: Surroundings,
    /// Each with what it needs once it has begun, and when its next step is due.
    all: Vec<(Disturbance, Option<Storm>, u64)>,
    steps: u64,
    /// Tick of the next step of any.
    next_tick: u64,
}

impl Storms {
    pub(super) fn new(planned: Vec<Disturbance>, surroundings: Surroundings) -> Self {
        let all = planned.into_iter().map(|one| (one, None, one.from_ns)).collect();
        Self { surroundings, all, steps: 0, next_tick: u64::MAX }
    }

    /// Returns the number of all steps that were done.
    pub(super) const fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the tick of the next step; `u64::MAX` if none is to come.
    pub(super) const fn next_tick(&self) -> u64 {
        self.next_tick
    }

    /// Does the steps that are due. Exits if the system refuses one.
    pub(super) fn step<C: Clock>(&mut self, cycle: &Cycle<C>) {
        self.next_tick = u64::MAX;
        for (planned, storm, next_ns) in &mut self.all {
            let is_at = |ns: u64| ns != u64::MAX && cycle.time.at(ns) <= cycle.now;
            if is_at(planned.until_ns) {
                *storm = None;
                continue;
            }
            if !is_at(*next_ns) {
                self.next_tick = self.next_tick.min(cycle.time.at(*next_ns));
                continue;
            }
            // A step that took longer than that, or came late, is followed by the next one at once.
            *next_ns = next_ns.saturating_add(planned.every_ns);
            self.next_tick = self.next_tick.min(cycle.time.at(*next_ns));
            let result = match storm {
                Some(storm) => storm.step(),
                None => Storm::begin(planned.kind, &self.surroundings).map(|begun| {
                    *storm = Some(begun);
                    0
                }),
            };
            match result {
                Ok(done) => self.steps += done,
                Err(_) => fault::exit(FaultKind::EXIT_REFUSED),
            }
        }
    }
}
