//! What the fuzz targets do with their bytes. The property test `techniques/tests/all/fuzzed.rs`
//! does the same in every `cargo test`.
//!
//! Each body takes any bytes, gives them to code of this crate that reads what others write, and
//! panics if what must hold does not.

mod board;
mod frames;
mod readers;
mod rings;

pub use board::board;
pub use frames::frames;
pub use readers::{control, header, log, status, wire};
pub use rings::rings;

/// What a target does with its bytes.
pub type Body = fn(&[u8]);

/// All bodies, with the names of their targets.
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
