//! The same executable under the name `bulkhead`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    launcher::main()
}
