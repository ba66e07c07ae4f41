//! See `bodies/rings.rs`.
#![no_main]
libfuzzer_sys::fuzz_target!(
    |bytes: &[u8]| bulkhead_fuzz::bodies::ring::<shm::ring::array_queue::ArrayQueue>(bytes)
);
