//! Schedule of the faults that the launcher injects by signal: `kill` and `stop` at a time, once or
//! repeatedly.
//!
//! All choices are drawn from the run's seed: with the same seed, and the same strategies running
//! at the same times, the same victims are chosen. All other kinds, and faults at an order, are
//! injected by the strategy itself (`roles::faults::own`).

use protocol::faults::Draws;
use protocol::index::StrategyIndex;
use protocol::plan::{Fault, FaultKind, FaultTarget, FaultTime, Plan, Role};

pub use protocol::faults::is_by_signal;

/// Whether a strategy can receive an injected fault now: it is starting, running or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The strategy has not completed its first duty cycle. A due fault waits for it.
    Starting,
    Running,
    /// The strategy has exited, or is being restarted.
    Gone,
}

/// An injected fault of a run that is due now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueFault {
    /// Index of the fault in the plan.
    pub fault: usize,
    /// [`FaultKind::Kill`] or [`FaultKind::Stop`].
    pub kind: FaultKind,
    /// The role whose process receives the fault; `None`: the launcher itself.
    pub target: Option<Role>,
}

/// The plan's faults that the launcher injects by signal and has not injected yet.
#[derive(Clone, Debug)]
pub struct FaultSchedule {
    pending: Vec<PendingFault>,
    draws: Draws,
}

#[derive(Clone, Copy, Debug)]
struct PendingFault {
    fault: usize,
    kind: FaultKind,
    target: FaultTarget,
    next_ns: u64,
    every_ns: Option<u64>,
}

impl FaultSchedule {
    /// Removes all pending faults from the schedule, so that none is injected any more.
    pub fn clear(&mut self) {
        self.pending.clear();
    }

    /// Creates the schedule of a plan's faults by signal; `seed` is the run's random seed.
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
            draws: Draws::new(seed, Draws::SIGNALS),
        }
    }

    /// Returns the time of the next pending fault, in nanoseconds after the start; `None` if none
    /// is pending.
    pub fn next_due_ns(&self) -> Option<u64> {
        self.pending.iter().map(|coming| coming.next_ns).min()
    }

    /// Removes and returns the pending faults that are due at `now_ns`, nanoseconds after the
    /// start. A fault needs a running victim; without one it does not take place, unless its victim
    /// is still starting: then it waits. Missed repetitions of a fault are skipped: the next time
    /// counts from now.
    pub fn take_due(&mut self, now_ns: u64, strategies: &[Presence]) -> Vec<DueFault> {
        let mut all = Vec::new();
        loop {
            let due = self.pending.iter().enumerate().filter(|(_, coming)| coming.next_ns <= now_ns);
            let can_strike = due.filter(|(_, coming)| !is_waiting_for(coming.target, strategies));
            // The first one of those of the same time.
            let Some((place, coming)) = can_strike.min_by_key(|(_, coming)| coming.next_ns) else {
                return all;
            };
            let PendingFault { fault, kind, target, every_ns, next_ns } = *coming;
            match every_ns {
                Some(every) => {
                    let next = next_ns.saturating_add(every);
                    let next = if next > now_ns { next } else { now_ns.saturating_add(every) };
                    self.pending[place].next_ns = next;
                }
                None => drop(self.pending.remove(place)),
            }
            let victim = self.pick_victim(target, strategies);
            all.extend(victim.map(|target| DueFault { fault, kind, target }));
        }
    }

    /// Returns the role that receives a fault, `Some(None)` for the launcher, or `None` without a
    /// running victim.
    fn pick_victim(&mut self, target: FaultTarget, strategies: &[Presence]) -> Option<Option<Role>> {
        let runs = |index: &StrategyIndex| strategies.get(index.as_usize()) == Some(&Presence::Running);
        Some(Some(match target {
            FaultTarget::Launcher => return Some(None),
            // Venue faults are injected by the venue.
            FaultTarget::Venue(_) => return None,
            FaultTarget::Engine => Role::Orchestrator,
            FaultTarget::Exchange(venue) => Role::Exchange(venue),
            FaultTarget::Gateway(index) => Role::Gateway(index),
            FaultTarget::Strategy(index) => Role::Strategy(Some(index).filter(runs)?),
            FaultTarget::Any => {
                let living: Vec<StrategyIndex> =
                    StrategyIndex::first(strategies.len() as u16).filter(runs).collect();
                let drawn = self.draws.below(living.len() as u64);
                Role::Strategy(*living.get(drawn as usize)?)
            }
        }))
    }
}

