//! Arrows point down inside crates: among sibling modules, at every level, none leads back.

use checks::{crates, files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Module = Vec<String>;

/// The modules below a crate's root file and what each names in `crate::…`, `super::…` and
/// `self::…`. Tests count, also those in the file of what they test.
fn uses(source: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut texts: BTreeMap<Module, String> = BTreeMap::new();
    for path in files(source, "rs") {
        let place = path.strip_prefix(source).expect("below it").with_extension("");
        let mut module: Module = place.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if matches!(module.last().map(String::as_str), Some("mod"))
            || matches!(module.as_slice(), [only] if only == "lib" || only == "main")
        {
            module.pop();
        }
        for (module, text) in modules(module, &fs::read_to_string(&path).expect("source can be read")) {
            texts.entry(module).or_default().push_str(&text);
        }
    }
    let origins: BTreeMap<&Module, BTreeMap<String, Module>> =
        texts.iter().map(|(module, text)| (module, re_exports(module, text))).collect();
    let resolve = |module: &Module, text: &str| {
        let target = |path: Module| {
            let known =
                (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|path| texts.contains_key(path));
            let known = known.unwrap_or_default();
            // What a door hands on is followed to where it comes from.
            let origin = path
                .get(known.len())
                .and_then(|name| origins.get(&known)?.get(name))
                .filter(|origin| texts.contains_key(*origin));
            origin.cloned().unwrap_or(known)
        };
        paths(text, module).into_iter().map(target).filter(|path| path != module).collect()
    };
    texts.iter().map(|(module, text)| (module.clone(), resolve(module, text))).collect()
}

/// The names that a module hands on from its children, each with the child.
fn re_exports(module: &Module, text: &str) -> BTreeMap<String, Module> {
    let mut found = BTreeMap::new();
    for item in text.split("pub").skip(1).filter_map(|rest| rest.split(';').next()) {
        let Some((_, item)) =
            item.split_once("use ").filter(|(before, _)| before.trim().is_empty() || before.starts_with('('))
        else {
            continue;
        };
        let Some((child, names)) = item.trim().split_once("::") else { continue };
        for name in names.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty()) {
            found.insert(name.to_owned(), module.iter().cloned().chain([child.to_owned()]).collect());
        }
    }
    found
}

/// The code of a file without comments: its module's own, and that of each module in it.
fn modules(module: Module, text: &str) -> Vec<(Module, String)> {
    let (mut own, mut found) = (String::new(), Vec::new());
    let mut inner: Option<(Module, String)> = None;
    for line in text.lines().map(|line| line.split("//").next().unwrap_or("")) {
        match (&mut inner, opened(line)) {
            (Some(_), _) if line == "}" => found.extend(inner.take()),
            (None, Some(name)) => {
                inner = Some((module.iter().cloned().chain([name.to_owned()]).collect(), String::new()));
            }
            (Some((_, text)), _) => *text += &format!("{line}\n"),
            (None, None) => own += &format!("{line}\n"),
        }
    }
    found.extend([(module, own)]);
    found
}

/// The name of the module that begins in a line.
fn opened(line: &str) -> Option<&str> {
    let head = line.strip_suffix(" {")?;
    let is_public = |before: &str| before.is_empty() || before.starts_with("pub");
    head.split_once("mod ")
        .filter(|(before, name)| is_public(before) && !name.contains(' '))
        .map(|(_, name)| name)
}

/// Every path in the text that begins inside the crate, as absolute paths; of a group each member.
fn paths(text: &str, module: &Module) -> Vec<Module> {
    let mut found = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == ':' || c == '$';
    for (at, first) in ["crate::", "super::", "self::"].iter().flat_map(|first| text.match_indices(first)) {
        if text[..at].chars().next_back().is_some_and(is_word) {
            continue;
        }
        let rest = &text[at..];
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        let head = rest[..end].trim_end_matches(':');
        let members = match rest[end..].strip_prefix('{') {
            Some(group) if rest[..end].ends_with("::") => {
                group[..group.find('}').unwrap_or(0)].split(',').map(str::trim).collect()
            }
            _ => vec![""],
        };
        for member in members {
            let mut path = match first {
                "crate::" => Vec::new(),
                "super::" => module.clone(),
                _ => module.clone(),
            };
            for part in head.split("::").chain(member.split("::")).filter(|part| !part.is_empty()) {
                match part {
                    "crate" => path.clear(),
                    "self" => {}
                    "super" => drop(path.pop()),
                    name => path.push(name.trim_start_matches('{').to_owned()),
                }
            }
            found.push(path);
        }
    }
    found
}

