//! The checked-in C header equals the one generated from the code.
#![forbid(unsafe_code)]

#[path = "../../tests/common/header.rs"]
mod header;

#[test]
fn header_is_current() {
    let modules = ["codes", "handles", "abi", "abi/batches", "abi/fast"];
    header::assert_header_is_current(env!("CARGO_MANIFEST_DIR"), &modules, "bulkhead_queue.h");
}
