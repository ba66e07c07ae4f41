//! Strategies that operators add to a run: each takes the slot of a strategy that is down, which is
//! a spare, was retired, or has ended by itself.

use super::Containment;
use super::supervised::SupervisionStage;
use crate::actions::{Action, Actions};
use crate::observations::{Observations, OperatorAddition};
use crate::restart_policy::RestartPolicy;
use crate::stuck::Liveness;
use protocol::plan::OnDeath;
use protocol::wire::MAX_EPOCH;
use record::run::{Addition, EndByOperator};

impl Containment<'_> {
    /// Starts the strategies that operators have added: the engine has confirmed that they are
    /// down, once for each incarnation. If one is about to be restarted, the command decides what
    /// is started.
    pub(super) fn add_by_operators(
        &mut self,
        observed: &Observations,
        liveness: &mut Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) {
        // While a successor of the engine attaches, no dead strategy's memory is reset.
        if self.is_engine_recovering() {
            return;
        }
        for addition in &observed.added_by_operators {
            let Some(place) = self.place_of(addition.strategy) else { continue };
            let is_restarted = self.plan.on_death == OnDeath::Restart;
            let case = &mut self.processes[place];
            let is_dying = matches!(case.stage, SupervisionStage::Killed(_) | SupervisionStage::Fenced(_));
            if is_dying && (case.by_operator.is_some() || !is_restarted) {
                // It will be down soon.
                continue;
            }
            if !self.handled_commands.insert(addition.number) || case.is_thread || !case.group.is_empty() {
                continue;
            }
            let replaced = || EndByOperator::Replaced(addition.kind.clone());
            match case.stage {
                SupervisionStage::Down if case.epoch < MAX_EPOCH => {
                    self.start_addition(place, addition, liveness, now, out);
                }
                SupervisionStage::Killed(_) | SupervisionStage::Fenced(_) => {
                    case.by_operator = Some(replaced());
                }
                SupervisionStage::Paused(death, _) => {
                    case.stage = SupervisionStage::Paused(death, 0);
                    self.incidents[death].by_operator = Some(replaced());
                    self.set_kind(place, &addition.kind, out);
                }
                SupervisionStage::Down
                | SupervisionStage::Running
                | SupervisionStage::Starting(_)
                | SupervisionStage::Joining(_) => {}
            }
        }
    }

    /// Starts a strategy in its next epoch, in the place of one that is down.
    fn start_addition(
        &mut self,
        place: usize,
        addition: &OperatorAddition,
        liveness: &mut Liveness,
        now: u64,
        out: &mut dyn Actions,
    ) {
        self.set_kind(place, &addition.kind, out);
        let case = &mut self.processes[place];
        // What its predecessors did is not charged to it.
        case.policy = RestartPolicy::default();
        let (strategy, epoch) = (case.strategy(), case.epoch + 1);
        self.additions.push(Addition {
            strategy,
            epoch,
            kind: addition.kind.clone(),
            started_ns: self.ns_since_start(now),
            running_ns: None,
        });
        let stage = SupervisionStage::Joining(self.additions.len() - 1);
        self.start_incarnation(place, stage, liveness, now, out);
    }

    /// Gives a strategy another kind from its next incarnation on, unless it is empty.
    pub(super) fn set_kind(&self, place: usize, kind: &str, out: &mut dyn Actions) {
        if !kind.is_empty() {
            out.perform(Action::SetKind(self.processes[place].process, kind.to_owned()));
        }
    }
}
