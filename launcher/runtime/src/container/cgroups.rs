//! Cgroups of strategies: limits for the number of processes, memory, CPU time and cores of all
//! processes of a strategy together. Those in a container have one with defaults, others one for
//! each limit that a user sets.
//!
//! Each controller is used where it is mounted: in cgroup v2 next to the launcher's own group, or
//! below it in a cgroup v1 hierarchy. So limits on the launcher's surroundings also apply to the
//! strategies. A group's name identifies its run; no other state is stored, so that any later
//! process can remove it by name.
//!
//! The launcher locks the directories of its groups. A launcher in another PID namespace with its
//! own `/dev/shm` sees no other sign of the run, and must not take the groups for a dead one's.

use anyhow::{Context, Result};
use catalog::run_id::RunId;
use nix::unistd::{AccessFlags, access, geteuid};
use planner::host::cgroups::{self, CgroupHierarchy};
use protocol::plan::{LimitKeeper, Plan, ProcessPlan, ResourceLimit, StrategyResources};
use record::cpu_list;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use system::container::{MEMORY_BYTES, OWN_PROCESSES, PROCESSES};

/// CPU time limit of a container, in CPUs: one for the strategy, one for its language runtime.
pub const CPUS: u64 = 2;

/// A limit of a group: the controller, and the file and the value to write, for cgroup v2 and v1.
type GroupLimit = (&'static str, [(&'static str, String); 2]);

/// Period of a limit of CPU time, in microseconds.
const PERIOD_US: u64 = 100_000;

/// Returns the limits of a container's cgroup; the default ones are for each of its strategies.
/// `cores`: those to which its threads are pinned.
fn limits(cores: Option<&str>, resources: &StrategyResources, strategies: usize) -> Vec<GroupLimit> {
    let of = |limit: Option<ResourceLimit>, default: u64| {
        Some(limit.map_or(default.saturating_mul(strategies as u64), |limit| limit.max))
    };
    let (memory, cpu) = (of(resources.memory, MEMORY_BYTES), of(resources.cpu, CPUS * 1000));
    let mut limits = group_limits(Some(max_processes(resources)), memory, cpu);
    let cpuset =
        |cores: &str| (CPUSET, [("cpuset.cpus", cores.to_owned()), ("cpuset.cpus", cores.to_owned())]);
    limits.extend(cores.map(cpuset));
    limits
}

/// Returns the maximum number of processes and threads in a strategy's container, including the
/// container's own processes.
pub fn max_processes(resources: &StrategyResources) -> u64 {
    resources.processes.map_or(PROCESSES, |limit| limit.max.saturating_add(OWN_PROCESSES))
}

/// Returns the limits of the group of a strategy outside of containers: those that a user has set.
fn set_limits(resources: &StrategyResources) -> Vec<GroupLimit> {
    let in_group = |limit: Option<ResourceLimit>| {
        limit.filter(|limit| limit.keeper != LimitKeeper::Rlimit).map(|limit| limit.max)
    };
    group_limits(in_group(resources.processes), in_group(resources.memory), in_group(resources.cpu))
}

/// Returns limits of processes, of memory in bytes, and of CPU time in thousandths of a CPU.
fn group_limits(processes: Option<u64>, memory: Option<u64>, cpu: Option<u64>) -> Vec<GroupLimit> {
    let pids = |max: u64| (PIDS, [("pids.max", max.to_string()), ("pids.max", max.to_string())]);
    let memory_max =
        |max: u64| (MEMORY, [("memory.max", max.to_string()), ("memory.limit_in_bytes", max.to_string())]);
    let cpu_max = |max: u64| {
        let quota = (max * PERIOD_US / 1000).max(1000);
        (CPU, [("cpu.max", format!("{quota} {PERIOD_US}")), ("cpu.cfs_quota_us", quota.to_string())])
    };
    let [processes, memory, cpu] = [processes.map(pids), memory.map(memory_max), cpu.map(cpu_max)];
    [processes, memory, cpu].into_iter().flatten().collect()
}

