//! The crates' benches, apart from the crates: `cargo bench -p benches --bench NAME`.
#![forbid(unsafe_code)]
