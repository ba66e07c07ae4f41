//! A replica of the engine: a core that applies the inputs of a journal, and a ledger of outputs
//! that may not have been sent.
//!
//! Encoded it is a snapshot. As a hot standby it follows a running engine's journal and writes the
//! snapshots. A crashed engine's successor is promoted from it ([`Replica::promote`]). Equal
//! records give equal bytes in every process: times are in the records, and unlogged stamps get the
//! time of the promotion.

use super::engine::{Core, Effects, Input, LifecycleNotice, OperatorNotice, SavedCore};
use super::ledger::{GatewayOutput, OutputLedger, OutputWatermarks, Recovered, RecoveredGateway};
use super::outputs::Outputs;
use super::shell::Orchestrator;
use journal::{Options, Reader, Record as Written, RecoveryError, State, Watermark, Writer, codec};
use protocol::checksum::digest;
use protocol::commands::{
    ANSWERS_WORDS, COMMANDS_WORDS, CommandAnswer, CommandAnswers, CommandChannel, MAX_COMMANDS,
};
use protocol::index::{GatewayIndex, PerGateway, PerStrategy, StrategyIndex};
use protocol::record::{Point, Record, Stamps};
use protocol::sender::Sender;
use protocol::wire::{Message, Order, OrderId, Report};
use serde::{Deserialize, Serialize};
use shm::memory::{AtomicWords, Region};
use shm::ring::Consumer;
use std::error::Error;
use std::path::Path;

/// A copy of the engine's state machine, built from its journal, with the outputs that may not have
/// been sent.
pub struct Replica {
    pub(crate) core: Core,
    pub(crate) ledger: OutputLedger,
    stamps: Stamps,
    answers: AtomicWords,
    commands: CommandChannel,
}

/// The content of an engine's snapshot: the state machine and the outputs that may not have been
/// sent.
#[derive(Serialize, Deserialize)]
pub struct EngineSnapshot {
    pub(crate) ledger: OutputLedger,
    pub(crate) core: SavedCore,
    answers: Vec<CommandAnswer>,
}

struct LedgerEffects<'a> {
    ledger: &'a mut OutputLedger,
    stamps: Stamps,
    commands: &'a CommandChannel,
}

impl LedgerEffects<'_> {
    fn log(&mut self, point: Point, id: OrderId, detail: u8, value: u64) {
        self.ledger.push_record(Record { point, id, detail, value });
    }
}

impl Effects for LedgerEffects<'_> {
    fn off_path(&mut self) -> &mut dyn Effects {
        self
    }

    fn stamp(&mut self, point: Point, id: OrderId, detail: u8) {
        if self.stamps == Stamps::All {
            self.log(point, id, detail, 0);
        }
    }

    fn log_now(&mut self, point: Point, id: OrderId, detail: u8) -> u64 {
        self.log(point, id, detail, 0);
        0
    }

    fn log_value(&mut self, point: Point, id: OrderId, value: u64) {
        self.log(point, id, 0, value);
    }

    fn to_gateway(&mut self, gateway: GatewayIndex, message: &Message) {
        self.ledger.push_to_gateway(gateway, *message);
    }

    fn to_strategy(&mut self, report: &Report, message: &Message) {
        self.stamp(Point::OrchReturn, report.id, report.number);
        self.ledger.push_to_strategy(report.id.strategy(), *message);
    }

    fn close(&mut self, strategy: StrategyIndex) {
        self.ledger.strategies[strategy].returned.clear();
    }

    fn renew(&mut self, strategy: StrategyIndex) {
        self.ledger.strategies[strategy] = Default::default();
    }

    fn close_gateway(&mut self, gateway: GatewayIndex) {
        self.ledger.gateways[gateway].dispatched.clear();
    }

    fn renew_gateway(&mut self, _: GatewayIndex, _: bool) {}

    fn notify_operators(&mut self, notice: OperatorNotice) {
        notice.publish(self.commands, || 0);
    }

    /// Does nothing: the successor publishes these from its state.
    fn notify_launcher(&mut self, _: LifecycleNotice) {}
}

