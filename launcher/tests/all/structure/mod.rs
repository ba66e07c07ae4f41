//! The structure of the source itself: modules without cycles, `unsafe` in one crate, files of one idea, links that lead somewhere.
//! Each check is shown a broken tree that it must find.

mod links;
mod modules;

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's folder.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a crate lies in the workspace").to_owned()
}

/// The workspace's crates, by folder.
fn crates() -> Vec<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("the workspace has a manifest");
    let members =
        manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next()).expect("members");
    members
        .split(',')
        .map(|name| name.trim().trim_matches('"').to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

/// All files below a folder with that ending.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
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

#[test]
fn only_shm_may_hold_unsafe_code() {
    for name in crates().iter().filter(|name| *name != "shm") {
        let source = root().join(name).join("src");
        let main = ["lib.rs", "main.rs"].map(|file| source.join(file)).into_iter().find(|path| path.exists());
        let text = fs::read_to_string(main.expect("a crate has a root")).expect("it can be read");
        assert!(text.contains("#![forbid(unsafe_code)]"), "{name} does not forbid unsafe code");
    }
}

#[test]
fn no_source_file_has_more_than_500_lines() {
    let long = |path: &PathBuf| fs::read_to_string(path).is_ok_and(|text| text.lines().count() > 500);
    let mut too_long = Vec::new();
    for name in crates() {
        too_long.extend(files(&root().join(name), "rs").into_iter().filter(long));
    }
    assert!(too_long.is_empty(), "one idea a file: {too_long:?}");
}
