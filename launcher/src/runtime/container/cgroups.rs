//! The control groups of strategies in containers: how many processes, how much memory and how much
//! time all together may have.
//!
//! Each controller is found where it is: in the second version of control groups, beside the
//! launcher's own group, or below it in a hierarchy of the first version. So what holds for the
//! launcher's surroundings holds for the strategies too. A group's name says whose it is; nothing
//! else is written down, and whoever comes later removes it by its name.

use crate::host::cgroups::Tree;
use crate::host::cgroups::{self, Hierarchy};
use crate::runtime::run_id::RunId;
use anyhow::{Context, Result};
use nix::unistd::{AccessFlags, access, geteuid};
use protocol::plan::Plan;
use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;
use system::container::{MEMORY_BYTES, PROCESSES};

/// The processors' worth of time that they may have together: one for the strategy, one for its
/// runtime.
pub const CPUS: u64 = 2;

/// A limit that a control group holds.
struct Limit {
    controller: &'static str,
    /// The file and what is written to it, by the second version and by the first.
    second: (&'static str, String),
    first: (&'static str, String),
}

fn limits() -> [Limit; 3] {
    let us = 100_000;
    [
        Limit {
            controller: "pids",
            second: ("pids.max", PROCESSES.to_string()),
            first: ("pids.max", PROCESSES.to_string()),
        },
        Limit {
            controller: "memory",
            second: ("memory.max", MEMORY_BYTES.to_string()),
            first: ("memory.limit_in_bytes", MEMORY_BYTES.to_string()),
        },
        Limit {
            controller: "cpu",
            second: ("cpu.max", format!("{} {us}", CPUS * us)),
            first: ("cpu.cfs_quota_us", (CPUS * us).to_string()),
        },
    ]
}

/// Where the group of a controller can be made.
fn parent(tree: Tree<'_>, controller: &str) -> Option<Hierarchy> {
    let hierarchies = cgroups::hierarchies(tree.root);
    let is_usable = |hierarchy: &&Hierarchy| access(&hierarchy.parent, AccessFlags::W_OK).is_ok();
    let mut usable = hierarchies.iter().filter(is_usable);
    usable.find(|hierarchy| hierarchy.hands_on(controller)).cloned()
}

/// The controllers that cannot be had here.
pub fn absent(tree: Tree<'_>) -> Vec<&'static str> {
    let all = limits().into_iter().map(|limit| limit.controller);
    all.filter(|controller| parent(tree, controller).is_none()).collect()
}

/// Why strategies cannot be limited at all: root's processes are counted by nothing but control
/// groups.
pub fn obstacle(tree: Tree<'_>) -> Option<String> {
    (geteuid().is_root() && absent(tree).contains(&"pids")).then(|| {
        "containers unavailable: running as root requires a writable cgroup with the pids controller.\n\
         Start as an ordinary user, or mount the cgroup tree for writing; or use --isolation process"
            .into()
    })
}

/// What is not limited here, in words; `None`: everything is.
pub fn unlimited(tree: Tree<'_>) -> Option<String> {
    let absent = absent(tree);
    let what = |controller: &&str| match *controller {
        "pids" => "the number of processes is limited by RLIMIT_NPROC alone",
        "memory" => "memory is limited for each process and not for all of a container together",
        _ => "time on the cores is not limited",
    };
    let found: Vec<&str> = absent.iter().map(what).collect();
    (!found.is_empty()).then(|| {
        format!("there is no writable control group for {}: {}", absent.join(", "), found.join("; "))
    })
}

/// The name of a strategy's group.
fn name(run: &str, process: &str) -> String {
    format!("{}{run}.{process}", Plan::PREFIX)
}

/// The groups of a run, until this is dropped.
pub struct Groups<'a> {
    tree: Tree<'a>,
    run: String,
}

impl<'a> Groups<'a> {
    /// Makes a group for each strategy in a container, with its limits.
    pub fn begin(plan: &Plan, tree: Tree<'a>) -> Result<Self> {
        let groups = Self { tree, run: plan.run.clone() };
        for process in plan.processes.iter().filter(|process| plan.is_contained(process)) {
            for limit in limits() {
                let Some(hierarchy) = parent(tree, limit.controller) else { continue };
                let group = hierarchy.parent.join(name(&plan.run, &process.name));
                match fs::create_dir(&group) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                        return Err(error).with_context(|| format!("cannot make {}", group.display()));
                    }
                    _ => {}
                }
                let (file, value) = if hierarchy.is_second { limit.second } else { limit.first };
                let file = group.join(file);
                fs::write(&file, &value)
                    .with_context(|| format!("cannot write {value:?} to {}", file.display()))?;
            }
        }
        Ok(groups)
    }
}

impl Drop for Groups<'_> {
    fn drop(&mut self) {
        remove_all(self.tree, &self.run, cgroups::EMPTY);
    }
}

/// The calling process, and what it starts from now on, belongs to the groups of that strategy, if
/// there are any.
pub fn enter(tree: Tree<'_>, run: &str, process: &str) -> Result<()> {
    let folders: BTreeSet<PathBuf> = cgroups::hierarchies(tree.root)
        .into_iter()
        .map(|hierarchy| hierarchy.parent.join(name(run, process)))
        .collect();
    for group in folders.iter().filter(|group| group.is_dir()) {
        cgroups::enter(group)
            .with_context(|| format!("cannot enter the control group {}", group.display()))?;
    }
    Ok(())
}

/// The groups that there are, with the runs that they are of.
pub fn found(tree: Tree<'_>) -> Vec<(RunId, PathBuf)> {
    let parents: BTreeSet<PathBuf> =
        cgroups::hierarchies(tree.root).into_iter().map(|hierarchy| hierarchy.parent).collect();
    let in_folder = |parent: &PathBuf| fs::read_dir(parent).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (run, _) = RunId::of_segment(&name)?;
        entry.path().is_dir().then(|| (run, entry.path()))
    };
    parents.iter().flat_map(in_folder).filter_map(of).collect()
}

