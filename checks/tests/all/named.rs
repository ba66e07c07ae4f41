//! Names in texts: the files and items that the contributor guides name exist, and so do the flags
//! that messages recommend.

use checks::{crates, files, root};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Names of examples in the guides, and of files that programs write.
const EXAMPLES: [&str; 10] = [
    "from_x",
    "with_x",
    "is_",
    "has_",
    "can_",
    "should_",
    "subject_condition_result",
    "NAME.md",
    "config.yaml",
    "report.html",
];

/// Flags of other programs that messages recommend (Docker and Cargo), and hidden ones of ours.
const OTHER_FLAGS: [&str; 17] = [
    "--broken",
    "--build",
    "--cap-add",
    "--cfg",
    "--components",
    "--cpus",
    "--cpuset-cpus",
    "--doc",
    "--launcher",
    "--locked",
    "--path",
    "--pids-limit",
    "--release",
    "--security-opt",
    "--shm-size",
    "--start-timeout",
    "--ulimit",
];

/// Returns the code spans of a page, without code blocks.
fn spans(text: &str) -> Vec<String> {
    let mut is_code = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            prose.push_str(line);
            prose.push(' ');
        }
    }
    prose.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Returns the names that Rust sources define: items, fields and variants.
fn defined(sources: &[PathBuf]) -> BTreeSet<String> {
    const ITEMS: [&str; 9] =
        ["fn", "struct", "enum", "trait", "mod", "type", "const", "static", "macro_rules!"];
    let mut found = BTreeSet::new();
    let first_word = |text: &str| text.split(|char| !is_word(char)).next().unwrap_or("").to_owned();
    for path in sources {
        let text = fs::read_to_string(path).expect("a source can be read");
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let items = words.windows(2).filter(|pair| ITEMS.contains(&pair[0]));
            found.extend(items.map(|pair| first_word(pair[1])));
            // A field, a variant, or an entry of a table of named values.
            let own = words.iter().find(|word| !word.starts_with("pub")).copied().unwrap_or("");
            let name = first_word(own);
            let rest = own.strip_prefix(name.as_str()).unwrap_or("");
            if rest.starts_with([':', ',', '(']) || (rest.is_empty() && words.contains(&"=")) {
                found.insert(name);
            }
        }
    }
    found
}

/// Returns the identifiers of a span of code, without arguments; none if it is not a path of items.
fn items(span: &str) -> Vec<&str> {
    let path = span.split('(').next().unwrap_or("");
    let is_path = path.chars().all(|char| is_word(char) || ":.<>".contains(char));
    let is_code = span.contains(['_', '(', ':', '.']) || span.contains(char::is_uppercase);
    if !is_path || !is_code || span.starts_with(char::is_numeric) {
        return Vec::new();
    }
    // Of `plan.validate` the first is a variable.
    let segments = path.split("::").filter(|segment| !segment.starts_with('<'));
    segments.filter_map(|segment| segment.rsplit('.').next()).filter(|name| !name.is_empty()).collect()
}

/// Returns what a page names and does not exist below `root`: paths, file names, items.
fn missing(text: &str, root: &Path, names: &BTreeSet<String>, file_names: &BTreeSet<String>) -> Vec<String> {
    const ENDINGS: [&str; 6] = ["rs", "sh", "tsv", "md", "yaml", "html"];
    let is_missing = |span: &String| {
        let is_file =
            !span.contains(' ') && span.rsplit_once('.').is_some_and(|(_, end)| ENDINGS.contains(&end));
        if EXAMPLES.contains(&span.as_str()) {
            false
        } else if span.contains('/') && !span.contains([' ', '"']) {
            // Up to a placeholder: `experiments/NAME/`.
            !root.join(span.split("NAME").next().unwrap_or("")).exists()
        } else if is_file {
            !file_names.contains(span)
        } else {
            items(span).iter().any(|item| !names.contains(*item))
        }
    };
    spans(text).into_iter().filter(is_missing).collect()
}

