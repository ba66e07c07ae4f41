//! Whose memory an address is, for the message about a refused write.
//!
//! A signal handler reads the list, so it is never changed in place: a new list replaces it, and
//! the old one stays allocated. It changes a few times in a run.

use shm::sync::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The first words of the owner of a program's variables.
pub(super) const STATIC: &str = "a static variable";

/// Memory of an owner.
#[derive(Clone, Debug)]
struct OwnedMemory {
    start: usize,
    bytes: usize,
    owner: String,
}

// The address of the newest list.
static NEWEST: AtomicU64 = AtomicU64::new(0);
static CHANGES: Mutex<()> = Mutex::new(());

/// Registers the owner of a memory range, such as `strategy-3's heap`, for messages on faults of
/// protection keys. Replaces what was registered for the same start.
pub fn register(start: usize, bytes: usize, owner: impl Into<String>) {
    register_all([(start, bytes, owner.into())]);
}

/// Registers the owners of several ranges of memory, for messages on faults of protection keys:
/// first address, length in bytes, and owner.
pub fn register_all(ranges: impl IntoIterator<Item = (usize, usize, String)>) {
    let _one_at_a_time = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut list = newest().to_vec();
    for (start, bytes, owner) in ranges {
        list.retain(|known| known.start != start);
        list.push(OwnedMemory { start, bytes, owner });
    }
    let list: &'static Vec<OwnedMemory> = Box::leak(Box::new(list));
    // Release: pairs with the Acquire load of the handler.
    NEWEST.store(core::ptr::from_ref(list).expose_provenance() as u64, Ordering::Release);
}

fn newest() -> &'static [OwnedMemory] {
    // Acquire: pairs with the Release store above.
    let list =
        core::ptr::with_exposed_provenance::<Vec<OwnedMemory>>(NEWEST.load(Ordering::Acquire) as usize);
    // SAFETY: null, or the address of a list that was leaked, complete, and is never changed.
    unsafe { list.as_ref() }.map_or(&[], Vec::as_slice)
}

/// Returns whose memory an address is.
pub(super) fn owner_of(address: usize) -> &'static str {
    let found = newest().iter().rev().find(|known| address.wrapping_sub(known.start) < known.bytes);
    found.map_or("the engine's heap or stack", |known| &known.owner)
}

/// Registers what the process has mapped of its program and of its libraries.
pub(super) fn register_programs() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    register_all(program_ranges(&maps));
}

/// Returns the ranges of programs and libraries in the list of what a process has mapped.
fn program_ranges(maps: &str) -> Vec<(usize, usize, String)> {
    let mut found: Vec<(usize, usize, String)> = Vec::new();
    for line in maps.lines() {
        if let Some(range) = program_range(line) {
            found.push(range);
        } else if let (Some((start, bytes)), Some((last, length, owner))) = (zeroed_range(line), found.last())
            && last + length == start
            && owner.starts_with(STATIC)
        {
            // The variables that begin as zeros have no file.
            found.push((start, bytes, owner.clone()));
        }
    }
    found
}

/// Returns the range of a line without a file, which may be written.
fn zeroed_range(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?);
    (rights.starts_with("rw") && fields.count() == 3).then(|| bounds(range)).flatten()
}

/// Returns start and length of a range such as `55d0-55d1`.
fn bounds(range: &str) -> Option<(usize, usize)> {
    let (start, end) = range.split_once('-')?;
    let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    Some((start, end.checked_sub(start)?))
}

/// Returns the range of a line such as `55d0-55d1 r-xp 00000000 08:01 77 /usr/bin/true`.
fn program_range(line: &str) -> Option<(usize, usize, String)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights, path) = (fields.next()?, fields.next()?, fields.nth(3)?);
    let (start, bytes) = bounds(range)?;
    let file = path.rsplit('/').next().filter(|_| path.starts_with('/') && !path.starts_with("/dev/"))?;
    let what = match rights.as_bytes() {
        [_, b'w', ..] => STATIC,
        [_, _, b'x', ..] => "code",
        _ => "a constant or vtable",
    };
    Some((start, bytes, format!("{what} of {file}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_of_address_is_found() {
        register_all([(0x1000, 0x1000, "a ring".to_owned()), (0x3000, 8, "a log".to_owned())]);
        register(0x1000, 0x800, "another ring");
        assert_eq!([0x1000, 0x17ff, 0x3007].map(owner_of), ["another ring", "another ring", "a log"]);
        assert_eq!([0x1800, 0x3008].map(owner_of), ["the engine's heap or stack"; 2]);
    }

    #[test]
    fn zeroed_variables_follow_those_of_the_file() {
        let maps = "1000-3000 rw-p 0 08:01 77 /usr/bin/true\n3000-5000 rw-p 0 00:00 0\n\
                    5000-6000 rw-p 0 00:00 0 [heap]\n7000-8000 rw-p 0 00:00 0\n";
        let starts: Vec<usize> = program_ranges(maps).into_iter().map(|(start, ..)| start).collect();
        assert_eq!(starts, [0x1000, 0x3000]);
    }

    #[test]
    fn programs_are_read_from_maps() {
        let of = |line| program_range(line);
        let code = of("1000-3000 r-xp 00000000 08:01 77       /usr/bin/true");
        assert_eq!(code, Some((0x1000, 0x2000, "code of true".into())));
        assert_eq!(of("1000-3000 rw-p 0 08:01 7 /lib/x.so").unwrap().2, "a static variable of x.so");
        assert_eq!(of("1000-3000 r--p 0 08:01 7 /lib/x.so").unwrap().2, "a constant or vtable of x.so");
        for other in
            ["1000-3000 rw-p 0 00:00 0", "1000-3000 rw-s 0 00:1 9 /dev/shm/x", "1-2 rw-p 0 0 0 [heap]", ""]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
