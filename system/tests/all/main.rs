//! Integration tests of `system`: attempts of a sandboxed process, and the layers that refuse them.
//!
//! Changes of the process itself (limits, layers of the sandbox) are made in a child: this binary
//! started again for one of its tests.
//!
//! A single one: `cargo test -p system --test all sandbox::files::`.
#![cfg(not(miri))]

mod keys;
mod sandbox;

// A thread with a protection key allocates in a heap of its own.
#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;

// The harness starts and joins the threads of tests.
system::before_main!(system::keys::open_all);