impl Replica {
    /// Creates a replica of the engine that has applied no record of the journal. `stamps` are the
    /// run's.
    pub fn new(core: Core, stamps: Stamps) -> Self {
        let answers = Region::heap(ANSWERS_WORDS).words();
        // No command is taken from here: commands are in the journal.
        let none = Region::heap(COMMANDS_WORDS).words();
        let commands = CommandChannel::new(&none.into(), &answers);
        let ledger = OutputLedger::new(core.sessions.len(), core.gateways.len());
        Self { core, ledger, stamps, answers, commands }
    }

    /// Drops the engine's outputs that are known to be sent, up to the counts of `watermarks`.
    pub fn confirm(&mut self, watermarks: &OutputWatermarks) {
        self.ledger.confirm(watermarks);
    }

    /// Returns the number of reports produced for each strategy since the ring that carries reports
    /// to it was last reset for a new incarnation.
    pub fn returned(&self) -> PerStrategy<u64> {
        self.ledger.strategies.iter().map(|output| output.returned.produced()).collect()
    }

    /// Returns `true` if the replica keeps outputs of the engine that may not have been sent.
    pub fn has_unconfirmed(&self) -> bool {
        self.ledger.has_unconfirmed()
    }

    /// Turns the replica into a crashed engine's successor, and returns it with the results of the
    /// recovery. Reads the rest of the journal in `folder`: after what `followed` has read, or from
    /// a snapshot or the start. `outputs` are attached after the crashed engine's, with empty
    /// inboxes; `now` is in ticks.
    pub fn promote(
        mut self,
        followed: Option<Reader>,
        (folder, options): (&Path, &Options),
        watermarks: OutputWatermarks,
        mut outputs: Outputs,
        now: u64,
    ) -> Result<(Successor, Recovered), RecoveryError> {
        let returned = outputs.strategies.iter().map(|strategy| strategy.ring().published()).collect();
        let watermarks = OutputWatermarks { returned, ..watermarks };
        self.ledger.confirm(&watermarks);
        self.ledger.confirmed = Some(watermarks.clone());
        let journal = Writer::recover(folder, options, followed, |part| self.recover(part))?;
        let Self { core, ledger, answers, .. } = self;
        ledger.check(&watermarks, &core.sessions)?;
        let is_retired = |strategy: &StrategyIndex| core.sessions[*strategy].is_retired();
        let mut recovered = Recovered {
            taken: ledger.strategies.iter().map(|output| output.taken).collect(),
            retired: core.sessions.indices().filter(is_retired).collect(),
            gateways: PerGateway::default(),
            unlogged: ledger.unlogged(now),
        };
        let gateways = ledger.gateways.indices();
        let resend = |(gateway, output): (GatewayIndex, GatewayOutput)| {
            let mut unsent = output.dispatched.into_unconfirmed();
            let next_message = unsent.pop_front();
            unsent.iter().for_each(|message| outputs.send_to_gateway(gateway, message));
            RecoveredGateway { next_message, ..output.recovered }
        };
        recovered.gateways = gateways.zip(ledger.gateways).map(resend).collect();
        for (strategy, output) in outputs.strategies.iter_mut().zip(ledger.strategies) {
            outputs.returned += output.returned.confirmed();
            strategy.enqueue_all(output.returned.into_unconfirmed());
        }
        outputs.has_queued_reports = true;
        // The crashed engine may have had no time for a recall.
        outputs.recall_is_due = true;
        if let Some(commands) = &mut outputs.commands {
            for (number, answer) in recorded_answers(&answers, ledger.commands) {
                commands.restore_answer(number, CommandAnswer { seen_ticks: now, done_ticks: now, ..answer });
            }
            (0..)
                .zip(&core.rejected_by_reason)
                .for_each(|(reason, count)| commands.set_rejections(reason, *count));
            commands.skip_to(ledger.commands);
        }
        Ok((Successor { core, outputs, journal }, recovered))
    }

    /// Counts the messages that an input took. Returns `None` for an input of another engine.
    fn count_taken(&mut self, input: &Input) -> Option<()> {
        match *input {
            Input::Order { from: Some(from), .. } => self.ledger.strategies[from].taken += 1,
            Input::Report { gateway: Some(gateway), message } => {
                let past = &mut self.ledger.gateways[gateway].recovered;
                past.reports += 1;
                past.reported.add(digest(&message));
            }
            Input::Command { number, .. } => {
                self.ledger.commands = self.ledger.commands.max(u64::from(number) + 1);
            }
            Input::Recalled { message } => {
                let order = Order::from_message(message).ok()?;
                let gateway = self.core.gateway_of(order.id.strategy(), order.request.venue);
                self.ledger.recall(gateway, &message)?;
            }
            _ => {}
        }
        Some(())
    }
}

