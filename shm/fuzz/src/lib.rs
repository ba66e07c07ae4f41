//! The bodies of the fuzz targets, and the little that they share with the tests of `shm`.

#[path = "../bodies/mod.rs"]
pub mod bodies;
#[path = "../../tests/common/mod.rs"]
mod common;
