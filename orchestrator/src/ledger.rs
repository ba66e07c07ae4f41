//! The output ledger: all outputs of an engine up to a journal record, with those that may not have
//! been sent.
//!
//! Each receiver has a transactional outbox ([`Outbox`]). Counts confirm what was sent: the
//! messages in a gateway's session and in a strategy's return ring, and the stamps in the log.

use super::engine::StrategySession;
use journal::{Outbox, RecoveryError};
use protocol::checksum::{Checksum, digest};
use protocol::index::{GatewayIndex, IndexedVec, PerGateway, PerStrategy, StrategyIndex, TypedIndex};
use protocol::stamps::{Point, Record};
use protocol::wire::{Instruction, Message};
use serde::{Deserialize, Serialize};

/// Numbers of messages and log records, by kind, that this engine's crashed predecessors had
/// already sent, counted in the rings and the stamp log. Zero without a predecessor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputWatermarks {
    /// Number of orchestrator return stamps in the log.
    pub returns_stamped: u64,
    /// Number of other orchestrator records in the log, except those that seal it.
    pub others_logged: u64,
    /// Number of messages sent in each gateway's session, from the first on.
    pub sent: PerGateway<u64>,
    /// Number of reports in each strategy's return ring since its last reset.
    pub returned: PerStrategy<u64>,
}

impl OutputWatermarks {
    /// Adds `records` to the number of records of the kind `point` that crashed engines had already
    /// written to the stamp log.
    pub fn count_records(&mut self, point: Point, records: u64) {
        use Point::{KillDone, KillSeen, OrchDispatch, OrchRecvCompletion, OrchRecvSubmit, Rejected};
        match point {
            Point::OrchReturn => self.returns_stamped += records,
            OrchRecvSubmit | OrchDispatch | OrchRecvCompletion | Rejected | KillSeen | KillDone => {
                self.others_logged += records;
            }
            _ => {}
        }
    }

    const fn logged(&self) -> [u64; 2] {
        [self.returns_stamped, self.others_logged]
    }
}

fn count_at<I: TypedIndex>(counts: &IndexedVec<I, u64>, index: I) -> u64 {
    counts.get(index).copied().unwrap_or(0)
}

/// The messages sent to a gateway and the reports taken from it, reconstructed from a crashed
/// engine's journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveredGateway {
    /// Number of orders among the messages in the gateway's session.
    pub orders: u64,
    /// Checksum of the messages in the gateway's session.
    pub sent: Checksum,
    /// The next message for the session, which the gateway may already have taken from its inbox.
    pub next_message: Option<Message>,
    /// Number of reports taken from the gateway.
    pub reports: u64,
    /// Checksum of the reports taken from the gateway.
    pub reported: Checksum,
}

