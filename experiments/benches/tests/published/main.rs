//! The rows of the published tables, run once with small loads.

mod exchange;
mod journal;

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;
