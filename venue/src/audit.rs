//! Replays an exchange's journal after its run, to derive what it must have sent.

use crate::apply::apply_message;
use crate::journal_entry::JournalEntry;
use crate::market::{ExecutionSink, InputTime, Market, MarketSetup};
use crate::reports::Trade;
use crate::session::SessionCounts;
use exchange::Exchange;
use journal::{Record, Recovered, RecoveryError};
use protocol::wire::{Instruction, OrderId, Report};
use std::path::Path;
use system::clock::Timebase;

/// The orders, reports and trades of an exchange according to its journal, of all its incarnations.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Orders, as applied.
    pub orders: Vec<OrderId>,
    /// Reports in order, without session numbers.
    pub reports: Vec<Report>,
    /// Trades in order.
    pub trades: Vec<Trade>,
    counts: SessionCounts,
}

impl AsMut<SessionCounts> for Audit {
    fn as_mut(&mut self) -> &mut SessionCounts {
        &mut self.counts
    }
}

impl ExecutionSink for Audit {
    fn record(&mut self, reports: &[Report], trades: &[Trade]) {
        self.reports.extend_from_slice(reports);
        self.trades.extend_from_slice(trades);
    }

    fn close(&mut self, _: &Exchange) {}
}

impl Audit {
    /// Replays the journal in a directory, in a market with the exchange's setup. `time` is the
    /// run's.
    ///
    /// # Errors
    /// See [`RecoveryError`]; also a journal that begins with a snapshot, because earlier records
    /// are missing.
    pub fn from_journal(folder: &Path, setup: MarketSetup, time: Timebase) -> Result<Self, RecoveryError> {
        let mut audit = Self::default();
        let (mut market, mut failed) = (Market::new(setup), None);
        journal::recover(folder, |part| {
            if failed.is_none() {
                failed = audit.apply_part(&mut market, part, time).err();
            }
        })?;
        failed.map_or(Ok(audit), Err)
    }

    /// Returns the number of invalid messages from the gateway.
    pub const fn faults(&self) -> u64 {
        self.counts.faults
    }

    fn apply_part(
        &mut self,
        market: &mut Market,
        part: Recovered<'_>,
        time: Timebase,
    ) -> Result<(), RecoveryError> {
        let (sequence, payload) = match part {
            Recovered::Record { sequence, payload } => (sequence, payload),
            Recovered::Snapshot { sequence, .. } => return Err(RecoveryError::Foreign(sequence)),
        };
        let (entry, now) = JournalEntry::from_record(&Record { sequence, payload })?;
        let at = InputTime { now, time };
        match entry {
            JournalEntry::Time => market.advance_time(at, self),
            JournalEntry::Close => drop(market.close(at, self)),
            JournalEntry::Message(message) => {
                if apply_message(market, message, at, self) > 0
                    && let Ok(Instruction::Order(order)) = Instruction::from_message(message)
                {
                    self.orders.push(order.id);
                }
            }
        }
        Ok(())
    }
}
