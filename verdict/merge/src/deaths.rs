//! The incarnations that died according to the run's record, and the logs that are untrusted
//! because of that.
//!
//! A strategy is *hostile* if it may have written anything: then no stamp of its own counts. A log
//! is *untrusted* if its strategy is hostile, or if only the log's own stamps are in doubt.
//!
//! A killed incarnation has logged all that it did: its log is trusted. A quarantined incarnation
//! may have written anything, including over its predecessors' stamps, since all incarnations of a
//! strategy share one log. The log of such a strategy is untrusted, and only the engine's stamps of
//! its orders count. This also applies to a strategy with a `scribble` fault, detected or not, and
//! to everything in a process that such a strategy shared with the engine.
//!
//! A thread of the engine's process that hangs is abandoned, and may run again: what it logs then
//! was never received. Only the engine's stamps of its orders count.
//!
//! A strategy in its own process may also damage its log undetected. Its log is distrusted from the
//! first record that no correct strategy writes; in the sandbox, where strategies may be hostile,
//! also from the first one that contradicts the engine. Figures of other strategies are unaffected.

use protocol::index::{GatewayIndex, StrategyIndex};
use protocol::plan::{Fault, FaultKind, FaultTarget, Isolation, IsolationLevels, Role, ThreadPlan};
use protocol::wire::MAX_EPOCH;
use record::run::{Outage, RunOutcome, RunRecord};

/// The deaths in a run, and which logs of dead or hostile strategies are trusted.
#[derive(Debug)]
pub(super) struct Deaths {
    strategies: Vec<DeadIncarnations>,
    /// Whether the record has every death, because the launcher survived the run.
    pub is_complete: bool,
    /// The levels of the strategies. A log has a sole author unless its strategy is a thread of the
    /// engine's process.
    isolation: IsolationLevels,
    /// A strategy with a `scribble` fault shared a process with the engine: every log may be its
    /// work.
    is_everyone_hostile: bool,
    /// For each gateway: whether it died without a successor that resumed its session, so that its
    /// open orders were lost.
    pub lost_gateways: Vec<bool>,
}

/// The dead incarnations of one strategy.
#[derive(Clone, Debug, Default)]
struct DeadIncarnations {
    /// For each epoch: index of its incident in the record plus one; 0 for none.
    incidents: Vec<u32>,
    /// The last epoch that an operator added; 0 for none.
    added: u16,
    /// It was quarantined, or has a `scribble` fault.
    is_hostile: bool,
    /// Only its log is in doubt: because of what is in the log, or because an abandoned thread may
    /// have run again.
    is_log_doubted: bool,
}

impl Deaths {
    /// Derives from a run's record which strategies died, in which incarnations, and which logs are
    /// untrusted. Impossible incidents are ignored.
    pub fn new(record: &RunRecord) -> Self {
        let mut strategies = vec![DeadIncarnations::default(); usize::from(record.plan.trading().strategies)];
        for (index, incident) in record.incidents.iter().enumerate() {
            let epoch = usize::from(incident.epoch);
            let Some(strategy_state) = strategies.get_mut(incident.strategy.as_usize()) else { continue };
            if incident.epoch > MAX_EPOCH {
                continue;
            }
            if strategy_state.incidents.len() <= epoch {
                strategy_state.incidents.resize(epoch + 1, 0);
            }
            if strategy_state.incidents[epoch] == 0 {
                strategy_state.incidents[epoch] = u32::try_from(index + 1).unwrap_or(0);
            }
            strategy_state.is_hostile |= incident.quarantined.is_some();
            strategy_state.is_log_doubted |= incident.abandoned;
        }
        for addition in record.additions.iter().filter(|addition| addition.epoch <= MAX_EPOCH) {
            if let Some(strategy_state) = strategies.get_mut(addition.strategy.as_usize()) {
                strategy_state.added = strategy_state.added.max(addition.epoch);
            }
        }
        let isolation = record.plan.isolation;
        let scribblers = || record.plan.faults.iter().filter(|fault| fault.kind == FaultKind::Scribble);
        let is_of_thread = |fault: &Fault| match fault.target {
            FaultTarget::Strategy(index) => isolation.kind_of(index) == Isolation::Thread,
            _ => isolation.has(Isolation::Thread),
        };
        for fault in scribblers() {
            if let FaultTarget::Strategy(index) = fault.target
                && let Some(strategy_state) = strategies.get_mut(index.as_usize())
            {
                strategy_state.is_hostile = true;
            }
        }
        // A record written before the first order, by a launcher that died, names no incident.
        let launcher_died = record.exits.is_empty()
            && matches!(&record.outcome, RunOutcome::Failed { process, .. } if process == "launcher");
        let is_lost = |gateway| {
            let is_resumed = record.plan.can_resume_gateway(gateway);
            let is_lost = |outage: &Outage| !is_resumed || outage.stayed_down.is_some();
            record.outages.iter().any(|outage| outage.gateways.contains(&gateway) && is_lost(outage))
        };
        Self {
            strategies,
            is_complete: !launcher_died,
            is_everyone_hostile: scribblers().any(is_of_thread),
            isolation,
            lost_gateways: GatewayIndex::first(record.plan.trading().gateways()).map(is_lost).collect(),
        }
    }

