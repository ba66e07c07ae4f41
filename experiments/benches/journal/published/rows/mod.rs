//! The rows.

mod log;
mod snapshots;

use super::harness::subject::Group;

/// Returns all benchmarks of a published document, with loads that are `divisor` times smaller than
/// the document's: 1, or more for tests.
pub fn groups(divisor: usize) -> Vec<Group> {
    let count = 10_000 / divisor;
    let mut groups = log::groups(count);
    groups.extend(snapshots::groups(count));
    groups
}

/// Creates a folder for logs that is removed at the end, on the disk of the build's folder.
fn folder() -> tempfile::TempDir {
    let target = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let created = std::fs::create_dir_all(&target).and_then(|()| tempfile::tempdir_in(target));
    created.expect("a folder on the disk of the build")
}
