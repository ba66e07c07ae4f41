//! Strategies that share a process of their own: a group.
//!
//! A group is one failure domain. Whichever of its strategies dies, hangs or violates the protocol,
//! its process is killed, and each of its strategies is fenced and repaired, with an incident of
//! its own. No strategy of a group is believed more than another: any of them could have written
//! the memory of the others.
//!
//! The group is restarted as a whole, once the engine has repaired what each of its strategies has
//! left. It stays down as a whole if one of them may not be restarted.

use super::Containment;
use super::strategies::early_exit;
use super::supervised::SupervisionStage;
use crate::actions::{Action, Actions};
use crate::observations::Observations;
use crate::stuck::Liveness;
use protocol::index::StrategyIndex;
use protocol::plan::Role;
use record::run::StayedDown;
use std::time::Duration;

impl Containment<'_> {
    /// Returns the strategies that share a process with this strategy and die with it, itself
    /// included; empty if it shares none.
    pub fn group_of(&self, strategy: StrategyIndex) -> Vec<StrategyIndex> {
        self.plan.group_of(strategy)
    }

    /// Returns `true` if the process with this index in the plan is shared by several strategies.
    pub fn has_group(&self, process: usize) -> bool {
        self.processes.iter().any(|case| case.is_process(process) && !case.group.is_empty())
    }

    /// Returns the places of the strategies that share a process, or only this place.
    pub(super) fn places_of_group(&self, place: usize) -> Vec<usize> {
        let group = &self.processes[place].group;
        if group.is_empty() { vec![place] } else { group.clone() }
    }

    /// Takes the others of a group down with the strategy of an incident: their process has exited,
    /// or is killed.
    pub(super) fn take_group(
        &mut self,
        place: usize,
        incident: usize,
        observed: &Observations,
        detected: u64,
    ) {
        let culprit = Role::Strategy(self.incidents[incident].strategy);
        let (cause, pid) = (self.incidents[incident].cause.clone(), self.incidents[incident].pid);
        let has_exited = observed.processes[self.processes[place].process].exit.is_some();
        for other in self.processes[place].group.clone() {
            let case = &self.processes[other];
            let is_up = matches!(
                case.stage,
                SupervisionStage::Running | SupervisionStage::Starting(_) | SupervisionStage::Joining(_)
            );
            if other == place || !is_up {
                continue;
            }
            // Of a process that has ended nobody knows which of its strategies was at fault.
            let cause = match has_exited && self.incidents[incident].quarantined.is_none() {
                true => early_exit(case, observed).unwrap_or_else(|| observed.exit_text(case.process)),
                false => format!("ended with its group: {culprit}: {cause}"),
            };
            let death = self.record_incident(other, pid, cause, observed, detected);
            let case = &mut self.processes[other];
            (case.stage, case.dying, case.has_hung_at_start) = (SupervisionStage::Killed(death), None, false);
        }
    }

    /// Returns `true` if the engine has repaired what each strategy of a group has left, or there
    /// is no group. Then each of their incidents has the time.
    pub(super) fn is_group_repaired(&mut self, place: usize, observed: &Observations) -> bool {
        self.processes[place].group.clone().into_iter().all(|other| match self.processes[other].stage {
            SupervisionStage::Fenced(death) => self.try_record_strategy_repair(other, death, observed),
            _ => false,
        })
    }

    /// Decides whether a repaired group is restarted, and when.
    pub(super) fn decide_restart_of_group(
        &mut self,
        place: usize,
        observed: &Observations,
        now: u64,
        out: &mut dyn Actions,
    ) {
        let deaths: Vec<(usize, usize)> = self.processes[place]
            .group
            .iter()
            .filter_map(|other| match self.processes[*other].stage {
                SupervisionStage::Fenced(death) => Some((*other, death)),
                _ => None,
            })
            .collect();
        // The process has made progress if one of its strategies has.
        let mut end = self.processes[place].end;
        for (other, _) in &deaths {
            let own = self.processes[*other].end;
            end.is_planned |= own.is_planned;
            end.has_traded |= own.has_traded;
            end.ran = end.ran.max(own.ran);
        }
        let mut pause: Option<Duration> = None;
        for (other, death) in &deaths {
            self.processes[*other].end = end;
            let own = self.strategy_pause(*other, *death, observed, out);
            pause = pause.max(own);
        }
        let down = deaths.iter().find_map(|(_, death)| {
            let incident = &self.incidents[*death];
            Some((incident.strategy, incident.stayed_down.clone()?))
        });
        if let Some((culprit, StayedDown { restarts, why })) = down {
            for (_, death) in &deaths {
                let why = format!("its group stays down with {}: {why}", Role::Strategy(culprit));
                self.incidents[*death].stayed_down.get_or_insert(StayedDown { restarts, why });
            }
            return;
        }
        if let Some(pause) = pause {
            let due = self.ns_since_start(now).saturating_add(pause.as_nanos() as u64);
            for (other, death) in deaths {
                self.processes[other].stage = SupervisionStage::Paused(death, due);
            }
        }
    }

    /// Starts each strategy of a group in its next epoch, in one process.
    pub(super) fn restart_group(
        &mut self,
        place: usize,
        liveness: &mut Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) {
        for other in self.places_of_group(place) {
            if let SupervisionStage::Paused(death, _) = self.processes[other].stage {
                self.prepare_incarnation(other, SupervisionStage::Starting(death), now, out);
                self.forget_last_incarnation(other, liveness, now);
            }
        }
        out.perform(Action::Restart(self.processes[place].process));
    }
}
