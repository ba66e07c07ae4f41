//! Faults that take shared resources: processes, file descriptors, disk, memory, other processes'
//! memory, network.
//!
//! It takes some of it in each duty cycle, so that nobody takes it for hanging, and up to a bound
//! that no machine minds; and it gives all of it back when it ends, which it does as soon as it has
//! it all or is refused it. Each bound is beyond what a container allows.

use nix::fcntl::{FallocateFlags, fallocate};
use protocol::plan::FaultKind;
use shm::memory::AtomicWords;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::UdpSocket;
use std::path::PathBuf;
use system::descriptors;
use system::fault::{self, ChildCrowd};

/// Processes: twice what a container may have.
pub const PROCESSES: usize = 256;
/// Open files: four times what a process in a container may have.
pub const FILES: usize = 4096;
/// Mebibytes on a disk: half as much again as a container has.
pub const DISK_MIB: usize = 96;
/// Processes with [`CHILD_BYTES`] each: a quarter more than a container may have together, and each
/// less than one may have alone.
pub const CHILDREN: usize = 80;
/// Little, so that a duty cycle that starts one takes no time that looks like a hang.
pub const CHILD_BYTES: usize = 8 << 20;

/// Bytes that a segment is to become longer.
const GROWTH: u64 = 1 << 20;

/// What a strategy knows of its surroundings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The run's folder.
    pub folder: PathBuf,
    /// The launcher's process.
    pub launcher: u32,
    /// Where its own segments are, if they have names.
    pub own: Vec<PathBuf>,
}

/// What was taken so far.
pub struct Taking {
    kind: FaultKind,
    place: Place,
    steps: usize,
    crowd: Option<ChildCrowd>,
    files: Vec<File>,
    /// What it has mapped of the run's memory to write.
    memory: Vec<AtomicWords>,
}

impl Taking {
    /// Nothing yet.
    pub const fn new(kind: FaultKind, place: Place, memory: Vec<AtomicWords>) -> Self {
        Self { kind, place, steps: 0, crowd: None, files: Vec::new(), memory }
    }

    /// Takes some more: whether it has all of it, once that is known.
    pub fn step(&mut self) -> Option<bool> {
        let (each, all) = match self.kind {
            FaultKind::Forkbomb => (16, PROCESSES),
            FaultKind::Descriptors => (256, FILES),
            FaultKind::Disk => (4, DISK_MIB),
            FaultKind::Children => (1, CHILDREN),
            _ => (1, 1),
        };
        for _ in 0..each {
            if self.one().is_err() {
                return Some(false);
            }
            self.steps += 1;
            if self.steps == all {
                return Some(true);
            }
        }
        None
    }

    fn one(&mut self) -> io::Result<()> {
        match self.kind {
            FaultKind::Forkbomb => self.crowd()?.add(0),
            FaultKind::Children => self.crowd()?.add(CHILD_BYTES),
            FaultKind::Descriptors => {
                if self.steps == 0 {
                    // The soft limit is anybody's to raise.
                    descriptors::raise_limit(FILES as u64 + 64)?;
                }
                self.files.push(File::open("/dev/null")?);
                Ok(())
            }
            FaultKind::Disk => {
                if self.steps == 0 {
                    self.files.push(self.nameless()?);
                }
                self.files[0].write_all(&vec![1; 1 << 20])
            }
            FaultKind::Peek => {
                let maps = fs::read(format!("/proc/{}/maps", self.place.launcher))?;
                if maps.is_empty() { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
            }
            FaultKind::Punch => self.punch(),
            // Nothing is sent: the kernel looks for the way.
            _ => UdpSocket::bind("0.0.0.0:0")?.connect("127.0.0.1:9"),
        }
    }

    /// Holes in everything that it can write, by its mappings and by its names, and another length:
    /// longer, then none. Refused only if all of it was.
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
            one_of(steps)
        };
        let mapped = self.memory.iter().map(|words| fault::punch(words));
        // All of them, whatever comes of the first.
        let all: Vec<io::Result<()>> = mapped.chain(self.place.own.iter().map(resize)).collect();
        one_of(all)
    }

    fn crowd(&mut self) -> io::Result<&mut ChildCrowd> {
        match &mut self.crowd {
            Some(crowd) => Ok(crowd),
            empty => Ok(empty.insert(ChildCrowd::new()?)),
        }
    }

    /// A file in the run's folder, or where everybody may make one, whose name is gone at once.
    fn nameless(&self) -> io::Result<File> {
        let make = |folder: PathBuf| {
            let path = folder.join(format!("bulkhead.filled-{}", std::process::id()));
            let file = File::create_new(&path)?;
            fs::remove_file(path)?;
            Ok(file)
        };
        make(self.place.folder.clone()).or_else(|_: io::Error| make(std::env::temp_dir()))
    }
}

/// That one of them succeeded.
fn one_of(all: impl IntoIterator<Item = io::Result<()>>) -> io::Result<()> {
    all.into_iter().find(Result::is_ok).unwrap_or(Err(io::ErrorKind::PermissionDenied.into()))
}
