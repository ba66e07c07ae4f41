//! An orchestrator without doors: it does again what a journal says, in rings and a log that are nobody's, and keeps of what comes of it
//! what may not have gone out.
//!
//! It is the state between two records. As bytes it is a snapshot; beside a living engine it follows that one's journal and writes the
//! snapshots; and it is what a successor goes on from ([`Shadow::come_back`]). The same records give the same bytes, whoever carries
//! them out: times are in the records, and what was not stamped in time gets the time of the comeback.

use super::events::{Event, RecoveryError};
use super::given::{Estate, Given, Recovered};
use super::state::OrchestratorState;
use super::{Mute, Orchestrator, ReturnPath, work::Work};
use journal::{Options, Reader, Record as Written, State, Writer, codec};
use protocol::agent::Cycle;
use protocol::checksum::digest;
use protocol::desk::{ANSWERS_WORDS, Answer, Answers, COMMANDS, Desk};
use protocol::stamps::{RECORD_WORDS, StampLog, Stamps};
use protocol::status::LOG_OFFSET;
use protocol::wire::Report;
use shm::clock::{Clock, Timebase};
use shm::memory::{Region, Words};
use shm::ring::{MESSAGE_WORDS, spsc};
use std::path::Path;

/// The version of a snapshot's form.
pub(crate) const VERSION: u32 = 1;

/// The clock of who does again: it stands.
#[derive(Clone, Copy)]
struct Standing;

impl Clock for Standing {
    fn now(&self) -> u64 {
        0
    }

    fn peek(&self) -> u64 {
        0
    }
}

/// Slots of the rings that are nobody's: what one record gives is taken out again at once.
const SLOTS: usize = 2;
/// Records that one event can log beside those of the orders that it turns away.
const LOGGED: usize = 4096;

/// What an orchestrator sends through, and who commands it: of one that was, if it is in its place.
pub struct Ends {
    /// By the gateway.
    pub inboxes: Vec<spsc::Producer>,
    /// By the strategy.
    pub returns: Vec<spsc::Producer>,
    /// Operators.
    pub desk: Option<Desk>,
}

/// The state of an engine's orchestrator behind a record of its journal.
pub struct Shadow {
    pub(crate) orchestrator: Orchestrator<Mute>,
    work: Work,
    cycle: Cycle<Standing>,
    /// What comes out of the inboxes.
    sent: Vec<spsc::Consumer>,
    /// What was said to operators.
    answers: Words,
    pub(crate) given: Given,
    /// All that has gone out, as soon as that is certain.
    known: Option<Estate>,
    /// Orders that were refused when it was last looked at all strategies.
    rejected: u64,
}

/// What a snapshot holds, beside what was given.
pub(crate) type Saved = (Given, OrchestratorState, Vec<Answer>);

impl Shadow {
    /// Around an orchestrator that has done nothing; what that would have sent through is given back. `time` is the run's.
    pub fn new(mut orchestrator: Orchestrator<Mute>, time: Timebase, stamps: Stamps) -> (Self, Ends) {
        let mut inboxes = Vec::new();
        let mut sent = Vec::new();
        for inbox in &mut orchestrator.inboxes {
            let (producer, consumer) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
            inboxes.push(core::mem::replace(&mut inbox.ring, producer));
            sent.push(consumer);
        }
        let returns = orchestrator.returns.iter_mut().map(ReturnPath::stop).collect();
        let work = core::mem::replace(&mut orchestrator.work, Work::new(0));
        let answers = Region::heap(ANSWERS_WORDS).words();
        // No command is taken from there: those that were taken are in the journal.
        let desk = orchestrator.desk.replace(Desk::new(&answers.clone().into(), &answers));
        orchestrator.is_kept = true;
        let room = LOG_OFFSET + (2 * orchestrator.waiting.places() + LOGGED) * RECORD_WORDS;
        let log = StampLog::new(&Region::heap(room).words()).taking(stamps);
        let cycle = Cycle { clock: Standing, now: 0, time, draining: false, log };
        let given = Given::new(orchestrator.returns.len(), inboxes.len());
        let shadow = Self { orchestrator, work, cycle, sent, answers, given, known: None, rejected: 0 };
        (shadow, Ends { inboxes, returns, desk })
    }

