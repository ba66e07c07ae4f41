//! Memory that is truncated: a process that survives SIGBUS reads zeros, has the region marked as
//! lost, and still ends by a SIGBUS outside of regions.

use crate::common::test_child;
use shm::memory::{AtomicWords, ReadOnlyWords, Region, SHM_DIR, sigbus, unlink};
use shm::sync::Ordering;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};

const CHILD: &str = "BULKHEAD_TEST_TRUNCATED";
/// Words of four pages.
const WORDS: usize = 4 * 512;

/// Runs a function of this file in a process of its own, since signal handlers belong to the
/// process.
fn run_in_child(function: &str) -> ExitStatus {
    let mut command = test_child("truncated::child");
    command.env(CHILD, function).stdout(Stdio::null()).stderr(Stdio::inherit()).status().unwrap()
}

#[test]
#[ignore = "started by other tests as a process of its own"]
fn child() {
    match std::env::var(CHILD).unwrap_or_default().as_str() {
        "survivor" => survivor(),
        #[cfg(feature = "control")]
        "controller" => controller(),
        "foreign_mapping" => foreign_mapping(),
        "unprotected" => unprotected(),
        "recipient" => recipient(),
        _ => {}
    }
}

/// A named segment, mapped for writing and for reading, which is unlinked when dropped.
struct NamedSegment(String, AtomicWords, ReadOnlyWords);

impl NamedSegment {
    fn new(suffix: &str) -> Self {
        let name = format!("bulkhead.unit-{}.{suffix}", std::process::id());
        let words = Region::create(&name, WORDS).unwrap().words();
        (0..WORDS).for_each(|word| words[word].store(7, Ordering::Relaxed));
        let view = Region::open_read_only(&name).unwrap();
        Self(name, words, view)
    }

    fn truncate(&self, bytes: u64) {
        File::options()
            .write(true)
            .open(format!("{SHM_DIR}/{}", self.0))
            .and_then(|file| file.set_len(bytes))
            .unwrap();
    }
}

impl Drop for NamedSegment {
    fn drop(&mut self) {
        let _ = unlink(&self.0);
    }
}

#[test]
fn truncated_region_reads_as_zeros_and_is_marked_lost() {
    assert!(run_in_child("survivor").success());
}

fn survivor() {
    sigbus::install_handler().unwrap();
    let (cut, whole) = (NamedSegment::new("cut"), NamedSegment::new("whole"));
    cut.truncate(4096);
    let NamedSegment(_, words, view) = &cut;
    let load = |word: usize| (words[word].load(Ordering::Relaxed), view.load(word, Ordering::Acquire));
    assert_eq!(load(511), (7, 7), "the first page is unchanged");
    assert!(!words.is_lost() && !view.is_lost() && sigbus::faults() == 0);
    assert_eq!(load(512), (0, 0));
    assert!(words.is_lost() && view.is_lost());
    assert_eq!(sigbus::faults(), 2, "one page of each mapping");
    words[512].store(8, Ordering::Relaxed);
    assert_eq!(load(512), (8, 0), "a write to a lost page reaches no other mapping");
    words[WORDS - 1].fetch_add(1, Ordering::Relaxed);
    assert_eq!((load(WORDS - 1), sigbus::faults()), ((1, 0), 4));
    assert_eq!(whole.2.load(WORDS - 1, Ordering::Relaxed), 7);
    assert!(!whole.1.is_lost() && !whole.2.is_lost());
    drop(cut);
    // The same addresses, most likely, and a new region.
    let next = NamedSegment::new("next");
    assert!(!next.1.is_lost() && !next.2.is_lost());
    next.truncate(0);
    assert_eq!(next.2.load(0, Ordering::Relaxed), 0);
    assert!(next.2.is_lost() && !next.1.is_lost());
}

#[cfg(feature = "control")]
#[test]
fn process_survives_truncated_control_segment() {
    assert!(run_in_child("controller").success());
}

#[cfg(feature = "control")]
fn controller() {
    sigbus::install_handler().unwrap();
    let name = format!("bulkhead.unit-{}.mine", std::process::id());
    let words = Region::create_control(&name, WORDS).unwrap().words();
    File::options().write(true).open(format!("{SHM_DIR}/{name}")).and_then(|file| file.set_len(0)).unwrap();
    words[0].store(1, Ordering::Release);
    assert!(words.is_lost());
    unlink(&name).unwrap();
}

#[test]
fn sigbus_outside_of_regions_ends_the_process() {
    for test in ["foreign_mapping", "unprotected", "recipient"] {
        assert_eq!(run_in_child(test).signal(), Some(libc::SIGBUS), "{test}");
    }
}

/// A mapping outside of all regions.
fn foreign_mapping() {
    sigbus::install_handler().unwrap();
    let file = tempfile::tempfile().unwrap();
    file.set_len(8192).unwrap();
    let map = memmap2::MmapRaw::map_raw(&file).unwrap();
    file.set_len(0).unwrap();
    // SAFETY: inside a mapping that lives; the page is gone, so the access does not take place.
    unsafe { map.as_ptr().read_volatile() };
}

/// A region in a process that has not asked to survive.
fn unprotected() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(8192).unwrap();
    let view = Region::map_read_only("file", &file).unwrap();
    file.set_len(0).unwrap();
    view.load(0, Ordering::Relaxed);
}

/// A signal that another process sends.
fn recipient() {
    sigbus::install_handler().unwrap();
    // SAFETY: the handler is installed, or the default action ends the process.
    unsafe { libc::raise(libc::SIGBUS) };
}