fn recorded_answers(answers: &AtomicWords, commands: u64) -> impl Iterator<Item = (u32, CommandAnswer)> {
    let answers = CommandAnswers::new(&answers.clone().into());
    (0..commands.min(MAX_COMMANDS as u64) as u32).map(move |number| (number, answers.answer(number)))
}

impl State for Replica {
    const VERSION: u32 = 9;
    type Saved = EngineSnapshot;

    fn save(&self) -> impl Serialize {
        let answers = recorded_answers(&self.answers, self.ledger.commands).map(|(_, answer)| answer);
        // The fields of an [`EngineSnapshot`], in order.
        (&self.ledger, self.core.save(), answers.collect::<Vec<_>>())
    }

    fn restore(&mut self, saved: EngineSnapshot) -> Result<(), Box<dyn Error + Send + Sync>> {
        let EngineSnapshot { ledger, core, answers } = saved;
        self.core.restore(core)?;
        if !ledger.has_shape(self.core.sessions.len(), self.core.gateways.len()) {
            return Err("outputs".into());
        }
        let known = self.ledger.confirmed.take();
        self.ledger = OutputLedger { confirmed: known, ..ledger };
        (0..).zip(answers).for_each(|(number, answer)| self.commands.restore_answer(number, answer));
        if let Some(known) = self.ledger.confirmed.clone() {
            self.ledger.confirm(&known);
        }
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

    fn apply(&mut self, record: Written<'_>) -> Result<(), RecoveryError> {
        let (input, now) = Input::from_record(&record)?;
        let is_ours = self.core.can_apply(&input) && self.count_taken(&input).is_some();
        if !is_ours {
            return Err(RecoveryError::Foreign(record.sequence));
        }
        let Self { core, ledger, stamps, commands, .. } = self;
        core.replay(input, now, &mut LedgerEffects { ledger, stamps: *stamps, commands });
        Ok(())
    }

    fn size(&self) -> u64 {
        self.core.positions.requests()
    }
}

/// A recovered engine that is not yet attached to the hand-offs of incoming orders (submit) and
/// reports (completion).
///
/// Journaled messages in the hand-offs are skipped, the others are taken. The messages of an inbox,
/// which connects threads of one process, are skipped, and what a session lacks is sent again.
pub struct Successor {
    pub(crate) core: Core,
    pub(crate) outputs: Outputs,
    pub(crate) journal: Writer,
}

impl Successor {
    /// Attaches the recovered engine to the hand-offs of orders (submit) and reports (completion),
    /// in place of the crashed engine. Fails if more was taken from a hand-off than the journal
    /// has.
    pub fn attach<R: Consumer>(
        self,
        mut submit: R,
        mut completion: R,
        recovered: &Recovered,
    ) -> Result<Orchestrator<R, Writer>, RecoveryError> {
        let short = |what, index, journal| {
            move |observed| RecoveryError::Incomplete { what, index, journal, observed }
        };
        recovered.retired.iter().for_each(|strategy| submit.forget(strategy.as_usize()));
        for (index, taken) in recovered.taken.iter().enumerate() {
            submit.pass_over(index, *taken).map_err(short("orders of strategy", index, *taken))?;
        }
        for (index, RecoveredGateway { reports, .. }) in recovered.gateways.iter().enumerate() {
            completion.pass_over(index, *reports).map_err(short("reports of gateway", index, *reports))?;
        }
        // Receivers may sleep although the crashed engine has sent them something.
        self.outputs.gateways.iter().chain(&self.outputs.strategies).for_each(Sender::ring_bell);
        let engine = Orchestrator::new(submit, completion, self.core, self.outputs, self.journal);
        Ok(Orchestrator { sender_is_authenticated: false, ..engine })
    }

    /// Returns a handle that shows up to which record the engine's journal is durable.
    pub fn watermark(&self) -> Watermark {
        self.journal.watermark()
    }

    /// Returns the number of running strategies' open orders, replaces and cancels.
    pub fn open_orders(&self) -> u64 {
        self.core.positions.requests()
    }
}

#[cfg(test)]
mod tests;
