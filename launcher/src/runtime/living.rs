//! The runs that live on this machine, of whoever started them, and the cores that each one holds: for an operator who names a run,
//! for a run that is about to share its cores, and for `launcher doctor`.

use crate::runtime::run_id::RunId;
use analysis::lists;
use protocol::control::RunState;
use protocol::plan::Plan;
use protocol::segments::{CONTROL, open_control};
use shm::memory::{list_segments, lock, open_safely};
use std::collections::BTreeSet;
use std::fs::OpenOptions;

/// A run that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingRun {
    /// Its id.
    pub run: String,
    /// Its launcher.
    pub pid: u32,
    /// The cores that its threads are pinned to; empty: nobody can say.
    pub cores: BTreeSet<u32>,
}

impl LivingRun {
    /// The cores that it shares with those.
    pub fn shared(&self, cores: &BTreeSet<u32>) -> Vec<u32> {
        self.cores.intersection(cores).copied().collect()
    }

    /// The run and its cores in words: `run X (pid 7) holds cores 0,1`.
    pub fn in_words(&self, cores: &[u32]) -> String {
        let noun = if cores.len() == 1 { "core" } else { "cores" };
        format!("run {} (pid {}) holds {noun} {}", self.run, self.pid, lists::format(cores))
    }
}

/// The ids of the runs that live and of those that are over and not cleaned up after, in the order in which they began.
///
/// # Errors
/// If `/dev/shm` cannot be listed.
pub fn ids() -> std::io::Result<(Vec<RunId>, Vec<RunId>)> {
    let (mut living, mut over) = (Vec::new(), Vec::new());
    for name in list_segments()? {
        let Some((run, CONTROL)) = RunId::of_segment(&name) else { continue };
        let Ok(file) = open_safely(&name, OpenOptions::new().read(true)) else { continue };
        let list = if lock::is_held(&file)? { &mut living } else { &mut over };
        list.push(run);
    }
    for list in [&mut living, &mut over] {
        list.sort_by_key(RunId::to_string);
    }
    Ok((living, over))
}

/// The runs that live and are not just ending. One whose plan cannot be read (it is being written, or another version's) has no cores.
pub fn living() -> Vec<LivingRun> {
    let (living, _) = ids().unwrap_or_default();
    let read = |id: RunId| match open_control(&id.to_string()) {
        Ok((control, _)) if control.state() == RunState::Stop => None,
        Ok((_, plan)) => Some(LivingRun { run: plan.run.clone(), pid: id.pid, cores: cores(&plan) }),
        Err(_) => Some(LivingRun { run: id.to_string(), pid: id.pid, cores: BTreeSet::new() }),
    };
    living.into_iter().filter_map(read).collect()
}

/// What to say of the other runs that have threads on this run's cores.
pub fn neighbours(plan: &Plan) -> Vec<String> {
    said(plan, &living())
}

fn said(plan: &Plan, living: &[LivingRun]) -> Vec<String> {
    let mine = cores(plan);
    let others = living.iter().filter(|other| other.run != plan.run);
    let shared = others.map(|other| (other, other.shared(&mine))).filter(|(_, shared)| !shared.is_empty());
    let words = |(other, shared): (&LivingRun, Vec<u32>)| {
        format!("{} as well: wait for its end, or give one of the two other --cores", other.in_words(&shared))
    };
    shared.map(words).collect()
}

fn cores(plan: &Plan) -> BTreeSet<u32> {
    plan.threads.iter().filter_map(|thread| thread.core).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use crate::planner::tests::planned_with;

    #[test]
    fn only_another_run_on_the_same_cores_is_said() {
        let (plan, _) = planned_with("orders=10", "", &fake::two_core_vm().machine()).unwrap();
        let other = |run: &str, cores: &[u32]| LivingRun {
            run: run.into(),
            pid: 7,
            cores: cores.iter().copied().collect(),
        };
        let said = said(
            &plan,
            &[other("a", &[1, 2]), other("b", &[2, 3]), other("c", &[]), other(&plan.run, &[0, 1])],
        );
        assert_eq!(
            said,
            ["run a (pid 7) holds core 1 as well: wait for its end, or give one of the two other --cores"]
        );
    }
}
