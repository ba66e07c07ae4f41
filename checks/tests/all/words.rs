//! The book's length.

use checks::{files, root};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum number of words that somebody has written for the book, as `wc -w` counts them.
const MAX_WORDS: usize = 40_000;

/// Pages that a program writes.
const GENERATED: [&str; 2] = ["commands.md", "layout.md"];

/// Returns the words of each page below a folder that no program writes.
fn words_by_page(folder: &Path) -> Vec<(String, usize)> {
    let is_written = |page: &PathBuf| !GENERATED.iter().any(|name| *page == folder.join(name));
    let pages = files(folder, "md").into_iter().filter(is_written);
    let words = |page: &Path| fs::read_to_string(page).expect("a page").split_whitespace().count();
    pages.map(|page| (page.display().to_string(), words(&page))).collect()
}

#[test]
fn book_has_at_most_40000_words() {
    let mut pages = words_by_page(&root().join("docs/src"));
    pages.sort_by_key(|(_, words)| std::cmp::Reverse(*words));
    let total: usize = pages.iter().map(|(_, words)| words).sum();
    assert!(total <= MAX_WORDS, "{total} words, at most {MAX_WORDS}; the longest pages: {:#?}", &pages[..8]);
}

#[test]
fn words_are_those_of_pages_in_folders_without_generated_ones() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    fs::create_dir(folder.path().join("adding")).expect("a folder");
    write("queue.md", "# Queue\n\n| `push` | 8 ns |\n");
    write("adding/venue.md", "two words");
    write("commands.md", "one");
    let total: usize = words_by_page(folder.path()).iter().map(|(_, words)| words).sum();
    assert_eq!(total, 10);
}
