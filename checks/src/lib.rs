//! Where the workspace, its crates and its files are, for the checks in `tests/all`.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root directory of the Cargo workspace.
///
/// # Panics
/// If this package lies in no workspace.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate lies in the workspace").to_owned()
}

/// Returns the member crates that the workspace's `Cargo.toml` lists, as paths below the root.
///
/// # Panics
/// If the manifest cannot be read or names no members.
#[must_use]
pub fn crates() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has a manifest");
    let members =
        manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).expect("members");
    members
        .split(',')
        .map(|name| name.trim().trim_matches('"').to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// Returns the files with the extension `ending` below a folder, at any depth, sorted by path.
#[must_use]
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
