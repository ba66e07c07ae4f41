//! Prefetch hints: fetch memory ahead of its use.

/// Prefetches the cache line with a value's first byte. It is a hint: it reads and changes nothing,
/// does not wait, and does nothing on a CPU without such an instruction.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    prefetch_ahead(value, 0);
}

/// Prefetches the first `max_lines` cache lines of a value.
#[inline]
pub fn prefetch_lines<T: ?Sized>(value: &T, max_lines: usize) {
    let first = core::ptr::from_ref(value).cast::<u8>();
    for line in 0..lines(first.addr(), size_of_val(value)).min(max_lines) {
        hint(first.wrapping_add(line * LINE));
    }
}

/// Bytes of a line, at least: where it has more, some are asked for twice.
const LINE: usize = 64;

/// Returns the number of cache lines that `bytes` bytes from `address` on touch.
const fn lines(address: usize, bytes: usize) -> usize {
    if bytes == 0 { 0 } else { (address % LINE + bytes).div_ceil(LINE) }
}

/// Prefetches the cache line `bytes` bytes after a value's first byte; any address is allowed.
#[inline(always)]
pub fn prefetch_ahead<T>(value: &T, bytes: usize) {
    hint(core::ptr::from_ref(value).cast::<u8>().wrapping_add(bytes));
}

/// The hint, which any address will do for.
#[inline(always)]
fn hint(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: PREFETCHT0 is part of every x86-64 (SSE). It is a hint: it never faults and reads
    // nothing that the program sees.
    unsafe {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: PRFM is part of every aarch64. It is a hint: it never faults and reads nothing that
    // the program sees.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = address;
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn line_count_covers_every_touched_cache_line() {
        assert_eq!((lines(0, 64), lines(0, 65), lines(0, 0), lines(63, 0)), (1, 2, 0, 0));
        assert_eq!((lines(63, 1), lines(63, 2), lines(32, 64), lines(65, 128)), (1, 2, 2, 3));
    }

    #[test]
    fn any_value_can_be_prefetched() {
        let words = [7u64; 100];
        prefetch_lines(&words[100..], 8);
        prefetch_lines(&words[3..], usize::MAX);
        prefetch_lines(&(), 1);
        prefetch_ahead(&words, usize::MAX);
        assert_eq!(words, [7; 100]);
    }
}
