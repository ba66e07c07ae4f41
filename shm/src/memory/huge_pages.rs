//! Huge pages for segments: whether this process creates segments with them.
//!
//! Shared memory gets huge pages when its pages are first touched, so only the creator of a segment
//! asks for them. A process that maps the segment later has huge entries in its page tables as
//! well, since the kernel maps what is there.

use crate::sync::{AtomicU64, Ordering};
use memmap2::{Advice, MmapOptions, MmapRaw};
use std::fs::File;
use std::io;

/// Size of a huge page in bytes. Smaller segments have ordinary pages.
pub const HUGE_PAGE_BYTES: u64 = 2 << 20;

/// Whether segments that this process creates from now on get huge pages; 0: not.
static ARE_USED: AtomicU64 = AtomicU64::new(0);

/// Sets whether segments of [`HUGE_PAGE_BYTES`] or more that this process creates from now on get
/// huge pages, as far as the kernel has them. Other segments and other processes are not affected.
pub fn use_huge_pages(are_used: bool) {
    // Relaxed: a setting, read by the threads that its caller starts afterwards.
    ARE_USED.store(are_used.into(), Ordering::Relaxed);
}

/// Fills an empty file of memory with huge pages, if the setting is on and they fit. Pages that are
/// missing afterwards are ordinary ones, which the caller reserves.
pub(super) fn fill(file: &File, bytes: u64) -> io::Result<()> {
    if ARE_USED.load(Ordering::Relaxed) == 0 || bytes < HUGE_PAGE_BYTES {
        return Ok(());
    }
    file.set_len(bytes)?;
    let map: MmapRaw = MmapOptions::new().map_raw(file)?;
    // Without huge pages, or without room for them, the file has ordinary ones.
    let _ = map.advise(Advice::HugePage).and_then(|()| map.advise(Advice::PopulateWrite));
    Ok(())
}
