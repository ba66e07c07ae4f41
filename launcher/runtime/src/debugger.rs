//! Finds the debugger that has stopped a strategy's process, and decides whether that excuses the
//! strategy's silence.
//!
//! The kernel reports that a thread is stopped by a tracer (state `t`) and which one (`TracerPid`,
//! in `/proc/PID/task/TID/status`). A strategy can have itself traced, so that it never counts as
//! hung. Therefore not every tracer is trusted:
//!
//! | the tracer | trusted |
//! |---|---|
//! | descends from the launcher: a child of the strategy, or any other process of the run | no |
//! | belongs neither to root nor to the launcher's user | no |
//! | is not visible: in an outer PID namespace, where no process of the run can start one | yes |
//! | any other | yes |
//!
//! Whatever a strategy starts descends from the launcher, also if its parents have ended: the
//! launcher is the subreaper of the run's orphans. Where it could not become one, no visible tracer
//! is trusted. What this cannot exclude: a strategy at `process` that has a service of its own user
//! start the tracer for it.

use nix::sys::prctl;
use planner::host;
use std::fs;
use std::path::Path;
use supervision::stuck::Debugger;

/// Maximum number of a tracer's ancestors that are looked at.
const MAX_ANCESTORS: usize = 256;

/// The part of a `status` file in `/proc` that names a thread's tracer and its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TaskStatus {
    name: String,
    state: char,
    /// Process id.
    pid: u32,
    parent: u32,
    /// Real user id.
    user: u32,
    /// Thread id of the tracer; 0 if there is none, or it is not visible.
    tracer: u32,
}

impl TaskStatus {
    fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let first = |name: &str| field(name)?.split_whitespace().next();
        let number = |name: &str| first(name)?.parse().ok();
        let printable = |c: char| if c.is_ascii_graphic() { c } else { '?' };
        Some(Self {
            name: field("Name")?.trim().chars().map(printable).collect(),
            state: first("State")?.chars().next()?,
            pid: number("Tgid")?,
            parent: number("PPid")?,
            user: number("Uid")?,
            tracer: number("TracerPid")?,
        })
    }

    /// Reads the status of a thread or process; `None` if it is gone.
    fn read(path: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(path.join("status")).ok()?)
    }
}

/// Reads the status of a process or thread by its id; `None` if it is gone.
fn read_process(pid: u32) -> Option<TaskStatus> {
    TaskStatus::read(&host::root().join(format!("proc/{pid}")))
}

/// The launcher of a run, from which all processes of the run descend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunOwner {
    pid: u32,
    /// Real user id.
    user: u32,
    /// Orphans of the run become its children.
    adopts_orphans: bool,
}

impl RunOwner {
    /// Returns this process as the launcher of a run.
    pub fn this_process() -> Self {
        Self {
            pid: std::process::id(),
            user: nix::unistd::getuid().as_raw(),
            adopts_orphans: prctl::get_child_subreaper().unwrap_or(false),
        }
    }

    /// Returns the launcher of a run, given the launcher's process id; `None` if it has ended. The
    /// launcher is assumed to adopt orphans.
    pub fn of_run(launcher: u32) -> Option<Self> {
        let status = TaskStatus::read(&host::root().join(format!("proc/{launcher}")))?;
        Some(Self { pid: launcher, user: status.user, adopts_orphans: true })
    }

    /// Returns the debugger that has stopped a thread of process `pid`, if trusted: outside the
    /// run, and owned by root or the launcher's user. One that is not visible is trusted as well.
    /// `None` if there is none.
    pub fn debugger_of(&self, pid: u32) -> Option<Debugger> {
        let root = host::root();
        let mut tasks = fs::read_dir(root.join(format!("proc/{pid}/task"))).ok()?.flatten();
        tasks.find_map(|task| self.debugger_of_task(|| TaskStatus::read(&task.path()), read_process))
    }

