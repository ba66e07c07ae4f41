//! The bodies of the fuzz targets. The property test `techniques/tests/all/fuzzed.rs` runs them too
//! in every `cargo test`.
//!
//! Each body takes any bytes, passes them to code of this crate that reads untrusted data, and
//! panics if an invariant is violated.

mod board;
mod frames;
mod readers;
mod rings;

pub use board::board;
pub use frames::frames;
pub use readers::{control, header, log, status, wire};
pub use rings::rings;

pub type Body = fn(&[u8]);

/// All bodies with the names of their targets.
#[allow(dead_code, reason = "a fuzz target takes one")]
pub const ALL: [(&str, Body); 8] = [
    ("rings", rings),
    ("board", board),
    ("frames", frames),
    ("header", header),
    ("wire", wire),
    ("log", log),
    ("status", status),
    ("control", control),
];
