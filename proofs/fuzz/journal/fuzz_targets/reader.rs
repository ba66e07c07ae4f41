//! See `bodies/reader.rs`.
#![no_main]

#[path = "../bodies/reader.rs"]
mod reader;

libfuzzer_sys::fuzz_target!(|data: &[u8]| reader::read(data));
