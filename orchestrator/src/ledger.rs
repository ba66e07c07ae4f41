//! The output ledger: what an engine produced up to a record of its journal, and what of that may not have gone out.
//!
//! This is a transactional outbox. Outputs are produced in an order that the journal alone decides, so counts are enough to know what has
//! gone out:
//!
//! | left behind | what follows from it |
//! |---|---|
//! | messages in a gateway's session | so many orders and cancels were sent on; the others go to the gateway again |
//! | messages in a strategy's return ring | so many reports were returned |
//! | stamps in the log | so many are there, of returns and of all others |

use super::core::{RecoveryError, StrategySession};
use protocol::checksum::{Checksum, digest};
use protocol::stamps::{Point, Record};
use protocol::wire::{Instruction, Message};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What the predecessors of an orchestrator have left behind; nothing where there was none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estate {
    /// Stamps of returns in the log.
    pub returns_stamped: u64,
    /// Other records of an orchestrator in the log, but those of its seal.
    pub others_logged: u64,
    /// Messages in each gateway's session, from the first on.
    pub sent: Vec<u64>,
    /// Reports in each strategy's return ring, since that was last made anew.
    pub returned: Vec<u64>,
    /// Records are missing from the log, so that its counts do not say what was logged: all is taken to be. Better one missing more than one
    /// there twice.
    pub log_is_partial: bool,
}

impl Estate {
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

/// The place of a point's count in [`Estate::logged`].
const fn kind(point: Point) -> usize {
    match point {
        Point::OrchReturn => 0,
        _ => 1,
    }
}

/// What is known of a gateway from its orchestrator's journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// What is still to be done of what a dead one had to do.
pub(crate) struct Rest {
    /// What each gateway's session lacks, but for the first.
    pub backlog: Vec<VecDeque<Message>>,
    /// What each strategy's ring lacks.
    pub unsent: Vec<VecDeque<Message>>,
    /// Commands that were taken.
    pub commands: u64,
}

/// Messages that were given to somebody, in their order; those that may not have gone out are kept.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Outbox {
    given: u64,
    pub kept: VecDeque<Message>,
}

impl Outbox {
    fn push(&mut self, message: Message) {
        self.given += 1;
        self.kept.push_back(message);
    }

    pub const fn given(&self) -> u64 {
        self.given
    }

    /// Takes out the next of those that are kept, if so many have gone out and it is one of them.
    fn next_of(&mut self, gone: u64) -> Option<Message> {
        let first = self.given - self.kept.len() as u64;
        if first < gone { self.kept.pop_front() } else { None }
    }

    /// Nobody is there to take them any more.
    pub fn forget(&mut self) {
        self.kept.clear();
    }

    fn is_one(&self) -> bool {
        self.kept.len() as u64 <= self.given
    }
}

/// What a strategy has sent and was given since its memory was last made anew.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct StrategyOutput {
    pub taken: u64,
    pub returned: Outbox,
}

/// What a gateway was given and has given.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct GatewayOutput {
    pub dispatched: Outbox,
    /// Those that have gone out, and orders among them.
    pub sent: Checksum,
    pub orders: u64,
    pub reports: u64,
    pub reported: Checksum,
}

impl GatewayOutput {
    fn has_gone(&mut self, gone: u64) {
        while let Some(message) = self.dispatched.next_of(gone) {
            self.sent.add(digest(&message));
            self.orders += u64::from(matches!(Instruction::from_message(message), Ok(Instruction::Order(_))));
        }
    }
}

/// All that was given.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct OutputLedger {
    pub strategies: Vec<StrategyOutput>,
    pub gateways: Vec<GatewayOutput>,
    /// Records that were logged, of returns and others; and those of both that may not be in the log.
    pub logged: [u64; 2],
    pub unlogged: VecDeque<[u64; 2]>,
    /// Commands that were taken.
    pub commands: u64,
}

impl OutputLedger {
    pub fn new(strategies: usize, gateways: usize) -> Self {
        Self {
            strategies: (0..strategies).map(|_| StrategyOutput::default()).collect(),
            gateways: (0..gateways).map(|_| GatewayOutput::default()).collect(),
            ..Self::default()
        }
    }

    /// Whether it can be of so many strategies and gateways.
    pub fn is_of(&self, strategies: usize, gateways: usize) -> bool {
        let kept = self.kept();
        self.strategies.len() == strategies
            && self.gateways.len() == gateways
            && self.strategies.iter().all(|of| of.returned.is_one())
            && self.gateways.iter().all(|of| of.dispatched.is_one())
            && kept.iter().sum::<u64>() == self.unlogged.len() as u64
            && kept[0] <= self.logged[0]
            && kept[1] <= self.logged[1]
    }

    /// How many records are kept, of returns and others.
    fn kept(&self) -> [u64; 2] {
        let mut kept = [0; 2];
        let records = self.unlogged.iter().filter_map(|[key, value]| Record::from_words(*key, *value));
        records.for_each(|record| kept[kind(record.point)] += 1);
        kept
    }

    /// A message for a gateway; what is known to have gone out.
    pub fn for_gateway(&mut self, gateway: usize, message: Message, known: Option<&Estate>) {
        let of = &mut self.gateways[gateway];
        of.dispatched.push(message);
        if let Some(known) = known {
            of.has_gone(known.sent(gateway));
        }
    }

