//! `bulkhead`: executes the program `launcher` in its own folder.
#![forbid(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let error = match std::env::current_exe() {
        Ok(own) => {
            let launcher = own.with_file_name("launcher");
            let error = Command::new(&launcher).args(std::env::args_os().skip(1)).exec();
            format!("cannot start {}: {error}; build or install both programs", launcher.display())
        }
        Err(error) => format!("cannot tell where this program is: {error}; use launcher"),
    };
    eprintln!("error: {error}");
    ExitCode::FAILURE
}
