//! The program of bulkhead's experiments, which the launcher calls.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    experiments::main()
}