#[test]
fn contributor_guides_name_what_exists() {
    let root = root();
    let mut pages = files(&root.join("docs/contributing"), "md");
    pages.push(root.join("CONTRIBUTING.md"));
    let sources: Vec<PathBuf> = crates().iter().flat_map(|name| files(&root.join(name), "rs")).collect();
    let names = defined(&sources);
    let named = sources.iter().chain(&pages).filter_map(|path| path.file_name());
    let mut file_names: BTreeSet<String> = named.map(|name| name.to_string_lossy().into_owned()).collect();
    file_names.insert("language.tsv".into());
    let mut found = Vec::new();
    for page in &pages {
        let text = fs::read_to_string(page).expect("a page can be read");
        let lost = missing(&text, &root, &names, &file_names);
        found.extend(lost.into_iter().map(|name| format!("{}: {name}", page.display())));
    }
    assert!(pages.len() > 4 && found.is_empty(), "named, and not there: {found:#?}");
}

#[test]
fn names_that_are_gone_are_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lib.rs");
    fs::write(&file, "// fn gone() {}\npub fn kept() {}\nstruct Kept {\n    pub is_kept: bool,\n}\n")
        .expect("a file");
    let names = defined(std::slice::from_ref(&file));
    let file_names = BTreeSet::from(["lib.rs".to_owned()]);
    let page = "`lib.rs` `gone.rs` `src/NAME/` `Kept` `Gone` `Kept::is_kept` `Kept::kept(x)` `a.gone()` `lib::\nb`\n\
                ```\n`Nothing`\n```\n`plain words` `--flag`\n";
    assert_eq!(
        missing(page, folder.path(), &names, &file_names),
        ["gone.rs", "src/NAME/", "Gone", "a.gone()"]
    );
    fs::create_dir(folder.path().join("src")).expect("a folder");
    assert_eq!(missing(page, folder.path(), &names, &file_names).len(), 3);
}

/// Returns the flags in a text: `--word`.
fn flags(text: &str) -> BTreeSet<String> {
    let starts = text
        .match_indices("--")
        .filter(|(at, _)| !text[..*at].ends_with(|char: char| is_word(char) || char == '-'));
    let flag = |(at, _)| -> String {
        let word = text[at + 2..]
            .chars()
            .take_while(|char| char.is_ascii_lowercase() || "-0123456789".contains(*char));
        format!("--{}", word.collect::<String>().trim_end_matches('-'))
    };
    starts.map(flag).filter(|flag| flag.as_bytes().get(2).is_some_and(u8::is_ascii_lowercase)).collect()
}

/// Returns the flags that a source names outside its tests and that no command has.
fn unknown_flags(source: &str, known: &BTreeSet<String>) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod").next().unwrap_or("");
    let is_unknown = |flag: &String| !known.contains(flag) && !OTHER_FLAGS.contains(&flag.as_str());
    flags(code).into_iter().filter(is_unknown).collect()
}

#[test]
fn flags_named_in_sources_exist() {
    let commands = fs::read_to_string(root().join("docs/src/commands.md")).expect("a page");
    let known = flags(&commands);
    let mut found = Vec::new();
    for path in crates().iter().flat_map(|name| files(&root().join(name).join("src"), "rs")) {
        if path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a source can be read");
        found.extend(
            unknown_flags(&text, &known).into_iter().map(|flag| format!("{}: {flag}", path.display())),
        );
    }
    assert!(known.len() > 50 && found.is_empty(), "no command has these flags: {found:#?}");
}

#[test]
fn flag_that_no_command_has_is_found() {
    let known = flags("- `--cores=<LIST>`: Use only these\n- `--window=<DUR>`: ---");
    assert_eq!(known.len(), 2);
    let source =
        "\"use --clock monotonic or --window 2s -- see a--b\"\n#[cfg(test)]\nmod tests { \"--nothing\" }";
    assert_eq!(unknown_flags(source, &known), ["--clock"]);
}
