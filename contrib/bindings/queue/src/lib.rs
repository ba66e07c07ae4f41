//! A C interface of the crash-safe queue of `bulkhead-shm`, with messages of a size that is known
//! when the program runs. A process in another language and one in Rust use the same queue.
//!
//! Start with the README of this folder, and with `include/bulkhead_queue.h`, which is made of
//! [`abi`] and [`codes`].
#![deny(unsafe_code)]

pub mod abi;
mod calls;
pub mod codes;
mod errors;
pub mod handles;

/// Counts the allocations of each thread of the tests.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;
