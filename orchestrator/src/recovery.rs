//! How an orchestrator comes back: it does again what its journal says, in rings and a log that are nobody's, and keeps of what comes of
//! it what its predecessor had not done.
//!
//! Everything that an orchestrator gives has its place in an order that the journal alone decides, so counts are enough to say what the
//! dead one had done:
//!
//! | left behind | what follows from it |
//! |---|---|
//! | messages in a strategy's ring, in a gateway's | those that the journal has are passed over, the others are taken |
//! | messages in a gateway's session | so many orders and cancels were sent on; the others go to the gateway again |
//! | messages in a strategy's return ring | so many reports were returned |
//! | stamps in the log | so many are there, of returns and of all others |
//! | answers of desk and repairs | what is said there is not said again |
//!
//! An inbox is between threads of the same process, so both its ends are gone: what is in it is passed over, and what the session lacks
//! is put there anew.

use super::events::{Event, EventLog, RecoveryError};
use super::{Inbox, Orchestrator, ReturnPath, Supervision, work::Work};
use journal::Options;
use protocol::agent::Cycle;
use protocol::checksum::{Checksum, digest};
use protocol::desk::Desk;
use protocol::stamps::{Point, RECORD_WORDS, Record, StampLog, Stamps};
use protocol::status::LOG_OFFSET;
use protocol::wire::{Instruction, Message, Report};
use shm::clock::{Clock, Timebase};
use shm::memory::Region;
use shm::ring::{Consumer, MESSAGE_WORDS, spsc};
use std::path::Path;

/// What the predecessors of an orchestrator have left behind; nothing where there was none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Estate {
    /// Stamps of returns in the log.
    pub returns_stamped: u64,
    /// Other records of an orchestrator in the log, but those of its seal.
    pub others_logged: u64,
    /// Messages in each gateway's session, from the first on.
    pub sent: Vec<u64>,
}

impl Estate {
    /// Counts a record of the log.
    pub fn count(&mut self, point: Point) {
        match point {
            Point::OrchReturn => self.returns_stamped += 1,
            _ => self.others_logged += u64::from(is_ours(point)),
        }
    }
}

const fn is_ours(point: Point) -> bool {
    use Point::{KillDone, KillSeen, OrchDispatch, OrchRecvCompletion, OrchRecvSubmit, Rejected};
    matches!(point, OrchRecvSubmit | OrchDispatch | OrchRecvCompletion | Rejected | KillSeen | KillDone)
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

/// The receiving end of nothing: of an orchestrator that is not attached yet.
pub struct Mute;

impl Consumer for Mute {
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        None
    }
}

/// The clock of a recovery: it stands.
#[derive(Clone, Copy)]
struct Standing(u64);

impl Clock for Standing {
    fn now(&self) -> u64 {
        self.0
    }

    fn peek(&self) -> u64 {
        self.0
    }
}

/// Slots of the rings that are nobody's: what one record gives is taken out again at once.
const SLOTS: usize = 2;
/// Records that one event can log beside those of the orders that it turns away.
const LOGGED: usize = 4096;

struct Replay {
    orchestrator: Orchestrator<Mute>,
    cycle: Cycle<Standing>,
    /// What comes out of the inboxes.
    sent: Vec<spsc::Consumer>,
    /// Reports that each strategy's ring has.
    returned: Vec<u64>,
    /// Reports that each strategy was given since its ring was made anew, and those of them that the ring lacks.
    given: Vec<u64>,
    unsent: Vec<Vec<Message>>,
    /// What each gateway's session lacks, but for the first.
    backlog: Vec<Vec<Message>>,
    /// Messages that each gateway was sent.
    dispatched: Vec<u64>,
    estate: Estate,
    returns_logged: u64,
    others_logged: u64,
    recovered: Recovered,
    commands: u64,
    /// Orders that were refused when it was last looked at all strategies.
    rejected: u64,
}

