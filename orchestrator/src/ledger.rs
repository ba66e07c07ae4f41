//! The output ledger: what an engine produced up to a record of its journal, and which outputs may
//! not have been sent.
//!
//! Each receiver has a transactional outbox ([`Outbox`]), so counts are enough to know what has
//! gone out: of the messages in a gateway's session and in a strategy's return ring, and of the
//! stamps in the log.

use super::core::StrategySession;
use journal::{Outbox, RecoveryError};
use protocol::checksum::{Checksum, digest};
use protocol::stamps::{Point, Record};
use protocol::wire::{Instruction, Message};
use serde::{Deserialize, Serialize};

/// What the predecessors of an orchestrator have left behind; nothing where there was none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputWatermarks {
    /// Stamps of returns in the log.
    pub returns_stamped: u64,
    /// Other records of an orchestrator in the log, but those of its seal.
    pub others_logged: u64,
    /// Messages in each gateway's session, from the first on.
    pub sent: Vec<u64>,
    /// Reports in each strategy's return ring, since that was last made anew.
    pub returned: Vec<u64>,
    /// Records are missing from the log, so that its counts do not say what was logged: all is
    /// taken to be. Better one missing more than one there twice.
    pub log_is_partial: bool,
}

impl OutputWatermarks {
    /// Counts so many records of the log.
    pub fn count(&mut self, point: Point, records: u64) {
        match point {
            Point::OrchReturn => self.returns_stamped += records,
            _ if is_ours(point) => self.others_logged += records,
            _ => {}
        }
    }

    fn sent(&self, gateway: usize) -> u64 {
        self.sent.get(gateway).copied().unwrap_or(0)
    }

    fn returned(&self, strategy: usize) -> u64 {
        self.returned.get(strategy).copied().unwrap_or(0)
    }

    const fn logged(&self) -> [u64; 2] {
        if self.log_is_partial { [u64::MAX; 2] } else { [self.returns_stamped, self.others_logged] }
    }
}

const fn is_ours(point: Point) -> bool {
    use Point::{KillDone, KillSeen, OrchDispatch, OrchRecvCompletion, OrchRecvSubmit, Rejected};
    matches!(point, OrchRecvSubmit | OrchDispatch | OrchRecvCompletion | Rejected | KillSeen | KillDone)
}

/// The place of a point's count in [`OutputWatermarks::logged`].
const fn kind(point: Point) -> usize {
    match point {
        Point::OrchReturn => 0,
        _ => 1,
    }
}

/// What is known of a gateway from its orchestrator's journal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayPast {
    /// Orders among the messages that its session has.
    pub orders: u64,
    /// These messages, word for word.
    pub sent: Checksum,
    /// The message that comes next in the session: the gateway may have taken it already.
    pub first: Option<Message>,
    /// Reports that were taken from it.
    pub reports: u64,
    /// These, word for word.
    pub reported: Checksum,
}

/// What comes of a recovery beside the orchestrator itself.
#[derive(Debug, Default)]
pub struct Recovered {
    /// Messages taken from each strategy's memory since that was last made anew.
    pub taken: Vec<u64>,
    /// Strategies that are retired, and not there again.
    pub retired: Vec<usize>,
    /// The gateways, by their index.
    pub gateways: Vec<GatewayPast>,
    /// What a dead predecessor did and had no time to log.
    pub unlogged: Vec<Record>,
}

/// What a strategy has sent and was given since its memory was last made anew.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct StrategyOutput {
    pub taken: u64,
    pub returned: Outbox<Message>,
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct GatewayOutput {
    pub dispatched: Outbox<Message>,
    pub past: GatewayPast,
}

impl GatewayOutput {
    fn has_gone(&mut self, gone: u64) {
        while let Some(message) = self.dispatched.pop_confirmed(gone) {
            self.past.sent.add(digest(&message));
            let is_order = matches!(Instruction::from_message(message), Ok(Instruction::Order(_)));
            self.past.orders += u64::from(is_order);
        }
    }
}

#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct OutputLedger {
    pub strategies: Vec<StrategyOutput>,
    pub gateways: Vec<GatewayOutput>,
    /// Records for the log, of returns and others.
    pub log: [Outbox<[u64; 2]>; 2],
    pub commands: u64,
    /// All that has gone out, as soon as that is certain.
    #[serde(skip)]
    pub known: Option<OutputWatermarks>,
}

impl OutputLedger {
    pub fn new(strategies: usize, gateways: usize) -> Self {
        Self {
            strategies: vec![StrategyOutput::default(); strategies],
            gateways: vec![GatewayOutput::default(); gateways],
            ..Self::default()
        }
    }

