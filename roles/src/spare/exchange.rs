//! The hot standby of an exchange.

use super::{Body, Sent};
use crate::book;
use crate::parts::Parts;
use anyhow::Result;
use journal::Follower;
use protocol::tally::{self, Past, Tally};
use protocol::trading::session_in;
use protocol::wire::MAX_STRATEGIES;
use shm::attached::Attached;
use system::clock::Timebase;
use venue::{MarketSetup, Shadow};

/// The spare of a venue's exchange.
pub(super) struct Spare {
    venue: u16,
    market: Option<MarketSetup>,
    reports: Sent,
    log: Past,
    tally: Tally,
}

impl Spare {
    pub(super) fn new(parts: &mut Parts<'_, '_>, venue: u16) -> Result<Self> {
        book::map(parts, venue)?;
        let sessions = parts.plan.trading().gateways_of(venue);
        Ok(Self {
            venue,
            market: Some(book::market(parts, venue)?),
            reports: Sent::new(sessions.map(session_in), parts.attached)?,
            log: tally::past(parts.attached, parts.plan, parts.thread)?,
            tally: book::tally(parts.plan),
        })
    }
}

impl Body for Spare {
    type State = Shadow;

    fn begin(&mut self, time: Timebase) -> Option<Shadow> {
        Some(Shadow::new(self.market.take()?, time))
    }

    fn keeps_something(state: &Shadow) -> bool {
        state.has_unsent()
    }

    fn has_gone(&self, state: &mut Shadow) {
        state.were_sent(&self.reports.published());
    }

    fn has_all_gone(state: &mut Shadow) {
        state.were_sent(&[u64::MAX; MAX_STRATEGIES]);
    }

    fn look(&mut self) {
        self.log.look(&mut self.tally);
    }

    fn keep(self, follower: Option<Follower<Shadow>>, attached: &mut Attached<'_>) {
        book::keep(attached, self.venue, (follower, self.tally));
    }
}
