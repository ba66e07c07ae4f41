//! Arrows point down between crates: none depends on one above it in the diagram of
//! `docs/src/architecture.md`.

use checks::root;
use std::collections::BTreeSet;
use std::fs;

/// The only dependencies that `supervision` may have: it decides, and neither reads nor acts.
const SUPERVISION: [&str; 3] = ["protocol", "record", "thiserror"];

/// Crates below the launcher, each with crates above it.
const ABOVE: [(&str, &[&str]); 13] = [
    ("record", &["launcher", "roles", "analysis", "experiments"]),
    ("planner", &["launcher", "roles", "analysis", "experiments"]),
    ("verdict/merge", &["verdict", "launcher", "roles", "analysis", "experiments", "simulation"]),
    ("verdict", &["launcher", "roles", "analysis", "experiments"]),
    ("catalog", &["launcher", "roles", "analysis", "experiments"]),
    ("analysis", &["launcher", "roles", "experiments"]),
    // An experiment is a list of runs and a reader of folders: it links nothing that runs.
    ("experiments", &["launcher", "roles", "heap-techniques", "orchestrator", "supervision", "venue"]),
    ("roles", &["launcher", "analysis", "experiments", "simulation"]),
    ("roles/heap-techniques", &["launcher", "analysis", "experiments", "simulation"]),
    ("run-memory", &["launcher", "roles", "analysis", "experiments", "simulation"]),
    ("launcher/runtime", &["launcher", "analysis", "experiments"]),
    ("simulation", &["launcher", "analysis", "experiments"]),
    // The programs meet at the folders of runs, and at no library.
    ("launcher", &["analysis", "experiments"]),
];

/// Returns the names and packages of the dependencies in a manifest, except those of tests and
/// build scripts.
fn dependencies(manifest: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut is_list = false;
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end().trim_end_matches(']');
            let is_of_platform = section.starts_with("target.") && section.ends_with(".dependencies");
            is_list = section == "dependencies" || is_of_platform;
            found.extend(section.strip_prefix("dependencies.").map(str::to_owned));
        } else if let Some((name, value)) = line.split_once(['.', '=']).filter(|_| is_list) {
            found.insert(name.trim().to_owned());
            let package = value.split("package = \"").nth(1).and_then(|rest| rest.split('"').next());
            found.extend(package.map(str::to_owned));
        }
    }
    found
}

/// Returns the dependencies in a crate's manifest that the crate may not have.
fn upward_dependencies(name: &str, manifest: &str) -> Vec<String> {
    let is_upward = |dependency: &String| match ABOVE.iter().find(|(below, _)| *below == name) {
        Some((_, above)) => above.contains(&dependency.as_str()),
        None => !SUPERVISION.contains(&dependency.as_str()),
    };
    dependencies(manifest).into_iter().filter(is_upward).collect()
}

#[test]
fn crates_depend_only_downwards() {
    for name in ABOVE.iter().map(|(name, _)| *name).chain(["supervision"]) {
        let path = root().join(name).join("Cargo.toml");
        let manifest = fs::read_to_string(path).expect("a crate has a manifest");
        let base = if name == "roles/heap-techniques" { "roles" } else { "protocol" };
        assert!(dependencies(&manifest).contains(base), "{name}: its dependencies are not found");
        let found = upward_dependencies(name, &manifest);
        assert!(found.is_empty(), "{name} may not depend on {found:?}");
    }
}

#[test]
fn dependency_on_crate_above_is_found() {
    let manifest = "[package]\nname = \"launcher\"\n\n[dependencies]\n# roles = \"1\"\n\
                    protocol.workspace = true\nlibc = { version = \"0.2\" }\n\n[dev-dependencies]\n\
                    analysis.workspace = true\n";
    assert_eq!(upward_dependencies("verdict", manifest), [""; 0], "tests may have others");
    assert_eq!(upward_dependencies("supervision", manifest), ["libc"]);
    let upward = manifest.replace("libc =", "runner = { package = \"launcher\" }\nroles =");
    let upward = upward + "[dependencies.analysis]\npath = \"../analysis\"\n";
    assert_eq!(upward_dependencies("verdict", &upward), ["analysis", "launcher", "roles"]);
    assert_eq!(upward_dependencies("analysis", &upward), ["launcher", "roles"]);
    let platform = manifest.replace("[dev-dependencies]", "[target.'cfg(unix)'.dependencies]");
    assert_eq!(upward_dependencies("planner", &platform), ["analysis"]);
    let linked = manifest.replace("libc =", "roles = { path = \"../roles\" }\nlibc =");
    assert_eq!(upward_dependencies("experiments", &linked), ["roles"]);
}
