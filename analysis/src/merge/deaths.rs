//! Which incarnations died according to the record, and which logs are untrusted.
//!
//! A killed incarnation has logged all that it did: its log is trusted. A quarantined incarnation
//! may have written anything, including over its predecessors' stamps, since all incarnations of a
//! strategy share one log. The log of such a strategy is untrusted, and only the engine's stamps of
//! its orders count. This also applies to a strategy with a `scribble` fault, detected or not, and
//! to everything in a process that such a strategy shared with the engine.
//!
//! A strategy in its own process may also damage its log undetected. Its log is distrusted from the
//! first record that no correct strategy writes; in the sandbox, where strategies may be hostile,
//! also from the first one that contradicts the engine. Figures of other strategies are unaffected.

use crate::record::{Outage, RunOutcome, RunRecord};
use protocol::plan::{FaultKind, FaultTarget, Isolation, Role, ThreadPlan};
use protocol::wire::MAX_EPOCH;

/// The deaths in a run, and which logs of dead or hostile strategies are trusted.
#[derive(Debug)]
pub(super) struct Deaths {
    strategies: Vec<DeadIncarnations>,
    is_complete: bool,
    /// Strategies write their logs in their own processes.
    has_strategy_processes: bool,
    /// The strategies' processes may be hostile.
    has_sandbox: bool,
    /// A violation is in the record or planned as a fault: it explains invalid messages that the
    /// engine received.
    has_known_violation: bool,
    /// A strategy with a `scribble` fault shared a process with the engine.
    is_everyone_untrusted: bool,
    /// For each gateway: whether it died during the run without a successor that resumed its
    /// session.
    lost_gateways: Vec<bool>,
    /// For each gateway: whether it stayed down after its last death.
    down_gateways: Vec<bool>,
    has_outage: bool,
}

/// The dead incarnations of one strategy.
#[derive(Clone, Debug, Default)]
struct DeadIncarnations {
    /// For each epoch: index of its incident in the record plus one; 0 for none.
    incidents: Vec<u32>,
    is_untrusted: bool,
    /// Distrusted because of its log, not because of the record.
    is_doubted: bool,
}

impl Deaths {
    /// Derives the deaths in a run, and the untrusted logs, from the run's record. Impossible
    /// incidents are ignored.
    pub fn new(record: &RunRecord) -> Self {
        let mut strategies = vec![DeadIncarnations::default(); usize::from(record.plan.trading().strategies)];
        for (index, incident) in record.incidents.iter().enumerate() {
            let epoch = usize::from(incident.epoch);
            let Some(deceased) = strategies.get_mut(usize::from(incident.strategy)) else { continue };
            if incident.epoch > MAX_EPOCH {
                continue;
            }
            if deceased.incidents.len() <= epoch {
                deceased.incidents.resize(epoch + 1, 0);
            }
            if deceased.incidents[epoch] == 0 {
                deceased.incidents[epoch] = u32::try_from(index + 1).unwrap_or(0);
            }
            deceased.is_untrusted |= incident.quarantined.is_some();
        }
        let is_thread = record.plan.isolation == Isolation::Thread;
        let scribblers = record.plan.faults.iter().filter(|fault| fault.kind == FaultKind::Scribble);
        let mut nobody_is_trusted = false;
        for fault in scribblers {
            nobody_is_trusted |= is_thread;
            if let FaultTarget::Strategy(index) = fault.target
                && let Some(deceased) = strategies.get_mut(usize::from(index))
            {
                deceased.is_untrusted = true;
            }
        }
        let misbehaves =
            |fault: &protocol::plan::Fault| matches!(fault.kind, FaultKind::Scribble | FaultKind::Flood);
        let is_misconduct_known = record.incidents.iter().any(|incident| incident.quarantined.is_some())
            || record.plan.faults.iter().any(misbehaves);
        // A record written before the first order, by a launcher that died, names no incident.
        let launcher_died = record.exits.is_empty()
            && matches!(&record.outcome, RunOutcome::Failed { process, .. } if process == "launcher");
        let last = |gateway| record.outages.iter().rfind(|outage| outage.gateways.contains(&gateway));
        let gateways = 0..record.plan.trading().venues;
        let is_lost = |gateway| {
            let is_resumed = record.plan.can_resume_gateway(gateway);
            let is_lost = |outage: &Outage| !is_resumed || outage.stayed_down.is_some();
            record.outages.iter().any(|outage| outage.gateways.contains(&gateway) && is_lost(outage))
        };
        let is_down = |gateway| last(gateway).is_some_and(|outage| outage.restarted_ns.is_none());
        Self {
            strategies,
            is_complete: !launcher_died,
            has_strategy_processes: !is_thread,
            has_sandbox: record.plan.isolation == Isolation::Sandbox,
            has_known_violation: is_misconduct_known,
            is_everyone_untrusted: nobody_is_trusted,
            lost_gateways: gateways.clone().map(is_lost).collect(),
            down_gateways: gateways.map(is_down).collect(),
            has_outage: !record.outages.is_empty(),
        }
    }

