//! The rows.

mod book;
mod end_to_end;
mod footprint;
mod load;
mod matching;
mod rings;

use super::harness::subject::Group;

/// Returns all benchmarks of a published document, with loads that are `divisor` times smaller than
/// the document's: 1, or more for tests.
pub fn groups(divisor: u64) -> Vec<Group> {
    let scaled = |count: u64| (count / divisor).max(10);
    let mut groups = matching::groups(scaled);
    groups.extend(end_to_end::groups(scaled));
    groups.push(load::group(scaled));
    groups.extend(rings::groups(scaled));
    groups.extend(footprint::groups());
    groups
}
