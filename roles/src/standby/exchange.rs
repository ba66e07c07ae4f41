//! The hot standby of an exchange.

use super::{PublishedCounts, StandbyBody};
use crate::book;
use crate::recovered::{FollowedJournal, StandbyState};
use anyhow::Result;
use journal::Reader;
use protocol::index::VenueIndex;
use protocol::log_scan::LogTotals;
use protocol::plan::{Plan, ThreadPlan};
use protocol::segments;
use protocol::sender::SendQueue;
use protocol::trading::session_in;
use shm::attached::Attached;
use shm::memory::ReadOnlyWords;
use system::clock::Timebase;
use venue::{ExchangeReplica, MarketSetup};

pub(super) struct ExchangeStandby {
    market: Option<MarketSetup>,
    reports: PublishedCounts,
    log: ReadOnlyWords,
    totals: LogTotals,
    queues: Vec<SendQueue>,
}

impl ExchangeStandby {
    pub(super) fn new(
        plan: &Plan,
        thread: &ThreadPlan,
        venue: VenueIndex,
        attached: &mut Attached<'_>,
    ) -> Result<Self> {
        book::map(plan, thread, venue, attached)?;
        Ok(Self {
            market: Some(book::market(plan, venue, attached)?),
            reports: PublishedCounts::new(plan.trading().gateways_of(venue).map(session_in), attached)?,
            log: segments::attach_log(attached, &thread.name)?,
            totals: book::log_totals(plan),
            queues: book::session_queues(plan, venue),
        })
    }
}

impl StandbyBody for ExchangeStandby {
    type State = ExchangeReplica;

    fn initial_state(&mut self, time: Timebase) -> Option<ExchangeReplica> {
        Some(ExchangeReplica::new(self.market.take()?, time))
    }

    fn has_unconfirmed(state: &ExchangeReplica) -> bool {
        state.has_unsent()
    }

    fn confirm(&self, state: &mut ExchangeReplica) {
        state.confirm_sent(&self.reports.published());
    }

    fn poll_log(&mut self) {
        self.totals.scan(&self.log);
    }

    fn hand_over(self, replica: Option<(ExchangeReplica, Reader)>) -> StandbyState {
        StandbyState::Exchange(Box::new(FollowedJournal {
            replica,
            totals: self.totals,
            queues: self.queues,
        }))
    }
}