    /// Returns `true` if the gateway died and no successor resumed its session: its open orders
    /// were lost.
    pub fn is_lost_gateway(&self, gateway: usize) -> bool {
        self.lost_gateways.get(gateway).copied().unwrap_or(false)
    }

    /// Returns `true` if any gateway died and no successor resumed its session.
    pub fn has_lost_gateway(&self) -> bool {
        self.lost_gateways.contains(&true)
    }

    /// Returns `true` if this gateway died and stayed down.
    pub fn is_down(&self, gateway: usize) -> bool {
        self.down_gateways.get(gateway).copied().unwrap_or(false)
    }

    /// Returns `true` if any gateway of the run died.
    pub const fn has_outage(&self) -> bool {
        self.has_outage
    }

    /// Returns `true` if the run's record explains why a thread received invalid messages.
    pub fn has_known_violation(&self) -> bool {
        self.has_known_violation
    }

    /// Returns `true` if strategies of the run may forge their stamps.
    pub fn can_be_hostile(&self) -> bool {
        self.has_sandbox
    }

    /// Returns the strategy that alone writes this log, to which invalid records are therefore
    /// attributed.
    pub fn sole_author(&self, thread: &ThreadPlan) -> Option<u16> {
        match thread.roles.as_slice() {
            [Role::Strategy(index)] if self.has_strategy_processes => Some(*index),
            _ => None,
        }
    }

    /// Marks the log of a strategy as untrusted.
    pub fn distrust(&mut self, strategy: u16) {
        if let Some(deceased) = self.strategies.get_mut(usize::from(strategy)) {
            deceased.is_doubted = true;
        }
    }

    /// Returns `true` if the run's record has every death: the launcher survived the run.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the index of the strategy death that ended an incarnation, in the run's record.
    pub fn incident(&self, strategy: u16, epoch: u16) -> Option<usize> {
        let index = self.strategies.get(usize::from(strategy))?.incidents.get(usize::from(epoch))?;
        (*index as usize).checked_sub(1)
    }

    /// Returns the last possible epoch of a strategy: one after the last that died.
    pub fn last_epoch(&self, strategy: u16) -> u16 {
        match self.strategies.get(usize::from(strategy)) {
            Some(deceased) if self.is_complete => deceased.incidents.len().min(usize::from(MAX_EPOCH)) as u16,
            _ => MAX_EPOCH,
        }
    }

    /// Returns `true` if a strategy's log is untrusted.
    pub fn is_untrusted(&self, strategy: u16) -> bool {
        self.is_everyone_untrusted
            || self
                .strategies
                .get(usize::from(strategy))
                .is_some_and(|deceased| deceased.is_untrusted || deceased.is_doubted)
    }

    /// Returns `true` if a strategy misbehaved according to the record. Then even the engine's
    /// stamps of its orders may be invalid.
    pub fn is_hostile(&self, strategy: u16) -> bool {
        self.is_everyone_untrusted
            || self.strategies.get(usize::from(strategy)).is_some_and(|deceased| deceased.is_untrusted)
    }

    /// Returns `true` if a thread's log is untrusted.
    pub fn is_untrusted_log(&self, thread: &ThreadPlan) -> bool {
        self.is_everyone_untrusted
            || thread
                .roles
                .iter()
                .any(|role| matches!(role, Role::Strategy(index) if self.is_untrusted(*index)))
    }
}
