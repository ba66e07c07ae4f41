//! The folder that the book says to copy is a package of its own: next to the original as it is,
//! elsewhere with one line changed. Cargo resolves it here; `.ci/copied.sh` also builds it.

use super::root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const EXAMPLE: &str = "examples/own-strategy";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the example").flatten() {
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &place);
        } else {
            fs::copy(&path, &place).expect("a copy");
        }
    }
}

/// Copies the example with the lock file, so that nothing has to be fetched.
fn copied(to: &Path) {
    copy(&root().join(EXAMPLE), to);
    fs::copy(root().join("Cargo.lock"), to.join("Cargo.lock")).expect("a lock file");
}

/// Returns what Cargo says against a package, if anything.
fn refused(package: &Path) -> Option<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--offline", "--format-version", "1"]);
    command.args(["--filter-platform", "x86_64-unknown-linux-gnu"]);
    let output = command.current_dir(package).output().expect("cargo runs");
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn copied_example_resolves_beside_the_original() {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(root()).expect("the workspace").flatten() {
        let name = entry.file_name();
        if !["examples", "target", ".git"].iter().any(|other| name == *other) {
            symlink(entry.path(), folder.path().join(name)).expect("a link");
        }
    }
    copy(&root().join(EXAMPLE), &folder.path().join(EXAMPLE));
    let own = folder.path().join("examples/mine");
    copied(&own);
    assert_eq!(refused(&own), None);
    assert_eq!(refused(&folder.path().join(EXAMPLE)), None, "the original is still a member");
}

#[test]
fn copied_example_resolves_elsewhere_with_one_edit() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("mine");
    copied(&own);
    assert!(refused(&own).is_some_and(|why| why.contains("launcher")), "its path leads nowhere yet");

    let manifest = fs::read_to_string(own.join("Cargo.toml")).expect("a manifest");
    let there = root().join("launcher");
    let edited = manifest.replace("../../launcher", &there.display().to_string());
    let lines = manifest.lines().zip(edited.lines()).filter(|(before, after)| before != after).count();
    assert_eq!(lines, 1, "one line is edited");
    fs::write(own.join("Cargo.toml"), edited).expect("a manifest");
    assert_eq!(refused(&own), None);
}