    /// Returns the strategy that alone writes a thread's log, to which invalid records are
    /// therefore attributed; `None` if there are several writers.
    pub fn only_writer(&self, thread: &ThreadPlan) -> Option<StrategyIndex> {
        match thread.roles.as_slice() {
            [Role::Strategy(index)] if self.isolation.kind_of(*index) != Isolation::Thread => Some(*index),
            _ => None,
        }
    }

    /// Marks a strategy's log as untrusted because the log has invalid content. Its orders stay
    /// trusted.
    pub fn distrust(&mut self, strategy: StrategyIndex) {
        if let Some(strategy_state) = self.strategies.get_mut(strategy.as_usize()) {
            strategy_state.is_log_doubted = true;
        }
    }

    /// Returns the index in the run's record of the incident (death) that ended a strategy's
    /// incarnation; `None` without one.
    pub fn incident(&self, strategy: StrategyIndex, epoch: u16) -> Option<usize> {
        let index = self.strategies.get(strategy.as_usize())?.incidents.get(usize::from(epoch))?;
        (*index as usize).checked_sub(1)
    }

    /// Returns the highest epoch (incarnation number, from 0) that a strategy can have reached by
    /// deaths and operators' additions.
    pub fn last_epoch(&self, strategy: StrategyIndex) -> u16 {
        match self.strategies.get(strategy.as_usize()) {
            Some(strategy_state) if self.is_complete => {
                let after_death = strategy_state.incidents.len().min(usize::from(MAX_EPOCH)) as u16;
                after_death.max(strategy_state.added)
            }
            _ => MAX_EPOCH,
        }
    }

    /// Returns `true` if a strategy's own stamps do not count: it is hostile, or its log is in
    /// doubt.
    pub fn is_untrusted(&self, strategy: StrategyIndex) -> bool {
        let state = self.strategies.get(strategy.as_usize());
        self.is_hostile(strategy) || state.is_some_and(|state| state.is_log_doubted)
    }

    /// Returns `true` if a strategy may have forged stamps: it was quarantined, has a `scribble`
    /// fault, or one with that fault shared the engine's process. Then even the engine's stamps of
    /// the strategy's orders may be invalid.
    pub fn is_hostile(&self, strategy: StrategyIndex) -> bool {
        let state = self.strategies.get(strategy.as_usize());
        self.is_everyone_hostile || state.is_some_and(|state| state.is_hostile)
    }

    /// Returns `true` if the stamp log of this thread of the plan is untrusted.
    pub fn is_untrusted_log(&self, thread: &ThreadPlan) -> bool {
        let is_untrusted = |role: &Role| matches!(role, Role::Strategy(index) if self.is_untrusted(*index));
        self.is_everyone_hostile || thread.roles.iter().any(is_untrusted)
    }
}