/// Name of the cgroup controller that limits the number of processes.
pub const PIDS: &str = "pids";
/// Name of the cgroup controller that limits memory.
pub const MEMORY: &str = "memory";
/// Name of the cgroup controller that limits CPU time.
pub const CPU: &str = "cpu";

/// The controller without which a strategy may move to the engine's core.
const CPUSET: &str = "cpuset";
/// What a group of cgroup v1 needs besides its cores, as its parent has it.
const CPUSET_MEMORY: &str = "cpuset.mems";

/// Returns the cores to which the threads of a process are pinned; `None` if one is not.
fn cores(plan: &Plan, process: &ProcessPlan) -> Option<String> {
    let core = |thread: &u32| plan.threads.get(*thread as usize)?.core;
    let mut cores: Vec<u32> = process.threads.iter().map(core).collect::<Option<_>>()?;
    cores.sort_unstable();
    Some(cpu_list::format(&cores))
}

/// Returns the hierarchy in which a group with that controller can be created.
fn parent(root: &Path, controller: &str) -> Option<CgroupHierarchy> {
    let hierarchies = cgroups::hierarchies(root);
    let is_usable = |hierarchy: &&CgroupHierarchy| access(&hierarchy.parent, AccessFlags::W_OK).is_ok();
    let mut usable = hierarchies.iter().filter(is_usable);
    usable.find(|hierarchy| hierarchy.controllers.iter().any(|other| other == controller)).cloned()
}

/// Returns the cgroup version that can limit a resource by this controller; `None` if none can.
pub fn keeper(root: &Path, controller: &str) -> Option<LimitKeeper> {
    let hierarchy = parent(root, controller)?;
    Some(if hierarchy.is_v2 { LimitKeeper::CgroupV2 } else { LimitKeeper::CgroupV1 })
}

/// Returns the cgroup controllers that containers need and this machine does not offer.
pub fn missing_controllers(root: &Path) -> Vec<&'static str> {
    let all = limits(Some(""), &StrategyResources::NONE, 1).into_iter().map(|(controller, _)| controller);
    all.filter(|controller| parent(root, controller).is_none()).collect()
}

/// Returns why containers are refused if this user is root and the cgroup controller `pids` is
/// missing; `None` otherwise. Root's processes are only counted by cgroups.
pub fn obstacle(root: &Path) -> Option<String> {
    (geteuid().is_root() && missing_controllers(root).contains(&"pids")).then(|| {
        "containers unavailable: running as root requires a writable cgroup with the pids controller.\n\
         Start as an ordinary user, or mount the cgroup tree for writing; or use --isolation process"
            .into()
    })
}

/// Describes the resources of containers that are not limited on this machine; `None` if all are.
pub fn unlimited_text(root: &Path) -> Option<String> {
    let absent = missing_controllers(root);
    let what = |controller: &&str| match *controller {
        "pids" => "the number of processes is limited by RLIMIT_NPROC alone",
        "memory" => "memory is limited for each process and not for all of a container together",
        CPUSET => "strategies may move to other cores",
        _ => "time on the cores is not limited",
    };
    let found: Vec<&str> = absent.iter().map(what).collect();
    (!found.is_empty())
        .then(|| format!("there is no writable cgroup for {}: {}", absent.join(", "), found.join("; ")))
}

fn name(run: &str, process: &str) -> String {
    format!("{}{run}.{process}", Plan::PREFIX)
}

/// Maximum time to lock a new group while others look whether it is a dead run's.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Creates a group and locks its directory until the returned file is closed.
fn create_locked(group: &Path) -> io::Result<File> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        let folder = match fs::create_dir_all(group).and_then(|()| File::open(group)) {
            Err(error) if error.kind() == ErrorKind::NotFound && Instant::now() < deadline => continue,
            folder => folder?,
        };
        let is_locked = match folder.try_lock_shared() {
            Err(TryLockError::WouldBlock) => false,
            // Where the file system has no locks, nobody finds one missing.
            Ok(()) | Err(TryLockError::Error(_)) => true,
        };
        // It may have been removed before it was locked.
        let inode = folder.metadata()?.ino();
        if is_locked && fs::metadata(group).is_ok_and(|found| found.ino() == inode) {
            return Ok(folder);
        }
        if Instant::now() > deadline {
            return Err(io::Error::other("another process removes or locks it again and again"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Locks a run's cgroup so that the caller may remove it, and holds the lock until the returned
/// file is closed. `None` if another process holds the lock, as a running launcher does.
pub fn claim(group: &Path) -> io::Result<Option<File>> {
    let folder = File::open(group)?;
    match folder.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(folder)),
    }
}

/// The cgroups of a run's containers, removed on drop.
pub struct ContainerCgroups<'a> {
    root: &'a Path,
    run: String,
    /// The locked directory of each group, by its path.
    locked: BTreeMap<PathBuf, File>,
}

