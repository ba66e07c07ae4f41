//! Limits and users of strategies on this machine: the mechanism that enforces each limit, the
//! conditions under which a process is started, and the limits that were met.
//!
//! | limit | where a cgroup with its controller can be made | elsewhere |
//! |---|---|---|
//! | `--memory` | `memory.max`: the kernel kills | `RLIMIT_DATA`: an allocation fails |
//! | `--cpu` | `cpu.max` | refused: no resource limit bounds a rate |
//! | `--processes` | `pids.max` | `RLIMIT_NPROC`, in a container or with `--user` |
//! | `--files` | `RLIMIT_NOFILE` | the same |
//!
//! `RLIMIT_NPROC` counts all processes of a user: elsewhere it would bind the wrong ones.

use crate::container::cgroups::{self, CPU, MEMORY, PIDS};
use anyhow::{Context, Result};
use nix::sys::resource::{RLIM_INFINITY, Resource};
use nix::unistd::User;
use planner::config::UsageError;
use protocol::index::StrategyIndex;
use protocol::plan::{Isolation, LimitKeeper, Plan, ProcessPlan, Role, StrategyResources, StrategyUser};
use std::io::ErrorKind;
use std::path::Path;
use system::speculation;
use system::start::StartConditions;

/// Decides which mechanism enforces each resource limit of the plan on this machine, and looks up
/// the system users that the plan's strategies run as. `is_root`: this process may start others as
/// another user.
///
/// # Errors
/// A limit that nothing here can enforce, or a user that does not exist or may not be used.
pub fn settle(plan: &mut Plan, root: &Path, is_root: bool) -> Result<(), UsageError> {
    let levels = plan.isolation;
    let keepers = [MEMORY, CPU, PIDS].map(|controller| cgroups::keeper(root, controller));
    for (strategy, resources) in StrategyIndex::first(u16::MAX).zip(&mut plan.trading_mut().resources) {
        if let Some(user) = &mut resources.user {
            *user = find_user(&user.name, is_root)?;
        }
        settle_limits(strategy, levels.kind_of(strategy), resources, keepers)?;
    }
    Ok(())
}

fn settle_limits(
    strategy: StrategyIndex,
    level: Isolation,
    resources: &mut StrategyResources,
    [memory, cpu, pids]: [Option<LimitKeeper>; 3],
) -> Result<(), UsageError> {
    let refuse = |flag: &str, controller: &str, why: &str| {
        Err(UsageError(format!(
            "--{flag} for strategy-{strategy}: there is no writable cgroup with the controller {controller}, and {why}"
        )))
    };
    if let Some(limit) = &mut resources.memory {
        limit.keeper = memory.unwrap_or(LimitKeeper::Rlimit);
    }
    if let Some(limit) = &mut resources.cpu {
        match cpu {
            Some(keeper) => limit.keeper = keeper,
            None => {
                return refuse(
                    "cpu",
                    CPU,
                    "no other limit bounds CPU time by the second.\nLeave --cpu out, or delegate one (systemd: Delegate=yes)",
                );
            }
        }
    }
    let is_counted_alone = level == Isolation::Container || resources.user.is_some();
    if let Some(limit) = &mut resources.processes {
        match pids {
            Some(keeper) => limit.keeper = keeper,
            None if is_counted_alone => limit.keeper = LimitKeeper::Rlimit,
            None => {
                return refuse(
                    "processes",
                    PIDS,
                    "RLIMIT_NPROC counts all processes of a user.\nUse --user, --isolation container, or leave --processes out",
                );
            }
        }
    }
    Ok(())
}

