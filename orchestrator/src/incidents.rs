//! What the orchestrator does when a strategy dies or misbehaves. All of it is off the path of an order that is in order.
//!
//! | state | what happens to its orders | what ends it |
//! |---|---|---|
//! | alive | taken | a fence, or misconduct |
//! | quarantined | dropped and counted | its death |
//! | dying | taken and refused ([`Reject::Gone`]): each has its stamps, nobody gets the report | nothing of it is left in the rings and every venue was told to cancel |
//! | dead | there are none | the next incarnation |

use super::line::{LineState, StrategyLine};
use super::risk::Reject;
use super::{Event, Orchestrator, ReturnPath};
use protocol::agent::Cycle;
use protocol::checksum::{Checksum, digest};
use protocol::control::Control;
use protocol::kill::{Cause, Scope};
use protocol::stamps::Point;
use protocol::supervision::{Incarnation, Misconduct, RepairsWriter, Standstill};
use protocol::wire::{CancelScope, Instruction, Order, OrderId};
use shm::clock::Clock;
use shm::ring::{Blocked, Consumer, PeerFault};

/// Refused orders that an honest mistake explains; one more, and the strategy is quarantined. A session keeps to its
/// limit of open orders by itself, so an honest strategy has none at all.
pub const TOLERATED: u32 = 64;
/// How often the submit hand-off is looked at for damage and for places that nobody writes, in nanoseconds: often enough for
/// every deadline, also where the engine's thread sleeps; too seldom to cost anything.
const LOOK_NS: u64 = 250_000;

/// How launcher and orchestrator talk about strategies that die.
pub struct Supervision {
    control: Control,
    repairs: RepairsWriter,
    /// The generation of fences that was last looked at.
    seen: u64,
}

impl Supervision {
    /// Reads fences from the control segment and answers in the repairs segment.
    pub fn new(control: Control, repairs: RepairsWriter) -> Self {
        // Not the generation of now: a fence that is up already must be seen.
        Self { control, repairs, seen: 0 }
    }

    /// Whether there is something new.
    #[inline(always)]
    pub(crate) fn has_news(&self) -> bool {
        self.control.generation() != self.seen
    }
}

impl<R: Consumer> Orchestrator<R> {
    /// Looks at the fences if there is something new; whether there was.
    #[cold]
    pub(crate) fn catches_up<C: Clock>(&mut self, cycle: &mut Cycle<C>) -> bool {
        let has_news = self.supervision.as_ref().is_some_and(Supervision::has_news);
        if has_news {
            self.read_fences(cycle);
        }
        has_news
    }

