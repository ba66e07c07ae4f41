//! Checks of text and form: modules without cycles, crates that depend only downwards, `unsafe` in
//! two crates and three files, files of one idea, links that lead somewhere, published figures, the
//! book's length.
//! Each must also find its broken tree.
//!
//! One of them alone: `cargo test -p checks links::`.

mod dependencies;
mod features;
mod figures;
mod links;
mod modules;
mod named;
mod snippets;
mod words;

use checks::{crates, files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates that hold unsafe code: shared memory, and what is asked of the operating system.
const UNSAFE: [&str; 2] = ["shm", "system"];

/// The only files of other crates that hold unsafe code: the C interfaces, which are made of
/// pointers, and the journal's mapping, because the published journal depends on no other crate of
/// ours.
const UNSAFE_FILES: [(&str, &str); 3] =
    [("contrib/bindings", "abi.rs"), ("contrib/bindings/queue", "abi.rs"), ("journal", "mapping.rs")];

/// Returns the files of a crate that allow unsafe code and may not, and a crate root that does not
/// forbid it.
fn unsafe_where_it_may_not_be(name: &str, source: &Path) -> Vec<String> {
    let file = UNSAFE_FILES.iter().find(|(crate_name, _)| *crate_name == name).map(|(_, file)| *file);
    let may = |path: &Path| file.is_some_and(|file| path == source.join(file));
    let text = |path: &Path| fs::read_to_string(path).expect("source can be read");
    let main = ["lib.rs", "main.rs"].map(|file| source.join(file)).into_iter().find(|path| path.exists());
    let main = text(&main.expect("a crate has a root"));
    let wanted = if file.is_some() { "#![deny(unsafe_code)]" } else { "#![forbid(unsafe_code)]" };
    let forbids = main.contains(wanted);
    let allows = |path: &&PathBuf| text(path).contains("allow(unsafe_code)") && !may(path);
    let found = files(source, "rs");
    let wrong = found.iter().filter(allows).map(|path| path.display().to_string());
    wrong.chain((!forbids).then(|| format!("{name} has no {wanted}"))).collect()
}

#[test]
fn only_two_crates_and_three_files_hold_unsafe_code() {
    for name in crates().iter().filter(|name| !UNSAFE.contains(&name.as_str())) {
        let wrong = unsafe_where_it_may_not_be(name, &root().join(name).join("src"));
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}

#[test]
fn unsafe_code_in_another_file_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("lib.rs", "#![deny(unsafe_code)]");
    write("abi.rs", "#![allow(unsafe_code)]");
    assert!(unsafe_where_it_may_not_be("contrib/bindings", folder.path()).is_empty());
    assert_eq!(
        unsafe_where_it_may_not_be("strategy", folder.path()).len(),
        2,
        "deny is not enough elsewhere"
    );
    write("line.rs", "#[allow(unsafe_code)] mod more {}");
    assert_eq!(unsafe_where_it_may_not_be("contrib/bindings", folder.path()).len(), 1);
}

/// Code that observes or acts by itself: it has no place in the supervisor's decisions.
const IMPURE: [&str; 11] = [
    "std::fs",
    "std::io",
    "std::process",
    "std::env",
    "Instant::now",
    "SystemTime",
    "system::",
    "record::document",
    "record::logfile",
    "record::screen",
    "protocol::launcher_watch",
];

/// Returns the lines below a folder, without tests and comments, that are not pure.
fn impure_lines(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for path in files(folder, "rs").iter().filter(|path| !path.ends_with("tests.rs")) {
        let text = fs::read_to_string(path).expect("source can be read");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default().lines();
        let code = code.filter(|line| !line.trim_start().starts_with("//"));
        let is_impure = |line: &&str| IMPURE.iter().any(|word| line.contains(word));
        found.extend(code.filter(is_impure).map(|line| format!("{}: {line}", path.display())));
    }
    found
}

#[test]
fn supervisor_has_no_process_clock_file_or_signal() {
    let source = root().join("supervision/src");
    assert!(files(&source, "rs").len() > 20, "its sources are not found");
    let found = impure_lines(&source);
    assert!(found.is_empty(), "the supervisor decides by observations alone: {found:#?}");
    assert!(
        !impure_lines(&root().join("launcher/runtime/src/supervise")).is_empty(),
        "its runtime is impure"
    );
}

/// Returns what is wrong with the form of a source file: its length, the width of its comments, and
/// sentences that would render as headings.
fn formal_errors(text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    if text.lines().count() > 700 {
        wrong.push("more than 700 lines: one idea a file".to_owned());
    }
    for (number, line) in text.lines().enumerate() {
        let code = line.trim_start();
        if code.starts_with("//") && line.chars().count() > 100 {
            wrong.push(format!("line {}: a comment wider than 100 columns", number + 1));
        }
        let documented = code.strip_prefix("///").or_else(|| code.strip_prefix("//!")).map(str::trim);
        let is_sentence = |text: &str| text.starts_with("# ") && (text.ends_with('.') || text.contains('`'));
        if documented.is_some_and(is_sentence) {
            wrong.push(format!("line {}: a sentence as a heading", number + 1));
        }
    }
    wrong
}

#[test]
fn sources_keep_their_form() {
    let mut wrong = Vec::new();
    for file in crates().iter().flat_map(|name| files(&root().join(name), "rs")) {
        let text = fs::read_to_string(&file).expect("source can be read");
        wrong.extend(formal_errors(&text).into_iter().map(|what| format!("{}: {what}", file.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn long_files_wide_comments_and_headings_are_found() {
    let wide = format!("// {}\n", "wide ".repeat(30));
    let text =
        format!("{wide}    /// # Errors [`Full`] if there is no room.\n/// # Panics\n{}", "\n".repeat(698));
    assert_eq!(formal_errors(&text).len(), 3, "{:?}", formal_errors(&text));
    assert!(formal_errors("/// # Errors\n/// None.\n").is_empty());
}