/// What an engine's recovery yields besides the engine: numbers of messages already taken from
/// strategies, retired strategies, states of gateways, missing log records.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Number of messages taken from each strategy's memory since its last reset.
    pub taken: PerStrategy<u64>,
    /// Strategies that are retired and not restarted.
    pub retired: Vec<StrategyIndex>,
    /// The recovered state of each gateway, by index.
    pub gateways: PerGateway<RecoveredGateway>,
    /// Log records that a crashed predecessor had no time to write.
    pub unlogged: Vec<Record>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct StrategyOutput {
    pub taken: u64,
    pub returned: Outbox<Message>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct GatewayOutput {
    pub dispatched: Outbox<Message>,
    pub recovered: RecoveredGateway,
}

impl GatewayOutput {
    fn confirm(&mut self, confirmed_count: u64) {
        while let Some(message) = self.dispatched.pop_confirmed(confirmed_count) {
            self.recovered.sent.add(digest(&message));
            let is_order = matches!(Instruction::from_message(message), Ok(Instruction::Order(_)));
            self.recovered.orders += u64::from(is_order);
        }
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct OutputLedger {
    pub strategies: PerStrategy<StrategyOutput>,
    pub gateways: PerGateway<GatewayOutput>,
    pub log: [Outbox<[u64; 2]>; 2],
    pub commands: u64,
    #[serde(skip)]
    pub confirmed: Option<OutputWatermarks>,
}

impl OutputLedger {
    /// Creates an empty ledger of the engine's outputs for these numbers of strategies and
    /// gateways.
    pub fn new(strategies: usize, gateways: usize) -> Self {
        Self {
            strategies: PerStrategy::filled(StrategyOutput::default(), strategies),
            gateways: PerGateway::filled(GatewayOutput::default(), gateways),
            ..Self::default()
        }
    }

    /// Returns `true` if the ledger is for this number of strategies and gateways, and its outboxes
    /// are consistent.
    pub fn has_shape(&self, strategies: usize, gateways: usize) -> bool {
        self.strategies.len() == strategies
            && self.gateways.len() == gateways
            && self.strategies.iter().all(|output| output.returned.is_sound())
            && self.gateways.iter().all(|output| output.dispatched.is_sound())
            && self.log.iter().all(Outbox::is_sound)
    }

    /// Appends a message for a gateway to the ledger of the engine's outputs.
    pub fn push_to_gateway(&mut self, gateway: GatewayIndex, message: Message) {
        self.gateways[gateway].dispatched.push(message);
        self.confirm_known(gateway);
    }

    fn confirm_known(&mut self, gateway: GatewayIndex) {
        if let Some(watermarks) = &self.confirmed {
            self.gateways[gateway].confirm(count_at(&watermarks.sent, gateway));
        }
    }

    /// Removes a message for a gateway from the ledger, after the engine withdrew the message from
    /// the gateway's queue. Returns `None` if no such message was produced.
    pub fn recall(&mut self, gateway: GatewayIndex, message: &Message) -> Option<()> {
        let GatewayOutput { dispatched, recovered } = &mut self.gateways[gateway];
        if !dispatched.retract(message)? {
            recovered.sent.remove(digest(message));
            recovered.orders = recovered.orders.checked_sub(1)?;
        }
        self.confirm_known(gateway);
        Some(())
    }

    /// Appends a report for a strategy to the ledger of the engine's outputs.
    pub fn push_to_strategy(&mut self, strategy: StrategyIndex, message: Message) {
        let returned = &mut self.strategies[strategy].returned;
        returned.push(message);
        if let Some(watermarks) = &self.confirmed {
            returned.confirm(count_at(&watermarks.returned, strategy));
        }
    }

    /// Appends a record for the orchestrator's log to the ledger of the engine's outputs.
    pub fn push_record(&mut self, record: Record) {
        let kind = usize::from(record.point != Point::OrchReturn);
        self.log[kind].push(record.words());
        if let Some(watermarks) = &self.confirmed {
            self.log[kind].confirm(watermarks.logged()[kind]);
        }
    }

    /// Drops the engine's outputs that are known to be sent, up to the counts of `watermarks`.
    pub fn confirm(&mut self, watermarks: &OutputWatermarks) {
        for (strategy, output) in self.strategies.enumerate_mut() {
            output.returned.confirm(count_at(&watermarks.returned, strategy));
        }
        for (gateway, output) in self.gateways.enumerate_mut() {
            output.confirm(count_at(&watermarks.sent, gateway));
        }
        self.log
            .iter_mut()
            .zip(watermarks.logged())
            .for_each(|(log, confirmed_count)| log.confirm(confirmed_count));
    }

    /// Returns `true` if the ledger keeps outputs that may not have been sent.
    pub fn has_unconfirmed(&self) -> bool {
        self.log.iter().any(|log| !log.unconfirmed().is_empty())
            || self.strategies.iter().any(|output| !output.returned.unconfirmed().is_empty())
            || self.gateways.iter().any(|output| !output.dispatched.unconfirmed().is_empty())
    }

    /// Returns the log records that the crashed engine had not written. They are timed `now` unless
    /// their value is not a time.
    pub fn unlogged(&self, now: u64) -> Vec<Record> {
        let kept = self.log.iter().flat_map(Outbox::unconfirmed);
        let records = kept.filter_map(|[key, value]| Record::from_words(*key, *value));
        let timed = |record: Record| match record.point {
            Point::Rejected => record,
            _ => Record { value: now, ..record },
        };
        records.map(timed).collect()
    }

    /// Checks the ledger against the outputs found in rings and log; an error if they contradict
    /// each other.
    pub fn check(
        &self,
        watermarks: &OutputWatermarks,
        sessions: &PerStrategy<StrategySession>,
    ) -> Result<(), RecoveryError> {
        let check = RecoveryError::check_count;
        for (gateway, output) in self.gateways.enumerate() {
            output.dispatched.check(
                "messages to gateway",
                gateway.as_usize(),
                count_at(&watermarks.sent, gateway),
            )?;
        }
        check("returns in the log", 0, self.log[0].produced(), watermarks.returns_stamped)?;
        check("records in the log", 0, self.log[1].produced(), watermarks.others_logged)?;
        for ((strategy, output), session) in self.strategies.enumerate().zip(sessions) {
            if session.is_served() {
                output.returned.check(
                    "reports to strategy",
                    strategy.as_usize(),
                    count_at(&watermarks.returned, strategy),
                )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::wire::OrderId;

    #[test]
    fn log_with_more_than_the_journal_is_refused() {
        let unlogged = |watermarks: OutputWatermarks| {
            let mut ledger = OutputLedger::new(0, 0);
            for n in 0..5 {
                let id = OrderId::new(0, 0, n);
                ledger.push_record(Record { point: Point::OrchReturn, id, detail: 0, value: 7 });
                ledger.push_record(Record { point: Point::OrchDispatch, id, detail: 0, value: 7 });
            }
            ledger.confirm(&watermarks);
            ledger.check(&watermarks, &PerStrategy::default()).map(|()| ledger.unlogged(9).len())
        };
        let watermarks =
            OutputWatermarks { returns_stamped: 3, others_logged: 4, ..OutputWatermarks::default() };
        assert_eq!(unlogged(watermarks.clone()).ok(), Some(3));
        assert!(unlogged(OutputWatermarks { returns_stamped: 6, ..watermarks }).is_err());
    }
}
