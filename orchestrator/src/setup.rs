//! How an orchestrator is put together.

use super::kill::Kills;
use super::line::StrategyLine;
use super::risk::{Risk, RiskSetup, SettingError};
use super::waiting::WaitingRoom;
use super::{Inbox, Orchestrator, Positions, ReturnPath, Supervision, work::Work};
use protocol::checksum::Checksum;
use protocol::desk::MAX_REASONS;
use shm::ring::Consumer;
use std::collections::VecDeque;

/// The most open orders of a strategy that there is room for, whatever it may have.
const MOST_OPEN: usize = 1 << 24;

/// How many orders may wait for room in an inbox unless [`Orchestrator::waiting`] says so.
const DEFAULT_WAITING: u32 = 64;

impl<R: Consumer> Orchestrator<R> {
    /// An orchestrator over these links; `returns` has one entry for each strategy, `inboxes` one for each venue and credential, the
    /// credentials of a venue side by side. Without [`Orchestrator::supervised`] no strategy is ever retired or started again.
    ///
    /// # Errors
    /// A limit that there cannot be.
    ///
    /// # Panics
    /// If the setup is for other numbers of strategies and gateways.
    pub fn new(
        submit: R,
        completion: R,
        inboxes: Vec<Inbox>,
        returns: Vec<ReturnPath>,
        setup: &RiskSetup<'_>,
        work: Work,
    ) -> Result<Self, SettingError> {
        let risk = Risk::new(setup)?;
        let credentials = setup.credentials.max(1);
        assert!(returns.len() == setup.strategies && inboxes.len() == setup.venues * credentials);
        let room = usize::try_from(setup.max_open).unwrap_or(usize::MAX).min(MOST_OPEN);
        let positions = Positions::new(returns.len(), risk.instruments(), room);
        let waiting = WaitingRoom::new(inboxes.len(), DEFAULT_WAITING, DEFAULT_WAITING);
        Ok(Self {
            submit,
            completion,
            inboxes,
            lines: (0..returns.len()).map(|index| StrategyLine::new(index as u16)).collect(),
            returns_wait: false,
            supervision: None,
            dying: 0,
            next_look: 0,
            damaged: false,
            stands: None,
            positions,
            venue_budgets: Vec::new(),
            kills: Kills::new(returns.len()),
            risk,
            desk: None,
            refused: [0; MAX_REASONS],
            credentials,
            venues: setup.venues,
            work,
            unbooked: None,
            waiting,
            waiting_peak: 0,
            #[cfg(test)]
            is_broken: false,
            knows_writers: true,
            dispatched: 0,
            reports: 0,
            settled: 0,
            returned: 0,
            rejected: 0,
            full: 0,
            faults: 0,
            reported: Checksum::default(),
            is_kept: false,
            journal: None,
            decided: None,
            held: VecDeque::new(),
            failed: None,
            returns,
        })
    }

    /// The same for strategies of which each has so many orders to send in all: one more is a flood. What the plan has room
    /// for in the stamp logs nobody can use up for the others.
    #[must_use]
    pub fn expecting(mut self, orders: &[u64]) -> Self {
        for (line, orders) in self.lines.iter_mut().zip(orders) {
            line.budget = *orders;
        }
        self
    }

    /// The same with a limit for each strategy and venue, laid out as [`protocol::workload::Trading::venue_orders`]: the stamp log of a
    /// gateway with a thread of its own has room for no more. Empty: no such limit.
    #[must_use]
    pub fn expecting_at_venues(self, venue_orders: &[u64]) -> Self {
        Self { venue_budgets: venue_orders.to_vec(), ..self }
    }

    /// The same with room for so many orders of all venues together that find their gateway's inbox full, and of at most `limit` of
    /// one venue. What finds no room there is rejected. Where there is room for every order that strategies may have open, none is.
    #[must_use]
    pub fn waiting(self, orders: u32, limit: u32) -> Self {
        Self { waiting: WaitingRoom::new(self.inboxes.len(), orders, limit), ..self }
    }

    /// The same, told of deaths by the launcher.
    #[must_use]
    pub fn supervised(self, supervision: Supervision) -> Self {
        Self { supervision: Some(supervision), ..self }
    }

    /// The same over other ends of the contended hand-offs.
    pub fn over<Q: Consumer>(self, submit: Q, completion: Q) -> Orchestrator<Q> {
        Orchestrator {
            submit,
            completion,
            inboxes: self.inboxes,
            returns: self.returns,
            returns_wait: self.returns_wait,
            lines: self.lines,
            supervision: self.supervision,
            dying: self.dying,
            next_look: self.next_look,
            damaged: self.damaged,
            stands: self.stands,
            positions: self.positions,
            venue_budgets: self.venue_budgets,
            risk: self.risk,
            kills: self.kills,
            desk: self.desk,
            refused: self.refused,
            credentials: self.credentials,
            venues: self.venues,
            work: self.work,
            unbooked: self.unbooked,
            waiting: self.waiting,
            waiting_peak: self.waiting_peak,
            #[cfg(test)]
            is_broken: self.is_broken,
            knows_writers: self.knows_writers,
            dispatched: self.dispatched,
            reports: self.reports,
            settled: self.settled,
            returned: self.returned,
            rejected: self.rejected,
            full: self.full,
            faults: self.faults,
            reported: self.reported,
            is_kept: self.is_kept,
            journal: self.journal,
            decided: self.decided,
            held: self.held,
            failed: self.failed,
        }
    }
}
