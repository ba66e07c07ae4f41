//! Which incarnations died, as the record tells it, and whose log is worth nothing.
//!
//! An incarnation that was killed has written down all that it did: its log is as good as any. One
//! that was quarantined may have written anything, and since all incarnations of a strategy share
//! one log, over what its predecessors wrote as well. So nothing in the log of such a strategy
//! proves anything, and only what the engine stamped of its orders counts. The same holds for one
//! that was told to scribble, caught at it or not; and for everybody's where it shared a process
//! with the engine.
//!
//! A strategy in a process of its own may also damage its log without being caught. What its log
//! says is doubted from the first word on that no honest strategy writes there; in the sandbox,
//! where strategies may be hostile, also from the first on that contradicts the engine. Whatever
//! one strategy writes, the others' figures stand.

use crate::record::{Outage, RunOutcome, RunRecord};
use protocol::plan::{FaultKind, FaultTarget, Isolation, Role, ThreadPlan};
use protocol::wire::MAX_EPOCH;

/// The dead of a run.
#[derive(Debug)]
pub(super) struct Deaths {
    strategies: Vec<Deceased>,
    is_known: bool,
    /// Strategies write their logs in processes of their own.
    are_apart: bool,
    /// And those processes may be hostile.
    are_sandboxed: bool,
    /// Somebody misbehaved, by the record or by the plan's faults: what the engine was handed then
    /// needs no other explanation.
    is_misconduct_known: bool,
    /// A strategy scribbled over a process that it shared with the engine.
    nobody_is_trusted: bool,
    /// For each gateway: it died by the record while the run went on, and nobody resumed its
    /// session.
    lost_gateways: Vec<bool>,
    /// For each of them: it has not come back after its last death.
    down_gateways: Vec<bool>,
    has_outage: bool,
}

/// The dead incarnations of one strategy.
#[derive(Clone, Debug, Default)]
struct Deceased {
    /// The place of each epoch's incident in the record, plus one; 0: there is none.
    incidents: Vec<u32>,
    is_untrusted: bool,
    /// By its log, not by the record.
    is_doubted: bool,
}

impl Deaths {
    /// The dead of this record. Incidents that no run can have had are passed over.
    pub fn new(record: &RunRecord) -> Self {
        let mut strategies = vec![Deceased::default(); usize::from(record.plan.trading().strategies)];
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
        // A record that was written before the first order, by a launcher that died, names no
        // incident.
        let launcher_died = record.exits.is_empty()
            && matches!(&record.outcome, RunOutcome::Failed { process, .. } if process == "launcher");
        let last = |gateway| record.outages.iter().rfind(|outage| outage.gateways.contains(&gateway));
        let gateways = 0..record.plan.trading().gateways();
        let is_lost = |gateway| {
            let is_resumed = record.plan.can_resume_gateway(gateway);
            let is_lost = |outage: &Outage| !is_resumed || outage.stayed_down.is_some();
            record.outages.iter().any(|outage| outage.gateways.contains(&gateway) && is_lost(outage))
        };
        let is_down = |gateway| last(gateway).is_some_and(|outage| outage.restarted_ns.is_none());
        Self {
            strategies,
            is_known: !launcher_died,
            are_apart: !is_thread,
            are_sandboxed: record.plan.isolation == Isolation::Sandbox,
            is_misconduct_known,
            nobody_is_trusted,
            lost_gateways: gateways.clone().map(is_lost).collect(),
            down_gateways: gateways.map(is_down).collect(),
            has_outage: !record.outages.is_empty(),
        }
    }

    /// Returns `true` if what was open at this gateway was lost with it: it died by the record, and
    /// nobody resumed its session.
    pub fn is_lost_gateway(&self, gateway: usize) -> bool {
        self.lost_gateways.get(gateway).copied().unwrap_or(false)
    }

    /// Returns `true` if that holds of some gateway.
    pub fn has_lost_gateway(&self) -> bool {
        self.lost_gateways.contains(&true)
    }

    /// Returns `true` if this gateway died and has not come back.
    pub fn is_down(&self, gateway: usize) -> bool {
        self.down_gateways.get(gateway).copied().unwrap_or(false)
    }

    /// Returns `true` if some gateway died.
    pub const fn has_outage(&self) -> bool {
        self.has_outage
    }

    /// Whether the record explains that somebody was handed what no honest peer hands over.
    pub fn explain_misconduct(&self) -> bool {
        self.is_misconduct_known
    }

    /// Whether strategies may lie about what they did.
    pub fn may_lie(&self) -> bool {
        self.are_sandboxed
    }

    /// The strategy whose log this is, if nobody else writes into it and nonsense in it is nobody
    /// else's either.
    pub fn sole_author(&self, thread: &ThreadPlan) -> Option<u16> {
        match thread.roles.as_slice() {
            [Role::Strategy(index)] if self.are_apart => Some(*index),
            _ => None,
        }
    }

    /// From now on nothing that a strategy wrote proves anything.
    pub fn distrust(&mut self, strategy: u16) {
        if let Some(deceased) = self.strategies.get_mut(usize::from(strategy)) {
            deceased.is_doubted = true;
        }
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
        self.nobody_is_trusted
            || self
                .strategies
                .get(usize::from(strategy))
                .is_some_and(|deceased| deceased.is_untrusted || deceased.is_doubted)
    }

    /// Whether it misbehaved by the record, so that what the engine has of it may be anything too.
    pub fn is_hostile(&self, strategy: u16) -> bool {
        self.nobody_is_trusted
            || self.strategies.get(usize::from(strategy)).is_some_and(|deceased| deceased.is_untrusted)
    }

    /// Whether a thread's log proves nothing.
    pub fn is_untrusted_log(&self, thread: &ThreadPlan) -> bool {
        self.nobody_is_trusted
            || thread
                .roles
                .iter()
                .any(|role| matches!(role, Role::Strategy(index) if self.is_untrusted(*index)))
    }
}
