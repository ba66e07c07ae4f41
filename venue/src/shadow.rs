//! A replica of an exchange: applies the records of its journal, sends nothing, and keeps outputs
//! that may not have been sent.
//!
//! It is the state between two records. As bytes it is a snapshot; beside a living exchange it
//! follows that one's journal, writes the snapshots (so that the exchange never stands still for
//! one), and is what a successor goes on from.

use crate::answers::Trade;
use crate::carry::{Counted, carry_out};
use crate::commands::JournalEntry;
use crate::market::{At, ExecutionSink, Market, MarketSetup, MarketState};
use crate::session::Counts;
use exchange::Exchange;
use journal::{Outbox, Record, RecoveryError, State};
use protocol::wire::{Message, Report};
use serde::{Deserialize, Serialize};
use std::error::Error;
use system::clock::Timebase;

/// What has gone through a session.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionPast {
    pub counts: Counts,
    /// Its reports, each with its place among all reports.
    pub reports: Outbox<(u64, Message)>,
}

/// What an exchange has given up to a record, and what of that may not have gone out.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplayedOutput {
    pub sessions: Vec<SessionPast>,
    pub received: u64,
    pub completed: u64,
    pub faults: u64,
    /// When the last record was carried out, in ticks.
    pub now: u64,
    /// The order that it was, if it was one.
    pub order: Option<Message>,
    /// Trades, with their time. Of those before the last record it is certain that they are on the
    /// tape.
    pub trades: Outbox<(u64, Trade)>,
    /// The last trade of each instrument, and how many there were.
    pub touches: Vec<(Option<(i64, u64)>, u64)>,
    /// All that has gone out, as soon as that is certain.
    #[serde(skip)]
    pub known: Option<Known>,
}

/// Reports that were sent, by the session, and trades on the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub published: Vec<u64>,
    pub trades: u64,
}

impl ReplayedOutput {
    pub fn drop_gone(&mut self) {
        if let Some(known) = &self.known {
            let sessions = self.sessions.iter_mut().zip(&known.published);
            sessions.for_each(|(session, published)| session.reports.confirm(*published));
            self.trades.confirm(known.trades);
        }
    }
}

impl AsMut<ReplayedOutput> for ReplayedOutput {
    fn as_mut(&mut self) -> &mut ReplayedOutput {
        self
    }
}

impl Counted for ReplayedOutput {
    fn counts(&mut self, session: usize) -> &mut Counts {
        &mut self.sessions[session].counts
    }

    fn fault(&mut self) {
        self.faults += 1;
    }
}

impl ExecutionSink for ReplayedOutput {
    fn take(&mut self, reports: &[Report], trades: &[Trade]) {
        for report in reports {
            let session = usize::from(report.id.strategy()) % self.sessions.len();
            let outbox = &mut self.sessions[session].reports;
            outbox.push((self.completed, report.to_message()));
            if let Some(known) = &self.known {
                outbox.confirm(known.published[session]);
            }
            self.completed += 1;
        }
        for trade in trades {
            self.trades.push((self.now, *trade));
            if let Some(known) = &self.known {
                self.trades.confirm(known.trades);
            }
            if let Some((last, count)) = self.touches.get_mut(usize::from(trade.instrument)) {
                (*last, *count) = (Some((trade.price, trade.quantity)), *count + 1);
            }
        }
    }

    fn close(&mut self, _: &Exchange) {}
}

/// An exchange's reports and trades while its journal is read, and its books as they were when
/// trading was over.
struct Replayed<'a, F> {
    past: &'a mut ReplayedOutput,
    close: F,
}

impl<F> AsMut<ReplayedOutput> for Replayed<'_, F> {
    fn as_mut(&mut self) -> &mut ReplayedOutput {
        self.past
    }
}

impl<F: FnMut(&Exchange)> ExecutionSink for Replayed<'_, F> {
    fn take(&mut self, reports: &[Report], trades: &[Trade]) {
        self.past.take(reports, trades);
    }

    fn close(&mut self, exchange: &Exchange) {
        (self.close)(exchange);
    }
}

