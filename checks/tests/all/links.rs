//! The book, the README and the changelog: every link leads to a file, every page is in the table
//! of contents, the front pages stay short.

use checks::{files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// The targets of a page's links that lead to files.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        for part in line.split("](").skip(1).filter(|_| !is_code) {
            let target = part.split([')', '#', ' ']).next().unwrap_or("");
            if !target.is_empty() && !target.contains("://") {
                found.push(target.to_owned());
            }
        }
    }
    found
}

/// The links of these pages that lead nowhere.
fn broken(pages: &[PathBuf]) -> Vec<String> {
    let mut found = Vec::new();
    for page in pages {
        let text = fs::read_to_string(page).expect("a page can be read");
        let folder = page.parent().unwrap_or(Path::new("."));
        let lost = targets(&text).into_iter().filter(|target| !folder.join(target).exists());
        found.extend(lost.map(|target| format!("{}: {target}", page.display())));
    }
    found
}

#[test]
fn links_lead_to_files() {
    let mut pages = files(&root().join("docs/src"), "md");
    pages.push(root().join("README.md"));
    let found = broken(&pages);
    assert!(pages.len() > 10 && found.is_empty(), "links that lead nowhere: {found:#?}");
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let source = root().join("docs/src");
    let contents = fs::read_to_string(source.join("SUMMARY.md")).expect("a table of contents");
    for page in files(&source, "md").iter().filter(|page| !page.ends_with("SUMMARY.md")) {
        let name = page.strip_prefix(&source).expect("below it").display().to_string();
        assert!(contents.contains(&format!("({name})")), "{name} is not in SUMMARY.md");
    }
}

#[test]
fn program_on_languages_page_is_example() {
    let page = fs::read_to_string(root().join("docs/src/languages.md")).expect("a page");
    let example =
        fs::read_to_string(root().join("contrib/bindings/examples/cpp/first.cpp")).expect("an example");
    let (_, program) = example.split_once('\n').expect("a comment, then the program");
    let shown = |program: &str| page.contains(&format!("```cpp\n{program}```\n"));
    assert!(shown(program) && !shown(&program.replace("open = 1", "open = 2")), "copy first.cpp to the page");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.md");
    fs::write(&page, "[a](page.md#here) [b](https://example.com) [c](missing.md)\n```\n[d](code.md)\n```\n")
        .expect("a page");
    let found = broken(std::slice::from_ref(&page));
    assert!(matches!(&found[..], [only] if only.ends_with("missing.md")), "{found:?}");
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(root().join("README.md")).expect("a README");
    assert!(text.lines().count() <= 120, "what belongs into docs/?");
    for command in
        ["cargo run --release -- run --technique spsc-mux", "cargo test --workspace --no-fail-fast"]
    {
        assert!(text.contains(command), "the README does not show: {command}");
    }
}

#[test]
fn changelog_has_one_line_per_change() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).expect("a changelog");
    let mut sections = text.split("\n## ").skip(1);
    for section in sections.by_ref().take_while(|section| !section.starts_with("0.1.0")) {
        let name = section.lines().next().unwrap_or("");
        let is_line = |line: &&str| line.is_empty() || line.starts_with("- ") || line.ends_with(':');
        let others: Vec<&str> = section.lines().skip(1).filter(|line| !is_line(line)).collect();
        assert!(others.is_empty(), "{name}: no entry and no heading: {others:#?}");
        let longest = section.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(longest <= 160, "{name}: a line of {longest} characters; figures belong into data/results");
        assert!(section.lines().count() <= 120, "{name} has {} lines", section.lines().count());
    }
    assert!(text.contains("\n## 0.2.0\n"));
}