/// Finds a user by name or number. Its group is that of the user database; of a number without an
/// entry, the group of the same number.
fn find_user(name: &str, is_root: bool) -> Result<StrategyUser, UsageError> {
    let refuse = |why: &str| Err(UsageError(format!("--user {name}: {why}")));
    if !is_root {
        return refuse("only root can start a process as another user.\nStart as root, or leave --user out");
    }
    let number = name.parse::<u32>().ok();
    let found = match number {
        Some(number) => User::from_uid(number.into()),
        None => User::from_name(name),
    };
    let (user, group) = match (found, number) {
        (Ok(Some(user)), _) => (user.uid.as_raw(), user.gid.as_raw()),
        (Ok(None), Some(number)) => (number, number),
        _ => return refuse("there is no such user.\nName one of /etc/passwd, or give a number"),
    };
    if user == 0 || group == 0 {
        return refuse("that is root, which may do anything.\nName another user");
    }
    Ok(StrategyUser { name: name.into(), user, group })
}

/// Returns the conditions under which a process of the plan is started: resource limits, user and
/// protection from speculative execution.
pub fn start_conditions(plan: &Plan, process: &ProcessPlan, root: &Path) -> Result<StartConditions> {
    let resources = plan.resources_of(process);
    let groups = match plan.is_contained(process) || resources.needs_cgroup() {
        true => cgroups::entrances(root, &plan.run, &process.name)?,
        false => Vec::new(),
    };
    let mut limits = Vec::new();
    let is_strategy = plan.roles_of(process).all(|role| matches!(role, Role::Strategy(_)));
    if plan.trading().core_dumps && is_strategy {
        limits.push((Resource::RLIMIT_CORE, RLIM_INFINITY));
    }
    let by_rlimit = resources.processes.filter(|limit| limit.keeper == LimitKeeper::Rlimit);
    // The shim of a container limits what it starts itself.
    if let (Some(limit), Some(_), false) = (by_rlimit, &resources.user, plan.is_contained(process)) {
        limits.push((Resource::RLIMIT_NPROC, limit.max));
    }
    if let (Some(priority), Some(_)) = (plan.priority, &resources.user) {
        // Its threads set their priority themselves, without root's capability.
        limits.push((Resource::RLIMIT_RTPRIO, priority.into()));
    }
    let user = resources.user.as_ref().map(|user| (user.user, user.group));
    Ok(StartConditions { groups, limits, user, closes_speculation: plan.closes_speculation(process) })
}

/// What to do where speculation cannot be closed.
const OPEN_SPECULATION: &str = "Leave --speculation closed and levels such as process:closed out, or start the kernel with spectre_v2_user=prctl";

/// Checks that this kernel can protect processes from speculative execution, if the plan requests
/// that.
///
/// # Errors
/// It does not, with the reason.
pub fn check_speculation(plan: &Plan) -> Result<(), UsageError> {
    match speculation::missing().filter(|_| plan.has_closed_speculation()) {
        Some(why) => Err(UsageError(format!("{why}.\n{OPEN_SPECULATION}"))),
        None => Ok(()),
    }
}

/// Checks that a started process is protected from speculative execution, if the plan requests
/// that. A process that has ended cannot be checked.
///
/// # Errors
/// The kernel reports another state.
pub fn verify_speculation(plan: &Plan, process: &ProcessPlan, pid: u32) -> Result<()> {
    if !plan.closes_speculation(process) {
        return Ok(());
    }
    match speculation::check_closed(pid) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        checked => checked.with_context(|| {
            format!(
                "closed speculation did not reach {} (pid {pid}): its run would measure something else",
                process.name
            )
        }),
    }
}

/// How often the limits of a strategy's cgroup were met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LimitCounts {
    /// Processes that the kernel has killed for memory.
    killed: u64,
    /// Processes and threads that it refused.
    refused: u64,
    /// Periods of [`CPU`] time after whose share the processes had to wait.
    throttled: u64,
}

/// Observes the cgroups of strategies, to report which resource limit has killed one.
pub struct LimitWatch<'a> {
    plan: &'a Plan,
    root: &'a Path,
    /// Kills for memory that were reported, by process.
    killed: Vec<u64>,
}

impl<'a> LimitWatch<'a> {
    /// Creates the watch of the resource limits that cgroups enforce in a plan.
    pub fn new(plan: &'a Plan, root: &'a Path) -> Self {
        Self { plan, root, killed: vec![0; plan.processes.len()] }
    }

