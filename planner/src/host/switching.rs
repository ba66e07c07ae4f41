//! Reads from `/proc` and `/sys` what a switch to another address space does on this machine.

use super::files::{field, text};
use record::machine::Switching;
use std::fs;
use std::path::Path;
use system::speculation;

/// Longest text of a mitigation that is kept, in characters.
const MAX_TEXT: usize = 200;

/// Reads mitigations, address-space ids, huge pages, hardware threads and slice below `root`.
pub(super) fn read(root: &Path, cpuinfo: &str) -> Switching {
    let known = |path: &str| Some(text(root, path)).filter(|text| !text.is_empty());
    let flags = field(cpuinfo, "flags").unwrap_or_default();
    let weaknesses = fs::read_dir(root.join("sys/devices/system/cpu/vulnerabilities"));
    let names = weaknesses.into_iter().flatten().flatten().map(|entry| entry.file_name());
    let mitigations = names.filter_map(|name| {
        let name = name.into_string().ok()?;
        let found = known(&format!("sys/devices/system/cpu/vulnerabilities/{name}"))?;
        (found != "Not affected").then(|| (name, found.chars().take(MAX_TEXT).collect()))
    });
    Switching {
        mitigations: mitigations.collect(),
        branch_speculation: speculation::state(&text(root, "proc/self/status"))
            .map(|state| state.chars().take(MAX_TEXT).collect()),
        pcid: flags.split_whitespace().any(|flag| flag == "pcid"),
        huge_pages: huge_pages(root),
        smt: known("sys/devices/system/cpu/smt/control"),
        slice_ns: known("sys/kernel/debug/sched/base_slice_ns").and_then(|ns| ns.parse().ok()),
    }
}

/// Reads the mode of transparent huge pages.
pub(super) fn huge_pages(root: &Path) -> Option<String> {
    let modes = text(root, "sys/kernel/mm/transparent_hugepage/enabled");
    let (mode, _) = modes.split_once('[')?.1.split_once(']')?;
    Some(mode.to_owned())
}
