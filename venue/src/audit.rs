//! An audit of an exchange after its run: what it must have done according to its journal.

use crate::answers::Trade;
use crate::carry::{Counted, carry_out};
use crate::commands::JournalEntry;
use crate::market::{At, ExecutionSink, Market, MarketSetup};
use crate::session::Counts;
use exchange::Exchange;
use journal::{Record, Recovered, RecoveryError};
use protocol::wire::{Instruction, OrderId, Report};
use std::path::Path;
use system::clock::Timebase;

/// Everything that an exchange was sent and gave, by its journal, predecessors included.
#[derive(Clone, Debug, Default)]
pub struct Audit {
    /// Orders in the order in which they were carried out.
    pub orders: Vec<OrderId>,
    /// Reports in their order, without their sessions' numbers.
    pub reports: Vec<Report>,
    /// Trades in their order.
    pub trades: Vec<Trade>,
    /// Messages that none may send.
    pub faults: u64,
    counts: Vec<Counts>,
}

impl AsMut<Audit> for Audit {
    fn as_mut(&mut self) -> &mut Audit {
        self
    }
}

impl Counted for Audit {
    fn counts(&mut self, session: usize) -> &mut Counts {
        &mut self.counts[session]
    }

    fn fault(&mut self) {
        self.faults += 1;
    }
}

impl ExecutionSink for Audit {
    fn take(&mut self, reports: &[Report], trades: &[Trade]) {
        self.reports.extend_from_slice(reports);
        self.trades.extend_from_slice(trades);
    }

    fn close(&mut self, _: &Exchange) {}
}

impl Audit {
    /// Carries out what the journal in a folder says, in a market of the same making as the
    /// exchange's. `time` is the run's.
    ///
    /// # Errors
    /// As [`RecoveryError`]; a journal that begins behind a snapshot: what was before is not known.
    pub fn of(folder: &Path, setup: MarketSetup, time: Timebase) -> Result<Self, RecoveryError> {
        let mut audit = Self { counts: vec![Counts::default(); setup.sessions], ..Self::default() };
        let (mut market, mut failed) = (Market::new(setup), None);
        journal::recover(folder, |part| {
            if failed.is_none() {
                failed = audit.carry_out(&mut market, part, time).err();
            }
        })?;
        audit.faults += audit.counts.iter().map(|counts| counts.faults).sum::<u64>();
        failed.map_or(Ok(audit), Err)
    }

    fn carry_out(
        &mut self,
        market: &mut Market,
        part: Recovered<'_>,
        time: Timebase,
    ) -> Result<(), RecoveryError> {
        let (sequence, payload) = match part {
            Recovered::Record { sequence, payload } => (sequence, payload),
            Recovered::Snapshot { sequence, .. } => return Err(RecoveryError::Foreign(sequence)),
        };
        let (told, now) = JournalEntry::of(&Record { sequence, payload })?;
        let at = At { now, time };
        match told {
            JournalEntry::Time => market.time(at, self),
            JournalEntry::Close => drop(market.close(at, self)),
            JournalEntry::Message(session, _) if session >= self.counts.len() => {
                return Err(RecoveryError::Foreign(sequence));
            }
            JournalEntry::Message(session, message) => {
                if carry_out::<Self>(market, session, message, at, self) > 0
                    && let Ok(Instruction::Order(order)) = Instruction::from_message(message)
                {
                    self.orders.push(order.id);
                }
            }
        }
        Ok(())
    }
}
