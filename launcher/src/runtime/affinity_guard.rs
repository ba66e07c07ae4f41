//! Whoever is no part of what is measured stays off the cores on which it is, where there are
//! others: the launcher, everything that it starts but the roles' own threads, and `launcher
//! watch`.

use protocol::plan::Plan;
use std::collections::BTreeSet;
use system::pin;

/// The cores that a plan's threads leave.
fn rest(plan: &Plan, allowed: &[u32]) -> Vec<u32> {
    let taken: BTreeSet<u32> = plan.threads.iter().filter_map(|thread| thread.core).collect();
    allowed.iter().copied().filter(|core| !taken.contains(core)).collect()
}

/// The calling thread is off the cores of a plan until this is dropped. What it starts meanwhile
/// begins there too; a role's thread then goes to its own core ([`pin::move_to`]).
pub struct Aside {
    /// Where it was before; empty: it was not moved.
    before: Vec<u32>,
}

impl Aside {
    /// Off the cores of that plan, if any others are allowed.
    pub fn of(plan: &Plan) -> Self {
        let before = pin::allowed_cores();
        let rest = rest(plan, &before);
        // Where that is refused it stays where it was.
        let is_moved = !rest.is_empty() && rest != before && pin::stay_on(&rest).is_ok();
        Self { before: if is_moved { before } else { Vec::new() } }
    }

    pub fn stay(mut self) {
        self.before.clear();
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if !self.before.is_empty() {
            let _ = pin::stay_on(&self.before);
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
    fn a_core_of_the_run_is_left_while_it_lasts_and_none_where_all_are() {
        let allowed = pin::allowed_cores();
        let before = allowed.clone();
        let seen = std::thread::spawn(move || {
            let last = before[before.len() - 1];
            let aside = Aside::of(&plan(&[last]));
            let meanwhile = pin::allowed_cores();
            drop(aside);
            let _all = Aside::of(&plan(&before));
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
        assert_eq!(rest(&plan, &[0, 1]), [0, 1]);
        assert_eq!(Aside::of(&plan).before, [0u32; 0]);
    }
}
