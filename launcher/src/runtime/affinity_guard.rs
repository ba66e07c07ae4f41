//! Keeps processes that are not measured off the measured CPU cores, if other cores are allowed:
//! the launcher, its helpers, and `launcher watch`.

use protocol::plan::Plan;
use std::collections::BTreeSet;
use system::pin;

/// Returns the allowed cores that no thread of the plan is pinned to.
fn remaining_cores(plan: &Plan, allowed: &[u32]) -> Vec<u32> {
    let taken: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    allowed.iter().copied().filter(|core| !taken.contains(core)).collect()
}

/// Keeps the calling thread off the measured cores of a plan until it is dropped. Processes it
/// starts inherit this affinity; a role's thread then moves to its own core ([`pin::move_to`]).
pub struct AffinityGuard {
    /// The previous affinity; empty if the thread was not moved.
    before: Vec<u32>,
}

impl AffinityGuard {
    /// Moves the calling thread to cores that the plan does not use, if any are allowed.
    pub fn move_off(plan: &Plan) -> Self {
        let before = pin::allowed_cores();
        let rest = remaining_cores(plan, &before);
        // If the kernel refuses, the thread stays where it was.
        let is_moved = !rest.is_empty() && rest != before && pin::restrict_to(&rest).is_ok();
        Self { before: if is_moved { before } else { Vec::new() } }
    }

    pub fn keep(mut self) {
        self.before.clear();
    }
}

impl Drop for AffinityGuard {
    fn drop(&mut self) {
        if !self.before.is_empty() {
            let _ = pin::restrict_to(&self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use crate::planner::tests::planned;

    fn plan(cores: &[u32]) -> Plan {
        let (_, mut plan, _) = planned("strategies=1", &fake::two_core_vm().machine()).unwrap();
        let mut cores = cores.iter().copied().cycle();
        plan.threads.iter_mut().for_each(|thread| thread.core = cores.next());
        plan
    }

    #[test]
    fn guard_leaves_run_cores_if_others_remain() {
        let allowed = pin::allowed_cores();
        let before = allowed.clone();
        let seen = std::thread::spawn(move || {
            let last = before[before.len() - 1];
            let aside = AffinityGuard::move_off(&plan(&[last]));
            let meanwhile = pin::allowed_cores();
            drop(aside);
            let _all = AffinityGuard::move_off(&plan(&before));
            (meanwhile, pin::allowed_cores())
        });
        let (meanwhile, after) = seen.join().unwrap();
        let rest = &allowed[..allowed.len() - 1];
        assert_eq!(meanwhile, if rest.is_empty() { &allowed[..] } else { rest });
        assert_eq!(after, allowed);
    }

    #[test]
    fn a_plan_that_pins_nobody_moves_nobody() {
        let mut plan = plan(&[0]);
        plan.threads.iter_mut().for_each(|thread| thread.core = None);
        assert_eq!(remaining_cores(&plan, &[0, 1]), [0, 1]);
        assert_eq!(AffinityGuard::move_off(&plan).before, [0u32; 0]);
    }
}