    /// Whether it can be of so many strategies and gateways.
    pub fn is_of(&self, strategies: usize, gateways: usize) -> bool {
        self.strategies.len() == strategies
            && self.gateways.len() == gateways
            && self.strategies.iter().all(|of| of.returned.is_sound())
            && self.gateways.iter().all(|of| of.dispatched.is_sound())
            && self.log.iter().all(Outbox::is_sound)
    }

    pub fn for_gateway(&mut self, gateway: usize, message: Message) {
        self.gateways[gateway].dispatched.push(message);
        self.drop_sent(gateway);
    }

    fn drop_sent(&mut self, gateway: usize) {
        if let Some(known) = &self.known {
            self.gateways[gateway].has_gone(known.sent(gateway));
        }
    }

    /// A message for a gateway was taken back. Returns `None` if nothing like it was produced.
    pub fn recall(&mut self, gateway: usize, message: &Message) -> Option<()> {
        let GatewayOutput { dispatched, past } = &mut self.gateways[gateway];
        if !dispatched.retract(message)? {
            past.sent.remove(digest(message));
            past.orders = past.orders.checked_sub(1)?;
        }
        self.drop_sent(gateway);
        Some(())
    }

    pub fn for_strategy(&mut self, strategy: usize, message: Message) {
        let returned = &mut self.strategies[strategy].returned;
        returned.push(message);
        if let Some(known) = &self.known {
            returned.confirm(known.returned(strategy));
        }
    }

    pub fn for_log(&mut self, record: Record) {
        let kind = kind(record.point);
        self.log[kind].push(record.words());
        if let Some(known) = &self.known {
            self.log[kind].confirm(known.logged()[kind]);
        }
    }

    /// So much has gone out: it need not be kept.
    pub fn has_gone(&mut self, known: &OutputWatermarks) {
        for (strategy, of) in self.strategies.iter_mut().enumerate() {
            of.returned.confirm(known.returned(strategy));
        }
        for (gateway, of) in self.gateways.iter_mut().enumerate() {
            of.has_gone(known.sent(gateway));
        }
        self.log.iter_mut().zip(known.logged()).for_each(|(log, gone)| log.confirm(gone));
    }

    pub fn keeps_something(&self) -> bool {
        self.log.iter().any(|log| !log.unconfirmed().is_empty())
            || self.strategies.iter().any(|of| !of.returned.unconfirmed().is_empty())
            || self.gateways.iter().any(|of| !of.dispatched.unconfirmed().is_empty())
    }

    /// What is not in the log. It happened at `now`, but where the record's value is not a time.
    pub fn unlogged(&self, now: u64) -> Vec<Record> {
        let kept = self.log.iter().flat_map(Outbox::unconfirmed);
        let records = kept.filter_map(|[key, value]| Record::from_words(*key, *value));
        let timed = |record: Record| match record.point {
            Point::Rejected => record,
            _ => Record { value: now, ..record },
        };
        records.map(timed).collect()
    }

    /// Whether the journal accounts for all that there was.
    pub fn check(
        &self,
        estate: &OutputWatermarks,
        sessions: &[StrategySession],
    ) -> Result<(), RecoveryError> {
        let enough = RecoveryError::check_count;
        for (gateway, of) in self.gateways.iter().enumerate() {
            of.dispatched.check("messages to gateway", gateway, estate.sent(gateway))?;
        }
        enough("returns in the log", 0, self.log[0].produced(), estate.returns_stamped)?;
        enough("records in the log", 0, self.log[1].produced(), estate.others_logged)?;
        for ((strategy, of), session) in self.strategies.iter().enumerate().zip(sessions) {
            if session.is_served() {
                of.returned.check("reports to strategy", strategy, estate.returned(strategy))?;
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
    fn nothing_is_logged_again_where_no_count_says_what_is_there() {
        let unlogged = |estate: OutputWatermarks| {
            let mut given = OutputLedger::new(0, 0);
            for n in 0..5 {
                let id = OrderId::new(0, 0, n);
                given.for_log(Record { point: Point::OrchReturn, id, detail: 0, value: 7 });
                given.for_log(Record { point: Point::OrchDispatch, id, detail: 0, value: 7 });
            }
            given.has_gone(&estate);
            given.check(&estate, &[]).map(|()| given.unlogged(9).len())
        };
        let estate = OutputWatermarks { returns_stamped: 3, others_logged: 4, ..OutputWatermarks::default() };
        assert_eq!(unlogged(estate.clone()).ok(), Some(3), "what is believed of a log that is whole");
        assert_eq!(unlogged(OutputWatermarks { log_is_partial: true, ..estate.clone() }).ok(), Some(0));
        let more = OutputWatermarks { returns_stamped: 6, log_is_partial: true, ..estate };
        assert!(
            unlogged(more).is_err(),
            "a journal that has less than the log is not whole, whatever the log has lost"
        );
    }
}
