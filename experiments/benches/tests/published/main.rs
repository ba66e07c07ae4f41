//! The rows of the published tables, run once with small loads.

mod exchange;
#[path = "../../exchange/published/harness/mod.rs"]
mod harness;
mod journal;

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;
