//! Keeps processes that are not measured off the measured CPU cores, if other cores are allowed:
//! the launcher, its helpers, and `launcher watch`.

use protocol::plan::Plan;
use std::collections::BTreeSet;
use system::pin;

/// A guard that keeps the calling thread, and processes that it starts, off the measured cores
/// until it is dropped.
pub struct AffinityGuard {
    /// The previous affinity; empty if the thread was not moved.
    before: Vec<u32>,
}

impl AffinityGuard {
    /// Moves the calling thread to CPU cores that the plan does not use, if any are allowed.
    pub fn move_off(plan: &Plan) -> Self {
        let before = pin::allowed_cores();
        let taken: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
        let rest: Vec<u32> = before.iter().copied().filter(|core| !taken.contains(core)).collect();
        // If the kernel refuses, the thread stays where it was.
        let is_moved = !rest.is_empty() && rest != before && pin::restrict_to(&rest).is_ok();
        Self { before: if is_moved { before } else { Vec::new() } }
    }

    /// Consumes the affinity guard, and leaves the calling thread on the cores to which it was
    /// moved.
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
    use planner::fixtures::planned;
    use planner::host::fake;

    #[test]
    fn guard_leaves_run_cores_if_others_remain() {
        let pinned_to = |cores: &[u32]| {
            let (_, mut plan, _) = planned("strategies=1", &fake::two_core_vm().machine()).unwrap();
            let mut cores = cores.iter().copied().cycle();
            plan.threads.iter_mut().for_each(|thread| thread.core = cores.next());
            plan
        };
        let allowed = pin::allowed_cores();
        let (last, rest) = allowed.split_last().unwrap();
        let expected =
            [if rest.is_empty() { &allowed } else { rest }, &allowed, &allowed].map(<[u32]>::to_vec);
        let plans = [pinned_to(&[*last]), pinned_to(&allowed), pinned_to(&[])];
        // On a thread of its own, whose affinity is that of this one.
        let affinity = std::thread::spawn(move || {
            plans.map(|plan| {
                let _guard = AffinityGuard::move_off(&plan);
                pin::allowed_cores()
            })
        });
        assert_eq!(affinity.join().unwrap(), expected, "each guard has restored the affinity");
    }
}
