//! Arrows point down inside crates: among the modules beside each other, at every level, none leads back.

use super::{crates, files, root};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A module's path within its crate.
type Module = Vec<String>;

/// The modules of a crate and what each names in `crate::…`, `super::…` and `self::…`. Tests do not count.
fn uses(source: &Path) -> BTreeMap<Module, BTreeSet<Module>> {
    let mut texts = BTreeMap::new();
    for path in files(source, "rs") {
        let place = path.strip_prefix(source).expect("below it").with_extension("");
        let mut module: Module = place.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if matches!(module.last().map(String::as_str), Some("mod"))
            || matches!(module.as_slice(), [only] if only == "lib" || only == "main")
        {
            module.pop();
        }
        if module.last().is_some_and(|name| name == "tests" || name == "fixtures" || name == "fake") {
            continue;
        }
        texts.insert(module, code(&fs::read_to_string(&path).expect("source can be read")));
    }
    let origins: BTreeMap<&Module, BTreeMap<String, Module>> =
        texts.iter().map(|(module, text)| (module, re_exports(module, text))).collect();
    let resolve = |module: &Module, text: &str| {
        let target = |path: Module| {
            let known =
                (0..=path.len()).rev().map(|end| path[..end].to_vec()).find(|path| texts.contains_key(path));
            let known = known.unwrap_or_default();
            // What a door hands on is followed to where it comes from.
            let origin = path.get(known.len()).and_then(|name| origins[&known].get(name));
            origin.filter(|origin| texts.contains_key(*origin)).cloned().unwrap_or(known)
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

/// The text without comments and without the module of tests at its end.
fn code(text: &str) -> String {
    let mut lines: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_for_tests =
            lines.last().is_some_and(|last| last.starts_with("#[cfg(") && last.contains("test"));
        if is_for_tests && line.ends_with("mod tests {") {
            break;
        }
        lines.push(line.split("//").next().unwrap_or(""));
    }
    lines.join("\n")
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
    let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        for next in arrows.get(module).into_iter().flatten() {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen
}

/// Cycles among modules that stand beside each other: each as its members.
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

#[test]
fn no_crate_has_a_cycle_of_modules() {
    for name in crates() {
        let found = cycles(&uses(&root().join(&name).join("src")));
        assert!(found.is_empty(), "{name}: these modules use each other in a circle: {found:?}");
    }
}

#[test]
fn a_cycle_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("folders");
        fs::write(path, text).expect("a file");
    };
    write("lib.rs", "mod a;\nmod b;\n");
    write("a/mod.rs", "mod x;\nmod y;\n");
    write("a/x.rs", "use crate::b::{self, thing};\n");
    write("a/y.rs", "use super::x;\n");
    write("b.rs", "// crate::a::y\npub fn thing() {}\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n");
    assert_eq!(cycles(&uses(folder.path())), [], "comments and tests do not count");
    write("b.rs", "pub fn thing() { super::a::y::f() }\n");
    assert_eq!(cycles(&uses(folder.path())).len(), 1, "a → b → a");
    write("b.rs", "");
    write("a/mod.rs", "mod x;\nmod y;\npub use y::{f, g};\n");
    write("a/x.rs", "use super::f;\n");
    assert_eq!(cycles(&uses(folder.path())).len(), 1, "x → y through the door, y → x");
    write("a/x.rs", "use super::y::f;\n");
    assert_eq!(cycles(&uses(folder.path())).len(), 1, "x → y → x, one level down");
}
