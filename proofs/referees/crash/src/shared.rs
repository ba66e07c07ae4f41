//! The memory that a traced process shares with others.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;
use std::ops::Range;

/// Bytes that are compared, at the start of each mapping.
const MAX_BYTES: usize = 64 << 10;

/// Returns the addresses that a process has mapped shared and for writing.
pub fn mappings(pid: Pid) -> Vec<Range<usize>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mapping = |line: &str| {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?);
        if !rights.starts_with("rw") || !rights.ends_with('s') {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        Some(address(start)?..address(end)?)
    };
    maps.lines().filter_map(mapping).collect()
}

/// A copy of the shared memory of a stopped process.
pub struct SharedMemory {
    pid: Pid,
    mappings: Vec<Range<usize>>,
    copy: Vec<u8>,
    next: Vec<u8>,
}

impl SharedMemory {
    pub fn new(pid: Pid) -> Self {
        let mut memory = Self { pid, mappings: Vec::new(), copy: Vec::new(), next: Vec::new() };
        memory.find();
        memory
    }

    /// Finds the mappings again, after a system call.
    pub fn find(&mut self) {
        let found = mappings(self.pid);
        if found != self.mappings {
            self.mappings = found;
            self.read();
            self.copy.clone_from(&self.next);
        }
    }

    /// Returns `true` if the memory differs from that of the last call.
    pub fn has_changed(&mut self) -> bool {
        self.read();
        let has_changed = self.next != self.copy;
        if has_changed {
            std::mem::swap(&mut self.next, &mut self.copy);
        }
        has_changed
    }

    fn read(&mut self) {
        let bytes = |range: &Range<usize>| range.len().min(MAX_BYTES);
        let remote: Vec<RemoteIoVec> =
            self.mappings.iter().map(|range| RemoteIoVec { base: range.start, len: bytes(range) }).collect();
        self.next.resize(self.mappings.iter().map(bytes).sum(), 0);
        if !self.next.is_empty() {
            // Pages after the end of a file cannot be read, and stay as they were.
            let _ = process_vm_readv(self.pid, &mut [IoSliceMut::new(&mut self.next)], &remote);
        }
    }
}
