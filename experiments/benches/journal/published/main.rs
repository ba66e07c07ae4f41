//! Every row for log and snapshots of the matching engine's published tables, next to its figure.
//!
//! `cargo bench -p benches --bench published-journal [-- NAME… --json FILE --rounds N]`. The
//! document, the way of measuring and the JSON's schema are those of the bench
//! `published-exchange`, which has the other rows. Logs are in a temporary folder of the
//! folder `target`, on its disk.

#[path = "rows/mod.rs"]
mod catalog;
#[path = "../../exchange/published/harness/mod.rs"]
mod harness;

fn main() -> std::process::ExitCode {
    harness::main("published-journal", catalog::groups(1))
}
