//! bulkhead launcher.
#![forbid(unsafe_code)]
fn main() {}
