//! The heaps of strategies with a protection key: an arena each, whose pages carry the key.
//!
//! [`CountingAllocator`](crate::alloc::CountingAllocator) asks here first. A thread allocates in
//! its current arena; without one, as all threads of other levels, it allocates from the system.
//! Memory of an arena that another thread frees is not used again: its free lists are in the arena,
//! which the strategy may have overwritten, so nobody else follows them.

use super::register::Key;
use core::alloc::Layout;
use core::cell::Cell;
use core::num::NonZeroUsize;
use core::ptr;
use nix::sys::mman::{MapFlags, ProtFlags, mmap_anonymous};
use shm::sync::{AtomicU64, Ordering};
use std::io;
use std::sync::Mutex;

/// The size of an arena (the heap of one strategy), in bytes.
pub const ARENA_BYTES: usize = 128 << 20;
/// The size of the largest block that an arena allocates, in bytes.
pub const MAX_BLOCK_BYTES: usize = 64 << 20;
/// The maximum number of arenas (heaps) that a process creates: each start of a strategy uses up
/// one.
pub const MAX_ARENAS: usize = 256;

const PAGE: usize = 4096;
/// The exponents of the smallest block's size, and of the first size that no block has.
const CLASSES: core::ops::Range<u32> = 4..27;

// Where the arenas are; no address is there before the first one is made.
static WINDOW_START: AtomicU64 = AtomicU64::new(0);
static WINDOW_BYTES: AtomicU64 = AtomicU64::new(0);
static MADE: Mutex<usize> = Mutex::new(0);

thread_local! {
    static CURRENT: Cell<*mut ArenaHead> = const { Cell::new(ptr::null_mut()) };
}

/// The bookkeeping of an arena, at its start. Only the thread whose current arena it is follows it.
#[repr(C)]
struct ArenaHead {
    /// Offset of the first byte that was never allocated.
    next: usize,
    /// The first free block of each size; it holds the address of the next one.
    free: [*mut u8; CLASSES.end as usize],
}

/// The heap of one incarnation (one start) of a strategy, whose pages carry a memory protection
/// key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arena {
    index: usize,
    start: usize,
}

impl Arena {
    /// Makes an arena (a strategy's heap) whose pages carry a memory protection key.
    ///
    /// # Errors
    /// The process has [`MAX_ARENAS`] already, or too little address space.
    pub fn new(key: Key) -> io::Result<Self> {
        let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if *made == MAX_ARENAS {
            let why = format!("{MAX_ARENAS} heaps of strategies were made, one for each start of a strategy");
            return Err(io::Error::other(why));
        }
        if *made == 0 {
            reserve()?;
        }
        let start = WINDOW_START.load(Ordering::Relaxed) as usize + *made * ARENA_BYTES;
        key.protect_range(start, ARENA_BYTES)?;
        let arena = Self { index: *made, start };
        let head = ArenaHead { next: PAGE, free: [ptr::null_mut(); _] };
        // SAFETY: an aligned address in pages that were made writable above, and that nothing else
        // uses: each index is given out once.
        unsafe { arena.head().write(head) };
        *made += 1;
        Ok(arena)
    }

    fn head(self) -> *mut ArenaHead {
        ptr::with_exposed_provenance_mut(self.start)
    }

    /// Returns the arena's first address and its length in bytes.
    pub const fn range(self) -> (usize, usize) {
        (self.start, ARENA_BYTES)
    }

    /// Calls a function during which the calling thread allocates in this arena (a strategy's
    /// heap). Only one thread at a time may use an arena so.
    pub fn within<T>(self, call: impl FnOnce() -> T) -> T {
        let _restored = Restored(CURRENT.replace(self.head()));
        call()
    }

    /// Makes this the calling thread's arena for good. Only one thread at a time may use an arena.
    pub(super) fn enter(self) {
        CURRENT.set(self.head());
    }

    /// Returns `true` if the program's global allocator supports arenas: an allocation within this
    /// one really comes from an arena. Allocates once to find out.
    pub fn is_served(self) -> bool {
        let block = self.within(|| core::hint::black_box(Box::new(0_u64)));
        is_arena(ptr::from_ref(&*block).cast())
    }
}