    /// Returns the debugger that has stopped a thread, if it is trusted. `read` reads the thread's
    /// status: the kernel looks for state and tracer one after the other, so that a tracer that
    /// attaches in between is missing, as a trusted one in an outer PID namespace is.
    fn debugger_of_task(
        &self,
        mut read: impl FnMut() -> Option<TaskStatus>,
        status_of: impl Fn(u32) -> Option<TaskStatus>,
    ) -> Option<Debugger> {
        let first = read()?;
        let debugger = self.trusted_debugger(&first, status_of)?;
        let again = read()?;
        ((again.state, again.tracer) == (first.state, first.tracer)).then_some(debugger)
    }

    /// Returns the processes that trace threads of process `pid`; the flag is `true` if the tracer
    /// is known to descend from the launcher. Such a tracer is a strategy, or a process that a
    /// strategy has started.
    pub fn tracers_of(&self, pid: u32) -> Vec<(Debugger, bool)> {
        let tasks = fs::read_dir(host::root().join(format!("proc/{pid}/task"))).into_iter().flatten();
        let tracers = tasks.flatten().filter_map(|task| {
            let tracer = read_process(TaskStatus::read(&task.path())?.tracer)?;
            let is_in_run = tracer.pid != self.pid && self.is_foreign(&tracer, read_process) == Some(false);
            Some((Debugger { pid: Some(tracer.pid), name: tracer.name }, is_in_run))
        });
        let mut found: Vec<(Debugger, bool)> = Vec::new();
        for tracer in tracers {
            if !found.contains(&tracer) {
                found.push(tracer);
            }
        }
        found
    }

    /// Returns the debugger that has stopped a thread, if it is trusted. `status_of`: the status of
    /// another process.
    fn trusted_debugger(
        &self,
        task: &TaskStatus,
        status_of: impl Fn(u32) -> Option<TaskStatus>,
    ) -> Option<Debugger> {
        if task.state != 't' {
            return None;
        }
        if task.tracer == 0 {
            return Some(Debugger { pid: None, name: String::new() });
        }
        let tracer = status_of(task.tracer)?;
        let is_trusted = [0, self.user].contains(&tracer.user)
            && self.adopts_orphans
            && self.is_foreign(&tracer, status_of)?;
        is_trusted.then_some(Debugger { pid: Some(tracer.pid), name: tracer.name })
    }