    fn counts(&self, process: &ProcessPlan) -> LimitCounts {
        let text = |controller, files| {
            cgroups::read(self.root, &self.plan.run, &process.name, controller, files).unwrap_or_default()
        };
        LimitCounts {
            killed: count(&text(MEMORY, ["memory.events", "memory.oom_control"]), "oom_kill"),
            refused: count(&text(PIDS, ["pids.events"; 2]), "max"),
            throttled: count(&text(CPU, ["cpu.stat"; 2]), "nr_throttled"),
        }
    }

    /// Records that the process with this index in the plan has exited, and returns the resource
    /// limit, such as of memory, that has killed it; `None` if none has. `was_killed`: a signal
    /// ended it. Otherwise one of its children may have been killed: that is reported for a limit
    /// that a user has set.
    pub fn note_exit(&mut self, index: usize, was_killed: bool) -> Option<String> {
        let process = &self.plan.processes[index];
        if !self.is_watched(process) {
            return None;
        }
        let killed = self.counts(process).killed;
        let is_new = killed > std::mem::replace(&mut self.killed[index], killed);
        let is_set = self.plan.resources_of(process).memory.is_some();
        let is_met = is_new && (is_set || was_killed);
        is_met.then(|| format!("it met its limit: {}", self.described(process, "memory")))
    }

    /// Returns a warning for each resource limit that slowed a process or refused a resource,
    /// without killing.
    pub fn warnings(&self) -> Vec<String> {
        let watched = self.plan.processes.iter().filter(|process| self.is_watched(process));
        let warning = |process: &ProcessPlan| {
            let (counts, name) = (self.counts(process), &process.name);
            let refused = (counts.refused > 0).then(|| {
                let limit = self.described(process, "processes");
                format!("{name} met its limit: {limit}: {} processes or threads were refused", counts.refused)
            });
            // The default of a container is more than a strategy needs.
            let is_set = self.plan.resources_of(process).cpu.is_some();
            let throttled = (is_set && counts.throttled > 0).then(|| {
                let limit = self.described(process, "cpu");
                format!("{name} met its limit: {limit}: it waited at the end of {} periods", counts.throttled)
            });
            [refused, throttled]
        };
        watched.flat_map(warning).flatten().collect()
    }

    fn is_watched(&self, process: &ProcessPlan) -> bool {
        self.plan.is_contained(process) || self.plan.resources_of(process).needs_cgroup()
    }

    /// Returns the description of one limit, as the plan shows it.
    fn described(&self, process: &ProcessPlan, name: &str) -> String {
        let all = self.plan.resources_of(process).to_string();
        let limit = all.split(", ").find(|limit| limit.starts_with(name)).map(str::to_owned);
        limit.unwrap_or_else(|| format!("{name} of its container"))
    }
}

