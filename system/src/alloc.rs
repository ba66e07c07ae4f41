//! Counts heap allocations per thread, in programs whose allocator is [`CountingAllocator`], so
//! that a test can prove that the hot loops make none.

use crate::keys::arena;
use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of heap allocations and reallocations of the calling thread; 0 if the
/// program's allocator does not count.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// Returns the number of bytes that the calling thread has allocated in all, reallocations included
/// and frees ignored; 0 if the program's allocator does not count.
pub fn allocated_bytes() -> u64 {
    BYTES.with(Cell::get)
}

/// Returns `true` if this program's allocator counts allocations. Allocates once to find out.
pub fn is_counted() -> bool {
    let before = allocations();
    drop(core::hint::black_box(Box::new(0_u8)));
    allocations() != before
}

/// The system's allocator with a counter for each thread, for use as `#[global_allocator]`. A
/// thread with an [`arena`] allocates there.
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAllocator;

fn count(bytes: usize) {
    // A thread that is being torn down has no counter.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
    let _ = BYTES.try_with(|count| count.set(count.get() + bytes as u64));
}

// SAFETY: every call goes to the system allocator or to an arena, which both keep the contract;
// memory goes back to where it came from. Counting neither allocates (the thread-local is
// const-initialised and needs no destructor) nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        if arena::has_arena() {
            return arena::allocate(layout);
        }
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is `System`'s.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        if arena::is_arena(ptr) {
            // SAFETY: the caller keeps `GlobalAlloc::dealloc`'s contract; it came from an arena.
            return unsafe { arena::free(ptr, layout) };
        }
        // SAFETY: as above; `ptr` came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !arena::has_arena() && !arena::is_arena(ptr) {
            count(new_size);
            // SAFETY: as above; `ptr` came from `System`.
            return unsafe { System.realloc(ptr, layout, new_size) };
        }
        // SAFETY: the caller promises a valid size. What is copied is within both blocks, which do
        // not overlap, as the old one is still allocated.
        unsafe {
            let new = self.alloc(Layout::from_size_align_unchecked(new_size, layout.align()));
            if !new.is_null() {
                core::ptr::copy_nonoverlapping(ptr, new, layout.size().min(new_size));
                self.dealloc(ptr, layout);
            }
            new
        }
    }
}

#[cfg(test)]
mod tests {
    #[global_allocator]
    static ALLOCATOR: super::CountingAllocator = super::CountingAllocator;

    #[test]
    fn allocation_is_counted() {
        let before = super::allocations();
        let bytes = super::allocated_bytes();
        drop(core::hint::black_box(Box::new(1u64)));
        assert_eq!((super::allocations() - before, super::allocated_bytes() - bytes), (1, 8));
        assert!(super::is_counted());
    }
}