impl Orchestrator<Mute> {
    /// The orchestrator with a journal in that folder, and in the state in which the journal has it. Its inboxes are empty, and their
    /// ends and those of the return rings are heirs of the dead one's; `desk` is what operators say. `time` is the run's, `now` of this
    /// moment, in ticks.
    ///
    /// # Errors
    /// As [`RecoveryError`].
    pub fn journalled(
        mut self,
        folder: &Path,
        options: &Options,
        (time, now): (Timebase, u64),
        stamps: Stamps,
        estate: Estate,
        desk: Option<Desk>,
    ) -> Result<(Self, Recovered), RecoveryError> {
        let (gateways, strategies) = (self.inboxes.len(), self.returns.len());
        let mut real_inboxes = Vec::new();
        let mut sent = Vec::new();
        for inbox in &mut self.inboxes {
            let (producer, consumer) = spsc::heap_ring::<MESSAGE_WORDS>(SLOTS);
            real_inboxes.push(core::mem::replace(&mut inbox.ring, producer));
            sent.push(consumer);
        }
        let returned: Vec<u64> = self.returns.iter().map(|path| path.ring.published()).collect();
        let real_returns: Vec<_> = self.returns.iter_mut().map(ReturnPath::stop).collect();
        let work = core::mem::replace(&mut self.work, Work::new(0));
        (self.is_kept, self.desk) = (true, desk);
        let room = LOG_OFFSET + (2 * self.waiting.places() + LOGGED) * RECORD_WORDS;
        let log = StampLog::new(&Region::heap(room).words()).taking(stamps);
        let cycle = Cycle { clock: Standing(now), now, time, draining: false, log };
        let mut replay = Replay {
            orchestrator: self,
            cycle,
            sent,
            returned,
            given: vec![0; strategies],
            unsent: vec![Vec::new(); strategies],
            backlog: vec![Vec::new(); gateways],
            dispatched: vec![0; gateways],
            estate,
            returns_logged: 0,
            others_logged: 0,
            recovered: Recovered {
                taken: vec![0; strategies],
                gateways: vec![GatewayPast::default(); gateways],
                ..Recovered::default()
            },
            commands: 0,
            rejected: 0,
        };
        let journal = EventLog::open(folder, options, |event, now| {
            replay.cycle.now = now;
            replay.again(event).is_some()
        })?;
        replay.check()?;
        let Replay { mut orchestrator, unsent, backlog, recovered, commands, .. } = replay;
        (orchestrator.journal, orchestrator.work, orchestrator.decided) = (Some(journal), work, None);
        for ((inbox, ring), backlog) in orchestrator.inboxes.iter_mut().zip(real_inboxes).zip(backlog) {
            inbox.ring = ring;
            for message in backlog {
                if !inbox.send(&message) {
                    let there = inbox.ring.published();
                    return Err(RecoveryError::Short {
                        what: "messages to gateway",
                        index: 0,
                        journal: 0,
                        there,
                    });
                }
            }
        }
        for ((path, ring), unsent) in orchestrator.returns.iter_mut().zip(real_returns).zip(unsent) {
            path.ring = ring;
            path.waiting.extend(unsent);
        }
        orchestrator.returns_wait = orchestrator.returns.iter().any(ReturnPath::is_waiting);
        if let Some(desk) = &mut orchestrator.desk {
            desk.skip_to(commands);
        }
        Ok((orchestrator, recovered))
    }
}

impl<R: Consumer> Orchestrator<R> {
    /// The same attached to the contended hand-offs, whose ends are heirs of the dead one's.
    ///
    /// # Errors
    /// More was taken from one of them than the journal has.
    pub fn attached<Q: Consumer>(
        self,
        mut submit: Q,
        mut completion: Q,
        recovered: &Recovered,
    ) -> Result<Orchestrator<Q>, RecoveryError> {
        let short = |what, index, journal| move |there| RecoveryError::Short { what, index, journal, there };
        recovered.retired.iter().for_each(|strategy| submit.forget(*strategy));
        for (index, taken) in recovered.taken.iter().enumerate() {
            submit.pass_over(index, *taken).map_err(short("orders of strategy", index, *taken))?;
        }
        for (index, GatewayPast { reports, .. }) in recovered.gateways.iter().enumerate() {
            completion.pass_over(index, *reports).map_err(short("reports of gateway", index, *reports))?;
        }
        let mut orchestrator = self.over(submit, completion);
        // Who sleeps may have been told something by the dead one and not been woken.
        orchestrator.ring_all();
        Ok(orchestrator)
    }

    /// The same, told of deaths by the launcher, in the place of one that was.
    #[must_use]
    pub fn supervised_again(self, supervision: Supervision, now: u64) -> Self {
        let orchestrator = self.supervised(supervision);
        orchestrator.say_again(now);
        orchestrator
    }
}

