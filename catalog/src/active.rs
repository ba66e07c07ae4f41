//! The active runs on this machine, started by any user, and the CPU cores that each run holds.
//!
//! | the run's control segment | its run |
//! |---|---|
//! | is locked by its launcher or its reaper | is active |
//! | is not locked | is dead, even if another process now has its process id |
//! | is not there | is active if the process in its name lives (it is ending), else dead |
//!
//! The lock comes first since process ids are meaningless across PID namespaces: containers may
//! share `/dev/shm`.

use crate::run_id::RunId;
use protocol::control::RunState;
use protocol::plan::Plan;
use protocol::segments::{CONTROL, open_control};
use record::cpu_list;
use record::numbers::plural;
use shm::memory::{list_segments, lock, open_safely};
use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use system::process;

/// Whether a run is active (its processes are running) or dead, judged by its control segment in
/// shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunLife {
    /// The run's processes are running.
    Active,
    /// The run's launcher has ended, and its control segment remains.
    Dead,
    /// The run is dead, and its control segment has been removed.
    NoControl,
}

impl RunLife {
    /// Returns whether a run is active or dead, by the lock on its control segment or its
    /// launcher's process id.
    pub fn for_run(run: RunId) -> Self {
        let control = format!("{}{run}.{CONTROL}", Plan::PREFIX);
        let by_pid = |dead| if process::is_running(run.pid, run.start) { Self::Active } else { dead };
        match open_safely(&control, OpenOptions::new().read(true)) {
            Ok(control) => match lock::is_locked(&control) {
                Ok(true) => Self::Active,
                Ok(false) => Self::Dead,
                Err(_) => by_pid(Self::Dead),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => by_pid(Self::NoControl),
            Err(_) => by_pid(Self::Dead),
        }
    }
}

/// Returns the ids of the runs with a control segment on this machine that are in the given state,
/// oldest first.
///
/// # Errors
/// `/dev/shm` cannot be listed.
pub fn runs_with_life(life: RunLife) -> io::Result<Vec<RunId>> {
    let id = |name: String| {
        RunId::from_segment_name(&name).filter(|(_, what)| *what == CONTROL).map(|(run, _)| run)
    };
    let mut runs: Vec<RunId> = list_segments()?.into_iter().filter_map(id).collect();
    runs.retain(|run| RunLife::for_run(*run) == life);
    runs.sort_by_key(RunId::to_string);
    Ok(runs)
}

/// Returns the ids of the active runs on this machine, oldest first.
///
/// # Errors
/// `/dev/shm` cannot be listed.
pub fn active_runs() -> io::Result<Vec<RunId>> {
    runs_with_life(RunLife::Active)
}

/// A run whose processes are running, with the cores that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveRun {
    /// Id of the run.
    pub run: String,
    /// Process id of the run's launcher.
    pub pid: u32,
    /// CPU cores that the run's threads are pinned to; empty if unknown.
    pub cores: BTreeSet<u32>,
}

impl ActiveRun {
    /// Returns the active runs of this machine except those that are ending. A run whose plan
    /// cannot be read (it is being written, or has another version) has no cores.
    pub fn all() -> Vec<Self> {
        let read = |id: RunId| match open_control(&id.to_string()) {
            Ok((control, _)) if control.state() == RunState::Stop => None,
            Ok((_, plan)) => Some(Self { run: plan.run.clone(), pid: id.pid, cores: cores(&plan) }),
            Err(_) => Some(Self { run: id.to_string(), pid: id.pid, cores: BTreeSet::new() }),
        };
        active_runs().unwrap_or_default().into_iter().filter_map(read).collect()
    }

    /// Returns those of the given CPU cores that the active run holds.
    pub fn shared_cores(&self, cores: &BTreeSet<u32>) -> Vec<u32> {
        self.cores.intersection(cores).copied().collect()
    }

    /// Formats a text that this run holds the given CPU cores: `run X (pid 7) holds cores 0,1`.
    pub fn describe_cores(&self, cores: &[u32]) -> String {
        let noun = plural("core", cores.len() as u64);
        format!("run {} (pid {}) holds {noun} {}", self.run, self.pid, cpu_list::format(cores))
    }
}

/// Returns a warning for each other active run whose threads are pinned to a CPU core of this run's
/// plan.
pub fn conflicting_runs(plan: &Plan) -> Vec<String> {
    let mine = cores(plan);
    let all = ActiveRun::all().into_iter().filter(|other| other.run != plan.run);
    all.map(|other| (other.shared_cores(&mine), other))
        .filter(|(shared, _)| !shared.is_empty())
        .map(|(shared, other)| {
            let held = other.describe_cores(&shared);
            format!("{held} as well: wait for its end, or give one of the two other --cores")
        })
        .collect()
}

fn cores(plan: &Plan) -> BTreeSet<u32> {
    plan.threads.iter().filter_map(|thread| thread.core).collect()
}