/// Lets the calling thread allocate from the system again.
pub(super) fn leave() {
    CURRENT.set(ptr::null_mut());
}

struct Restored(*mut ArenaHead);

impl Drop for Restored {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Reserves the addresses of all arenas.
fn reserve() -> io::Result<()> {
    const BYTES: NonZeroUsize = NonZeroUsize::new(MAX_ARENAS * ARENA_BYTES).expect("many");
    let flags = MapFlags::MAP_PRIVATE | MapFlags::MAP_NORESERVE;
    // SAFETY: a new private mapping at an address that the kernel chooses.
    let start = unsafe { mmap_anonymous(None, BYTES, ProtFlags::PROT_NONE, flags) }?;
    // Relaxed: a thread that asks for an address of an arena has it from this one.
    WINDOW_START.store(start.as_ptr().expose_provenance() as u64, Ordering::Relaxed);
    WINDOW_BYTES.store(BYTES.get() as u64, Ordering::Relaxed);
    Ok(())
}

/// Returns `true` if an address is of an arena.
#[inline]
pub(crate) fn is_arena(address: *const u8) -> bool {
    let offset = (address.addr() as u64).wrapping_sub(WINDOW_START.load(Ordering::Relaxed));
    offset < WINDOW_BYTES.load(Ordering::Relaxed)
}

/// Returns `true` if the calling thread has an arena.
#[inline]
pub(crate) fn has_arena() -> bool {
    // A thread that is being torn down has none.
    CURRENT.try_with(|head| !head.get().is_null()).unwrap_or(false)
}

/// Returns the exponent of a block's size; `None` if no block is as large.
fn class(layout: Layout) -> Option<u32> {
    let size = layout.size().max(layout.align()).max(1 << CLASSES.start);
    let class = size.checked_next_power_of_two()?.trailing_zeros();
    (CLASSES.contains(&class) && layout.align() <= PAGE).then_some(class)
}

/// Allocates in the calling thread's arena. Returns null if it has no room.
pub(crate) fn allocate(layout: Layout) -> *mut u8 {
    let (head, Some(class)) = (CURRENT.get(), class(layout)) else { return ptr::null_mut() };
    // SAFETY: `enter` and `within` promise that no other thread follows the bookkeeping now, and it
    // is within pages that stay mapped. A strategy that overwrote it gets addresses of its choice,
    // which its own thread then writes, with its own rights.
    unsafe {
        let free = (*head).free[class as usize];
        if !free.is_null() {
            (*head).free[class as usize] = free.cast::<*mut u8>().read();
            return free;
        }
        let size = 1_usize << class;
        let start = (*head).next.next_multiple_of(size.min(PAGE));
        let Some(end) = start.checked_add(size).filter(|end| *end <= ARENA_BYTES) else {
            return ptr::null_mut();
        };
        (*head).next = end;
        head.cast::<u8>().add(start)
    }
}

/// Frees memory of an arena. It is used again if it is the calling thread's.
///
/// # Safety
/// The memory was allocated with this layout, and nothing uses it any more.
pub(crate) unsafe fn free(block: *mut u8, layout: Layout) {
    let head = CURRENT.try_with(Cell::get).unwrap_or(ptr::null_mut());
    let Some(class) = class(layout) else { return };
    if head.is_null() || block.addr().wrapping_sub(head.addr()) >= ARENA_BYTES {
        return;
    }
    // SAFETY: the block is of this arena, at least a pointer long and aligned, and nothing uses it;
    // as in `allocate`, only this thread follows the bookkeeping.
    unsafe {
        block.cast::<*mut u8>().write((*head).free[class as usize]);
        (*head).free[class as usize] = block;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_has_room_for_size_and_alignment() {
        let class = |size, align| class(Layout::from_size_align(size, align).unwrap());
        assert_eq!([class(0, 1), class(17, 1), class(1, 64)], [Some(4), Some(5), Some(6)]);
        assert_eq!([class(40 << 20, 8), class(65 << 20, 8), class(8, 8192)], [Some(26), None, None]);
    }
}