impl<'a> ContainerCgroups<'a> {
    /// Creates the cgroups of a plan's containers below the root of the cgroup file systems.
    pub fn begin(plan: &Plan, root: &'a Path) -> Result<Self> {
        let mut groups = Self { root, run: plan.run.clone(), locked: BTreeMap::new() };
        plan.processes.iter().try_for_each(|process| groups.create(plan, process))?;
        Ok(groups)
    }

    /// Creates the groups of a process.
    fn create(&mut self, plan: &Plan, process: &ProcessPlan) -> Result<()> {
        let resources = plan.resources_of(process);
        let limits = match plan.is_contained(process) {
            true => {
                // The ends of a benchmark are no strategies.
                let strategies = plan.strategies_of(process).len().max(1);
                limits(cores(plan, process).as_deref(), resources, strategies)
            }
            false => set_limits(resources),
        };
        for (controller, [v2, v1]) in limits {
            let Some(hierarchy) = parent(self.root, controller) else { continue };
            let group = hierarchy.parent.join(name(&plan.run, &process.name));
            if !self.locked.contains_key(&group) {
                let locked =
                    create_locked(&group).with_context(|| format!("cannot make {}", group.display()))?;
                self.locked.insert(group.clone(), locked);
            }
            if controller == CPUSET && !hierarchy.is_v2 {
                let memory = fs::read_to_string(hierarchy.parent.join(CPUSET_MEMORY)).unwrap_or_default();
                write(&group.join(CPUSET_MEMORY), memory.trim())?;
            }
            let (file, value) = if hierarchy.is_v2 { v2 } else { v1 };
            write(&group.join(file), &value)?;
        }
        Ok(())
    }

    /// Creates a strategy process's cgroups again if another program has removed them, since the
    /// process would be started without limits. Returns `true` if there were any.
    pub fn restore(&mut self, plan: &Plan, process: &ProcessPlan) -> Result<bool> {
        let own_name = name(&plan.run, &process.name);
        let before = self.locked.len();
        self.locked.retain(|group, _| !group.ends_with(&own_name) || group.is_dir());
        let is_missing = self.locked.len() < before;
        if is_missing {
            self.create(plan, process)?;
        }
        Ok(is_missing)
    }
}

fn write(file: &Path, value: &str) -> Result<()> {
    fs::write(file, value).with_context(|| format!("cannot write {value:?} to {}", file.display()))
}

impl Drop for ContainerCgroups<'_> {
    fn drop(&mut self) {
        remove_all(self.root, &self.run, cgroups::EMPTY_TIMEOUT);
    }
}

/// Returns the folders in which groups can be.
fn parents(root: &Path) -> BTreeSet<PathBuf> {
    cgroups::hierarchies(root).into_iter().map(|hierarchy| hierarchy.parent).collect()
}

/// Opens the `cgroup.procs` files to which a process writes `0` to join the cgroups of a strategy's
/// container.
pub fn entrances(root: &Path, run: &str, process: &str) -> Result<Vec<File>> {
    let groups = parents(root).into_iter().map(|parent| parent.join(name(run, process)));
    let open = |group: PathBuf| {
        let file = File::options().write(true).open(group.join("cgroup.procs"));
        file.with_context(|| format!("cannot enter the cgroup {}", group.display()))
    };
    groups.filter(|group| group.is_dir()).map(open).collect()
}

