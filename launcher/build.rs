//! Tells the launcher which commit and which compiler built it, for the records of runs.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // Runs at each build: whether the sources differ from the commit is known only then.
    println!("cargo:rerun-if-changed=no-such-file");
    let workspace = PathBuf::from(env("CARGO_MANIFEST_DIR")).parent().expect("a workspace").to_owned();
    let is_own = |root: String| Path::new(&root).canonicalize().ok() == workspace.canonicalize().ok();
    let git = |args: &[&str]| output(Command::new("git").current_dir(&workspace).args(args));
    // A copy without history may lie inside of another repository.
    let commit = git(&["rev-parse", "--show-toplevel"])
        .filter(|root| is_own(root.clone()))
        .and_then(|_| git(&["rev-parse", "--short=8", "HEAD"]));
    let changes = git(&["status", "--porcelain", "--untracked-files=no"]);
    let is_modified = commit.as_ref().and(changes).map(|changes| !changes.is_empty());
    let compiler = output(Command::new(env("RUSTC")).arg("--version"));
    println!("cargo:rustc-env=BULKHEAD_COMMIT={}", commit.unwrap_or_default());
    println!("cargo:rustc-env=BULKHEAD_MODIFIED={}", is_modified.map_or(String::new(), |is| is.to_string()));
    println!("cargo:rustc-env=BULKHEAD_COMPILER={}", compiler.unwrap_or_default());
    println!("cargo:rustc-env=BULKHEAD_PROFILE={}", env("PROFILE"));
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Returns the first output of a program that succeeds, without the line's end.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
