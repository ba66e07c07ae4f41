//! A replica of the engine: a core that applies the inputs of a journal, and a ledger of the
//! outputs that may not have gone out.
//!
//! As bytes it is a snapshot. Beside a living engine it follows the journal as a hot standby and
//! writes the snapshots. A crashed engine's successor continues from it ([`Replica::promote`]). The
//! same records give the same bytes in every process: times are in the records, and what was not
//! stamped in time gets the time of the promotion.

use super::core::{Core, Effects, Input, Notice, SavedCore};
use super::ledger::{GatewayPast, OutputLedger, OutputWatermarks, Recovered};
use super::outputs::Outputs;
use super::successor::Successor;
use journal::{Options, Reader, Record as Written, RecoveryError, State, Writer};
use protocol::checksum::digest;
use protocol::desk::{ANSWERS_WORDS, Answer, COMMANDS, CommandAnswers, CommandChannel};
use protocol::record::{Point, Record, Stamps};
use protocol::wire::{Message, Order, OrderId, Report};
use serde::{Deserialize, Serialize};
use shm::memory::{AtomicWords, Region};
use std::error::Error;
use std::path::Path;

/// The state of an engine after a record of its journal.
pub struct Replica {
    pub(crate) core: Core,
    pub(crate) ledger: OutputLedger,
    stamps: Stamps,
    answers: AtomicWords,
    desk: CommandChannel,
}

/// What a snapshot holds.
#[derive(Serialize, Deserialize)]
pub struct EngineSnapshot {
    pub(crate) ledger: OutputLedger,
    pub(crate) core: SavedCore,
    answers: Vec<Answer>,
}

struct Recorded<'a> {
    ledger: &'a mut OutputLedger,
    stamps: Stamps,
    desk: &'a CommandChannel,
}

impl Recorded<'_> {
    fn log(&mut self, point: Point, id: OrderId, detail: u8, value: u64) {
        self.ledger.for_log(Record { point, id, detail, value });
    }
}

impl Effects for Recorded<'_> {
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

    fn to_gateway(&mut self, gateway: usize, message: &Message) {
        self.ledger.for_gateway(gateway, *message);
    }

    fn to_strategy(&mut self, report: &Report, message: &Message) {
        self.stamp(Point::OrchReturn, report.id, report.number);
        self.ledger.for_strategy(report.id.strategy().into(), *message);
    }

    fn close(&mut self, strategy: usize) {
        self.ledger.strategies[strategy].returned.clear();
    }

    fn reopen(&mut self, strategy: usize) {
        self.ledger.strategies[strategy] = Default::default();
    }

    fn close_gateway(&mut self, gateway: usize) {
        self.ledger.gateways[gateway].dispatched.clear();
    }

    fn reopen_gateway(&mut self, _: usize, _: bool) {}

    /// The rest is published by the successor from the state.
    fn notify(&mut self, notice: Notice) {
        notice.say(self.desk, || 0);
    }
}

impl Replica {
    /// A replica in which nothing has happened. `stamps` are the run's.
    pub fn new(core: Core, stamps: Stamps) -> Self {
        let answers = Region::heap(ANSWERS_WORDS).words();
        // No command is taken from there: those that were taken are in the journal.
        let desk = CommandChannel::new(&answers.clone().into(), &answers);
        let ledger = OutputLedger::new(core.sessions.len(), core.gateways.len());
        Self { core, ledger, stamps, answers, desk }
    }

    /// Drops what has gone out from the ledger.
    pub fn has_gone(&mut self, estate: &OutputWatermarks) {
        self.ledger.has_gone(estate);
    }

    /// Reports that each strategy was given since its memory was last made again.
    pub fn returned(&self) -> Vec<u64> {
        self.ledger.strategies.iter().map(|output| output.returned.produced()).collect()
    }

    /// Whether the ledger has something that may not have gone out.
    pub fn keeps_something(&self) -> bool {
        self.ledger.keeps_something()
    }

