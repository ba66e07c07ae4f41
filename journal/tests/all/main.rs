//! The journal's tests, in one binary.

mod basics;
mod common;
mod damaged;
mod faults;
mod fuzzed;
mod images;
mod kills;
mod mapped;
mod snapshots;
mod stepped;
mod tools;
mod victim;

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;
