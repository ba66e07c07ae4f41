//! Which incarnations died, as the record tells it, and whose log is worth nothing.
//!
//! An incarnation that was killed has written down all that it did: its log is as good as any. One that was
//! quarantined may have written anything, and since all incarnations of a strategy share one log, over what its
//! predecessors wrote as well. So nothing in the log of such a strategy proves anything, and only what the engine stamped of
//! its orders counts.

use crate::record::{Incident, Outcome, RunRecord};
use shm::plan::{FaultKind, Role, Target, ThreadPlan};
use shm::wire::MAX_EPOCH;

/// The dead of a run.
#[derive(Debug)]
pub(super) struct Deaths {
    strategies: Vec<Deceased>,
    is_known: bool,
}

/// The dead incarnations of one strategy.
#[derive(Clone, Debug, Default)]
struct Deceased {
    /// The place of each epoch's incident in the record, plus one; 0: there is none.
    incidents: Vec<u32>,
    is_untrusted: bool,
}

impl Deaths {
    /// The dead of this record. Incidents that no run can have had are passed over.
    pub fn new(record: &RunRecord) -> Self {
        let mut strategies = vec![Deceased::default(); usize::from(record.plan.strategies)];
        for (place, incident) in record.incidents.iter().enumerate() {
            let epoch = usize::from(incident.epoch);
            let Some(deceased) = strategies.get_mut(usize::from(incident.strategy)) else { continue };
            if incident.epoch > MAX_EPOCH {
                continue;
            }
            if deceased.incidents.len() <= epoch {
                deceased.incidents.resize(epoch + 1, 0);
            }
            if deceased.incidents[epoch] == 0 {
                deceased.incidents[epoch] = u32::try_from(place + 1).unwrap_or(0);
            }
            deceased.is_untrusted |= incident.quarantined.is_some() || may_have_scribbled(record, incident);
        }
        // A record that was written before the first order, by a launcher that died, names no incident.
        let launcher_died =
            matches!(&record.outcome, Outcome::Failed { process, .. } if process == "launcher");
        Self { strategies, is_known: !launcher_died }
    }

    /// Whether the record can know of every death: its launcher lived to the end.
    pub fn are_known(&self) -> bool {
        self.is_known
    }

    /// The place in the record of the incident that ended an incarnation.
    pub fn incident(&self, strategy: u16, epoch: u16) -> Option<usize> {
        let place = self.strategies.get(usize::from(strategy))?.incidents.get(usize::from(epoch))?;
        (*place as usize).checked_sub(1)
    }

    /// The last epoch that a strategy can have had: one after the last that died.
    pub fn last_epoch(&self, strategy: u16) -> u16 {
        match self.strategies.get(usize::from(strategy)) {
            Some(deceased) if self.is_known => deceased.incidents.len().min(usize::from(MAX_EPOCH)) as u16,
            _ => MAX_EPOCH,
        }
    }

    /// Whether the strategy's log proves nothing.
    pub fn is_untrusted(&self, strategy: u16) -> bool {
        self.strategies.get(usize::from(strategy)).is_some_and(|deceased| deceased.is_untrusted)
    }

    /// Whether a thread's log proves nothing.
    pub fn is_untrusted_log(&self, thread: &ThreadPlan) -> bool {
        thread.roles.iter().any(|role| matches!(role, Role::Strategy(index) if self.is_untrusted(*index)))
    }
}

/// Whether the incident may be that of a strategy that was told to scribble and was not caught at it. Where the victim
/// is drawn, the record does not say who it was: anybody who died of something else than a kill.
fn may_have_scribbled(record: &RunRecord, incident: &Incident) -> bool {
    record.plan.faults.iter().filter(|fault| fault.kind == FaultKind::Scribble).any(|fault| {
        match fault.target {
            Target::Strategy(index) => index == incident.strategy,
            Target::Any => !incident.cause.starts_with("signal 9 "),
            Target::Engine | Target::Launcher => false,
        }
    })
}