/// Reads a control file of a strategy's cgroup; `files` has its names in cgroup v2 and v1. Returns
/// `None` if it cannot be read.
pub fn read(root: &Path, run: &str, process: &str, controller: &str, files: [&str; 2]) -> Option<String> {
    let hierarchy = parent(root, controller)?;
    let group = hierarchy.parent.join(name(run, process));
    fs::read_to_string(group.join(if hierarchy.is_v2 { files[0] } else { files[1] })).ok()
}

/// Returns the cgroups of runs that this process finds in the file tree at `root`, each with the id
/// of its run.
pub fn list(root: &Path) -> Vec<(RunId, PathBuf)> {
    let in_folder = |parent: &PathBuf| fs::read_dir(parent).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let (run, _) = RunId::from_segment_name(&name)?;
        entry.path().is_dir().then(|| (run, entry.path()))
    };
    parents(root).iter().flat_map(in_folder).filter_map(of).collect()
}

/// Removes the cgroups of a run's containers, and waits at most `patience` for their processes to
/// exit. Returns the errors of those that stay.
pub fn remove_all(root: &Path, run: &str, patience: Duration) -> Vec<String> {
    let of_run = list(root).into_iter().filter(|(other, _)| other.to_string() == run);
    let failed = |(_, group): (RunId, PathBuf)| {
        let error = cgroups::remove(&group, patience).err()?;
        Some(format!("{}: {error}", group.display()))
    };
    of_run.filter_map(failed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::fixtures::planned;
    use planner::host::fake;

    const RUN: &str = "20261120-142421123-1-2147483632";

    fn plan() -> Plan {
        let machine = fake::plain(3).machine();
        let (_, mut plan, _) = planned("strategies=2 isolation=container", &machine).unwrap();
        plan.run = RUN.into();
        plan
    }

    fn group_files(tree: &fake::FakeHost) -> Vec<String> {
        let mut found: Vec<String> = super::list(tree.root())
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

    /// Removes the files of all groups, which the kernel ignores when a group is removed.
    fn remove_files(tree: &fake::FakeHost) {
        let groups = super::list(tree.root()).into_iter().map(|(_, group)| fs::read_dir(group).unwrap());
        groups.flatten().for_each(|file| fs::remove_file(file.unwrap().path()).unwrap());
    }

    #[test]
    fn cgroup_v2_is_sibling_of_launchers_group() {
        let tree = v2_tree();
        assert_eq!(missing_controllers(tree.root()), [""; 0]);
        let plan = plan();
        let groups = ContainerCgroups::begin(&plan, tree.root()).unwrap();
        let of = |strategy: u32| {
            let front = format!("user/bulkhead.RUN.strategy-{strategy}");
            [
                format!("{front}/cpu.max = 200000 100000"),
                format!("{front}/cpuset.cpus = {strategy}"),
                format!("{front}/memory.max = 1342177280"),
                format!("{front}/pids.max = 128"),
            ]
        };
        assert_eq!(group_files(&tree), [of(0), of(1)].concat(), "the engine has none");
        tree.put(&format!("sys/fs/cgroup/user/bulkhead.{RUN}.strategy-1/cgroup.procs"), "");
        assert_eq!(entrances(tree.root(), RUN, "strategy-1").unwrap().len(), 1);
        assert_eq!(entrances(tree.root(), RUN, "engine").unwrap().len(), 0);
        remove_files(&tree);
        drop(groups);
        assert!(super::list(tree.root()).is_empty());
    }

    #[test]
    fn cpuset_of_v1_has_the_memory_of_its_parent() {
        let tree = fake::plain(3);
        tree.put("proc/self/mounts", "none /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n");
        tree.put("proc/self/cgroup", "4:cpuset:/\n");
        tree.put("sys/fs/cgroup/cpuset/tasks", "");
        tree.put("sys/fs/cgroup/cpuset/cpuset.mems", "0-1\n");
        let groups = ContainerCgroups::begin(&plan(), tree.root()).unwrap();
        let of = |strategy: u32| {
            let front = format!("cpuset/bulkhead.RUN.strategy-{strategy}");
            [format!("{front}/cpuset.cpus = {strategy}"), format!("{front}/cpuset.mems = 0-1")]
        };
        assert_eq!(group_files(&tree), [of(0), of(1)].concat());
        remove_files(&tree);
        drop(groups);
    }

    #[test]
    fn cgroup_v1_is_child_of_launchers_group() {
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
        assert_eq!(missing_controllers(tree.root()), ["memory", "cpuset"]);
        let hint = unlimited_text(tree.root()).unwrap();
        assert!(hint.contains("not for all of a container together"), "{hint}");
        let groups = ContainerCgroups::begin(&plan(), tree.root()).unwrap();
        let front = |strategy: u32, of: &str| format!("{of}/bulkhead.RUN.strategy-{strategy}");
        assert_eq!(
            group_files(&tree),
            [
                format!("{}/cpu.cfs_quota_us = 200000", front(0, "cpu")),
                format!("{}/cpu.cfs_quota_us = 200000", front(1, "cpu")),
                format!("{}/pids.max = 128", front(0, "pids/box/7")),
                format!("{}/pids.max = 128", front(1, "pids/box/7")),
            ]
        );
        // As after both the launcher and its reaper were killed.
        std::mem::forget(groups);
        assert_eq!(remove_all(tree.root(), "20261120-142421123-1-1", Duration::ZERO), [""; 0]);
        assert_eq!(group_files(&tree).len(), 4, "another run's stay");
        remove_files(&tree);
        assert_eq!(remove_all(tree.root(), RUN, Duration::ZERO), [""; 0]);
        assert!(super::list(tree.root()).is_empty());
    }

    fn v2_tree() -> fake::FakeHost {
        let tree = fake::plain(3);
        tree.put("proc/self/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n");
        tree.put("proc/self/cgroup", "0::/user/session\n");
        tree.put("sys/fs/cgroup/user/cgroup.controllers", "cpuset cpu memory pids\n");
        tree.put("sys/fs/cgroup/user/cgroup.subtree_control", "cpuset cpu memory pids\n");
        tree
    }

    #[test]
    fn groups_are_claimed_only_without_their_launcher() {
        let tree = v2_tree();
        let groups = ContainerCgroups::begin(&plan(), tree.root()).unwrap();
        let paths: Vec<PathBuf> = super::list(tree.root()).into_iter().map(|(_, group)| group).collect();
        assert_eq!(paths.len(), 2);
        assert!(paths.iter().all(|group| claim(group).unwrap().is_none()), "locked");
        // As after the launcher was killed: the files in the folders keep these from removal.
        drop(groups);
        let claimed = claim(&paths[0]).unwrap();
        assert!(claimed.is_some() && claim(&paths[0]).unwrap().is_none(), "another removes it");
        assert!(create_locked(&paths[0]).is_err(), "for as long as this takes");
        drop(claimed);
        assert!(create_locked(&paths[0]).is_ok());
        remove_files(&tree);
    }

    #[test]
    fn removed_groups_are_created_again_with_limits() {
        let (tree, plan) = (v2_tree(), plan());
        let mut groups = ContainerCgroups::begin(&plan, tree.root()).unwrap();
        let before = group_files(&tree);
        let process = plan.processes.iter().find(|process| process.name == "strategy-1").unwrap();
        assert!(!groups.restore(&plan, process).unwrap(), "all are there");
        let (_, group) = super::list(tree.root())
            .into_iter()
            .find(|(_, group)| group.ends_with(name(RUN, "strategy-1")))
            .unwrap();
        fs::remove_dir_all(&group).unwrap();
        assert!(groups.restore(&plan, process).unwrap());
        assert_eq!(group_files(&tree), before);
        assert!(claim(&group).unwrap().is_none(), "locked again");
        remove_files(&tree);
    }

    #[test]
    fn without_control_groups_there_are_none() {
        let tree = fake::plain(3);
        assert_eq!(missing_controllers(tree.root()), ["pids", "memory", "cpu", "cpuset"]);
        drop(ContainerCgroups::begin(&plan(), tree.root()).unwrap());
        assert_eq!(entrances(tree.root(), RUN, "strategy-0").unwrap().len(), 0);
        assert_eq!(obstacle(tree.root()).is_some(), geteuid().is_root(), "root is not counted otherwise");
    }
}
