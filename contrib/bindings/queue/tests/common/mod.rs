//! Compiles the examples against the library of this build, and runs them.

#![allow(dead_code, reason = "each test program uses some of them")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// Returns the folder of this crate.
pub fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the folder with the libraries of this build, in which the test's program is.
pub fn library_folder() -> PathBuf {
    let program = std::env::current_exe().expect("this test has a path");
    program.parent().expect("target/PROFILE/deps/TEST").to_owned()
}

/// Returns `true` if a program can be started.
pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs a command. Panics with its output unless it succeeds.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, text(&output));
    text(&output)
}

/// Returns the texts that a command wrote.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Compiles an example with warnings as errors, against the shared library of this build.
pub fn compile(folder: &TempDir, compiler: &str, source: &str, flags: &[&str]) -> PathBuf {
    let source = crate_folder().join("examples").join(source);
    let program = folder.path().join("program");
    let library = library_folder().join("libbulkhead_queue.so");
    for name in ["libbulkhead_queue.so", "libbulkhead_queue.so.1"] {
        let link = folder.path().join(name);
        if !link.exists() {
            std::os::unix::fs::symlink(&library, link).expect("a link to the library");
        }
    }
    let mut command = Command::new(compiler);
    command.args(["-O2", "-Wall", "-Wextra", "-Werror"]).args(flags).arg(source).arg("-o").arg(&program);
    command.arg("-I").arg(crate_folder().join("include")).arg("-L").arg(folder.path());
    command.arg("-Wl,-rpath,$ORIGIN").arg("-lbulkhead_queue");
    run(&mut command);
    program
}
