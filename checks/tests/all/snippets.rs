//! The code of the README and the book: Rust blocks are compiled, or are copies of files that are;
//! other languages parse.

use checks::{crates, files, root};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A fenced block of code: the words after its fence, its lines, and the source that it copies.
#[derive(Debug, Default, PartialEq)]
struct CodeBlock {
    language: String,
    text: String,
    copies: Option<String>,
}

/// Returns the source that a line before a block names: `<!-- copy: FILE REGION -->`.
fn copied_source(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- copy: ")?.strip_suffix(" -->")
}

/// Returns the blocks of a page.
fn code_blocks(page: &str) -> Vec<CodeBlock> {
    let mut found = Vec::new();
    let mut open: Option<CodeBlock> = None;
    let mut before = "";
    for line in page.lines() {
        if let Some(block) = &mut open {
            if line.trim() == "```" {
                found.extend(open.take());
            } else {
                block.text += line;
                block.text.push('\n');
            }
        } else if let Some(language) = line.trim_start().strip_prefix("```") {
            let copies = copied_source(before).map(str::to_owned);
            open = Some(CodeBlock { language: language.to_owned(), copies, ..CodeBlock::default() });
        }
        before = line;
    }
    found
}

/// Returns the lines of a source file between `ANCHOR: REGION` and `ANCHOR_END: REGION`, without
/// the indentation that all of them have.
fn region(root: &Path, source: &str) -> Option<String> {
    let (file, region) = source.split_once(' ')?;
    let text = fs::read_to_string(root.join(file)).ok()?;
    let is_end = |line: &&str| line.contains(&format!("ANCHOR_END: {region}"));
    let lines = text.lines().skip_while(|line| !line.contains(&format!("ANCHOR: {region}"))).skip(1);
    let lines: Vec<&str> =
        lines.take_while(|line| !is_end(line)).filter(|line| !line.contains("ANCHOR")).collect();
    let indents = lines.iter().filter(|line| !line.is_empty());
    let indent = indents.map(|line| line.len() - line.trim_start().len()).min()?;
    Some(lines.iter().fold(String::new(), |text, line| text + line.get(indent..).unwrap_or("") + "\n"))
}

/// Returns the page with each copied block as its source has it now; a block whose source has no
/// such region is empty.
fn with_copies(root: &Path, page: &str) -> String {
    let mut text = String::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        text = text + line + "\n";
        let Some(source) = copied_source(line) else { continue };
        text = text + lines.next().unwrap_or("") + "\n" + &region(root, source).unwrap_or_default() + "```\n";
        lines.by_ref().find(|line| line.trim() == "```");
    }
    text
}

/// The README, the book, and the guides for contributors.
fn pages() -> Vec<PathBuf> {
    let mut pages = files(&root().join("docs"), "md");
    pages.push(root().join("README.md"));
    pages
        .extend(crates().iter().map(|name| root().join(name).join("README.md")).filter(|page| page.exists()));
    pages
}

/// Returns the pages that a crate includes in its documentation, whose Rust blocks are its tests.
fn compiled_pages() -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for source in crates().iter().map(|name| root().join(name).join("src")) {
        let text = fs::read_to_string(source.join("lib.rs")).unwrap_or_default();
        let included = text.split("doc = include_str!(\"").skip(1).filter_map(|rest| rest.split('"').next());
        found.extend(included.filter_map(|page| source.join(page).canonicalize().ok()));
    }
    found
}

/// Returns what is wrong with the Rust blocks of a page.
fn uncompiled(page: &str, is_compiled: bool) -> Vec<String> {
    let mut found = Vec::new();
    for block in code_blocks(page) {
        let tags: Vec<&str> = block.language.split(',').collect();
        let is_tested = is_compiled && !tags.iter().any(|tag| ["ignore", "compile_fail"].contains(tag));
        if tags[0] == "rust" && !is_tested && block.copies.is_none() {
            found.push(format!("no test compiles: {}", block.text));
        }
        if block.text.contains("{{#include") {
            found.push(format!("shows nothing on a repository page: {}", block.text));
        }
    }
    found
}

#[test]
fn every_rust_snippet_is_compiled_or_copied() {
    let compiled = compiled_pages();
    let mut blocks = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page can be read");
        let is_compiled = compiled.contains(&page.canonicalize().expect("it is there"));
        let wrong = uncompiled(&text, is_compiled);
        assert!(wrong.is_empty(), "{}: {wrong:#?}", page.display());
        blocks += code_blocks(&text).iter().filter(|block| block.language.starts_with("rust")).count();
    }
    assert!(blocks >= 14, "only {blocks} Rust blocks: the search for them is broken");
}

#[test]
fn copied_code_equals_its_source() {
    let mut copies = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page can be read");
        let now = with_copies(&root(), &text);
        copies += code_blocks(&text).iter().filter(|block| block.copies.is_some()).count();
        if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
            fs::write(&page, &now).expect("written");
        } else {
            assert_eq!(text, now, "{}: write the source's text with BULKHEAD_GOLDEN=1", page.display());
        }
    }
    assert!(copies >= 5, "only {copies} copies: the search for them is broken");
}

/// Runs a program on a text; `None` if it is not installed.
fn accepts(program: &str, arguments: &[&str], text: &str) -> Option<bool> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    // It may end before it has read everything.
    let _ = child.stdin.take().expect("a pipe").write_all(text.as_bytes());
    Some(child.wait().expect("it ends").success())
}

/// Whether a block of a language that is not Rust parses; `None` if nothing here can tell.
fn parses(block: &CodeBlock) -> Option<bool> {
    match block.language.as_str() {
        "python" => accepts("python3", &["-c", "import ast, sys; ast.parse(sys.stdin.read())"], &block.text),
        "bash" => accepts("bash", &["-n"], &block.text),
        _ => None,
    }
}

#[test]
fn snippets_of_other_languages_parse() {
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a page can be read");
        for block in code_blocks(&text) {
            assert_ne!(parses(&block), Some(false), "{}: {}", page.display(), block.text);
        }
    }
}

#[test]
fn broken_snippets_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let block = |language: &str, text: &str| format!("```{language}\n{text}```\n");
    let copied = |text: &str| format!("<!-- copy: a.rs page -->\n{}", block("rust,ignore", text));
    fs::write(folder.path().join("a.rs"), "// ANCHOR: page\n    a();\n\n        b();\n// ANCHOR_END: page\n")
        .expect("a file");
    let good = copied("a();\n\n    b();\n");
    assert_eq!(with_copies(folder.path(), &good), good);
    assert_eq!(with_copies(folder.path(), &copied("c();\n")), good, "an old copy differs");
    assert!(uncompiled(&good, false).is_empty());
    assert_eq!(uncompiled(&block("rust,ignore", "a();\n"), true).len(), 1);
    assert_eq!(uncompiled(&block("rust,no_run", "a();\n"), false).len(), 1);
    assert!(uncompiled(&block("rust,no_run", "a();\n"), true).is_empty());
    assert_eq!(uncompiled(&block("c", "{{#include a.h}}\n"), false).len(), 1);
    let language = |language: &str, text: &str| CodeBlock {
        language: language.into(),
        text: text.into(),
        ..CodeBlock::default()
    };
    assert_ne!(parses(&language("python", "if x\n")), Some(true));
    assert_ne!(parses(&language("bash", "if true; then\n")), Some(true));
}