    /// So much of what was given has gone out: that need not be kept.
    pub fn has_gone(&mut self, estate: &Estate) {
        self.given.has_gone(estate);
    }

    /// How many reports each strategy was given since its memory was last made anew.
    pub fn returned(&self) -> Vec<u64> {
        self.given.strategies.iter().map(|of| of.returned.given()).collect()
    }

    /// Whether something is kept that may not have gone out.
    pub fn keeps_something(&self) -> bool {
        self.given.keeps_something()
    }

    /// The orchestrator in the place of one that is dead, with the journal in that folder and in the state in which that has it: behind
    /// what was followed with that reader, or from a snapshot or the start on. `now` is this moment, in ticks. Inboxes are empty.
    ///
    /// # Errors
    /// As [`RecoveryError`].
    ///
    /// # Panics
    /// If the ends are of other numbers of gateways and strategies.
    pub fn come_back(
        mut self,
        followed: Option<Reader>,
        (folder, options): (&Path, &Options),
        estate: Estate,
        ends: Ends,
        now: u64,
    ) -> Result<(Orchestrator<Mute>, Recovered), RecoveryError> {
        let Ends { inboxes, returns, desk } = ends;
        assert!(inboxes.len() == self.sent.len() && returns.len() == self.orchestrator.returns.len());
        let returned = returns.iter().map(spsc::Producer::published).collect();
        let estate = Estate { returned, ..estate };
        self.given.has_gone(&estate);
        self.known = Some(estate);
        let journal = Writer::recover(folder, options, followed, |part| self.take(part))?;
        let Self { mut orchestrator, work, answers, given, known, .. } = self;
        let lines = &orchestrator.lines;
        let (recovered, rest) = given.settle(&known.unwrap_or_default(), lines, now)?;
        (orchestrator.journal, orchestrator.work, orchestrator.decided) = (Some(journal), work, None);
        for ((inbox, ring), backlog) in orchestrator.inboxes.iter_mut().zip(inboxes).zip(rest.backlog) {
            inbox.ring = ring;
            if !backlog.iter().all(|message| inbox.send(message)) {
                let there = inbox.ring.published();
                return Err(RecoveryError::Short {
                    what: "messages to gateway",
                    index: 0,
                    journal: 0,
                    there,
                });
            }
        }
        for ((path, ring), unsent) in orchestrator.returns.iter_mut().zip(returns).zip(rest.unsent) {
            path.ring = ring;
            orchestrator.returned = orchestrator.returned.saturating_sub(unsent.len() as u64);
            path.waiting.extend(unsent);
        }
        orchestrator.returns_wait = orchestrator.returns.iter().any(ReturnPath::is_waiting);
        orchestrator.desk = desk;
        if let Some(desk) = &mut orchestrator.desk {
            for (number, answer) in said(&answers, rest.commands) {
                desk.say(number, Answer { seen_ticks: now, done_ticks: now, ..answer });
            }
            (0..).zip(orchestrator.refused).for_each(|(reason, count)| desk.rejections(reason, count));
            desk.skip_to(rest.commands);
        }
        Ok((orchestrator, recovered))
    }

