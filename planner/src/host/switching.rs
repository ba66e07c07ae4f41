//! Reads what a switch to another address space does on this machine.

use super::read::{field, text};
use record::machine::Switching;
use std::fs;
use std::path::Path;

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
        pcid: flags.split_whitespace().any(|flag| flag == "pcid"),
        huge_pages: super::system::huge_pages(root),
        smt: known("sys/devices/system/cpu/smt/control"),
        slice_ns: known("sys/kernel/debug/sched/base_slice_ns").and_then(|ns| ns.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake;

    #[test]
    fn mitigations_and_ids_of_address_spaces_are_read() {
        let host = fake::two_core_vm();
        assert_eq!(host.machine().switching.mitigations.len(), 0);
        for (path, content) in [
            (
                "sys/devices/system/cpu/vulnerabilities/spectre_v2",
                "Mitigation: Retpolines; STIBP: disabled\n",
            ),
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
            ("sys/devices/system/cpu/smt/control", "on\n"),
            ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
            ("proc/cpuinfo", "processor : 0\nflags : fpu pcid tsc\nprocessor : 1\n"),
        ] {
            host.put(path, content);
        }
        let found = host.machine().switching;
        assert_eq!(found.mitigations["spectre_v2"], "Mitigation: Retpolines; STIBP: disabled");
        assert!(!found.mitigations.contains_key("meltdown") && found.pcid);
        assert_eq!((found.smt.as_deref(), found.slice_ns), (Some("on"), Some(2_800_000)));
        assert_eq!(found.huge_pages.as_deref(), Some("madvise"));
    }
}