    /// Makes the engine that takes the place of a crashed one. Reads what is left of the journal in
    /// `folder`: after what `followed` has read, or from a snapshot or the start on. `outputs` are
    /// attached after the crashed engine's, with empty inboxes; `now` is in ticks.
    ///
    /// # Errors
    /// See [`RecoveryError`].
    ///
    /// # Panics
    /// If core and outputs are for other numbers of strategies and gateways.
    pub fn promote(
        mut self,
        followed: Option<Reader>,
        (folder, options): (&Path, &Options),
        estate: OutputWatermarks,
        mut outputs: Outputs,
        now: u64,
    ) -> Result<(Successor, Recovered), RecoveryError> {
        let returned = outputs.strategies.iter().map(|strategy| strategy.ring().published()).collect();
        let estate = OutputWatermarks { returned, ..estate };
        self.ledger.has_gone(&estate);
        self.ledger.known = Some(estate.clone());
        let journal = Writer::recover(folder, options, followed, |part| self.recover(part))?;
        let Self { core, ledger, answers, .. } = self;
        ledger.check(&estate, &core.sessions)?;
        let is_retired = |strategy: &usize| core.sessions[*strategy].is_retired();
        let mut recovered = Recovered {
            taken: ledger.strategies.iter().map(|output| output.taken).collect(),
            retired: (0..core.sessions.len()).filter(is_retired).collect(),
            gateways: Vec::new(),
            unlogged: ledger.unlogged(now),
        };
        for (gateway, output) in ledger.gateways.into_iter().enumerate() {
            let mut unsent = output.dispatched.into_unconfirmed();
            recovered.gateways.push(GatewayPast { first: unsent.pop_front(), ..output.past });
            unsent.iter().for_each(|message| outputs.send_to_gateway(gateway, message));
        }
        for (strategy, output) in outputs.strategies.iter_mut().zip(ledger.strategies) {
            outputs.returned += output.returned.confirmed();
            strategy.enqueue_all(output.returned.into_unconfirmed());
        }
        outputs.has_queued_reports = true;
        // A recall that the crashed engine had no time for.
        outputs.recall_is_due = true;
        if let Some(desk) = &mut outputs.desk {
            for (number, answer) in answered(&answers, ledger.commands) {
                desk.say(number, Answer { seen_ticks: now, done_ticks: now, ..answer });
            }
            (0..).zip(&core.refused).for_each(|(reason, count)| desk.rejections(reason, *count));
            desk.skip_to(ledger.commands);
        }
        Ok((Successor { core, outputs, journal }, recovered))
    }

    /// Counts in the ledger what an input says was taken.
    /// Returns `None` if it was not: the input is of another engine.
    fn count_taken(&mut self, input: &Input) -> Option<()> {
        match *input {
            Input::Order { from: Some(from), .. } => self.ledger.strategies[usize::from(from)].taken += 1,
            Input::Report { gateway: Some(gateway), message } => {
                let past = &mut self.ledger.gateways[usize::from(gateway)].past;
                past.reports += 1;
                past.reported.add(digest(&message));
            }
            Input::Command { number, .. } => {
                self.ledger.commands = self.ledger.commands.max(u64::from(number) + 1);
            }
            Input::Recalled { message } => {
                let order = Order::from_message(message).ok()?;
                let gateway = self.core.gateway_of(order.id.strategy().into(), order.venue);
                self.ledger.recall(gateway, &message)?;
            }
            _ => {}
        }
        Some(())
    }
}

fn answered(answers: &AtomicWords, commands: u64) -> impl Iterator<Item = (u32, Answer)> {
    let answers = CommandAnswers::new(&answers.clone().into());
    (0..commands.min(COMMANDS as u64) as u32).map(move |number| (number, answers.of(number)))
}

impl State for Replica {
    const VERSION: u32 = 6;
    type Saved = EngineSnapshot;

    fn save(&self) -> impl Serialize {
        let answers = answered(&self.answers, self.ledger.commands).map(|(_, answer)| answer);
        // The fields of an [`EngineSnapshot`], in order.
        (&self.ledger, self.core.save(), answers.collect::<Vec<_>>())
    }

    fn restore(&mut self, saved: EngineSnapshot) -> Result<(), Box<dyn Error + Send + Sync>> {
        let EngineSnapshot { ledger, core, answers } = saved;
        self.core.restore(core)?;
        if !ledger.is_of(self.core.sessions.len(), self.core.gateways.len()) {
            return Err("outputs".into());
        }
        let known = self.ledger.known.take();
        self.ledger = OutputLedger { known, ..ledger };
        (0..).zip(answers).for_each(|(number, answer)| self.desk.say(number, answer));
        if let Some(known) = self.ledger.known.clone() {
            self.ledger.has_gone(&known);
        }
        Ok(())
    }

    fn apply(&mut self, record: Written<'_>) -> Result<(), RecoveryError> {
        let (input, now) = Input::from_record(&record)?;
        let is_ours = self.core.accepts(&input) && self.count_taken(&input).is_some();
        if !is_ours {
            return Err(RecoveryError::Foreign(record.sequence));
        }
        let Self { core, ledger, stamps, desk, .. } = self;
        core.apply(input, now, &mut Recorded { ledger, stamps: *stamps, desk });
        core.book();
        Ok(())
    }

    fn size(&self) -> u64 {
        self.core.positions.requests()
    }
}
