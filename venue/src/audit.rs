//! Replays an exchange's journal after its run, to derive what it must have sent.

use crate::market::MarketSetup;
use crate::replica::{ConfirmedOutput, ExchangeReplica};
use crate::reports::Trade;
use journal::{Record, Recovered, RecoveryError};
use protocol::wire::{Order, OrderId, Report};
use std::path::Path;
use system::clock::Timebase;

/// The orders, reports and trades of an exchange according to its journal, of all its incarnations.
#[derive(Clone, Debug)]
pub struct Audit {
    /// Orders in the order in which the exchange applied them.
    pub orders: Vec<OrderId>,
    /// Reports in the order in which the exchange produced them, without session numbers.
    pub reports: Vec<Report>,
    /// Trades in the order in which they happened.
    pub trades: Vec<Trade>,
    /// Number of invalid messages from gateways.
    pub faults: u64,
}

impl Audit {
    /// Replays an exchange's journal from its first record, and returns its orders, reports and
    /// trades. Fails if the journal begins with a snapshot.
    pub fn from_journal(folder: &Path, setup: MarketSetup, time: Timebase) -> Result<Self, RecoveryError> {
        let mut replica = ExchangeReplica::new(setup, time);
        // Nothing is confirmed as sent, so all outputs are kept.
        let published = vec![0; replica.output.sessions.len()];
        replica.output.confirmed = Some(ConfirmedOutput { published, trades: 0 });
        let (mut orders, mut failed) = (Vec::new(), None);
        journal::recover(folder, |part| {
            if failed.is_some() {
                return;
            }
            let applied = match part {
                Recovered::Record { sequence, payload } => {
                    replica.apply_record(&Record { sequence, payload }, |_| {})
                }
                Recovered::Snapshot { sequence, .. } => Err(RecoveryError::Foreign(sequence)),
            };
            match applied {
                Ok(()) => {
                    orders.extend(replica.output.order.and_then(|order| Order::from_message(order).ok()))
                }
                Err(error) => failed = Some(error),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let output = replica.output;
        let faults = output.sessions.iter().map(|session| session.counts.faults).sum();
        let mut reports: Vec<_> =
            output.sessions.into_iter().flat_map(|session| session.reports.into_unconfirmed()).collect();
        reports.sort_unstable_by_key(|(index, _)| *index);
        let trades = output.trades.into_unconfirmed().into_iter();
        Ok(Self {
            orders: orders.iter().map(|order: &Order| order.id).collect(),
            reports: reports.iter().filter_map(|(_, report)| Report::from_message(*report).ok()).collect(),
            trades: trades.map(|(_, trade)| trade).collect(),
            faults,
        })
    }
}
