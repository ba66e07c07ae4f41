//! bulkhead's one executable: the command line, and each process of a run.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    launcher::main()
}
