//! Segments without names: sealed memory that each process is handed as a descriptor, with the rights that it needs.
//!
//! The launcher creates each segment as a memfd, seals its size (nobody can truncate it under a reader, which would be a
//! SIGBUS), and opens it twice: for writing and read-only. A process inherits one of the two, or neither; a read-only
//! descriptor cannot be mapped for writing. Descriptors are closed as soon as they are mapped.

use crate::memory::{Region, RegionError, Words};
use crate::plan::{Handle, Plan, ProcessPlan, Role};
use crate::ring::{Place, SegmentSpec};
use nix::fcntl::{FcntlArg, FdFlag, SealFlag, fcntl};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// What a process may do with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Map it read-only.
    Read,
    /// Map it for reading and writing.
    Write,
}

/// What the processes of a run need of a segment. The engine owns everything but what only the launcher writes. A strategy
/// gets what it writes itself, and read-only what others write and it reads. Any other process gets nothing.
pub fn access(plan: &Plan, process: &ProcessPlan, what: &str) -> Option<Access> {
    let mut roles = process.threads.iter().flat_map(|thread| &plan.threads[*thread as usize].roles);
    if roles.clone().any(|role| *role == Role::Orchestrator) {
        return Some(Access::Write);
    }
    let (Some(Role::Strategy(index)), None) = (roles.next(), roles.next()) else {
        return None;
    };
    let own = |prefix: &str, suffix: &str| what == format!("{prefix}-{index}{suffix}");
    let own_thread = process.threads.iter().any(|thread| {
        let name = &plan.threads[*thread as usize].name;
        what == format!("thread-{name}") || what == format!("bell-{name}")
    });
    // A bell must be rung: that is a write to a word of the engine's thread, which loses at most the time of one sleep.
    let engine_bell = plan
        .thread_of(Role::Orchestrator)
        .is_some_and(|thread| what == format!("bell-{}", plan.threads[thread].name));
    // What all producers of a technique write: anything of the link's but the numbered rings of `spsc-mux`.
    let part = what.strip_prefix("submit");
    let shared_submit =
        part.is_some_and(|part| !part[1.min(part.len())..].starts_with(|c: char| c.is_ascii_digit()));
    if own("submit", "")
        || own("submit", ".intent")
        || own("return", ".head")
        || own_thread
        || engine_bell
        || shared_submit
    {
        Some(Access::Write)
    } else if own("submit", ".head")
        || own("return", "")
        || own("schedule", "")
        || what == crate::segments::CONTROL
    {
        Some(Access::Read)
    } else {
        None
    }
}

/// A segment's memory in the launcher: both descriptors, which children can inherit.
pub struct Shared {
    /// The segment's name within the run.
    pub what: String,
    write: File,
    read: File,
}

impl Shared {
    /// Creates a sealed segment of zeroed words.
    ///
    /// # Errors
    /// Not enough memory, or what the system refused.
    pub fn create(plan: &Plan, spec: &SegmentSpec) -> Result<(Self, Words), RegionError> {
        let name = plan.segment_name(&spec.what);
        let (region, write) = Region::memfd_and_file(&name, spec.words, spec.place == Place::Memory)?;
        let os = |what| {
            let name = name.clone();
            move |source: io::Error| RegionError::Os { name, what, source }
        };
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&write, FcntlArg::F_ADD_SEALS(seals)).map_err(|e| os("seal it")(e.into()))?;
        // Opened anew, not duplicated: a duplicate would keep the right to write.
        let read =
            File::open(format!("/proc/self/fd/{}", write.as_raw_fd())).map_err(os("open it read-only"))?;
        Ok((Self { what: spec.what.clone(), write, read }, region.words()))
    }

    /// A segment that has a name as well, read-only for everybody: the control segment.
    ///
    /// # Errors
    /// What the system refused.
    pub fn read_only(what: &str, path: &str) -> io::Result<Self> {
        Ok(Self { what: what.to_owned(), write: File::open(path)?, read: File::open(path)? })
    }

    /// The descriptor for that access.
    pub fn file(&self, access: Access) -> &File {
        match access {
            Access::Read => &self.read,
            Access::Write => &self.write,
        }
    }

    /// Both as the plan lists them.
    pub fn handles(&self) -> [Handle; 2] {
        [(&self.write, true), (&self.read, false)].map(|(file, writable)| Handle {
            what: self.what.clone(),
            fd: file.as_raw_fd(),
            writable,
        })
    }
}

