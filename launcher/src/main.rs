//! The launcher's executable: the command line, and every process of a run.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use system::alloc::CountingAllocator;

// Every thread of a run reports its allocations after the barrier.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn main() -> ExitCode {
    launcher::main()
}
