//! Faults that exhaust shared resources, up to a bound or until they are refused.

use protocol::plan::FaultKind;
use roles::faults::resources::{
    CHILD_BYTES, CHILDREN, DISK_MIB, FILES, PROCESSES, ResourceGrab, Surroundings,
};
use std::fs;
use system::container::{DESCRIPTORS, MEMORY_BYTES, PROCESSES as ALLOWED, TMP_BYTES};
use system::memory::STRATEGY_MEMORY_BYTES;

fn taken(kind: FaultKind, surroundings: &Surroundings) -> bool {
    let mut taking = ResourceGrab::new(kind, surroundings.clone(), Vec::new());
    (0..10_000).find_map(|_| taking.step()).unwrap()
}

#[test]
fn resources_are_taken_to_bound_and_released() {
    let folder = tempfile::tempdir().unwrap();
    let surroundings = Surroundings {
        folder: folder.path().into(),
        launcher: std::process::id(),
        ..Surroundings::default()
    };
    for kind in [FaultKind::Disk, FaultKind::Peek] {
        assert!(taken(kind, &surroundings), "{kind}");
    }
    assert_eq!(fs::read_dir(&surroundings.folder).unwrap().count(), 0, "no name stays");
}

#[test]
fn missing_resources_are_refused() {
    // The zero page's process: nobody's.
    assert!(!taken(FaultKind::Peek, &Surroundings { launcher: 0x7fff_fff0, ..Surroundings::default() }));
    let writable_segments = vec!["/dev/shm/bulkhead.unit.nobody-s".into()];
    assert!(!taken(FaultKind::Punch, &Surroundings { writable_segments, ..Surroundings::default() }));
}

#[test]
fn file_with_a_name_is_cut_by_a_punch() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(8192).unwrap();
    assert!(taken(
        FaultKind::Punch,
        &Surroundings { writable_segments: vec![file.path().into()], ..Surroundings::default() }
    ));
    assert_eq!(file.as_file().metadata().unwrap().len(), 0);
}

#[test]
fn the_bounds_are_beyond_what_a_container_allows() {
    assert!(PROCESSES as u64 > ALLOWED && FILES as u64 > DESCRIPTORS);
    assert!((DISK_MIB << 20) as u64 > TMP_BYTES && (CHILDREN * CHILD_BYTES) as u64 > MEMORY_BYTES);
    assert!((CHILD_BYTES as u64) < STRATEGY_MEMORY_BYTES);
}