    /// Does again what an event made it do; `None`: no engine with these strategies and gateways ever had it.
    fn again(&mut self, event: Event) -> Option<()> {
        let Self { orchestrator, cycle, given, .. } = self;
        let strategies = orchestrator.lines.len();
        let strategy = |index: u16| Some(usize::from(index)).filter(|index| *index < strategies);
        let gateway = |index: u16| Some(usize::from(index)).filter(|index| *index < self.sent.len());
        let mut concerned = None;
        match event {
            Event::Submitted { from, has_room, message } => {
                let from = match from {
                    Some(from) => Some(strategy(from)?),
                    None => None,
                };
                if let Some(from) = from {
                    given.strategies[from].taken += 1;
                }
                orchestrator.decided = Some(has_room);
                concerned = from;
                orchestrator.accept(from, message, cycle);
            }
            Event::Reported { gateway: from, message } => {
                if let Some(from) = from {
                    let past = &mut given.gateways[gateway(from)?];
                    past.reports += 1;
                    past.reported.add(digest(&message));
                }
                orchestrator.reports += 1;
                orchestrator.take_report(message, cycle);
                concerned = Report::from_message(message)
                    .ok()
                    .map(|report| usize::from(report.id.strategy()))
                    .filter(|index| *index < strategies);
            }
            Event::Life { strategy: index, life } => {
                let index = strategy(index)?;
                let was = orchestrator.lines[index].epoch;
                orchestrator.sees(index, life, cycle);
                given.strategies[index].returned.forget();
                if orchestrator.lines[index].epoch != was {
                    given.strategies[index] = Default::default();
                    // Begun anew, it would have room.
                    drop(orchestrator.returns[index].stop());
                }
            }
            Event::Told { strategy: index, gateway: to } => {
                orchestrator.tell_of_death(strategy(index)?, gateway(to)?);
            }
            Event::Retired { strategy: index } => orchestrator.bury(strategy(index)?),
            Event::Command { number, command } => {
                given.commands = given.commands.max(u64::from(number) + 1);
                orchestrator.carry_out(number, command, cycle);
            }
            Event::KillTold { kill, gateway: to } => {
                let kill = Some(usize::from(kill)).filter(|kill| *kill < orchestrator.active_kills())?;
                orchestrator.tell_of_kill(kill, gateway(to)?);
                orchestrator.finish_kills(cycle);
            }
            Event::Flushed { gateway: index } => orchestrator.flush_one(gateway(index)?, cycle),
            Event::Misconduct { from, why } => {
                let from = match from {
                    Some(from) => Some(strategy(from)?),
                    None => None,
                };
                orchestrator.misconduct(from, why, cycle);
            }
        }
        self.take_out(concerned);
        Some(())
    }

    /// What was given because of an event that concerns that strategy, or any.
    fn take_out(&mut self, concerned: Option<usize>) {
        let Self { orchestrator, cycle, sent, given, known, rejected, .. } = self;
        let known = known.as_ref();
        for (gateway, ring) in sent.iter_mut().enumerate() {
            while let Ok(Some(message)) = ring.try_pop() {
                given.for_gateway(gateway, message, known);
            }
        }
        // One that refuses others may have answered those.
        let all = core::mem::replace(rejected, orchestrator.rejected) != orchestrator.rejected;
        let strategies = match concerned.filter(|_| !all) {
            Some(index) => index..index + 1,
            None => 0..orchestrator.returns.len(),
        };
        for index in strategies {
            while let Some(message) = orchestrator.returns[index].waiting.pop_front() {
                orchestrator.full -= 1;
                orchestrator.returned += 1;
                given.for_strategy(index, message, known);
            }
        }
        cycle.log.take_out(|record| given.for_log(record, known));
    }
}

/// What was said of each command.
fn said(answers: &Words, commands: u64) -> impl Iterator<Item = (u32, Answer)> {
    let answers = Answers::new(&answers.clone().into());
    (0..commands.min(COMMANDS as u64) as u32).map(move |number| (number, answers.of(number)))
}

impl State for Shadow {
    type Error = RecoveryError;

    fn restore(&mut self, sequence: u64, bytes: &[u8]) -> Result<(), RecoveryError> {
        let saved = codec::decode::<Saved>(VERSION, bytes);
        let (given, state, said) = saved.map_err(|error| RecoveryError::Encoded(sequence, error))?;
        let wrong = |what| RecoveryError::State(sequence, what);
        self.orchestrator.restore(&state).map_err(wrong)?;
        if !given.is_of(self.orchestrator.returns.len(), self.sent.len()) {
            return Err(wrong("what was given"));
        }
        self.given = given;
        if let Some(desk) = &self.orchestrator.desk {
            (0..).zip(said).for_each(|(number, answer)| desk.say(number, answer));
        }
        self.rejected = self.orchestrator.rejected;
        if let Some(known) = &self.known {
            self.given.has_gone(known);
        }
        Ok(())
    }

    fn carry_out(&mut self, record: Written<'_>) -> Result<(), RecoveryError> {
        let (event, now) = Event::of(&record)?;
        self.cycle.now = now;
        self.again(event).ok_or(RecoveryError::Foreign(record.sequence))
    }

    fn encode(&self) -> Result<Vec<u8>, RecoveryError> {
        let said: Vec<Answer> = said(&self.answers, self.given.commands).map(|(_, answer)| answer).collect();
        Ok(codec::encode(VERSION, &(&self.given, self.orchestrator.state(), said))?)
    }

    fn size(&self) -> u64 {
        self.orchestrator.positions.requests()
    }
}