/// Returns `true` if the victim is still starting; for `any`, if all that may still run are.
fn is_waiting_for(target: FaultTarget, strategies: &[Presence]) -> bool {
    match target {
        FaultTarget::Strategy(index) => strategies.get(index.as_usize()) == Some(&Presence::Starting),
        FaultTarget::Any => {
            strategies.contains(&Presence::Starting) && !strategies.contains(&Presence::Running)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Presence::{Gone, Running, Starting};
    use super::*;
    use planner::fixtures::planned;
    use proptest::prelude::*;
    use record::machine::Machine;

    const MS: u64 = 1_000_000;

    fn schedule(faults: &str, seed: u64) -> FaultSchedule {
        let (_, plan, _) = planned(&format!("orders=10 fault='{faults}'"), &Machine::default()).unwrap();
        FaultSchedule::new(&plan, seed)
    }

    /// Returns every fault up to a time, polled each millisecond.
    fn all_due(schedule: &mut FaultSchedule, until_ms: u64, strategies: &[Presence]) -> Vec<DueFault> {
        (0..=until_ms).flat_map(|now| schedule.take_due(now * MS, strategies)).collect()
    }

    #[test]
    fn faults_come_in_the_order_of_their_times() {
        let faults =
            "stop:engine@9ms; kill:strategy-0@5ms; kill:launcher@7ms; hang:strategy-0@1ms; kill@order:3";
        let mut schedule = schedule(faults, 1);
        assert_eq!(schedule.next_due_ns(), Some(5 * MS));
        assert_eq!(schedule.take_due(5 * MS - 1, &[Running]), []);
        let wanted = [
            DueFault { fault: 1, kind: FaultKind::Kill, target: Some(Role::Strategy(StrategyIndex(0))) },
            DueFault { fault: 2, kind: FaultKind::Kill, target: None },
            DueFault { fault: 0, kind: FaultKind::Stop, target: Some(Role::Orchestrator) },
        ];
        assert_eq!(schedule.take_due(100 * MS, &[Running]), wanted, "the others are not the launcher's");
        assert_eq!(schedule.next_due_ns(), None);
    }

    #[test]
    fn the_dead_have_no_fault_again() {
        let mut schedule = schedule("kill:strategy-0@1ms; kill:any@2ms every 1ms; stop:any@50ms", 1);
        for fault in all_due(&mut schedule, 40, &[Gone, Gone, Running]) {
            assert_eq!(fault.target, Some(Role::Strategy(StrategyIndex(2))));
        }
        assert_eq!(schedule.take_due(100 * MS, &[Gone; 3]), []);
        assert!(schedule.next_due_ns().is_some(), "it goes on when one lives again");
    }

    #[test]
    fn fault_waits_for_starting_strategy() {
        let mut due = schedule("kill:strategy-0@1ms; kill:engine@2ms; stop:any@3ms", 1);
        let targets_of = |faults: Vec<DueFault>| -> Vec<_> {
            faults.into_iter().filter_map(|fault| fault.target).collect()
        };
        let found = targets_of(due.take_due(10 * MS, &[Starting, Running]));
        assert_eq!(found, [Role::Orchestrator, Role::Strategy(StrategyIndex(1))]);
        assert_eq!(due.next_due_ns(), Some(MS), "it is still to come");
        assert_eq!(targets_of(due.take_due(20 * MS, &[Running; 2])), [Role::Strategy(StrategyIndex(0))]);

        let mut anybody = schedule("kill:any@1ms", 1);
        assert_eq!(anybody.take_due(MS, &[Gone, Starting]), []);
        assert_eq!(anybody.take_due(MS, &[Gone, Running]).len(), 1);
    }

    #[test]
    fn missed_repeats_are_not_made_up() {
        let mut schedule = schedule("kill:any@10ms every 10ms", 1);
        assert_eq!(schedule.take_due(1000 * MS, &[Running]).len(), 1);
        assert_eq!(schedule.next_due_ns(), Some(1010 * MS));
        assert_eq!(schedule.take_due(1012 * MS, &[Running]).len(), 1);
        assert_eq!(schedule.next_due_ns(), Some(1020 * MS), "on its beat as long as it keeps up");
    }

    proptest! {
        #[test]
        fn the_same_seed_chooses_the_same(seed: u64, other: u64, strategies in 1usize..20, dead in 0usize..20) {
            let faults = "kill:any@1ms every 1ms; stop:any@3ms every 7ms";
            let all: Vec<_> = (0..strategies).map(|index| if index == dead { Gone } else { Running }).collect();
            let run = |seed| all_due(&mut schedule(faults, seed), 100, &all);
            let found = run(seed);
            prop_assert_eq!(&found, &run(seed));
            let living = all.iter().filter(|presence| **presence == Running).count();
            prop_assert_eq!(found.len(), if living == 0 { 0 } else { 100 + 14 });
            let living_victim = |fault: &DueFault| match fault.target {
                Some(Role::Strategy(index)) => all[index.as_usize()] == Running,
                _ => false,
            };
            prop_assert!(found.iter().all(living_victim));
            if seed != other && living > 2 {
                prop_assert_ne!(found, run(other), "chance: 1 in 3^114 at most");
            }
        }

        #[test]
        fn every_living_strategy_has_its_fault_sooner_or_later(seed: u64) {
            let found = all_due(&mut schedule("kill:any@1ms every 1ms", seed), 200, &[Running; 4]);
            for index in 0..4 {
                prop_assert!(found.iter().any(|fault| fault.target == Some(Role::Strategy(StrategyIndex(index)))));
            }
        }
    }
}