    /// A message for a gateway was taken back: it has not gone out. It may have been taken for one that has, because a later one had.
    /// Returns `None` if nothing like it was produced.
    pub fn recall(&mut self, gateway: usize, message: &Message, known: Option<&Estate>) -> Option<()> {
        let of = &mut self.gateways[gateway];
        let Outbox { given, kept } = &mut of.dispatched;
        if let Some(index) = kept.iter().position(|kept| kept == message) {
            kept.remove(index);
        } else {
            (*given > kept.len() as u64).then_some(())?;
            of.sent.remove(digest(message));
            of.orders = of.orders.checked_sub(1)?;
        }
        *given -= 1;
        if let Some(known) = known {
            of.has_gone(known.sent(gateway));
        }
        Some(())
    }

    /// A report for a strategy.
    pub fn for_strategy(&mut self, strategy: usize, message: Message, known: Option<&Estate>) {
        let returned = &mut self.strategies[strategy].returned;
        returned.push(message);
        if let Some(known) = known {
            let _ = returned.next_of(known.returned(strategy));
        }
    }

    /// A record for the log.
    pub fn for_log(&mut self, record: Record, known: Option<&Estate>) {
        let kind = kind(record.point);
        self.logged[kind] += 1;
        if known.is_none_or(|known| self.logged[kind] > known.logged()[kind]) {
            self.unlogged.push_back(record.words());
        }
    }

    /// So much has gone out: it need not be kept.
    pub fn has_gone(&mut self, known: &Estate) {
        for (strategy, of) in self.strategies.iter_mut().enumerate() {
            while of.returned.next_of(known.returned(strategy)).is_some() {}
        }
        for (gateway, of) in self.gateways.iter_mut().enumerate() {
            of.has_gone(known.sent(gateway));
        }
        let (kept, there) = (self.kept(), known.logged());
        let mut number = [self.logged[0] - kept[0], self.logged[1] - kept[1]];
        self.unlogged.retain(|[key, value]| {
            let Some(record) = Record::from_words(*key, *value) else { return false };
            let kind = kind(record.point);
            number[kind] += 1;
            number[kind] > there[kind]
        });
    }

    /// Whether something is kept.
    pub fn keeps_something(&self) -> bool {
        !self.unlogged.is_empty()
            || self.strategies.iter().any(|of| !of.returned.kept.is_empty())
            || self.gateways.iter().any(|of| !of.dispatched.kept.is_empty())
    }

    /// All of the journal was carried out, and the predecessors have left that behind. Whether the journal has as much, and what comes
    /// of it; what was not logged in time has happened now.
    pub fn settle(
        self,
        estate: &Estate,
        sessions: &[StrategySession],
        now: u64,
    ) -> Result<(Recovered, Rest), RecoveryError> {
        self.check(estate, sessions)?;
        let timed = |[key, value]: [u64; 2]| {
            let record = Record::from_words(key, value)?;
            Some(if record.point == Point::Rejected { record } else { Record { value: now, ..record } })
        };
        let is_retired = |(index, session): (usize, &StrategySession)| session.is_retired().then_some(index);
        let mut recovered = Recovered {
            taken: self.strategies.iter().map(|of| of.taken).collect(),
            retired: sessions.iter().enumerate().filter_map(is_retired).collect(),
            gateways: Vec::new(),
            unlogged: self.unlogged.into_iter().filter_map(timed).collect(),
        };
        let mut rest = Rest {
            backlog: Vec::new(),
            unsent: self.strategies.into_iter().map(|of| of.returned.kept).collect(),
            commands: self.commands,
        };
        for GatewayOutput { dispatched: Outbox { mut kept, .. }, sent, orders, reports, reported } in
            self.gateways
        {
            let first = kept.pop_front();
            recovered.gateways.push(GatewayPast { orders, sent, first, reports, reported });
            rest.backlog.push(kept);
        }
        Ok((recovered, rest))
    }

    /// Whether the journal has as much as there was.
    fn check(&self, estate: &Estate, sessions: &[StrategySession]) -> Result<(), RecoveryError> {
        let enough = |what, index, journal, there| match there <= journal {
            true => Ok(()),
            false => Err(RecoveryError::Short { what, index, journal, there }),
        };
        for (gateway, of) in self.gateways.iter().enumerate() {
            enough("messages to gateway", gateway, of.dispatched.given, estate.sent(gateway))?;
        }
        enough("returns in the log", 0, self.logged[0], estate.returns_stamped)?;
        enough("records in the log", 0, self.logged[1], estate.others_logged)?;
        for ((strategy, of), session) in self.strategies.iter().enumerate().zip(sessions) {
            if session.is_served() {
                let there = estate.returned(strategy);
                enough("reports to strategy", strategy, of.returned.given, there)?;
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
        let unlogged = |estate: Estate| {
            let mut given = OutputLedger::new(0, 0);
            for n in 0..5 {
                let id = OrderId::new(0, 0, n);
                given.for_log(Record { point: Point::OrchReturn, id, detail: 0, value: 7 }, None);
                given.for_log(Record { point: Point::OrchDispatch, id, detail: 0, value: 7 }, Some(&estate));
            }
            given.has_gone(&estate);
            given.settle(&estate, &[], 9).map(|(recovered, _)| recovered.unlogged.len())
        };
        let estate = Estate { returns_stamped: 3, others_logged: 4, ..Estate::default() };
        assert_eq!(unlogged(estate.clone()).ok(), Some(3), "what is believed of a log that is whole");
        assert_eq!(unlogged(Estate { log_is_partial: true, ..estate.clone() }).ok(), Some(0));
        let more = Estate { returns_stamped: 6, log_is_partial: true, ..estate };
        assert!(
            unlogged(more).is_err(),
            "a journal that has less than the log is not whole, whatever the log has lost"
        );
    }
}
