//! Helper of the tests: starts this binary again for one of its tests.

use std::process::Command;

/// This binary once more, for one of its tests that is ignored elsewhere: `folder::name`. It runs
/// alone there, with one thread of its own, so it may change what belongs to the process.
pub fn itself(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test binary has a path"));
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    command
}