/// Lets the children that are started while `start` runs inherit these descriptors, and nobody afterwards.
///
/// # Errors
/// What the system refused, or what `start` returns.
pub fn inherited_by<T>(files: &[&File], start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let set = |flag: FdFlag| {
        files
            .iter()
            .try_for_each(|file| fcntl(file.as_fd(), FcntlArg::F_SETFD(flag)).map(drop))
            .map_err(io::Error::from)
    };
    set(FdFlag::empty())?;
    let started = start();
    set(FdFlag::FD_CLOEXEC)?;
    started
}

/// Takes an inherited descriptor of the plan: each at most once.
///
/// # Errors
/// If there is no such open descriptor.
pub fn take(handle: &Handle) -> io::Result<File> {
    // SAFETY: the number comes from the plan of the launcher that started this process and left this descriptor open for
    // it. Nothing else in this process knows it: the standard library opens none below it by itself, and
    // `segments::Attached`, the only caller, asks for each segment once. Should the number be wrong all the same, the
    // check below finds that it is not open, before anything is done with it.
    let borrowed = unsafe { std::os::fd::BorrowedFd::borrow_raw(handle.fd) };
    fcntl(borrowed, FcntlArg::F_GETFD)?;
    // SAFETY: as above; it is open.
    Ok(unsafe { OwnedFd::from_raw_fd(handle.fd) }.into())
}

#[cfg(test)]
mod tests {
    use super::{Access, access};
    use crate::plan::tests::small_plan;
    use crate::plan::{ProcessPlan, Role};

    #[test]
    fn a_strategy_writes_what_is_its_own() {
        let plan = small_plan();
        let (strategy, engine) = (&plan.processes[0], &plan.processes[1]);
        for (what, right) in [
            ("submit-0", Some(Access::Write)),
            ("submit-0.head", Some(Access::Read)),
            ("submit-0.intent", Some(Access::Write)),
            ("submit-1.intent", None),
            ("submit-1", None),
            ("submit-10", None),
            ("submit", Some(Access::Write)),
            ("submit-waker", Some(Access::Write)),
            ("return-0", Some(Access::Read)),
            ("return-0.head", Some(Access::Write)),
            ("return-1.head", None),
            ("completion", None),
            ("completion-0", None),
            ("inbox-0", None),
            ("schedule-0", Some(Access::Read)),
            ("schedule-1", None),
            ("thread-strategy-0", Some(Access::Write)),
            ("thread-engine", None),
            ("bell-strategy-0", Some(Access::Write)),
            ("bell-engine", Some(Access::Write)),
            ("repairs", None),
            ("control", Some(Access::Read)),
        ] {
            assert_eq!(access(&plan, strategy, what), right, "{what}");
            assert_eq!(access(&plan, engine, what), Some(Access::Write), "{what}");
            let all = ProcessPlan { name: "all".into(), threads: vec![0, 1] };
            assert_eq!(access(&plan, &all, what), Some(Access::Write), "{what}");
        }
    }

    #[test]
    fn a_process_that_is_neither_engine_nor_one_strategy_gets_nothing() {
        let mut plan = small_plan();
        plan.threads[1].roles.retain(|role| *role != Role::Orchestrator);
        for threads in [vec![], vec![1], vec![0, 1], vec![0, 0]] {
            let process = ProcessPlan { name: "unknown".into(), threads };
            for what in ["submit-0", "submit-1", "return-0", "inbox-0", "thread-strategy-0", "control", "new"]
            {
                assert_eq!(access(&plan, &process, what), None, "{process:?} {what}");
            }
        }
    }
}
