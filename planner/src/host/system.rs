//! System facts that affect latency besides CPUs: huge pages, swap, quotas, load, limits, mounts.

use super::files::{limit, text};
use super::{RealTime, cgroups};
use std::path::{Path, PathBuf};

/// System settings and states that affect latency, such as huge pages, swap and load. A field is
/// `None` if it is unknown, unless its comment gives another meaning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// The mode of transparent huge pages: `always`, `madvise` or `never`.
    pub huge_pages: Option<String>,
    /// Size of all swap areas together, in bytes; 0 for none.
    pub swap_bytes: u64,
    /// CPU quota of the cgroup in CPUs, for example 2.5; `None` if unknown or unlimited.
    pub cpu_quota: Option<f64>,
    /// Load average over the last minute.
    pub load: Option<f64>,
    /// Resource limits of this process.
    pub limits: Limits,
    /// The mount at `/dev/shm`; `None`: there is none.
    pub shm_mount: Option<Mount>,
    /// Settings and permissions for `SCHED_FIFO` threads.
    pub real_time: RealTime,
    /// The mount where a cgroup can have exclusive cores; `None` if nowhere.
    pub partitions: Option<PathBuf>,
    /// The reason why strategies cannot run in containers, and the remedy; `None` if they can. No
    /// file shows it: the caller has to try.
    pub no_container: Option<String>,
    /// The limits that a container would not enforce on this machine; the caller has to try them as
    /// well.
    pub unlimited: Option<String>,
    /// The tracers that the kernel's tracefs lists; `None`: tracefs is not mounted, or may not be
    /// read.
    pub tracers: Option<Vec<String>>,
}

/// The resource limits of this process at its start; `None` for no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of open files, the hard limit: the launcher raises the soft one itself.
    pub files: Option<u64>,
    /// Maximum number of processes and threads of this user, the soft limit.
    pub processes: Option<u64>,
    /// Maximum locked memory in bytes, the soft limit.
    pub locked_bytes: Option<u64>,
}

/// A mounted file system, such as that of `/dev/shm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Type of the file system, for example `tmpfs`.
    pub kind: String,
    /// Options of the mount, without sizes.
    pub flags: Vec<String>,
}

impl System {
    /// Reads the settings of this machine and process that affect latency.
    pub fn read() -> System {
        System::read_at(Path::new("/"))
    }

    /// Reads the settings that affect latency of a machine with its `proc` and `sys` below `root`.
    pub fn read_at(root: &Path) -> System {
        let swaps = text(root, "proc/swaps");
        let kilobytes = |line: &str| line.split_whitespace().nth(2).and_then(|size| size.parse::<u64>().ok());
        System {
            huge_pages: super::switching::huge_pages(root),
            swap_bytes: swaps
                .lines()
                .skip(1)
                .filter_map(kilobytes)
                .fold(0, u64::saturating_add)
                .saturating_mul(1024),
            cpu_quota: quota(&text(root, "sys/fs/cgroup/cpu.max")),
            load: text(root, "proc/loadavg").split_whitespace().next().and_then(|load| load.parse().ok()),
            limits: limits(&text(root, "proc/self/limits")),
            shm_mount: mount(&text(root, "proc/self/mounts"), "/dev/shm"),
            real_time: RealTime::read_at(root),
            partitions: cgroups::partitions(root),
            no_container: None,
            unlimited: None,
            tracers: tracers(root),
        }
    }
}

/// Parses `QUOTA PERIOD` of cgroup v2; `max` means unlimited.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period) = (quota.parse::<f64>().ok()?, period.trim().parse::<f64>().ok()?);
    (period > 0.0 && quota > 0.0).then_some(quota / period)
}

fn limits(text: &str) -> Limits {
    let of = |name, column| limit(text, name, column).flatten();
    Limits {
        files: of("Max open files", 1),
        processes: of("Max processes", 0),
        locked_bytes: of("Max locked memory", 0),
    }
}

/// Reads the tracers that tracefs lists, at its own mount point or below debugfs.
fn tracers(root: &Path) -> Option<Vec<String>> {
    let found = ["sys/kernel/tracing", "sys/kernel/debug/tracing"]
        .iter()
        .find_map(|place| std::fs::read_to_string(root.join(place).join("available_tracers")).ok())?;
    Some(found.split_whitespace().map(str::to_owned).collect())
}

/// Returns the last mount at that path: it hides earlier ones.
fn mount(text: &str, at: &str) -> Option<Mount> {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.rfind(|fields| fields.get(1) == Some(&at))?;
    let (kind, options) = (found.get(2)?, found.get(3)?);
    let flags = options.split(',').filter(|option| !option.contains('=')).map(str::to_owned).collect();
    Some(Mount { kind: (*kind).to_owned(), flags })
}

#[cfg(test)]
mod tests {
    use super::super::fake;
    use super::*;

    #[test]
    fn plain_system_has_no_limits_or_quota() {
        let system = System::read_at(fake::two_core_vm().root());
        let expected = System {
            huge_pages: Some("madvise".into()),
            load: Some(0.12),
            limits: Limits { files: Some(4096), processes: None, locked_bytes: Some(8 << 20) },
            shm_mount: Some(Mount { kind: "tmpfs".into(), flags: vec!["rw".into(), "nosuid".into()] }),
            ..System::default()
        };
        assert_eq!(system, expected);
    }

    #[test]
    fn swap_quota_and_huge_pages_are_read() {
        let tree = fake::two_core_vm();
        tree.put(
            "proc/swaps",
            "Filename Type Size Used Priority\n/swap file 1048576 0 -2\n/b file 1024 0 -3\n",
        );
        tree.put("sys/fs/cgroup/cpu.max", "150000 100000\n");
        tree.put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
        let system = System::read_at(tree.root());
        assert_eq!(system.swap_bytes, (1 << 30) + (1 << 20));
        assert_eq!((system.cpu_quota, system.huge_pages.as_deref()), (Some(1.5), Some("always")));
    }

    #[test]
    fn odd_files_stay_empty() {
        for odd in ["", "max 100000", "1 0", "x y", "[", "]["] {
            let tree = fake::two_core_vm();
            for path in [
                "proc/swaps",
                "proc/loadavg",
                "proc/self/limits",
                "proc/self/mounts",
                "sys/fs/cgroup/cpu.max",
                "sys/kernel/mm/transparent_hugepage/enabled",
                "proc/sys/kernel/sched_rt_runtime_us",
            ] {
                tree.put(path, odd);
            }
            let load = odd.split_whitespace().next().and_then(|word| word.parse().ok());
            let expected = System { load, ..System::default() };
            assert_eq!(System::read_at(tree.root()), expected, "{odd}");
        }
    }
}