/// Every module that the arrows lead to from `start`; `start` itself only if one leads back.
fn reached<'a>(
    arrows: &BTreeMap<&'a [String], BTreeSet<&'a [String]>>,
    start: &'a [String],
) -> BTreeSet<&'a [String]> {
    let (mut visited, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        for next in arrows.get(module).into_iter().flatten() {
            if visited.insert(*next) {
                open.push(*next);
            }
        }
    }
    visited
}

/// Cycles among sibling modules: each as its members.
fn cycles(uses: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<Module>> {
    let mut found = BTreeSet::new();
    let levels: BTreeSet<&[String]> =
        uses.keys().filter(|module| !module.is_empty()).map(|module| &module[..module.len() - 1]).collect();
    for level in levels {
        let depth = level.len() + 1;
        let mut arrows: BTreeMap<&[String], BTreeSet<&[String]>> = BTreeMap::new();
        for (from, to) in uses.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
            let inside = |module: &Module| module.len() >= depth && module.starts_with(level);
            if inside(from) && inside(to) && from[..depth] != to[..depth] {
                arrows.entry(&from[..depth]).or_default().insert(&to[..depth]);
            }
        }
        for module in arrows.keys() {
            let ahead = reached(&arrows, module);
            if ahead.contains(module) {
                found.insert(
                    ahead
                        .into_iter()
                        .filter(|other| reached(&arrows, other).contains(module))
                        .map(<[String]>::to_vec)
                        .collect(),
                );
            }
        }
    }
    found.into_iter().collect()
}

/// The folders below this one with the root file of a program, a library, a bench or tests.
fn roots(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if ["lib.rs", "main.rs"].iter().any(|name| folder.join(name).exists()) {
            found.push(folder.clone());
        }
        let inner = fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        folders.extend(
            inner.filter(|path| path.is_dir() && name(path) != "target" && !name(path).starts_with('.')),
        );
    }
    found
}

#[test]
fn no_crate_has_a_cycle_of_modules() {
    let mut checked = 0;
    let books = root().join("proofs/referees/books");
    for folder in crates().iter().map(|name| root().join(name)).chain([books]) {
        for root in roots(&folder) {
            let found = cycles(&uses(&root));
            assert!(
                found.is_empty(),
                "{}: these modules use each other in a circle: {found:?}",
                root.display()
            );
            checked += 1;
        }
    }
    assert!(checked > crates().len(), "sources, tests and benches: {checked}");
}

#[test]
fn a_cycle_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("folders");
        fs::write(path, text).expect("a file");
    };
    let count = || cycles(&uses(folder.path())).len();
    write("lib.rs", "mod a;\nmod b;\n");
    write("a/mod.rs", "mod x;\nmod y;\n");
    write("a/x.rs", "use crate::b::{self, thing};\n");
    write("a/y.rs", "use super::x;\n");
    write("b.rs", "// crate::a::y\npub fn thing() {}\n");
    assert_eq!(count(), 0, "comments do not count");
    write("b.rs", "pub fn thing() { super::a::y::f() }\n");
    assert_eq!(count(), 1, "a → b → a");
    write("b.rs", "pub fn thing() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
    assert_eq!(count(), 1, "a → b, the tests of b → a");
    write("b.rs", "pub fn thing() {}\n#[cfg(test)]\nmod tests;\n");
    write("b/tests.rs", "use crate::a;\n");
    assert_eq!(count(), 1, "also in a file of their own");
    write("b/tests.rs", "use super::thing;\n");
    write("a/mod.rs", "mod x;\nmod y;\npub use y::{f, g};\n");
    write("a/x.rs", "use super::f;\n");
    assert_eq!(count(), 1, "x → y through the door, y → x");
    write("a/x.rs", "use super::y::f;\n");
    assert_eq!(count(), 1, "x → y → x, one level down");
}
