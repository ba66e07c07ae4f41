//! The build of bulkhead's programs: their commit, and the compiler that made them.
#![forbid(unsafe_code)]

/// The git commit of which this program was built, eight digits; empty for sources without a
/// history.
pub const COMMIT: &str = env!("BULKHEAD_COMMIT");
/// `true` or `false`: whether the sources of this program differed from the commit; empty if
/// unknown.
pub const MODIFIED: &str = env!("BULKHEAD_MODIFIED");
/// The version of the Rust compiler that built this program.
pub const COMPILER: &str = env!("BULKHEAD_COMPILER");
/// The Cargo profile of this build: `release` or `debug`.
pub const PROFILE: &str = env!("BULKHEAD_PROFILE");