impl Replay {
    /// Does again what an event made it do; `None`: no engine with these strategies and gateways ever had it.
    fn again(&mut self, event: Event) -> Option<()> {
        let Self { orchestrator, cycle, .. } = self;
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
                    self.recovered.taken[from] += 1;
                }
                orchestrator.decided = Some(has_room);
                concerned = from;
                orchestrator.accept(from, message, cycle);
            }
            Event::Reported { gateway: from, message } => {
                if let Some(from) = from {
                    let past = &mut self.recovered.gateways[gateway(from)?];
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
                self.unsent[index].clear();
                if orchestrator.lines[index].epoch != was {
                    (self.given[index], self.recovered.taken[index]) = (0, 0);
                    // Begun anew, it would have room.
                    drop(orchestrator.returns[index].stop());
                }
            }
            Event::Told { strategy: index, gateway: to } => {
                orchestrator.tell_of_death(strategy(index)?, gateway(to)?);
            }
            Event::Retired { strategy: index } => orchestrator.bury(strategy(index)?),
            Event::Command { number, command } => {
                self.commands = self.commands.max(u64::from(number) + 1);
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
        self.take_out_sent();
        let all =
            core::mem::replace(&mut self.rejected, self.orchestrator.rejected) != self.orchestrator.rejected;
        match concerned.filter(|_| !all) {
            Some(index) => self.take_out_returned(index),
            None => (0..strategies).for_each(|index| self.take_out_returned(index)),
        }
        self.take_out_logged();
        Some(())
    }

    /// What was put into inboxes: the session has it, or the gateway gets it again.
    fn take_out_sent(&mut self) {
        for (gateway, ring) in self.sent.iter_mut().enumerate() {
            while let Ok(Some(message)) = ring.try_pop() {
                let past = &mut self.recovered.gateways[gateway];
                let number = self.dispatched[gateway];
                self.dispatched[gateway] += 1;
                if number < self.estate.sent.get(gateway).copied().unwrap_or(0) {
                    past.sent.add(digest(&message));
                    past.orders +=
                        u64::from(matches!(Instruction::from_message(message), Ok(Instruction::Order(_))));
                } else if past.first.is_none() {
                    past.first = Some(message);
                } else {
                    self.backlog[gateway].push(message);
                }
            }
        }
    }

    /// What was given to a strategy: its ring has it, or gets it again.
    fn take_out_returned(&mut self, strategy: usize) {
        let path = &mut self.orchestrator.returns[strategy];
        while let Some(message) = path.waiting.pop_front() {
            self.orchestrator.full -= 1;
            self.given[strategy] += 1;
            if self.given[strategy] > self.returned[strategy] {
                self.unsent[strategy].push(message);
            } else {
                self.orchestrator.returned += 1;
            }
        }
    }

    /// What was logged: the log has it, or gets it.
    fn take_out_logged(&mut self) {
        let Self { cycle, estate, returns_logged, others_logged, recovered, .. } = self;
        cycle.log.take_out(|record| {
            let (logged, there) = match record.point {
                Point::OrchReturn => (&mut *returns_logged, estate.returns_stamped),
                _ => (&mut *others_logged, estate.others_logged),
            };
            *logged += 1;
            if *logged > there {
                recovered.unlogged.push(record);
            }
        });
    }

    /// Whether the journal has as much as there was; who is retired.
    fn check(&mut self) -> Result<(), RecoveryError> {
        let short = |what, index, journal, there| Err(RecoveryError::Short { what, index, journal, there });
        for (gateway, sent) in self.estate.sent.iter().enumerate() {
            if *sent > self.dispatched[gateway] {
                return short("messages to gateway", gateway, self.dispatched[gateway], *sent);
            }
        }
        let Self { estate, returns_logged, others_logged, .. } = self;
        if estate.returns_stamped > *returns_logged {
            return short("returns in the log", 0, *returns_logged, estate.returns_stamped);
        }
        if estate.others_logged > *others_logged {
            return short("records in the log", 0, *others_logged, estate.others_logged);
        }
        let lines = self.orchestrator.lines.iter().enumerate();
        for (index, line) in lines {
            if line.is_retired() {
                self.recovered.retired.push(index);
            } else if line.is_served() && self.returned[index] > self.given[index] {
                return short("reports to strategy", index, self.given[index], self.returned[index]);
            }
        }
        Ok(())
    }
}

impl Inbox {
    fn ring_bell(&self) {
        if let Some(bell) = &self.bell {
            bell.ring();
        }
    }
}

impl<R: Consumer> Orchestrator<R> {
    fn ring_all(&mut self) {
        self.inboxes.iter().for_each(Inbox::ring_bell);
        self.returns.iter().for_each(ReturnPath::ring_bell);
    }
}