    /// Returns `true` if a process does not descend from the launcher; `None` if that cannot be
    /// seen.
    fn is_foreign(
        &self,
        process: &TaskStatus,
        status_of: impl Fn(u32) -> Option<TaskStatus>,
    ) -> Option<bool> {
        let (mut pid, mut parent) = (process.pid, process.parent);
        for _ in 0..MAX_ANCESTORS {
            if pid == self.pid || parent == self.pid {
                return Some(false);
            }
            if parent == 0 {
                return Some(true);
            }
            (pid, parent) = (parent, status_of(parent)?.parent);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAUNCHER: RunOwner = RunOwner { pid: 100, user: 1000, adopts_orphans: true };

    fn task(pid: u32, parent: u32, user: u32) -> TaskStatus {
        TaskStatus { name: format!("p{pid}"), state: 'S', pid, parent, user, tracer: 0 }
    }

    /// A strategy (101) with a child (102) and an orphan (103), next to a debugger of the user
    /// (50), of root (51) and of a third user (52), and one whose parents are hidden (53).
    fn processes(pid: u32) -> Option<TaskStatus> {
        [
            task(1, 0, 0),
            task(10, 1, 1000),
            task(50, 10, 1000),
            task(51, 10, 0),
            task(52, 10, 1001),
            task(53, 9, 1000),
            task(100, 10, 1000),
            task(101, 100, 1000),
            task(102, 101, 1000),
            task(103, 100, 1000),
            task(104, 102, 0),
        ]
        .into_iter()
        .find(|task| task.pid == pid)
    }

    fn found(owner: RunOwner, tracer: u32) -> Option<Option<u32>> {
        let stopped = TaskStatus { state: 't', tracer, ..task(101, 100, 1000) };
        owner.trusted_debugger(&stopped, processes).map(|debugger| debugger.pid)
    }

    #[test]
    fn only_foreign_debuggers_of_owner_or_root_are_trusted() {
        assert_eq!([50, 51].map(|tracer| found(LAUNCHER, tracer)), [50, 51].map(|pid| Some(Some(pid))));
        assert_eq!(found(LAUNCHER, 0), Some(None), "in an outer PID namespace");
        for (tracer, description) in [
            (52, "of another user"),
            (53, "its parents cannot be seen"),
            (99, "it is gone"),
            (100, "the launcher"),
            (101, "the strategy itself"),
            (102, "its child"),
            (103, "its orphan, adopted by the launcher"),
            (104, "its grandchild, of root"),
        ] {
            assert_eq!(found(LAUNCHER, tracer), None, "{description}");
        }
        let no_reaper = RunOwner { adopts_orphans: false, ..LAUNCHER };
        assert_eq!(found(no_reaper, 50), None, "it may be an orphan of the run");
        let running = TaskStatus { tracer: 50, ..task(101, 100, 1000) };
        assert_eq!(LAUNCHER.trusted_debugger(&running, processes), None, "traced, but not stopped");
    }

    #[test]
    fn tracer_that_attached_between_state_and_tracer_is_seen() {
        let seen = |tracers: [u32; 2]| {
            let mut reads = tracers.into_iter();
            let read = || Some(TaskStatus { state: 't', tracer: reads.next()?, ..task(101, 100, 1000) });
            LAUNCHER.debugger_of_task(read, processes).is_some()
        };
        assert!(!seen([0, 102]), "the strategy's child, which has attached just now");
        assert!(!seen([50, 102]) && seen([0, 0]) && seen([50, 50]));
    }

    #[test]
    fn decisions_that_trust_too_much_are_found() {
        // One that looks only for the strategy's children misses its orphans; one that looks only
        // at the user trusts its children.
        let is_child = |tracer: u32| processes(tracer).is_some_and(|status| status.parent == 101);
        let is_of_user = |tracer: u32| processes(tracer).is_some_and(|status| status.user == 1000);
        assert!(!is_child(103) && is_of_user(102) && found(LAUNCHER, 103).is_none());
        // A loop of parents, which a forged file could show, ends.
        let looping = |pid: u32| Some(task(pid, 7, 1000));
        let stopped = TaskStatus { state: 't', tracer: 7, ..task(101, 100, 1000) };
        assert_eq!(LAUNCHER.trusted_debugger(&stopped, looping), None);
    }

    #[test]
    fn status_file_is_parsed_and_odd_ones_are_absent() {
        let text = "Name:\tgdb \u{1b}[2J\nState:\tt (tracing stop)\nTgid:\t7\nPid:\t8\nPPid:\t6\n\
                    TracerPid:\t50\nUid:\t1000\t0\t0\t0\n";
        let expected =
            TaskStatus { name: "gdb??[2J".into(), state: 't', pid: 7, parent: 6, user: 1000, tracer: 50 };
        assert_eq!(TaskStatus::parse(text), Some(expected));
        for odd in ["", "Name:\tx\n", "Name:\tx\nState:\t\nTgid:\t7\nPPid:\t6\nTracerPid:\t-1\nUid:\tx\n"] {
            assert_eq!(TaskStatus::parse(odd), None, "{odd:?}");
        }
        let own = TaskStatus::read(Path::new("/proc/self")).unwrap();
        assert_eq!((own.pid, own.user), (std::process::id(), nix::unistd::getuid().as_raw()));
        assert_eq!(RunOwner::this_process().debugger_of(std::process::id()), None);
    }
}
