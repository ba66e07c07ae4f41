//! The language of code comments and of the book: counts of what the style forbids, which may only
//! fall.
//!
//! `language.tsv` holds the counts of today, a line for each crate and rule. A higher count fails.
//! A lower count fails as well, until `BULKHEAD_GOLDEN=1` has written the new one, so that the file
//! never allows more than there is.

use super::{crates, files, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Phrases to avoid in comments and pages: vague quantities and actors, archaisms, and people's
/// actions for programs.
const AVOIDED: [&str; 46] = [
    "so many",
    "so much",
    "so long",
    "so often",
    "so few",
    "for who",
    "by who",
    "to who",
    "of who",
    "whoever",
    "beside",
    "meanwhile",
    "anew",
    "in the end",
    "stands in",
    "stands at",
    "stands behind",
    "stands there",
    "stands before",
    "stand in",
    "stand at",
    "is no",
    "are no",
    "be no",
    "that there is not",
    "that there are not",
    "comes back",
    "come back",
    "comeback",
    "comebacks",
    "estate",
    "untold",
    "the dead one",
    "a dead one",
    "the living",
    "is told",
    "are told",
    "was told",
    "first-level cache",
    "control group",
    "control groups",
    "processor",
    "processors",
    "as there",
    "as here",
    "the same of",
];
/// Type names that say nothing outside their module.
const GENERIC: [&str; 18] = [
    "Place", "Line", "Told", "Rest", "Part", "Turn", "Desk", "Open", "Held", "Out", "Found", "Ends", "Cell",
    "Case", "Past", "Keeper", "Tally", "Sums",
];
const WIDTH: usize = 100;
const TEST_NAME_WORDS: usize = 9;

/// Lower-case words of a text, a space on each side, so that a phrase can be found as a part of it.
fn words(text: &str) -> String {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '\'';
    let text = text.to_lowercase();
    let mut found = String::from(" ");
    for word in text.split(|letter| !is_part(letter)).filter(|word| !word.is_empty()) {
        found.push_str(word);
        found.push(' ');
    }
    found
}

fn avoided(text: &str) -> usize {
    let text = words(text);
    AVOIDED.iter().map(|phrase| text.matches(&format!(" {phrase} ")).count()).sum()
}

/// The name that follows a keyword in a line of code.
fn name_after<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let rest = line.split_once(keyword)?.1;
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// Returns `true` if a function that changes its receiver has the name of a predicate's result
/// only.
fn is_unnamed_result(line: &str) -> bool {
    let named = ["try_", "is_", "has_", "can_", "should_"];
    let signature = line.trim_end_matches([' ', '{', '}', ';']);
    line.contains("(&mut self")
        && signature.ends_with("-> bool")
        && name_after(line, "fn ").is_some_and(|name| !named.iter().any(|prefix| name.starts_with(prefix)))
}

/// Adds what a source file has of each rule.
fn count_source(text: &str, counts: &mut BTreeMap<&'static str, usize>) {
    let mut add = |rule, many| *counts.entry(rule).or_default() += many;
    let mut is_test = false;
    let first = text.lines().find_map(|line| line.strip_prefix("//!")).unwrap_or("").trim();
    let vague = ["What ", "Who ", "Whose ", "Whom "].iter().any(|start| first.starts_with(start));
    add("module opens vaguely", usize::from(!first.is_empty() && (vague || first.split(' ').count() < 4)));
    for line in text.lines() {
        let code = line.trim();
        if code.starts_with("//") {
            add("comment wider than 100", usize::from(line.chars().count() > WIDTH));
            add("avoided phrase", avoided(code));
            continue;
        }
        if let Some(name) = name_after(code, "fn ") {
            let is_long = name.split('_').count() > TEST_NAME_WORDS
                || name.starts_with("what_")
                || name.starts_with("who_");
            add("test name", usize::from(is_test && is_long));
            add("fn of", usize::from(name == "of"));
            add("bool that changes", usize::from(is_unnamed_result(code)));
        }
        let defined = ["struct ", "enum ", "trait "].iter().find_map(|keyword| {
            let code = code
                .trim_start_matches("pub ")
                .trim_start_matches("pub(crate) ")
                .trim_start_matches("pub(super) ");
            code.starts_with(keyword).then(|| name_after(code, keyword)).flatten()
        });
        add("generic type", usize::from(defined.is_some_and(|name| GENERIC.contains(&name))));
        is_test = code == "#[test]" || is_test && code.starts_with("#[");
    }
}

/// The counts of a tree: of each crate, and of the book.
fn counted(root: &Path, crates: &[String]) -> BTreeMap<(String, &'static str), usize> {
    let mut found = BTreeMap::new();
    for name in crates {
        let mut counts = BTreeMap::new();
        for folder in ["src", "tests", "benches", "examples"] {
            for file in files(&root.join(name).join(folder), "rs") {
                count_source(&fs::read_to_string(file).expect("source can be read"), &mut counts);
            }
        }
        found.extend(counts.into_iter().map(|(rule, many)| ((name.clone(), rule), many)));
    }
    // The map repeats the first sentences of the code.
    let pages = files(&root.join("docs/src"), "md").into_iter().filter(|page| !page.ends_with("map.md"));
    let book = pages.map(|page| avoided(&fs::read_to_string(page).expect("a page can be read"))).sum();
    found.insert(("book".into(), "avoided phrase"), book);
    found.retain(|_, many| *many > 0);
    found
}

fn table(counts: &BTreeMap<(String, &'static str), usize>) -> String {
    counts.iter().fold(String::new(), |mut text, ((name, rule), many)| {
        let _ = writeln!(text, "{name}\t{rule}\t{many}");
        text
    })
}

#[test]
fn forbidden_wording_only_becomes_rarer() {
    let path = root().join("launcher/tests/all/structure/language.tsv");
    let now = table(&counted(&root(), &crates()));
    let before = fs::read_to_string(&path).unwrap_or_default();
    let parse = |text: &str| -> BTreeMap<String, usize> {
        let split = |line: &str| {
            line.rsplit_once('\t').map(|(rule, many)| (rule.to_owned(), many.parse().unwrap_or(0)))
        };
        text.lines().filter_map(split).collect()
    };
    let (old, new) = (parse(&before), parse(&now));
    let risen: Vec<_> = new
        .iter()
        .filter(|(rule, many)| **many > old.get(*rule).copied().unwrap_or(0))
        .map(|(rule, many)| format!("{rule}: {} → {many}", old.get(rule).copied().unwrap_or(0)))
        .collect();
    if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
        fs::write(&path, &now).expect("written");
        return;
    }
    assert!(risen.is_empty(), "the wording got worse; see the style rules in CONTRIBUTING.md: {risen:#?}");
    assert_eq!(before, now, "the wording got better: write the new counts with BULKHEAD_GOLDEN=1");
}

#[test]
fn each_rule_of_wording_finds_its_example() {
    let mut counts = BTreeMap::new();
    let wide = format!("// {}", "wide ".repeat(30));
    let text = format!(
        "//! What it is.\n{wide}\n/// Whoever stands in the ring.\nstruct Place;\nimpl Place {{\n    pub fn of(x: u8) -> Self {{}}\n    \
         fn floods(&mut self) -> bool {{}}\n}}\n#[test]\nfn what_is_tested() {{}}\n"
    );
    count_source(&text, &mut counts);
    let found: Vec<_> = counts.iter().map(|(rule, many)| (*rule, *many)).collect();
    let each = [
        "avoided phrase",
        "bool that changes",
        "comment wider than 100",
        "fn of",
        "generic type",
        "module opens vaguely",
        "test name",
    ];
    let expected: Vec<_> =
        each.iter().map(|rule| (*rule, if *rule == "avoided phrase" { 2 } else { 1 })).collect();
    assert_eq!(found, expected);
}
