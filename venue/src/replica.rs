//! A replica of an exchange: applies the records of its journal, sends nothing, and retains outputs
//! that may not have been sent. As a hot standby it follows a running exchange and writes the
//! snapshots; a successor is promoted from it.

use crate::apply::{SessionCounters, apply_message};
use crate::journal_entry::JournalEntry;
use crate::market::{ExecutionSink, InputTime, Market, MarketSetup, MarketState};
use crate::reports::Trade;
use crate::session::{SessionCounts, session_of};
use exchange::Exchange;
use journal::{Outbox, Record, RecoveryError, State, codec};
use protocol::wire::{Message, Report};
use serde::{Deserialize, Serialize};
use std::error::Error;
use system::clock::Timebase;

/// The messages and reports of one session up to a journal record.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionOutput {
    pub counts: SessionCounts,
    /// Reports, each with its index among those of all sessions.
    pub reports: Outbox<(u64, Message)>,
}

/// The outputs of an exchange up to a journal record, with those that may not have been sent.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReplayedOutput {
    pub sessions: Vec<SessionOutput>,
    pub received: u64,
    /// Number of reports of all sessions.
    pub completed: u64,
    /// Time of the last record in ticks.
    pub now: u64,
    pub order: Option<Message>,
    /// Trades with their time in ticks. Those before the last record are certainly on the tape.
    pub trades: Outbox<(u64, Trade)>,
    /// Last trade (price, quantity) and number of trades of each instrument.
    pub touches: Vec<(Option<(i64, u64)>, u64)>,
    /// Outputs confirmed as sent, once known.
    #[serde(skip)]
    pub confirmed: Option<ConfirmedOutput>,
}

/// Outputs that were certainly sent: numbers of reports by session, and of trades on the tape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmedOutput {
    pub published: Vec<u64>,
    pub trades: u64,
}

impl ReplayedOutput {
    pub fn confirm_known(&mut self) {
        if let Some(confirmed) = &self.confirmed {
            let sessions = self.sessions.iter_mut().zip(&confirmed.published);
            sessions.for_each(|(session, published)| session.reports.confirm(*published));
            self.trades.confirm(confirmed.trades);
        }
    }
}

impl ExecutionSink for ReplayedOutput {
    fn record(&mut self, reports: &[Report], trades: &[Trade]) {
        for report in reports {
            let session = session_of(report.id, self.sessions.len());
            let outbox = &mut self.sessions[session].reports;
            outbox.push((self.completed, report.to_message()));
            if let Some(confirmed) = &self.confirmed {
                outbox.confirm(confirmed.published[session]);
            }
            self.completed += 1;
        }
        for trade in trades {
            self.trades.push((self.now, *trade));
            if let Some(confirmed) = &self.confirmed {
                self.trades.confirm(confirmed.trades);
            }
            if let Some((last, count)) = self.touches.get_mut(usize::from(trade.instrument)) {
                (*last, *count) = (Some((trade.price, trade.quantity)), *count + 1);
            }
        }
    }

    fn close(&mut self, _: &Exchange) {}
}

/// An output sink for replay that passes the closing books to `close`.
struct ReplaySink<'a, F> {
    output: &'a mut ReplayedOutput,
    close: F,
}

impl<F> SessionCounters for ReplaySink<'_, F> {
    fn session_counts(&mut self, session: usize) -> &mut SessionCounts {
        &mut self.output.sessions[session].counts
    }
}

impl<F: FnMut(&Exchange)> ExecutionSink for ReplaySink<'_, F> {
    fn record(&mut self, reports: &[Report], trades: &[Trade]) {
        self.output.record(reports, trades);
    }

    fn close(&mut self, exchange: &Exchange) {
        (self.close)(exchange);
    }
}

/// The content of an exchange's snapshot: the market's state, and the reports and trades that may
/// not have been sent yet.
#[derive(Serialize, Deserialize)]
pub struct ExchangeSnapshot {
    output: ReplayedOutput,
    market: MarketState,
}

/// A copy of an exchange that applies its journal's records, and keeps reports and trades that may
/// not have been sent.
pub struct ExchangeReplica {
    pub(crate) market: Market,
    pub(crate) output: ReplayedOutput,
    time: Timebase,
    /// The record that ends trading: later ones are a successor's.
    pub(crate) closing: Option<(u64, Vec<u8>)>,
}

