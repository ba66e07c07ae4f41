//! Named memory, made, opened and removed: what needs a region and its name.

use super::{Region, SHM_DIR, directory, fifo, unlink};
use crate::sync::Ordering;

#[test]
#[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
fn two_mappings_of_a_named_segment_are_one_memory() {
    let name = format!("bulkhead.unit-{}.region", std::process::id());
    let created = Region::create(&name, 1024).unwrap().words();
    assert!(Region::create(&name, 1024).is_err(), "created exclusively");
    let opened = Region::open(&name).unwrap().words();
    let view = Region::open_read_only(&name).unwrap();
    unlink(&name).unwrap();
    assert_eq!((opened.len(), view.len()), (1024, 1024));
    created[1000].store(42, Ordering::Relaxed);
    assert_eq!((opened[1000].load(Ordering::Relaxed), view.load(1000, Ordering::Relaxed)), (42, 42));
    assert!(Region::open(&name).is_err());
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no named pipes")]
fn fifo_and_symlink_are_refused_at_once() {
    let pid = std::process::id();
    let names = ["fifo", "link"].map(|what| format!("bulkhead.unit-{pid}.{what}"));
    fifo::create(&names[0]).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", format!("{SHM_DIR}/{}", names[1])).unwrap();
    for name in &names {
        assert!(Region::open_read_only(name).is_err() && Region::open(name).is_err(), "{name}");
        unlink(name).unwrap();
    }
}

#[test]
#[cfg(feature = "control")]
#[cfg_attr(miri, ignore = "Miri has no shared file mappings")]
fn control_segment_is_found_by_name() {
    let name = format!("bulkhead.unit-{}.control", std::process::id());
    let created = Region::create_control(&name, 512).unwrap();
    assert!(Region::create_control(&name, 512).is_err(), "created exclusively");
    let opened = Region::open_read_only(&name).unwrap();
    created.words()[511].store(9, Ordering::Release);
    assert_eq!(opened.load(511, Ordering::Acquire), 9);
    let file = super::open_safely(&name, std::fs::OpenOptions::new().read(true)).unwrap();
    let is_held = || super::lock::is_locked(&file).unwrap();
    assert!(is_held(), "by its creator");
    drop(created);
    assert!(!is_held());
    assert!(super::list_segments().unwrap().contains(&name), "the name outlives the region");
    unlink(&name).unwrap();
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no shared files")]
fn unlinked_directory_takes_only_its_own_files() {
    let name = format!("bulkhead-unit-{}-folder", std::process::id());
    let is_there = |name: &str| directory::path(name).symlink_metadata().is_ok();
    directory::create(&name).unwrap();
    assert!(directory::create(&name).is_err(), "the directory exists");
    std::fs::create_dir(directory::path(&name).join("nodes")).unwrap();
    std::fs::write(directory::path(&name).join("nodes/1"), "node").unwrap();
    std::os::unix::fs::symlink("/dev/null", directory::path(&name).join("link")).unwrap();
    let (beside, other) = (format!("{name}.data"), format!("{name}-2"));
    [&beside, &other].iter().for_each(|name| std::fs::write(directory::path(name), "memory").unwrap());
    unlink(&name).unwrap();
    assert!(!is_there(&name) && !is_there(&beside) && is_there(&other));
    unlink(&name).unwrap();
    unlink(&other).unwrap();
    assert!(std::path::Path::new("/dev/null").exists());
}
