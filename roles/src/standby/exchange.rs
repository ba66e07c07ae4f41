//! The hot standby of an exchange.

use super::{PublishedCounts, StandbyBody};
use crate::book;
use crate::recovered;
use crate::role_context::RoleContext;
use anyhow::Result;
use journal::JournalFollower;
use protocol::log_scan::LogTotals;
use protocol::plan::Role;
use protocol::segments;
use protocol::trading::session_in;
use shm::attached::Attached;
use shm::memory::ReadOnlyWords;
use system::clock::Timebase;
use venue::{ExchangeReplica, MarketSetup};

pub(super) struct ExchangeStandby {
    venue: u16,
    market: Option<MarketSetup>,
    reports: PublishedCounts,
    log: ReadOnlyWords,
    totals: LogTotals,
}

impl ExchangeStandby {
    pub(super) fn new(parts: &mut RoleContext<'_, '_>, venue: u16) -> Result<Self> {
        book::map(parts, venue)?;
        Ok(Self {
            venue,
            market: Some(book::market(parts, venue)?),
            reports: PublishedCounts::new([session_in(venue)].into_iter(), parts.attached)?,
            log: segments::log(parts.attached, &parts.thread.name)?,
            totals: book::log_totals(parts.plan),
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
        state.confirm_sent(self.reports.published().into_iter().sum());
    }

    fn confirm_all(state: &mut ExchangeReplica) {
        state.confirm_sent(u64::MAX);
    }

    fn poll_log(&mut self) {
        self.totals.scan(&self.log);
    }

    fn hand_over(self, follower: Option<JournalFollower<ExchangeReplica>>, attached: &mut Attached<'_>) {
        recovered::standby(attached, Role::Exchange(self.venue)).store((follower, self.totals));
    }
}
