//! The bodies of the fuzz targets, and the little that they share with the tests of `techniques`.

#[path = "../bodies/mod.rs"]
pub mod bodies;
#[path = "../../../../techniques/tests/all/common/mod.rs"]
mod common;
