//! Reads files of `/proc` and `/sys`, each of which may be missing, empty or malformed.

use record::cpu_list;
use std::path::Path;

/// Reads a file as trimmed text; empty if it cannot be read.
pub(super) fn text(root: &Path, path: &str) -> String {
    let bytes = std::fs::read(root.join(path)).unwrap_or_default();
    String::from_utf8_lossy(&bytes).trim().to_string()
}

/// Reads a file with a list of CPUs; `None` if it lists none.
pub(super) fn list(root: &Path, path: &str) -> Option<Vec<u32>> {
    cpu_list::parse(&text(root, path)).filter(|cores| !cores.is_empty())
}

/// Returns the first value of a `name : value` line in the text of a `/proc` file.
pub(super) fn field(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_string())
        .filter(|value| !value.is_empty())
}

/// Returns a resource limit from the text of `/proc/self/limits`. Lines are `NAME SOFT HARD UNITS`;
/// a name may contain spaces. `None`: it is not listed, else unlimited.
pub(super) fn limit(text: &str, name: &str, column: usize) -> Option<Option<u64>> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().nth(column)? {
        "unlimited" => Some(None),
        number => number.parse().ok().map(Some),
    }
}