/// Removes the groups of a run, waiting so long for each until nobody is in it; what could not be
/// removed, and why.
pub fn remove_all(tree: Tree<'_>, run: &str, patience: Duration) -> Vec<String> {
    let of_run = found(tree).into_iter().filter(|(other, _)| other.to_string() == run);
    let failed = |group: &Path| {
        cgroups::remove(group, tree.remove, patience)
            .err()
            .map(|error| format!("{}: {error}", group.display()))
    };
    of_run.filter_map(|(_, group)| failed(&group)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use crate::planner::tests::planned;
    use std::io;

    const RUN: &str = "20261120-142421123-1-2147483632";

    fn files(tree: &fake::Tree) -> Tree<'_> {
        fn remove(group: &Path) -> io::Result<()> {
            fs::remove_dir_all(group)
        }
        Tree { root: tree.root(), remove }
    }

    fn plan() -> Plan {
        let machine = fake::plain(3).machine();
        let (_, mut plan, _) = planned("strategies=2 isolation=container", &machine).unwrap();
        plan.run = RUN.into();
        plan
    }

    /// Every group that is there, with its files.
    fn seen(tree: &fake::Tree) -> Vec<String> {
        let mut found: Vec<String> = super::found(files(tree))
            .into_iter()
            .flat_map(|(_, group)| {
                let entries = fs::read_dir(&group).unwrap().flatten();
                entries.map(|file| file.path()).collect::<Vec<_>>()
            })
            .map(|file| {
                let place =
                    file.strip_prefix(tree.root().join("sys/fs/cgroup")).unwrap().display().to_string();
                let place = place.replace(RUN, "RUN");
                format!("{place} = {}", fs::read_to_string(&file).unwrap())
            })
            .collect();
        found.sort();
        found
    }

    #[test]
    fn a_group_of_the_second_version_stands_beside_the_launcher_s() {
        let tree = fake::plain(3);
        tree.put("proc/self/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n");
        tree.put("proc/self/cgroup", "0::/user/session\n");
        tree.put("sys/fs/cgroup/user/cgroup.controllers", "cpuset cpu memory pids\n");
        tree.put("sys/fs/cgroup/user/cgroup.subtree_control", "cpu memory pids\n");
        assert_eq!(absent(files(&tree)), [""; 0]);
        let plan = plan();
        let groups = Groups::begin(&plan, files(&tree)).unwrap();
        let of = |strategy: u32| {
            let front = format!("user/bulkhead.RUN.strategy-{strategy}");
            [
                format!("{front}/cpu.max = 200000 100000"),
                format!("{front}/memory.max = 536870912"),
                format!("{front}/pids.max = 128"),
            ]
        };
        assert_eq!(seen(&tree), [of(0), of(1)].concat(), "the engine has none");
        enter(files(&tree), RUN, "strategy-1").unwrap();
        assert!(seen(&tree).contains(&"user/bulkhead.RUN.strategy-1/cgroup.procs = 0".to_owned()));
        drop(groups);
        assert_eq!(seen(&tree), [""; 0]);
    }

    #[test]
    fn groups_of_the_first_version_stand_below_the_launcher_s_and_what_is_missing_is_said() {
        let tree = fake::plain(3);
        tree.put(
            "proc/self/mounts",
            "none /sys/fs/cgroup/pids cgroup rw,relatime,pids 0 0\nnone /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n\
             none /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
        );
        tree.put("proc/self/cgroup", "3:cpu,cpuacct:/\n2:pids:/box/7\n0::/\n");
        tree.put("sys/fs/cgroup/pids/box/7/tasks", "");
        tree.put("sys/fs/cgroup/cpu/tasks", "");
        tree.put("sys/fs/cgroup/unified/cgroup.subtree_control", "");
        tree.put("sys/fs/cgroup/unified/cgroup.controllers", "");
        assert_eq!(absent(files(&tree)), ["memory"]);
        let words = unlimited(files(&tree)).unwrap();
        assert!(words.contains("not for all of a container together"), "{words}");
        let groups = Groups::begin(&plan(), files(&tree)).unwrap();
        let front = |strategy: u32, of: &str| format!("{of}/bulkhead.RUN.strategy-{strategy}");
        assert_eq!(
            seen(&tree),
            [
                format!("{}/cpu.cfs_quota_us = 200000", front(0, "cpu")),
                format!("{}/cpu.cfs_quota_us = 200000", front(1, "cpu")),
                format!("{}/pids.max = 128", front(0, "pids/box/7")),
                format!("{}/pids.max = 128", front(1, "pids/box/7")),
            ]
        );
        // As after a launcher that was killed, and its warden.
        std::mem::forget(groups);
        assert_eq!(remove_all(files(&tree), "20261120-142421123-1-1", Duration::ZERO), [""; 0]);
        assert_eq!(seen(&tree).len(), 4, "another run's stay");
        assert_eq!(remove_all(files(&tree), RUN, Duration::ZERO), [""; 0]);
        assert_eq!(seen(&tree), [""; 0]);
    }

    #[test]
    fn without_control_groups_there_are_none() {
        let tree = fake::plain(3);
        assert_eq!(absent(files(&tree)), ["pids", "memory", "cpu"]);
        drop(Groups::begin(&plan(), files(&tree)).unwrap());
        assert!(enter(files(&tree), RUN, "strategy-0").is_ok());
        assert_eq!(obstacle(files(&tree)).is_some(), geteuid().is_root(), "root is not counted otherwise");
    }
}