    /// Looks at every strategy's fence.
    #[cold]
    pub(crate) fn read_fences<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        let Some(supervision) = &mut self.supervision else { return };
        supervision.seen = supervision.control.generation();
        for index in 0..self.lines.len() {
            let Some(supervision) = &self.supervision else { return };
            let life = supervision.control.life(index as u16);
            let line = &self.lines[index];
            let is_new = line.is_retired() && life.epoch > line.epoch;
            let is_dead = line.is_served() && life.fenced && life.epoch == line.epoch;
            if is_new || is_dead {
                if !self.keep(&Event::Life { strategy: index as u16, life }, cycle.now) {
                    return;
                }
                self.sees(index, life, cycle);
            }
        }
    }

    /// A strategy's fence has changed.
    pub(crate) fn sees<C: Clock>(&mut self, index: usize, life: Incarnation, cycle: &mut Cycle<C>) {
        let line = &mut self.lines[index];
        if line.is_retired() && life.epoch > line.epoch {
            line.open(life.epoch);
            self.submit.revive(index);
            self.returns[index].restart();
            self.positions.reopen(index);
        }
        // Also one that was started and has died again since the last look.
        let line = &mut self.lines[index];
        if line.is_served() && life.fenced && life.epoch == line.epoch {
            line.close(LineState::Dying { noticed: cycle.now, told: 0 });
            self.returns[index].close();
            self.dying += 1;
            let scope = CancelScope::of(OrderId::new(index as u16, life.epoch, 0));
            self.turn_away(scope, Reject::Gone, cycle);
            if self.risk.kills_on_death(index) && !self.risk.is_killed(index) {
                self.kill(Scope::Strategy(index as u16), Cause::Death, None, cycle);
            }
        }
    }

    /// An order of a dead incarnation that waited for its gateway: it has its t2, and nobody gets a report.
    pub(crate) fn refuse_waiting<C: Clock>(&mut self, id: OrderId, cycle: &mut Cycle<C>) {
        let strategy = usize::from(id.strategy());
        self.lines[strategy].refused += 1;
        self.count(strategy);
        cycle.log.append(Point::Rejected, id, Reject::Gone as u64);
        self.count_refused(Reject::Gone);
    }

    /// Goes on with the retirements that have begun.
    #[cold]
    pub(crate) fn retire<C: Clock>(&mut self, cycle: &Cycle<C>) {
        for index in 0..self.lines.len() {
            let LineState::Dying { noticed, mut told } = self.lines[index].state else { continue };
            let (strategy, epoch) = (index as u16, self.lines[index].epoch);
            while told < self.inboxes.len()
                && self.inboxes[told].ring.has_room()
                && self.keep(&Event::Told { strategy, gateway: told as u16 }, cycle.now)
            {
                self.tell_of_death(index, told);
                told += 1;
            }
            let is_retired = self.submit.retire(index)
                && told == self.inboxes.len()
                && self.keep(&Event::Retired { strategy }, cycle.now);
            if is_retired {
                self.bury(index);
                let was_holding = self.stands.is_some_and(|at| at.announcer == Some(strategy));
                if let Some(supervision) = &self.supervision {
                    // Before the repair is said: what the launcher reads then is not of the dead one any more.
                    if was_holding {
                        self.stands = None;
                        supervision.repairs.stands_still(None);
                    }
                    supervision.repairs.repaired(strategy, epoch, noticed, cycle.clock.now());
                }
            }
        }
    }

    /// Tells a gateway whose inbox has room to cancel what a dying strategy has open. What waited of it was turned away, so this is
    /// behind all its orders; orders of others it may overtake.
    pub(crate) fn tell_of_death(&mut self, index: usize, gateway: usize) {
        let line = &mut self.lines[index];
        let scope = CancelScope::of(OrderId::new(index as u16, line.epoch, 0));
        let everybody = Instruction::CancelAll(scope).to_message();
        if let LineState::Dying { noticed, .. } = line.state {
            line.state = LineState::Dying { noticed, told: gateway + 1 };
        }
        let inbox = &mut self.inboxes[gateway];
        let is_sent = inbox.send(&everybody);
        debug_assert!(is_sent, "asked before");
        inbox.sum.add(digest(&everybody));
    }

    /// Nothing waits for a dying strategy any more.
    pub(crate) fn bury(&mut self, index: usize) {
        if let LineState::Dying { .. } = self.lines[index].state {
            self.lines[index].state = LineState::Dead;
            self.dying -= 1;
        }
    }

    /// Told of deaths by the launcher from here on, in the place of one that has died: says what that one may have had no time to say.
    pub(crate) fn say_again(&self, now: u64) {
        let Some(Supervision { repairs, .. }) = &self.supervision else { return };
        for line in &self.lines {
            let StrategyLine { strategy, epoch, state, refused, orphaned, why, .. } = *line;
            match (state, why) {
                (LineState::Dead, _) if !repairs.was_repaired(strategy, epoch) => {
                    repairs.repaired(strategy, epoch, now, now);
                }
                (LineState::Quarantined, Some(why)) if !repairs.was_quarantined(strategy, epoch) => {
                    repairs.quarantine(strategy, epoch, why, now);
                }
                _ => {}
            }
            repairs.count(strategy, refused, orphaned);
        }
    }

    /// An order that is not the next one of a living strategy. What may be done about it depends on whether the memory that it
    /// came through says whose it is: where several strategies write, the id may be a lie, so nobody is quarantined for it.
    #[cold]
    pub(crate) fn irregular<C: Clock>(
        &mut self,
        from: Option<usize>,
        order: &Order,
        cycle: &mut Cycle<C>,
    ) -> Decision {
        let claimed = usize::from(order.id.strategy());
        if from.is_some_and(|from| from != claimed) || claimed >= self.lines.len() {
            self.misconduct(from, Misconduct::ForeignId, cycle);
            return Decision::Drop;
        }
        let line = &mut self.lines[claimed];
        let (epoch, sequence) = (order.id.epoch(), order.id.sequence());
        // In a ring that several write, what a dead incarnation had published stands among the others' orders and comes out
        // in its turn, perhaps when the next incarnation trades already.
        let of_the_dead = epoch < line.epoch
            || (epoch == line.epoch && matches!(line.state, LineState::Dying { .. } | LineState::Dead));
        match line.state {
            LineState::Dying { .. } if epoch == line.epoch && sequence >= line.next() => {
                self.refuse(order.id, cycle);
                Decision::Drop
            }
            _ if from.is_none() && of_the_dead => {
                self.refuse(order.id, cycle);
                Decision::Drop
            }
            LineState::Quarantined | LineState::Dead => {
                self.faults += 1;
                Decision::Drop
            }
            // Somebody else's damage to a shared ring may have swallowed what is missing.
            LineState::Alive if from.is_none() && epoch == line.epoch && sequence > line.next() => {
                self.faults += 1;
                Decision::Take
            }
            LineState::Alive | LineState::Dying { .. } => {
                let wrong_epoch = epoch != line.epoch;
                let why = if wrong_epoch { Misconduct::WrongEpoch } else { Misconduct::OutOfSequence };
                self.misconduct(from, why, cycle);
                Decision::Drop
            }
        }
    }

    /// An order of an incarnation that is dead: it has its stamps, and nobody gets the report.
    fn refuse<C: Clock>(&mut self, id: OrderId, cycle: &mut Cycle<C>) {
        let strategy = usize::from(id.strategy());
        if self.lines[strategy].budget == 0 {
            // What a flood has left: there is no room for it in the log.
            self.faults += 1;
            return;
        }
        self.lines[strategy].budget -= 1;
        self.lines[strategy].passed(id);
        self.count(strategy);
        cycle.pass(Point::OrchRecvSubmit, id);
        cycle.log.append(Point::Rejected, id, Reject::Gone as u64);
        self.count_refused(Reject::Gone);
    }

    /// Something that no honest strategy does. Without knowing whose it is it is only counted.
    #[cold]
    pub(crate) fn misconduct<C: Clock>(&mut self, from: Option<usize>, why: Misconduct, cycle: &Cycle<C>) {
        self.faults += 1;
        let Some(index) = from.filter(|index| *index < self.lines.len()) else { return };
        let line = &mut self.lines[index];
        if line.state != LineState::Alive {
            return;
        }
        line.close(LineState::Quarantined);
        line.why = Some(why);
        if let Some(supervision) = &self.supervision {
            supervision.repairs.quarantine(index as u16, line.epoch, why, cycle.clock.now());
        }
    }

    /// A refused order that an honest strategy never sends. Where several strategies write into the same memory, whoever the
    /// order names may be innocent: there it is only counted.
    #[cold]
    pub(crate) fn offence<C: Clock>(&mut self, from: Option<usize>, reason: Reject, cycle: &Cycle<C>) {
        let why = match reason {
            Reject::UnknownVenue => Misconduct::UnknownVenue,
            Reject::TooManyOpen | Reject::NotPlanned => Misconduct::Flood,
            _ => return,
        };
        let Some(strategy) = from else {
            self.faults += 1;
            return;
        };
        self.lines[strategy].offences += 1;
        if self.lines[strategy].offences > TOLERATED {
            self.misconduct(from, why, cycle);
        }
    }

    /// A fault that the technique itself has found.
    #[cold]
    pub(crate) fn peer_fault<C: Clock>(&mut self, from: Option<usize>, fault: PeerFault, cycle: &Cycle<C>) {
        let why = match fault {
            PeerFault::Framing { .. } => Misconduct::Garbage,
            PeerFault::InvalidIndex { .. } | PeerFault::Stranger { .. } => Misconduct::ForeignId,
            _ => Misconduct::BadCursor,
        };
        let who = from.map(|index| index as u16);
        if self.keep(&Event::Misconduct { from: who, why }, cycle.now) {
            self.misconduct(from, why, cycle);
        }
    }

    /// A strategy has more reports waiting than its open orders can have, unless another one sent orders in its name.
    #[cold]
    pub(crate) fn drops<C: Clock>(&mut self, strategy: usize, cycle: &Cycle<C>) {
        let (from, why) = (self.knows_writers.then_some(strategy), Misconduct::Flood);
        if self.keep(&Event::Misconduct { from: from.map(|index| index as u16), why }, cycle.now) {
            self.misconduct(from, why, cycle);
        }
    }

    /// Looks at the submit hand-off for what stops everybody: damage, and a place that is claimed and not written.
    #[cold]
    pub(crate) fn look_at_submit<C: Clock>(&mut self, cycle: &Cycle<C>) {
        self.next_look = cycle.now.saturating_add(cycle.time.ticks(LOOK_NS));
        let Some(supervision) = &self.supervision else { return };
        if !self.damaged && self.submit.check().is_err() {
            self.damaged = true;
            self.faults += 1;
            supervision.repairs.damaged(Misconduct::RingDamaged);
        }
        // Since when is said as of the first look: a producer may be about to write the place, or to take back what it announces.
        let found = self.submit.blocked().map(|Blocked { place, announcer }| {
            let announcer = announcer.map(|producer| producer as u16);
            let stood = self.stands.filter(|at| (at.place, at.announcer) == (place, announcer));
            stood.unwrap_or(Standstill { place, announcer, since_ticks: cycle.now })
        });
        if found != self.stands {
            self.stands = found;
            supervision.repairs.stands_still(found);
        }
    }

    /// A report whose strategy's incarnation is gone.
    #[cold]
    pub(crate) fn orphan(&mut self, strategy: usize) {
        self.lines[strategy].orphaned += 1;
        self.count(strategy);
    }

    fn count(&self, strategy: usize) {
        let line = &self.lines[strategy];
        if let Some(supervision) = &self.supervision {
            supervision.repairs.count(strategy as u16, line.refused, line.orphaned);
        }
    }
}

/// What to do with an order that is not the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Take it all the same.
    Take,
    /// Nothing more.
    Drop,
}

impl ReturnPath {
    /// The strategy is dead: nothing is returned any more, and what waits is dropped.
    fn close(&mut self) {
        self.waiting.clear();
        self.is_open = false;
    }

    /// The ring was made anew for the next incarnation.
    fn restart(&mut self) {
        self.ring.restart();
        self.sum = Checksum::default();
        self.is_open = true;
    }
}