impl ExchangeReplica {
    /// Creates a replica that has applied no record of the exchange's journal. `time` is the run's.
    pub fn new(setup: MarketSetup, time: Timebase) -> Self {
        let output = ReplayedOutput {
            sessions: vec![SessionOutput::default(); setup.sessions],
            touches: vec![(None, 0); setup.instruments.into()],
            ..ReplayedOutput::default()
        };
        Self { market: Market::new(setup), output, time, closing: None }
    }

    /// Returns `true` if the replica keeps reports that may not have been sent.
    pub fn has_unsent(&self) -> bool {
        self.output.sessions.iter().any(|session| !session.reports.unconfirmed().is_empty())
    }

    /// Drops the replica's reports that were sent; `published` has the number sent on each session.
    pub fn confirm_sent(&mut self, published: &[u64]) {
        let sessions = self.output.sessions.iter_mut().zip(published);
        sessions.for_each(|(session, published)| session.reports.confirm(*published));
    }

    /// Applies a journal record. `close` receives the books at the end of trading.
    pub(crate) fn apply_record(
        &mut self,
        record: &Record<'_>,
        close: impl FnMut(&Exchange),
    ) -> Result<(), RecoveryError> {
        let (entry, now) = JournalEntry::from_record(record)?;
        let Self { market, output, time, .. } = self;
        let at = InputTime { now, time: *time };
        output.trades.confirm(output.confirmed.as_ref().map_or(u64::MAX, |confirmed| confirmed.trades));
        (output.now, output.order) = (now, None);
        let out = &mut ReplaySink { output, close };
        match entry {
            JournalEntry::Time => market.advance_time(at, out),
            JournalEntry::Close => drop(market.close(at, out)),
            JournalEntry::Message(session, _) if session >= market.sessions() => {
                return Err(RecoveryError::Foreign(record.sequence));
            }
            JournalEntry::Message(session, message) => {
                let orders = apply_message(market, session, message, at, out);
                output.order = (orders > 0).then_some(message);
                output.received += orders;
            }
        }
        Ok(())
    }
}

impl State for ExchangeReplica {
    const VERSION: u32 = 4;
    type Saved = ExchangeSnapshot;

    fn save(&self) -> impl Serialize {
        ExchangeSnapshot { output: self.output.clone(), market: self.market.state() }
    }

    fn restore(&mut self, saved: ExchangeSnapshot) -> Result<(), Box<dyn Error + Send + Sync>> {
        let ExchangeSnapshot { output, market } = saved;
        let is_report = |(_, message): &(u64, Message)| Report::from_message(*message).is_ok();
        let is_sound =
            |of: &SessionOutput| of.reports.is_sound() && of.reports.unconfirmed().iter().all(is_report);
        if output.sessions.len() != self.market.sessions()
            || output.touches.len() != usize::from(self.market.instruments())
            || !output.sessions.iter().all(is_sound)
            || !output.trades.is_sound()
        {
            return Err("other sessions, reports, trades or instruments".into());
        }
        self.market.restore(market)?;
        self.output = ReplayedOutput { confirmed: self.output.confirmed.take(), ..output };
        self.output.confirm_known();
        Ok(())
    }

    // Encodes and decodes as the trait does by default: so only this crate compiles the codec.
    fn encode(&self) -> Result<Vec<u8>, RecoveryError> {
        Ok(codec::encode(Self::VERSION, &self.save())?)
    }

    fn decode(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), RecoveryError> {
        let saved = codec::decode(Self::VERSION, bytes);
        let saved = saved.map_err(|error| RecoveryError::Decode(sequence, error))?;
        self.restore(saved).map_err(|error| RecoveryError::State(sequence, error))
    }

    fn apply(&mut self, record: Record<'_>) -> Result<(), RecoveryError> {
        if let (JournalEntry::Close, _) = JournalEntry::from_record(&record)? {
            self.closing = Some((record.sequence, record.payload.to_vec()));
            return Ok(());
        }
        self.apply_record(&record, |_| {})
    }

    fn size(&self) -> u64 {
        self.market.exchange().open_orders() as u64
    }

    fn has_ended(&self) -> bool {
        self.closing.is_some()
    }
}

#[cfg(test)]
mod tests;
