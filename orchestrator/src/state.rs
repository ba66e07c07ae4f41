//! The state of an orchestrator behind a record of its journal, as plain values: what it has given aside, which is `shadow`'s.
//!
//! Only what decides what later records do is in it. What is read back is not believed: everything that is an index is looked at.

use super::kill::KillsState;
use super::line::{LineState, StrategyLine};
use super::positions::PositionsState;
use super::put::put;
use super::risk::RiskState;
use super::{Mute, Orchestrator};
use protocol::checksum::Checksum;
use protocol::wire::{Message, Order};
use serde::{Deserialize, Serialize};

/// The state of an orchestrator.
#[derive(Serialize, Deserialize)]
pub(crate) struct OrchestratorState {
    pub inboxes: Vec<Checksum>,
    /// Whether each strategy is served, and what was returned to it.
    pub returns: Vec<(bool, Checksum)>,
    pub lines: Vec<StrategyLine>,
    pub positions: PositionsState,
    pub venue_budgets: Vec<u64>,
    pub risk: RiskState,
    pub kills: KillsState,
    pub refused: Vec<u64>,
    /// Orders that wait, by their gateway.
    pub waiting: Vec<Vec<Message>>,
    pub counts: Counts,
    pub reported: Checksum,
    pub knows_writers: bool,
}

/// What it has counted.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Counts {
    pub waiting_peak: u64,
    pub dispatched: u64,
    pub reports: u64,
    pub settled: u64,
    pub returned: u64,
    pub rejected: u64,
    pub full: u64,
    pub faults: u64,
}

impl Orchestrator<Mute> {
    pub(crate) fn state(&self) -> OrchestratorState {
        OrchestratorState {
            inboxes: self.inboxes.iter().map(|inbox| inbox.sum).collect(),
            returns: self.returns.iter().map(|path| (path.is_open, path.sum)).collect(),
            lines: self.lines.clone(),
            positions: self.positions.state(),
            venue_budgets: self.venue_budgets.clone(),
            risk: self.risk.state(),
            kills: self.kills.state(),
            refused: self.refused.to_vec(),
            waiting: (0..self.inboxes.len()).map(|gateway| self.waiting.all(gateway)).collect(),
            counts: Counts {
                waiting_peak: self.waiting_peak,
                dispatched: self.dispatched,
                reports: self.reports,
                settled: self.settled,
                returned: self.returned,
                rejected: self.rejected,
                full: self.full,
                faults: self.faults,
            },
            reported: self.reported,
            knows_writers: self.knows_writers,
        }
    }

    /// Goes on from there, where nothing has happened yet. What cannot be is said; the orchestrator is of no use then.
    pub(crate) fn restore(&mut self, state: &OrchestratorState) -> Result<(), &'static str> {
        self.restore_gateways(state).ok_or("gateways")?;
        self.restore_strategies(state).ok_or("strategies")?;
        self.positions.restore(&state.positions).ok_or("positions")?;
        self.risk.restore(&state.risk).ok_or("limits")?;
        self.kills.restore(&state.kills, self.inboxes.len(), &self.risk).ok_or("kill switches")?;
        self.restore_waiting(state).ok_or("orders that wait")?;
        put(&mut self.venue_budgets, &state.venue_budgets).ok_or("orders of the plan")?;
        put(&mut self.refused, &state.refused).ok_or("reasons of rejections")?;
        let Counts { waiting_peak, dispatched, reports, settled, returned, rejected, full, faults } =
            state.counts;
        (self.waiting_peak, self.dispatched, self.reports) = (waiting_peak, dispatched, reports);
        (self.settled, self.returned, self.rejected) = (settled, returned, rejected);
        (self.full, self.faults) = (full, faults);
        (self.reported, self.knows_writers) = (state.reported, state.knows_writers);
        Ok(())
    }

    fn restore_gateways(&mut self, state: &OrchestratorState) -> Option<()> {
        (state.inboxes.len() == self.inboxes.len()).then_some(())?;
        for (inbox, sum) in self.inboxes.iter_mut().zip(&state.inboxes) {
            inbox.sum = *sum;
        }
        Some(())
    }

    fn restore_strategies(&mut self, state: &OrchestratorState) -> Option<()> {
        (state.returns.len() == self.returns.len()).then_some(())?;
        for (path, (is_open, sum)) in self.returns.iter_mut().zip(&state.returns) {
            (path.is_open, path.sum) = (*is_open, *sum);
        }
        let is_one = |(index, line): (usize, &StrategyLine)| {
            let told = match line.state {
                LineState::Dying { told, .. } => told,
                _ => 0,
            };
            usize::from(line.strategy) == index && told <= self.inboxes.len()
        };
        state.lines.iter().enumerate().all(is_one).then_some(())?;
        put(&mut self.lines, &state.lines)?;
        let is_dying = |line: &&StrategyLine| matches!(line.state, LineState::Dying { .. });
        self.dying = self.lines.iter().filter(is_dying).count();
        Some(())
    }

    fn restore_waiting(&mut self, state: &OrchestratorState) -> Option<()> {
        (state.waiting.len() == self.inboxes.len()).then_some(())?;
        for (gateway, messages) in state.waiting.iter().enumerate() {
            for message in messages {
                let order = Order::from_message(*message).ok()?;
                let is_ours = usize::from(order.id.strategy()) < self.lines.len()
                    && self.gateway(&order) == gateway
                    && self.waiting.push(gateway, message);
                is_ours.then_some(())?;
            }
        }
        Some(())
    }
}
