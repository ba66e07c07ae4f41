//! The hot standby of an exchange.

use super::{Body, Sent};
use crate::book;
use crate::parts::Parts;
use anyhow::Result;
use journal::JournalFollower;
use protocol::log_scan::{self, LogCursor, PriorLog};
use protocol::trading::session_in;
use protocol::wire::MAX_STRATEGIES;
use shm::attached::Attached;
use system::clock::Timebase;
use venue::{ExchangeReplica, MarketSetup};

/// The spare of a venue's exchange.
pub(super) struct Spare {
    venue: u16,
    market: Option<MarketSetup>,
    reports: Sent,
    log: PriorLog,
    tally: LogCursor,
}

impl Spare {
    pub(super) fn new(parts: &mut Parts<'_, '_>, venue: u16) -> Result<Self> {
        book::map(parts, venue)?;
        let sessions = parts.plan.trading().gateways_of(venue);
        Ok(Self {
            venue,
            market: Some(book::market(parts, venue)?),
            reports: Sent::new(sessions.map(session_in), parts.attached)?,
            log: log_scan::prior_log(parts.attached, parts.plan, parts.thread)?,
            tally: book::tally(parts.plan),
        })
    }
}

impl Body for Spare {
    type State = ExchangeReplica;

    fn begin(&mut self, time: Timebase) -> Option<ExchangeReplica> {
        Some(ExchangeReplica::new(self.market.take()?, time))
    }

    fn keeps_something(state: &ExchangeReplica) -> bool {
        state.has_unsent()
    }

    fn has_gone(&self, state: &mut ExchangeReplica) {
        state.were_sent(&self.reports.published());
    }

    fn has_all_gone(state: &mut ExchangeReplica) {
        state.were_sent(&[u64::MAX; MAX_STRATEGIES]);
    }

    fn look(&mut self) {
        self.log.scan(&mut self.tally);
    }

    fn keep(self, follower: Option<JournalFollower<ExchangeReplica>>, attached: &mut Attached<'_>) {
        book::keep(attached, self.venue, (follower, self.tally));
    }
}
