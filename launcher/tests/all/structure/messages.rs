//! Messages and help texts that were replaced because readers did not understand them: none comes
//! back.

use super::{files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Parts of the old texts, each long enough to be unique.
const RETIRED: [&str; 44] = [
    "a strategy more, behind which that host's are",
    "Call the run so: launcher list",
    "Takes the cores of the run out of the scheduler's hands",
    "What the strategies are, in turn",
    "Plays the orders of the window so many times",
    "What exchanges and engine write down before they act",
    "A thread without a duty cycle for so long hangs",
    "Go on with a kernel that lacks a piece",
    "Print where the page of a run or of a folder of runs is",
    "What there is in a folder of results",
    "Take results away; what lives stays",
    "A run for other programs: Perfetto",
    "Give up everything from the first damaged record on",
    "nobody is called",
    "is nothing that a venue does",
    "for is for what a venue does",
    "is whole or not there: nothing can be held",
    "finds the run at its end, or not at all",
    "the run cannot be: {0}",
    "is none of this engine's",
    "the journal is not whole",
    "orders have no report and none comes any more",
    "done, it says, and has not ended",
    "its state is none that there is",
    "it says that it is attached and is not in its sandbox",
    "nothing comes past",
    "did not end in order",
    "no container here",
    "messages that cannot be",
    "is no meeting: ",
    "holds cores that nobody can name",
    "the other side sent what none may send",
    "is not for you to say",
    "the fill of report {detail} is of nothing",
    "never struck: ",
    "nobody was there to have it",
    "whoever claims it lets go of it at once",
    "figures, and no word on what differs",
    "eight cores, two cores cannot say",
    "an order pays nothing that can be seen",
    "A look that comes a moment too early",
    "who reads must not run ahead",
    "Which of its threads is its own a process says itself",
    "only the end is looked at",
];

/// A text on one line: without the breaks of comments and of long string literals.
fn on_one_line(text: &str) -> String {
    let unbroken = text.lines().map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("///").or(line.strip_prefix("//!")).unwrap_or(line).trim_start();
        line.strip_suffix('\\').map_or_else(|| format!("{line} "), str::to_owned)
    });
    unbroken.collect()
}

/// Returns the retired texts that a file still has.
fn retired_in(path: &Path) -> Vec<String> {
    let text = on_one_line(&fs::read_to_string(path).expect("a text file"));
    let found = RETIRED.iter().filter(|retired| text.contains(**retired));
    found.map(|retired| format!("{}: {retired}", path.display())).collect()
}

/// The sources of every crate and its tests, the book and the README.
fn sources() -> Vec<PathBuf> {
    let folders = fs::read_dir(root()).expect("the workspace").flatten().map(|entry| entry.path());
    let crates = folders.filter(|folder| folder.join("Cargo.toml").exists());
    let mut found: Vec<PathBuf> = crates
        .flat_map(|folder| ["src", "tests"].map(|part| folder.join(part)))
        .flat_map(|folder| files(&folder, "rs"))
        .chain(files(&root().join("docs/src"), "md"))
        .chain([root().join("README.md")])
        .collect();
    found.retain(|path| !path.ends_with("structure/messages.rs"));
    found
}

#[test]
fn retired_messages_stay_gone() {
    let sources = sources();
    let found: Vec<String> = sources.iter().flat_map(|path| retired_in(path)).collect();
    assert!(sources.len() > 300 && found.is_empty(), "{} files: {found:#?}", sources.len());
}

#[test]
fn a_retired_message_in_a_broken_literal_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lib.rs");
    fs::write(&file, "bail!(\n    \"exchange-1 did not \\\n     end in order\"\n)\n").expect("a file");
    assert_eq!(retired_in(&file).len(), 1);
    fs::write(&file, "bail!(\"exchange-1 exited abnormally\")\n").expect("a file");
    assert!(retired_in(&file).is_empty());
}
