//! Replaces a lost page by zeros on SIGBUS, and marks its region as lost.
//!
//! A mapping of a file loses pages when another process truncates the file, or punches a hole into
//! it and no memory is left to fill the hole. The next access ends the process by SIGBUS. A
//! supervisor must not die of that: it still has logs to save, processes to end and names to
//! remove.
//!
//! ```text
//! access ─▶ SIGBUS ─▶ handler ─▶ region of the table? ─ yes ─▶ zeroed page, region lost, go on
//!                                                       └ no ──▶ default action: process ends
//! ```
//!
//! Every mapped [`Region`](super::Region) is in the table for as long as it is mapped. The handler
//! is installed only where [`install_handler`] was called: by the launcher and the reaper. The
//! engine and the strategies trade through this memory and cannot continue with zeros; SIGBUS ends
//! them.
//!
//! The handler runs in the middle of anything: it loads and stores atomics, makes one system call,
//! and takes no lock.

use super::calls::checked;
use crate::sync::{AtomicU64, Ordering};
use std::io;

/// Regions that can be in the table at once. A run of 256 strategies and 64 venues has about 3,000.
const CAPACITY: usize = 16_384;
/// Bytes of the unit in which the table counts, the smallest page that there is.
const UNIT: usize = 4096;
/// Bits of the number of units in an entry's range; the others are the number of its first unit.
const LEN_BITS: u32 = 28;
/// The range of an entry that is claimed and covers nothing yet.
const CLAIMED: u64 = 1 << LEN_BITS;
const WRITABLE: u64 = 1;
const LOST: u64 = 2;

/// A mapped region, as the handler sees it.
struct Entry {
    /// First unit and number of units in one word, so that the handler never sees half of a change;
    /// 0: free.
    range: AtomicU64,
    flags: AtomicU64,
}

impl Entry {
    const fn new() -> Self {
        Self { range: AtomicU64::new(0), flags: AtomicU64::new(0) }
    }

    /// Returns `true` if the region covers that address.
    fn covers(&self, address: usize) -> bool {
        // Acquire: pairs with the Release store in `Guard::new`; the flags are those of this
        // region.
        let range = self.range.load(Ordering::Acquire);
        let (first, units) = (range >> LEN_BITS, range & ((1 << LEN_BITS) - 1));
        ((address / UNIT) as u64).checked_sub(first).is_some_and(|unit| unit < units)
    }
}

static TABLE: [Entry; CAPACITY] = [const { Entry::new() }; CAPACITY];
/// Where the next search for a free entry begins.
static NEXT: AtomicU64 = AtomicU64::new(0);
static FAULTS: AtomicU64 = AtomicU64::new(0);
/// Bytes of a page of this machine.
static PAGE: AtomicU64 = AtomicU64::new(0);

/// A region's entry in the table of mapped regions, which the SIGBUS handler uses.
#[derive(Debug)]
pub(super) struct Guard(usize);

impl Guard {
    /// Registers a mapping with the SIGBUS handler. Returns `None` if the table is full or the
    /// mapping is larger than 1 TiB: then SIGBUS in it has its default action.
    pub(super) fn new(start: usize, bytes: usize, is_writable: bool) -> Option<Self> {
        let (first, units) = ((start / UNIT) as u64, bytes.div_ceil(UNIT) as u64);
        if units == 0 || units >= CLAIMED || first >= 1 << (u64::BITS - LEN_BITS) {
            return None;
        }
        // Relaxed: any place is a good one to begin.
        let begin = NEXT.fetch_add(1, Ordering::Relaxed) as usize;
        let claim = |index: &usize| {
            // Acquire: pairs with the Release store in `drop`; the last owner is done with the
            // entry.
            let range = &TABLE[*index].range;
            range.compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let index = (0..CAPACITY).map(|step| (begin + step) % CAPACITY).find(claim)?;
        // Relaxed: published by the store below.
        TABLE[index].flags.store(if is_writable { WRITABLE } else { 0 }, Ordering::Relaxed);
        // Release: pairs with the handler's Acquire load.
        TABLE[index].range.store(first << LEN_BITS | units, Ordering::Release);
        Some(Self(index))
    }

    pub(super) fn is_lost(&self) -> bool {
        // Relaxed: the handler has run on the thread that made the access, before the access was
        // over.
        TABLE[self.0].flags.load(Ordering::Relaxed) & LOST != 0
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next one that claims the entry.
        TABLE[self.0].range.store(0, Ordering::Release);
    }
}

/// Returns the number of lost pages (of truncated files, for example) that this process's SIGBUS
/// handler has replaced by zeros.
pub fn faults() -> u64 {
    // Relaxed: a count; see `Guard::is_lost`.
    FAULTS.load(Ordering::Relaxed)
}

/// Installs this process's SIGBUS handler, which replaces a lost page of shared memory by zeros so
/// that the process continues.
///
/// # Errors
/// What the system refused.
pub fn install_handler() -> io::Result<()> {
    // SAFETY: the call only reads a number of the system.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(UNIT as u64);
    // Relaxed: the handler is installed afterwards, by this thread.
    PAGE.store(page, Ordering::Relaxed);
    let handler: extern "C" fn(_, _, _) = on_sigbus;
    set_action(handler as libc::sighandler_t, libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART)
}

/// Sets what happens on SIGBUS: the default, or `on_sigbus` with SA_SIGINFO.
fn set_action(handler: libc::sighandler_t, flags: libc::c_int) -> io::Result<()> {
    // SAFETY: zeroes are a value of this struct: no signal is masked.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    (action.sa_sigaction, action.sa_flags) = (handler, flags);
    // SAFETY: the handler has the signature that SA_SIGINFO asks for, and does only what is safe in
    // the middle of anything: it loads and stores static atomics and makes the system calls mmap,
    // rt_sigaction and tgkill.
    checked(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, core::ptr::null_mut()) }).map(drop)
}