/// Returns a number from the text of a file of a cgroup; 0 if it is missing.
fn count(text: &str, key: &str) -> u64 {
    let value = |line: &str| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(value).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::cgroups::ContainerCgroups;
    use planner::fixtures::planned;
    use planner::host::fake;

    const RUN: &str = "20261120-142421123-1-2147483632";

    /// A machine with a cgroup v2 that can have these controllers.
    fn machine(controllers: &str) -> fake::FakeHost {
        let tree = fake::plain(3);
        tree.put("proc/self/mounts", "none /sys/fs/cgroup cgroup2 rw 0 0\n");
        tree.put("proc/self/cgroup", "0::/user/session\n");
        tree.put("sys/fs/cgroup/user/cgroup.controllers", controllers);
        tree.put("sys/fs/cgroup/user/cgroup.subtree_control", controllers);
        tree
    }

    fn plan(settings: &str) -> Plan {
        let (_, mut plan, _) = planned(settings, &fake::plain(3).machine()).unwrap();
        plan.run = RUN.into();
        plan
    }

    fn settled(settings: &str, controllers: &str) -> Result<String, UsageError> {
        let (mut plan, tree) = (plan(settings), machine(controllers));
        settle(&mut plan, tree.root(), false)?;
        Ok(plan.trading().resources_of(StrategyIndex(1)).to_string())
    }

    const LIMITED: &str = "strategies=2 memory=512MiB cpu=1.5 processes=64 files=64";

    #[test]
    fn cgroup_keeps_limits_where_there_is_one() {
        assert_eq!(
            settled(LIMITED, "cpu memory pids").unwrap(),
            "memory 512MiB (cgroup v2), cpu 1.5 (cgroup v2), files 64 (rlimit), processes 64 (cgroup v2)"
        );
        assert_eq!(settled("strategies=2 memory=512MiB", "cpu").unwrap(), "memory 512MiB (rlimit)");
        let contained = "strategies=2 processes=64 isolation=container";
        assert_eq!(settled(contained, "").unwrap(), "processes 64 (rlimit)");
    }

    #[test]
    fn process_has_group_only_for_its_limits() {
        let tree = machine("cpu memory pids");
        let folder = tree.root().join("sys/fs/cgroup/user");
        // The files of the groups that a run has, with their contents.
        let groups = |settings: &str| {
            let mut plan = plan(settings);
            settle(&mut plan, tree.root(), false).unwrap();
            let groups = ContainerCgroups::begin(&plan, tree.root()).unwrap();
            let mut found = Vec::new();
            for strategy in ["strategy-0", "strategy-1"] {
                let group = folder.join(format!("bulkhead.{RUN}.{strategy}"));
                for file in std::fs::read_dir(&group).into_iter().flatten().map(|file| file.unwrap().path()) {
                    let name = file.file_name().unwrap().display().to_string();
                    found.push(format!("{strategy} {name} = {}", std::fs::read_to_string(&file).unwrap()));
                    // The kernel ignores files when a group is removed.
                    std::fs::remove_file(file).unwrap();
                }
            }
            drop(groups);
            found.sort();
            found
        };
        assert_eq!(groups("strategies=2 files=64"), [""; 0]);
        assert_eq!(
            groups("strategies=2 cpu=strategy-1=0.5 memory=strategy-1=64MiB"),
            ["strategy-1 cpu.max = 50000 100000", "strategy-1 memory.max = 67108864"]
        );
        assert_eq!(
            groups("strategies=2 isolation=process+container cpu=0.5 processes=strategy-1=10"),
            [
                "strategy-0 cpu.max = 50000 100000",
                "strategy-1 cpu.max = 50000 100000",
                "strategy-1 memory.max = 1342177280",
                "strategy-1 pids.max = 12",
            ],
            "the container's defaults, and its own two processes"
        );
    }

    #[test]
    fn limit_that_nothing_enforces_is_refused() {
        for (settings, controllers, wanted) in [
            (
                LIMITED,
                "memory pids",
                "--cpu for strategy-0: there is no writable cgroup with the controller cpu",
            ),
            (LIMITED, "memory cpu", "RLIMIT_NPROC counts all processes of a user.\nUse --user"),
            ("strategies=2 user=strategy-1=nobody", "", "--user nobody: only root"),
        ] {
            let error = settled(settings, controllers).unwrap_err().0;
            assert!(error.contains(wanted) && error.lines().count() == 2, "{error}");
        }
    }

    /// A strategy that was started without what closes it.
    #[test]
    fn closed_speculation_that_did_not_reach_child_is_found() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (open, closed) = (plan("strategies=1"), plan("strategies=1 speculation=closed"));
        let [strategy, engine] = &closed.processes[..] else { panic!("{:?}", closed.processes) };
        let found = verify_speculation(&closed, strategy, child.id()).map_err(|error| format!("{error:#}"));
        let others = [(&open, strategy), (&closed, engine)]
            .map(|(plan, process)| verify_speculation(plan, process, child.id()).is_ok());
        child.kill().unwrap();
        child.wait().unwrap();
        let why = found.unwrap_err();
        assert!(
            why.contains("did not reach strategy-0") && why.contains("SpeculationIndirectBranch"),
            "{why}"
        );
        assert_eq!(others, [true; 2], "nothing was asked of them");
        assert!(verify_speculation(&closed, strategy, child.id()).is_ok(), "it has ended");
        let by_level = plan("strategies=3 isolation=process+process:closed+thread");
        for (plan, wanted) in [(&closed, vec!["strategy-0"]), (&by_level, vec!["strategy-1"])] {
            let is_closed = |process: &&ProcessPlan| {
                start_conditions(plan, process, planner::host::root()).unwrap().closes_speculation
            };
            let names = plan.processes.iter().filter(is_closed).map(|process| process.name.as_str());
            assert_eq!(names.collect::<Vec<_>>(), wanted);
        }
    }

    #[test]
    fn user_is_found_by_name_or_number_but_never_root() {
        let found = find_user("54321", true).unwrap();
        assert_eq!((found.user, found.group), (54_321, 54_321));
        for (name, wanted) in
            [("root", "that is root"), ("0", "that is root"), ("no-such-user-x", "no such user")]
        {
            let error = find_user(name, true).unwrap_err().0;
            assert!(error.contains(wanted), "{error}");
        }
    }

    #[test]
    fn met_limits_are_reported_by_name_and_once() {
        let tree = machine("cpu memory pids");
        let mut plan = plan(LIMITED);
        settle(&mut plan, tree.root(), false).unwrap();
        let put = |file: &str, text: &str| {
            tree.put(&format!("sys/fs/cgroup/user/bulkhead.{RUN}.strategy-1/{file}"), text);
        };
        put("memory.events", "low 0\noom 3\noom_kill 0\n");
        let strategy = plan.processes.iter().position(|process| process.name == "strategy-1").unwrap();
        let engine = plan.processes.iter().position(|process| process.name == "engine").unwrap();
        let mut watch = LimitWatch::new(&plan, tree.root());
        assert_eq!(watch.note_exit(strategy, true), None, "it ended for another reason");
        put("memory.events", "low 0\noom 3\noom_kill 1\n");
        let met = Some("it met its limit: memory 512MiB (cgroup v2)".to_owned());
        assert_eq!([(); 2].map(|()| watch.note_exit(strategy, false)), [met, None], "once for each kill");
        assert_eq!(watch.note_exit(engine, true), None);
        // A watch without memory would name the limit at the next death, too.
        assert!(watch.counts(&plan.processes[strategy]).killed > 0);
        assert_eq!(watch.warnings(), [""; 0]);
        put("pids.events", "max 7\n");
        put("cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 8\n");
        assert_eq!(
            watch.warnings(),
            [
                "strategy-1 met its limit: processes 64 (cgroup v2): 7 processes or threads were refused",
                "strategy-1 met its limit: cpu 1.5 (cgroup v2): it waited at the end of 4 periods",
            ]
        );
    }

    #[test]
    fn process_starts_under_its_conditions() {
        let tree = machine("memory");
        let mut plan = plan("strategies=2 memory=strategy-1=64MiB core_dumps=on");
        settle(&mut plan, tree.root(), false).unwrap();
        tree.put(&format!("sys/fs/cgroup/user/bulkhead.{RUN}.strategy-1/cgroup.procs"), "");
        let conditions = |name: &str| {
            let process = plan.processes.iter().find(|process| process.name == name).unwrap();
            start_conditions(&plan, process, tree.root()).unwrap()
        };
        let limited = conditions("strategy-1");
        assert_eq!((limited.groups.len(), limited.user), (1, None));
        assert_eq!(limited.limits, [(Resource::RLIMIT_CORE, RLIM_INFINITY)]);
        assert_eq!(conditions("strategy-0").groups.len(), 0);
        let engine = conditions("engine");
        assert!(engine.groups.is_empty() && engine.limits.is_empty(), "only strategies are limited");
    }
}
