//! See `bodies/readers.rs`.
#![no_main]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bulkhead_fuzz::bodies::log(bytes));