/// What a snapshot holds.
#[derive(Serialize, Deserialize)]
pub struct ExchangeSnapshot {
    past: ReplayedOutput,
    market: MarketState,
}

/// The state of an exchange behind a record of its journal.
pub struct ExchangeReplica {
    pub(crate) market: Market,
    pub(crate) past: ReplayedOutput,
    time: Timebase,
    /// The record that trading is over: what comes then is a successor's.
    pub(crate) closing: Option<(u64, Vec<u8>)>,
}

impl ExchangeReplica {
    /// Before the first record. `time` is the run's.
    pub fn new(setup: MarketSetup, time: Timebase) -> Self {
        let past = ReplayedOutput {
            sessions: vec![SessionPast::default(); setup.sessions],
            touches: vec![(None, 0); setup.instruments.into()],
            ..ReplayedOutput::default()
        };
        Self { market: Market::new(setup), past, time, closing: None }
    }

    /// Whether there are reports of which it is not known that they were sent.
    pub fn has_unsent(&self) -> bool {
        self.past.sessions.iter().any(|session| !session.reports.unconfirmed().is_empty())
    }

    /// So many reports of each session were sent: those need not be kept.
    pub fn were_sent(&mut self, published: &[u64]) {
        let sessions = self.past.sessions.iter_mut().zip(published);
        sessions.for_each(|(session, published)| session.reports.confirm(*published));
    }

    /// Carries out a record; `close` gets the books when trading is over.
    pub(crate) fn act(
        &mut self,
        record: &Record<'_>,
        close: impl FnMut(&Exchange),
    ) -> Result<(), RecoveryError> {
        let (told, now) = JournalEntry::of(record)?;
        let Self { market, past, time, .. } = self;
        let at = At { now, time: *time };
        past.trades.confirm(past.known.as_ref().map_or(u64::MAX, |known| known.trades));
        (past.now, past.order) = (now, None);
        let out = &mut Replayed { past, close };
        match told {
            JournalEntry::Time => market.time(at, out),
            JournalEntry::Close => drop(market.close(at, out)),
            JournalEntry::Message(session, _) if session >= market.sessions() => {
                return Err(RecoveryError::Foreign(record.sequence));
            }
            JournalEntry::Message(session, message) => {
                let orders = carry_out(market, session, message, at, out);
                past.order = (orders > 0).then_some(message);
                past.received += orders;
            }
        }
        Ok(())
    }
}

impl State for ExchangeReplica {
    const VERSION: u32 = 2;
    type Saved = ExchangeSnapshot;

    fn save(&self) -> impl Serialize {
        ExchangeSnapshot { past: self.past.clone(), market: self.market.state() }
    }

    fn restore(&mut self, saved: ExchangeSnapshot) -> Result<(), Box<dyn Error + Send + Sync>> {
        let ExchangeSnapshot { past, market } = saved;
        let is_report = |(_, message): &(u64, Message)| Report::from_message(*message).is_ok();
        let is_sound =
            |of: &SessionPast| of.reports.is_sound() && of.reports.unconfirmed().iter().all(is_report);
        if past.sessions.len() != self.market.sessions()
            || past.touches.len() != usize::from(self.market.instruments())
            || !past.sessions.iter().all(is_sound)
            || !past.trades.is_sound()
        {
            return Err("other sessions or instruments".into());
        }
        self.market.restore(market)?;
        self.past = ReplayedOutput { known: self.past.known.take(), ..past };
        self.past.drop_gone();
        Ok(())
    }

    fn apply(&mut self, record: Record<'_>) -> Result<(), RecoveryError> {
        if let (JournalEntry::Close, _) = JournalEntry::of(&record)? {
            self.closing = Some((record.sequence, record.payload.to_vec()));
            return Ok(());
        }
        self.act(&record, |_| {})
    }

    fn size(&self) -> u64 {
        self.market.exchange().open_orders() as u64
    }

    fn has_ended(&self) -> bool {
        self.closing.is_some()
    }
}
