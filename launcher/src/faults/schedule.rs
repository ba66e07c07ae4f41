//! Schedule of the faults that the launcher injects by signal: `kill` and `stop` at a time, once or
//! repeatedly.
//!
//! All choices are drawn from the run's seed: with the same seed, and the same strategies running
//! at the same times, the same victims are chosen. All other kinds, and faults at an order, are
//! injected by the strategy itself ([`roles::faults::own`]).

use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime, Plan, Role};
use roles::faults::Draws;

pub use roles::faults::is_by_signal;

/// Whether a strategy is running, so that it can receive a fault now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The strategy has not run its first duty cycle: it waits for a core. A due fault waits for
    /// it.
    Starting,
    /// The strategy runs.
    Running,
    /// The strategy has exited, or is being restarted.
    Gone,
}

/// A fault whose time to be injected has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueFault {
    /// Index of the fault in the plan.
    pub fault: usize,
    /// [`FaultKind::Kill`] or [`FaultKind::Stop`].
    pub kind: FaultKind,
    /// The role whose process receives the fault; `None`: the launcher itself.
    pub target: Option<Role>,
    /// Time at which the fault was due, in nanoseconds after the start.
    pub at_ns: u64,
}

/// Returns the faults that the launcher injects during a run, in the order of their times.
#[derive(Clone, Debug)]
pub struct FaultSchedule {
    /// Pending faults, in the order of the plan.
    pending: Vec<PendingFault>,
    strategies: u16,
    draws: Draws,
}

/// A fault and when it is due next.
#[derive(Clone, Copy, Debug)]
struct PendingFault {
    /// Which of the plan's faults it is.
    fault: usize,
    kind: FaultKind,
    target: FaultTarget,
    next_ns: u64,
    every_ns: Option<u64>,
}

