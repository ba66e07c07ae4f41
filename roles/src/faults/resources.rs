//! Faults that exhaust or access shared resources: processes, file descriptors, disk, memory, other
//! processes' memory, network.
//!
//! Resources are taken in steps, one per duty cycle, so that the strategy does not seem to hang, up
//! to a bound that is harmless to the machine. The strategy exits, and releases everything, once it
//! has all or is refused. Each bound is beyond what a container allows.

use nix::fcntl::{FallocateFlags, fallocate};
use protocol::plan::FaultKind;
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::sync::AtomicU64;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use system::descriptors;
use system::fault::{self, ChildCrowd};

/// Number of processes that a resource fault starts: twice a container's limit.
pub const PROCESSES: usize = 256;
/// Number of files that a resource fault opens: four times the limit of a process in a container.
pub const FILES: usize = 4096;
/// Mebibytes that a resource fault writes to disk: one and a half times a container's limit.
pub const DISK_MIB: usize = 96;
/// Number of child processes that a memory fault starts: together they use a quarter more memory
/// than a container's limit. Each has [`CHILD_BYTES`].
pub const CHILDREN: usize = 80;
/// Memory of each child process of a memory fault, in bytes. Little, so that starting one in a duty
/// cycle does not seem to hang.
pub const CHILD_BYTES: usize = 20 << 20;

/// Number of words at the start of a segment on which a thread may wait.
const WAITED_WORDS: usize = 256;

/// Bytes by which a segment is extended.
const GROWTH: u64 = 1 << 20;

/// The data about a strategy's run that resource faults use: folder, launcher's process id, segment
/// paths and the engine's core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The run's folder.
    pub folder: PathBuf,
    /// Process id of the launcher.
    pub launcher: u32,
    /// Paths of the strategy's own segments, if they have names.
    pub writable_segments: Vec<PathBuf>,
    /// Paths of other roles' segments that the strategy reads, if they have names.
    pub others_segments: Vec<PathBuf>,
    /// The core of the engine's first thread, if that is pinned.
    pub engine_core: Option<u32>,
}

/// A fault that takes all of a shared resource, such as processes, files or disk space, in steps.
pub struct ResourceGrab {
    kind: FaultKind,
    surroundings: Surroundings,
    steps: usize,
    crowd: Option<ChildCrowd>,
    files: Vec<File>,
    memory: Vec<AtomicWords>,
    read_only: Vec<ReadOnlyWords>,
}

impl ResourceGrab {
    /// Creates a fault that uses up a resource of this kind; `memory` is the shared memory that
    /// its strategy may write.
    pub const fn new(kind: FaultKind, surroundings: Surroundings, memory: Vec<AtomicWords>) -> Self {
        Self { kind, surroundings, steps: 0, crowd: None, files: Vec::new(), memory, read_only: Vec::new() }
    }

    /// Gives the fault the shared memory that its strategy can only read; the fault kind `Requeue`
    /// acts on threads that wait there.
    #[must_use]
    pub fn with_read_only(self, read_only: Vec<ReadOnlyWords>) -> Self {
        Self { read_only, ..self }
    }

    /// Takes another part of the fault's shared resource. Returns `Some(true)` once it has all,
    /// `Some(false)` once it is refused.
    pub fn step(&mut self) -> Option<bool> {
        let (each, all) = match self.kind {
            FaultKind::Forkbomb => (16, PROCESSES),
            FaultKind::Descriptors => (256, FILES),
            FaultKind::Disk => (4, DISK_MIB),
            FaultKind::Children => (1, CHILDREN),
            _ => (1, 1),
        };
        for _ in 0..each {
            if self.take_one().is_err() {
                return Some(false);
            }
            self.steps += 1;
            if self.steps == all {
                return Some(true);
            }
        }
        None
    }

    fn take_one(&mut self) -> io::Result<()> {
        match self.kind {
            FaultKind::Forkbomb => self.crowd()?.add(0),
            FaultKind::Children => self.crowd()?.add(CHILD_BYTES),
            FaultKind::Descriptors => {
                if self.steps == 0 {
                    // A process may raise its own soft limit.
                    descriptors::raise_limit(FILES as u64 + 64)?;
                }
                self.files.push(File::open("/dev/null")?);
                Ok(())
            }
            FaultKind::Disk => {
                if self.steps == 0 {
                    self.files.push(unnamed_file(&self.surroundings.folder)?);
                }
                self.files[0].write_all(&vec![1; 1 << 20])
            }
            FaultKind::Peek => {
                let maps = fs::read(format!("/proc/{}/maps", self.surroundings.launcher))?;
                if maps.is_empty() { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
            }
            FaultKind::Punch => self.punch(),
            FaultKind::Requeue => self.move_waiters(),
            // Nothing is sent: the kernel looks up the route.
            _ => UdpSocket::bind("0.0.0.0:0")?.connect("127.0.0.1:9"),
        }
    }

    /// Punches holes into all that it can write, by mapping and by name, and changes file lengths.
    /// Fails only if all of it was refused.
    fn punch(&self) -> io::Result<()> {
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let resize = |path: &PathBuf| {
            let file = File::options().write(true).open(path)?;
            let bytes = file.metadata()?.len();
            let steps = [
                fallocate(&file, hole, 0, bytes as i64).map_err(io::Error::from),
                file.set_len(bytes + GROWTH),
                file.set_len(0),
            ];
            any_ok(steps)
        };
        let mapped = self.memory.iter().map(|words| fault::punch(words));
        // All of them, also if the first fails.
        let results: Vec<io::Result<()>> =
            mapped.chain(self.surroundings.writable_segments.iter().map(resize)).collect();
        any_ok(results)
    }

    /// Moves the threads that wait on any word that it maps to a word of its own. Fails only if all
    /// of it was refused.
    fn move_waiters(&self) -> io::Result<()> {
        let own_word = AtomicU64::new(0);
        let writable = self.memory.iter().cloned().map(ReadOnlyWords::from);
        let regions: Vec<ReadOnlyWords> = writable.chain(self.read_only.iter().cloned()).collect();
        let words = regions.iter().flat_map(|words| words.addresses().take(WAITED_WORDS));
        any_ok(words.map(|word| fault::move_waiters(word, &own_word)))
    }

    fn crowd(&mut self) -> io::Result<&mut ChildCrowd> {
        match &mut self.crowd {
            Some(crowd) => Ok(crowd),
            empty => Ok(empty.insert(ChildCrowd::new()?)),
        }
    }
}

/// Creates an unlinked file in a directory or, if that cannot be written, in the one for temporary
/// files.
pub(super) fn unnamed_file(folder: &Path) -> io::Result<File> {
    let make = |folder: &Path| {
        let path = folder.join(format!("bulkhead.filled-{}", std::process::id()));
        let file = File::create_new(&path)?;
        std::fs::remove_file(path)?;
        Ok(file)
    };
    make(folder).or_else(|_: io::Error| make(&std::env::temp_dir()))
}

fn any_ok(results: impl IntoIterator<Item = io::Result<()>>) -> io::Result<()> {
    results.into_iter().find(Result::is_ok).unwrap_or(Err(io::ErrorKind::PermissionDenied.into()))
}
