//! Packages that are built after the launcher have the same features of what they share with it, so
//! that nothing is compiled twice.

use checks::{files, root};
use std::collections::BTreeSet;
use std::process::Command;

/// Packages with their features. One that build scripts use too may be there twice.
type Features = BTreeSet<(String, String)>;

/// Returns the features of each package in a build of these packages, without tests.
fn features(packages: &[&str]) -> Features {
    // The one that built this test: another user's home may choose no toolchain.
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(root()).args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none"]);
    tree.args(["--format", "{p}|{f}"]).args(packages.iter().flat_map(|package| ["--package", package]));
    let out = tree.output().expect("cargo tree runs");
    assert!(out.status.success(), "cargo tree: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8_lossy(&out.stdout);
    let line =
        |line: &str| line.trim_end_matches(" (*)").split_once('|').map(|(name, of)| (name.into(), of.into()));
    text.lines().filter_map(line).collect()
}

/// Returns the packages that the second build would compile again, because its features differ.
fn compiled_again(first: &Features, second: &Features) -> Vec<String> {
    let differs = |(name, _): &&(String, String)| first.iter().any(|(before, _)| before == name);
    second.difference(first).filter(differs).map(|(name, _)| name.clone()).collect()
}

#[test]
fn builds_after_launcher_compile_nothing_again() {
    let launcher = features(&["launcher"]);
    assert!(launcher.len() > 50, "{launcher:?}");
    for packages in [&["launcher", "bindings"][..], &["launcher", "experiments"], &["own-strategy"]] {
        assert_eq!(compiled_again(&launcher, &features(packages)), [""; 0], "{packages:?}");
    }
}

#[test]
fn package_with_other_features_is_found() {
    let of = |pairs: &[(&str, &str)]| -> Features {
        pairs.iter().map(|(name, of)| ((*name).into(), (*of).into())).collect()
    };
    let first = of(&[("shm", "serde"), ("syn", "full")]);
    let second = of(&[("shm", "serde"), ("syn", ""), ("new", "")]);
    assert_eq!(compiled_again(&first, &second), ["syn"]);
}

/// The bindings alone have other features of `syn`, on which each derived trait depends.
#[test]
fn pages_build_bindings_together_with_launcher() {
    let alone = |text: &str| text.contains("cargo build --release -p bindings");
    let mut pages = files(&root().join("docs"), "md");
    pages.extend(files(&root().join("contrib/bindings"), "md"));
    let wrong: Vec<_> =
        pages.iter().filter(|page| std::fs::read_to_string(page).is_ok_and(|text| alone(&text))).collect();
    assert!(
        pages.len() > 30 && wrong.is_empty(),
        "write cargo build --release -p launcher -p bindings: {wrong:?}"
    );
    assert!(alone("$ cargo build --release -p bindings\n"));
}