extern "C" fn on_sigbus(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the thread's own `errno`, which what it was in the middle of may still read.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let before = unsafe { *errno };
    // SAFETY: the kernel hands over a siginfo that is valid while the handler runs; SIGBUS has an
    // address in it.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    // A positive code is the kernel's own; others are of a process that has sent the signal.
    let is_fault = code > 0;
    if is_fault && replace(address) {
        // SAFETY: as above.
        unsafe { *errno = before };
        return;
    }
    // A fault is repeated when this returns, and ends the process.
    let _ = set_action(libc::SIG_DFL, 0);
    if !is_fault {
        // SAFETY: the signal is delivered when this returns.
        unsafe { libc::raise(libc::SIGBUS) };
    }
}

/// Maps a zeroed page over that address, if it is in a region of the table. Returns `true` if the
/// access can continue.
fn replace(address: usize) -> bool {
    let Some(entry) = TABLE.iter().find(|entry| entry.covers(address)) else { return false };
    // Relaxed: the entry was published before the region was used.
    let flags = entry.flags.load(Ordering::Relaxed);
    let write = if flags & WRITABLE == 0 { 0 } else { libc::PROT_WRITE };
    let page = PAGE.load(Ordering::Relaxed) as usize;
    // SAFETY: the page is inside a mapping of a `Region`: the thread that made the access holds the
    // region, so it stays mapped, and nobody else has anything there. Its words are atomics, for
    // which zeros are a value as any other, and which any process may have stored. The region's
    // owner unmaps its whole range when it is dropped, this page with it.
    let mapped = unsafe {
        libc::mmap(
            (address & !(page - 1)) as *mut libc::c_void,
            page,
            libc::PROT_READ | write,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return false;
    }
    // Relaxed: read by the thread that made the access, or by one that it notifies.
    entry.flags.fetch_or(LOST, Ordering::Relaxed);
    FAULTS.fetch_add(1, Ordering::Relaxed);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_covers_its_range_while_guarded() {
        // Addresses that no mapping of a process has.
        let start = 0xf000_0000_0000;
        let find = |address| TABLE.iter().position(|entry: &Entry| entry.covers(address));
        assert_eq!(find(start), None);
        let guard = Guard::new(start, 3 * UNIT - 8, true).unwrap();
        assert_eq!(find(start - 1), None);
        assert_eq!((find(start), find(start + 3 * UNIT - 1)), (Some(guard.0), Some(guard.0)));
        assert_eq!(find(start + 3 * UNIT), None);
        assert!(!guard.is_lost());
        drop(guard);
        assert_eq!(find(start), None);
    }

    #[test]
    fn mapping_that_cannot_be_described_is_not_guarded() {
        assert!(Guard::new(UNIT, 0, true).is_none());
        assert!(Guard::new(UNIT, UNIT << LEN_BITS, true).is_none());
        assert!(Guard::new(usize::MAX - UNIT, UNIT, true).is_none());
    }
}
