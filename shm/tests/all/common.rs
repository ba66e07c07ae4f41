//! Helper of the tests: starts this binary again for one of its tests.

use std::process::Command;

/// Returns a command that runs this binary for one of its ignored tests, `folder::name`. The test
/// runs alone in its process, on one thread, so it may change the process.
pub fn test_child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test binary has a path"));
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}