impl FaultSchedule {
    /// Discards all faults that are not injected yet.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// Creates the schedule of the faults in a plan; `seed` is the run's.
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let coming = |(fault, planned): (usize, &Fault)| match planned.when {
            FaultTime::At { ns } if is_by_signal(planned) => {
                let Fault { kind, target, every_ns, .. } = *planned;
                Some(PendingFault { fault, kind, target, next_ns: ns, every_ns })
            }
            _ => None,
        };
        Self {
            pending: plan.faults.iter().enumerate().filter_map(coming).collect(),
            strategies: plan.trading().strategies,
            draws: Draws::new(seed, Draws::SIGNALS),
        }
    }

    /// Returns when the next fault is due, in nanoseconds after the start; `None` if none is
    /// pending.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.pending.iter().map(|coming| coming.next_ns).min()
    }

    /// Removes the next fault that is due: call until `None`. A fault needs a running victim;
    /// without one it does not take place, unless its victim is still starting: then it waits. A
    /// repeated fault that has fallen behind is not made up for: its next time counts from now.
    pub fn pop_due(&mut self, now_ns: u64, presence: impl Fn(u16) -> Presence) -> Option<DueFault> {
        loop {
            let due = self.pending.iter().enumerate().filter(|(_, coming)| coming.next_ns <= now_ns);
            let can_strike = due.filter(|(_, coming)| !self.is_waiting_for(coming.target, &presence));
            // The first one of those of the same time.
            let (place, coming) = can_strike.min_by_key(|(_, coming)| coming.next_ns)?;
            let PendingFault { fault, kind, target, every_ns, next_ns: at_ns } = *coming;
            match every_ns {
                Some(every) => {
                    let next = at_ns.saturating_add(every);
                    let next = if next > now_ns { next } else { now_ns.saturating_add(every) };
                    self.pending[place].next_ns = next;
                }
                None => drop(self.pending.remove(place)),
            }
            if let Some(target) = self.pick_victim(target, |index| presence(index) == Presence::Running) {
                return Some(DueFault { fault, kind, target, at_ns });
            }
        }
    }

    /// Returns `true` if the victim is still starting; for `any`, if all that may still run are.
    fn is_waiting_for(&self, target: FaultTarget, presence: impl Fn(u16) -> Presence) -> bool {
        match target {
            FaultTarget::Strategy(index) => presence(index) == Presence::Starting,
            FaultTarget::Any => {
                let is = |which| (0..self.strategies).any(|index| presence(index) == which);
                is(Presence::Starting) && !is(Presence::Running)
            }
            _ => false,
        }
    }

    /// Returns the role that receives a fault, `Some(None)` for the launcher, or `None` without a
    /// running victim.
    fn pick_victim(&mut self, target: FaultTarget, alive: impl Fn(u16) -> bool) -> Option<Option<Role>> {
        Some(Some(match target {
            FaultTarget::Launcher => return Some(None),
            // Venue faults are injected by the venue.
            FaultTarget::Venue(_) => return None,
            FaultTarget::Engine => Role::Orchestrator,
            FaultTarget::Exchange(venue) => Role::Exchange(venue),
            FaultTarget::Gateway(index) => Role::Gateway(index),
            FaultTarget::Strategy(index) => Role::Strategy(Some(index).filter(|index| alive(*index))?),
            FaultTarget::Any => {
                let living: Vec<u16> = (0..self.strategies).filter(|index| alive(*index)).collect();
                let drawn = self.draws.below(living.len() as u64);
                Role::Strategy(*living.get(drawn as usize)?)
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Machine;
    use crate::planner::tests::planned;
    use proptest::prelude::*;

    fn schedule(strategies: u16, faults: &str, seed: u64) -> FaultSchedule {
        let words = format!("orders=10 fault='{faults}'");
        let (_, mut plan, _) = planned(&words, &Machine::default()).unwrap();
        plan.trading_mut().strategies = strategies;
        FaultSchedule::new(&plan, seed)
    }

    fn there(is_there: bool) -> Presence {
        if is_there { Presence::Running } else { Presence::Gone }
    }

    /// Returns every fault up to a time, polled every `interval` nanoseconds.
    fn all_due(
        schedule: &mut FaultSchedule,
        look: u64,
        until: u64,
        alive: impl Fn(u16) -> bool,
    ) -> Vec<DueFault> {
        let mut found = Vec::new();
        for now in (0..=until).step_by(look as usize) {
            while let Some(fault) = schedule.pop_due(now, |index| there(alive(index))) {
                found.push(fault);
            }
        }
        found
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn faults_come_in_the_order_of_their_times() {
        let faults =
            "stop:engine@9ms; kill:strategy-0@5ms; kill:launcher@7ms; hang:strategy-0@1ms; kill@order:3";
        let mut schedule = schedule(2, faults, 1);
        assert_eq!(schedule.next_due_ns(), Some(5 * MS));
        assert_eq!(schedule.pop_due(5 * MS - 1, |_| Presence::Running), None);
        let found = all_due(&mut schedule, 100 * MS, 100 * MS, |_| true);
        let wanted = [
            DueFault { fault: 1, kind: FaultKind::Kill, target: Some(Role::Strategy(0)), at_ns: 5 * MS },
            DueFault { fault: 2, kind: FaultKind::Kill, target: None, at_ns: 7 * MS },
            DueFault { fault: 0, kind: FaultKind::Stop, target: Some(Role::Orchestrator), at_ns: 9 * MS },
        ];
        assert_eq!(found, wanted, "the others are not the launcher's");
        assert_eq!(schedule.next_due_ns(), None);
    }

    #[test]
    fn the_dead_have_no_fault_again() {
        let mut schedule = schedule(3, "kill:strategy-0@1ms; kill:any@2ms every 1ms; stop:any@50ms", 1);
        for fault in all_due(&mut schedule, MS, 40 * MS, |index| index == 2) {
            assert_eq!(fault.target, Some(Role::Strategy(2)));
        }
        assert_eq!(all_due(&mut schedule, 100 * MS, 100 * MS, |_| false), []);
        assert!(schedule.next_due_ns().is_some(), "it goes on when one lives again");
    }

    #[test]
    fn fault_waits_for_starting_strategy() {
        let mut schedule = schedule(2, "kill:strategy-0@1ms; kill:engine@2ms; stop:any@3ms", 1);
        let struck = |fault: Option<DueFault>| fault.map(|fault| (fault.target, fault.at_ns));
        let one_begins = |index| if index == 0 { Presence::Starting } else { Presence::Running };
        let found = [(); 3].map(|()| struck(schedule.pop_due(10 * MS, one_begins)));
        assert_eq!(
            found,
            [Some((Some(Role::Orchestrator), 2 * MS)), Some((Some(Role::Strategy(1)), 3 * MS)), None]
        );
        assert_eq!(schedule.next_due_ns(), Some(MS), "it is still to come");
        let found = [(); 2].map(|()| struck(schedule.pop_due(20 * MS, |_| Presence::Running)));
        assert_eq!(found, [Some((Some(Role::Strategy(0)), MS)), None]);

        let mut anybody = self::schedule(2, "kill:any@1ms", 1);
        assert_eq!(
            anybody.pop_due(MS, |index| if index == 1 { Presence::Starting } else { Presence::Gone }),
            None
        );
        assert!(anybody.pop_due(MS, |index| there(index == 1)).is_some());
    }

    #[test]
    fn missed_repeats_are_not_made_up() {
        let mut schedule = schedule(1, "kill:any@10ms every 10ms", 1);
        assert!(schedule.pop_due(1000 * MS, |_| Presence::Running).is_some());
        assert_eq!(schedule.pop_due(1000 * MS, |_| Presence::Running), None);
        assert_eq!(schedule.next_due_ns(), Some(1010 * MS));
        assert_eq!(schedule.pop_due(1012 * MS, |_| Presence::Running).unwrap().at_ns, 1010 * MS);
        assert_eq!(schedule.next_due_ns(), Some(1020 * MS), "on its beat as long as it keeps up");
    }

    proptest! {
        #[test]
        fn the_same_seed_chooses_the_same(seed: u64, other: u64, strategies in 1u16..20, dead in 0u16..20) {
            let faults = "kill:any@1ms every 1ms; stop:any@3ms every 7ms";
            let alive = |index| index != dead;
            let run = |seed| all_due(&mut schedule(strategies, faults, seed), MS, 100 * MS, alive);
            let found = run(seed);
            prop_assert_eq!(&found, &run(seed));
            let living = (0..strategies).filter(|index| *index != dead).count();
            prop_assert_eq!(found.len(), if living == 0 { 0 } else { 100 + 14 });
            let living_victim = |fault: &DueFault| match fault.target {
                Some(Role::Strategy(index)) => index < strategies && index != dead,
                _ => false,
            };
            prop_assert!(found.iter().all(living_victim));
            if seed != other && living > 2 {
                prop_assert_ne!(found, run(other), "chance: 1 in 3^114 at most");
            }
        }

        #[test]
        fn every_living_strategy_has_its_fault_sooner_or_later(seed: u64) {
            let found = all_due(&mut schedule(4, "kill:any@1ms every 1ms", seed), MS, 200 * MS, |_| true);
            for index in 0..4 {
                prop_assert!(found.iter().any(|fault| fault.target == Some(Role::Strategy(index))));
            }
        }
    }
}
