//! The memory that is left to this process: reserving more would let the kernel kill it.

use std::fs;
use std::path::Path;

/// Regions of fewer bytes are not compared with the memory that is left, to keep their creation
/// quick.
const MIN_CHECKED_BYTES: u64 = 16 << 20;

/// Returns `true` if a region of this size certainly does not fit into the machine's memory or the
/// limits of this process's cgroups.
pub(super) fn is_too_large(bytes: u64) -> bool {
    bytes >= MIN_CHECKED_BYTES && available_bytes(Path::new("/")).is_some_and(|available| bytes > available)
}

/// The files of a version of cgroups, relative to the root directory.
struct MemoryGroups {
    mount: &'static str,
    limit: &'static str,
    usage: &'static str,
    /// Keys of `memory.stat`: memory that the kernel takes back before it kills.
    reclaimable: [&'static str; 2],
}

const VERSION_1: MemoryGroups = MemoryGroups {
    mount: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    reclaimable: ["total_inactive_file", "total_active_file"],
};
const VERSION_2: MemoryGroups = MemoryGroups {
    mount: "sys/fs/cgroup",
    limit: "memory.max",
    usage: "memory.current",
    reclaimable: ["inactive_file", "active_file"],
};

/// Returns the bytes that can be reserved at most, swap included; `None` if the system does not
/// tell. Too high rather than too low.
fn available_bytes(root: &Path) -> Option<u64> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let machine = read("proc/meminfo")?;
    let swap = value_of(&machine, "SwapFree:").unwrap_or(0) * 1024;
    let mut least = value_of(&machine, "MemAvailable:")? * 1024;
    for line in read("proc/self/cgroup").unwrap_or_default().lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let groups = match controllers {
            "" => VERSION_2,
            _ if controllers.split(',').any(|name| name == "memory") => VERSION_1,
            _ => continue,
        };
        // A limit of any ancestor counts. In a container the mount may begin at the own group.
        for folder in Path::new(path.trim_start_matches('/')).ancestors() {
            least = least.min(groups.available(&root.join(groups.mount).join(folder)).unwrap_or(u64::MAX));
        }
    }
    Some(least.saturating_add(swap))
}

impl MemoryGroups {
    /// Returns the bytes left below the group's limit; `None` without one.
    fn available(&self, folder: &Path) -> Option<u64> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let limit: u64 = read(self.limit)?.trim().parse().ok()?;
        let usage: u64 = read(self.usage)?.trim().parse().ok()?;
        let stat = read("memory.stat").unwrap_or_default();
        let reclaimable = self.reclaimable.iter().filter_map(|key| value_of(&stat, key)).sum();
        Some(limit.saturating_sub(usage.saturating_sub(reclaimable)))
    }
}

/// Returns the number in the line that begins with the word `key`.
fn value_of(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        if words.next() == Some(key) { words.next()?.parse().ok() } else { None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Region, RegionError};
    use std::env;
    use std::process::Command;

    const MIB: u64 = 1 << 20;

    /// A root directory with a machine that has 100 MiB available, and files.
    fn root(swap_kib: u64, files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let machine =
            format!("MemTotal: 999999 kB\nMemAvailable:  {} kB\nSwapFree: {swap_kib} kB\n", 100 * 1024);
        for (path, text) in [("proc/meminfo", machine.as_str())].iter().chain(files) {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn available_is_least_of_machine_and_cgroups() {
        let available = |root: tempfile::TempDir| available_bytes(root.path());
        assert_eq!(available_bytes(tempfile::tempdir().unwrap().path()), None);
        assert_eq!(available(root(0, &[])), Some(100 * MIB));
        assert_eq!(available(root(1024, &[])), Some(101 * MIB));
        let below = |path, limit| {
            [
                ("proc/self/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/b/memory.current", "1\n"),
                (path, limit),
                ("sys/fs/cgroup/a/memory.current", "31457280\n"),
                ("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 10485760\n"),
            ]
        };
        // 50 MiB, of which 20 are in use and not reclaimable.
        let limited = below("sys/fs/cgroup/a/memory.max", "52428800\n");
        assert_eq!(available(root(0, &limited)), Some(30 * MIB), "an ancestor's limit counts");
        let unlimited = below("sys/fs/cgroup/a/memory.max", "max\n");
        assert_eq!(available(root(0, &unlimited)), Some(100 * MIB));
        let version_1 = [
            ("proc/self/cgroup", "9:cpu:/x\n4:cpuset,memory:/x\n0::/\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "41943040\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "20971520\n"),
        ];
        assert_eq!(available(root(0, &version_1)), Some(20 * MIB));
    }

    #[test]
    fn only_large_region_beyond_memory_is_too_large() {
        assert!(is_too_large(1 << 50));
        assert!(!is_too_large(MIN_CHECKED_BYTES - 1));
    }

    #[test]
    fn sealed_region_larger_than_memory_is_refused() {
        // With a limit on the length of files: if it were reserved, it would not take all memory.
        let name = "memory::available::tests::create_region_larger_than_memory";
        let run = format!("ulimit -f 100000; exec \"$0\" --exact {name} --ignored");
        let found = Command::new("sh").args(["-c", &run]).arg(env::current_exe().unwrap()).output().unwrap();
        let printed = String::from_utf8_lossy(&found.stdout);
        assert!(found.status.success() && printed.contains("1 passed"), "{:?}: {printed}", found.status);
    }

    #[test]
    #[ignore = "a process that another test starts"]
    fn create_region_larger_than_memory() {
        let refused = Region::memfd("test", 1 << 40);
        assert!(matches!(refused, Err(RegionError::NoRoom { bytes, .. }) if bytes == 8 << 40));
    }
}
