//! The segments of a run as data: purpose, rights of each role, and whose death resets them.
//!
//! They follow from the plan, so every process derives the same list. A role that is not named in
//! a segment's rights cannot map it.

use crate::control;
use crate::desk::{ANSWERS, ANSWERS_KIND, ANSWERS_WORDS, DESK, DESK_KIND, DESK_WORDS};
use crate::market;
use crate::plan::{Isolation, Plan, ProcessPlan, ThreadPlan};
use crate::role::Role;
use crate::spill::{CHUNK_RECORDS, Ring, SPILLED_KIND};
use crate::stamps::RECORD_WORDS;
use crate::status::{self, LOG_OFFSET};
use crate::supervision::{self, REPAIRS, REPAIRS_WORDS};
use crate::tape;
use crate::workload::Sequence;
use shm::attached::Access;
use shm::bell;
use shm::board;
use shm::memory::SegmentKind;
use shm::memory::header::HEADER_WORDS;
use shm::ring::{EndRights, SegmentPlace, SegmentSpec};

/// The control segment's name within the run.
pub const CONTROL: &str = "control";

/// The control segment's kind. Its layout hash covers the layouts of all other segments too, so
/// that a program of another build is refused without a look at their headers.
pub const CONTROL_KIND: SegmentKind = {
    let kinds = [
        control::KIND,
        shm::ring::spsc::KIND,
        shm::ring::spsc::HEAD_KIND,
        shm::ring::array_queue::KIND,
        techniques::linked::KIND,
        shm::ring::intent::KIND,
        bell::KIND,
        board::KIND,
        status::KIND,
        supervision::KIND,
        tape::KIND,
        DESK_KIND,
        ANSWERS_KIND,
        SPILLED_KIND,
        SCHEDULE_KIND,
        TURNS_KIND,
    ];
    let mut layouts = [("", 0); 16];
    let mut i = 0;
    while i < layouts.len() {
        layouts[i] = (kinds[i].name, kinds[i].layout as usize);
        i += 1;
    }
    SegmentKind { layout: SegmentKind::new(1, "control", &layouts).layout, ..control::KIND }
};

/// Words in a schedule entry: see `strategy::schedule`.
pub const SCHEDULE_ENTRY_WORDS: usize = 4;

/// A strategy's schedule; written by the launcher before the start.
pub const SCHEDULE_KIND: SegmentKind = SegmentKind::new(4, "schedule", &[("entry", SCHEDULE_ENTRY_WORDS)])
    .of_slots(HEADER_WORDS, SCHEDULE_ENTRY_WORDS);

/// The name within the run of the segment that says in which order the orders of a recording come.
pub const TURNS: &str = "turns";

/// The order of a recording, a word for each order; written by the launcher before the start.
pub const TURNS_KIND: SegmentKind = SegmentKind::new(21, "turns", &[("turn", 1)]).of_slots(HEADER_WORDS, 1);

/// One order of a recording: whose it is and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayStep {
    /// The strategy that sends it.
    pub strategy: u16,
    /// The venue that it goes to.
    pub venue: u16,
}

impl ReplayStep {
    /// Its word.
    pub const fn word(self) -> u64 {
        (self.venue as u64) << 16 | self.strategy as u64
    }

    /// The turn in a word.
    pub const fn from_word(word: u64) -> Self {
        Self { strategy: word as u16, venue: (word >> 16) as u16 }
    }
}

/// The name of a strategy's schedule within the run.
pub fn schedule_segment(strategy: u16) -> String {
    format!("schedule-{strategy}")
}

/// The name of a thread's bell within the run.
pub fn bell_segment(thread: &str) -> String {
    format!("bell-{thread}")
}

/// The name of a thread's segment within the run.
pub fn thread_segment(name: &str) -> String {
    format!("thread-{name}")
}

/// The name within the run of what the spiller says of a thread's log.
pub fn spilled_segment(name: &str) -> String {
    format!("spilled-{name}")
}

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Plan and state of the run.
    Control,
    /// A part of the link with this place in [`Plan::links`].
    Link(usize),
    /// A strategy's schedule.
    Schedule(u16),
    /// Status block and stamp log of the thread with this place in [`Plan::threads`].
    Thread(usize),
    /// What the spiller says of that thread's log.
    Spilled(usize),
    /// What wakes that thread.
    Bell(usize),
    /// What the engine says about strategies that died.
    Repairs,
    /// What the exchange of a venue has done.
    Tape(u16),
    /// The touches of a venue's instruments.
    Market(u16),
    /// In which order the orders of a recording come.
    Turns,
    /// Commands of operators, and what the engine answers: found by their names at every level.
    Desk,
}

/// Who may do what with a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Every process of the run.
    Everybody(Access),
    /// These roles; others nothing.
    Roles(Vec<(Role, Access)>),
}

/// A segment of a run: its memory, and what is to be known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Name, place, size and kind.
    pub spec: SegmentSpec,
    /// What it is for.
    pub purpose: Purpose,
    /// The role after whose death it is made anew; `None`: it stays for the whole run.
    pub renewed_with: Option<Role>,
    /// Rights. The launcher may do everything, the warden reads logs, the spiller writes them.
    pub rights: Rights,
}

impl Segment {
    /// What a process with these roles may do with it: the most that one of them may.
    pub fn access(&self, roles: impl IntoIterator<Item = Role>) -> Option<Access> {
        match &self.rights {
            Rights::Everybody(access) => Some(*access),
            Rights::Roles(rights) => {
                let mut found = None;
                for role in roles {
                    for (_, access) in rights.iter().filter(|(holder, _)| *holder == role) {
                        match access {
                            Access::Write => return Some(Access::Write),
                            Access::Read => found = Some(Access::Read),
                        }
                    }
                }
                found
            }
        }
    }

    /// Returns `true` if the segment is sealed memory without a name in a run of that plan: all
    /// memory at `sandbox`, what a strategy writes at `container`, never the desk.
    pub fn is_sealed(&self, plan: &Plan) -> bool {
        let is_memory = matches!(self.spec.place, SegmentPlace::Memory | SegmentPlace::Reserve);
        let is_candidate = is_memory && self.purpose != Purpose::Desk;
        match plan.isolation {
            Isolation::Thread | Isolation::Process => false,
            Isolation::Container => is_candidate && self.is_open_to_strategies(),
            Isolation::Sandbox => is_candidate,
        }
    }

    /// Returns `true` if the launcher writes it before the start, and nobody does afterwards.
    pub const fn is_final(&self) -> bool {
        matches!(self.purpose, Purpose::Schedule(_) | Purpose::Turns)
    }

    /// The strategy whose process alone writes it, not counting launcher and spiller.
    /// `None`: there is none, or another role writes it too.
    pub fn culprit(&self, plan: &Plan) -> Option<u16> {
        let Rights::Roles(rights) = &self.rights else { return None };
        let mut writers = rights.iter().filter(|(_, access)| *access == Access::Write).map(|(role, _)| *role);
        let (Some(Role::Strategy(strategy)), None) = (writers.next(), writers.next()) else { return None };
        let process = &plan.processes[plan.process_of(Role::Strategy(strategy))?];
        (plan.roles_of(process).count() == 1).then_some(strategy)
    }

    /// Whether a strategy can write it.
    pub fn is_open_to_strategies(&self) -> bool {
        let Rights::Roles(rights) = &self.rights else { return false };
        rights.iter().any(|(role, access)| *access == Access::Write && matches!(role, Role::Strategy(_)))
    }

    /// The one role that writes it; `None`: several do, or only the launcher does.
    pub fn owner(&self) -> Option<Role> {
        let Rights::Roles(rights) = &self.rights else { return None };
        let mut writers = rights.iter().filter(|(_, access)| *access == Access::Write);
        let (owner, other) = (writers.next()?, writers.next());
        other.is_none().then_some(owner.0)
    }
}

/// All segments of a run but the control segment.
pub fn segments(plan: &Plan) -> Vec<Segment> {
    let mut segments: Vec<Segment> = (0..plan.links.len()).flat_map(|link| of_link(plan, link)).collect();
    let strategies = 0..plan.trading().orders.len() as u16;
    segments.extend(strategies.map(|index| schedule(index, plan.trading().orders_a_lap(index))));
    // A gateway that is started again reads there what the engine had of its predecessor.
    let readers = plan.restarted_gateways().map(|role| (role, Access::Read));
    let rights = [(Role::Orchestrator, Access::Write)].into_iter().chain(readers).collect();
    segments.push(Segment {
        spec: single(REPAIRS.into(), REPAIRS_WORDS, supervision::KIND, 0),
        purpose: Purpose::Repairs,
        renewed_with: None,
        rights: Rights::Roles(rights),
    });
    segments.extend(plan.trading().books().map(|venue| tape(plan, venue)));
    segments.extend(plan.trading().boards().filter_map(|venue| market(plan, venue)));
    if plan.trading().sequence == Sequence::Recorded {
        segments.push(turns(plan));
    }
    let desk = |what: &str, words, kind, access| Segment {
        spec: single(what.into(), words, kind, 0),
        purpose: Purpose::Desk,
        renewed_with: None,
        rights: Rights::Roles(vec![(Role::Orchestrator, access)]),
    };
    segments.push(desk(DESK, DESK_WORDS, DESK_KIND, Access::Read));
    segments.push(desk(ANSWERS, ANSWERS_WORDS, ANSWERS_KIND, Access::Write));
    for index in 0..plan.threads.len() {
        segments.push(thread(plan, index));
        segments.extend(spilled(plan, index));
        segments.push(bell(plan, index));
    }
    segments
}

/// The control segment, of so many words: everybody reads it.
pub fn control(words: usize) -> Segment {
    Segment {
        spec: single(CONTROL.into(), words, CONTROL_KIND, 0),
        purpose: Purpose::Control,
        renewed_with: None,
        rights: Rights::Everybody(Access::Read),
    }
}

/// What a process of the plan may do with each segment; what is not listed it may not map.
pub fn rights<'a>(plan: &Plan, process: &'a ProcessPlan) -> impl Iterator<Item = (String, Access)> + use<'a> {
    let roles: Vec<Role> = plan.roles_of(process).collect();
    let all = segments(plan).into_iter().chain([control(0)]);
    all.filter_map(move |segment| {
        segment.access(roles.iter().copied()).map(|access| (segment.spec.name, access))
    })
}

/// A segment of one entry.
fn single(what: String, words: usize, kind: SegmentKind, index: u64) -> SegmentSpec {
    SegmentSpec {
        name: what,
        place: SegmentPlace::Memory,
        words,
        kind,
        capacity: 1,
        slot_words: 1,
        index,
        ends: EndRights::NONE,
    }
}

fn of_link(plan: &Plan, index: usize) -> impl Iterator<Item = Segment> + '_ {
    let link = &plan.links[index];
    link.segments(plan.technique).into_iter().map(move |spec| {
        let EndRights { only, producer, consumer } = spec.ends;
        let writers = match only {
            Some(only) => &link.writers[only..=only],
            None => &link.writers,
        };
        let right = |roles: &[Role], access: Option<Access>| -> Vec<(Role, Access)> {
            roles.iter().filter_map(|role| access.map(|access| (*role, access))).collect()
        };
        // What only one producer and the consumer use dies with either; what all producers share
        // with none of them. Nor does what an exchange has one end of: it goes on; nor the inbox of
        // a gateway whose successor goes on with it.
        let ends = || writers.iter().chain(&link.readers).copied();
        let is_resumed =
            matches!(link.readers[..], [Role::Gateway(gateway)] if plan.resumes_gateway(gateway));
        let is_kept = is_resumed || ends().any(|role| matches!(role, Role::Exchange(_)));
        let restartable = ends().find(|role| role.record().is_restartable && !is_kept);
        Segment {
            purpose: Purpose::Link(index),
            renewed_with: restartable.filter(|_| only.is_some()),
            rights: Rights::Roles([right(writers, producer), right(&link.readers, consumer)].concat()),
            spec,
        }
    })
}

fn schedule(strategy: u16, orders: u64) -> Segment {
    Segment {
        spec: SegmentSpec {
            name: schedule_segment(strategy),
            place: SegmentPlace::Memory,
            words: HEADER_WORDS + orders as usize * SCHEDULE_ENTRY_WORDS,
            kind: SCHEDULE_KIND,
            capacity: orders,
            slot_words: SCHEDULE_ENTRY_WORDS as u64,
            index: strategy.into(),
            ends: EndRights::NONE,
        },
        purpose: Purpose::Schedule(strategy),
        renewed_with: None,
        rights: Rights::Roles(vec![(Role::Strategy(strategy), Access::Read)]),
    }
}

fn turns(plan: &Plan) -> Segment {
    let orders = plan.trading().total_orders();
    Segment {
        spec: SegmentSpec {
            name: TURNS.into(),
            place: SegmentPlace::Memory,
            words: HEADER_WORDS + orders as usize,
            kind: TURNS_KIND,
            capacity: orders,
            slot_words: 1,
            index: 0,
            ends: EndRights::NONE,
        },
        purpose: Purpose::Turns,
        renewed_with: None,
        rights: Rights::Roles(
            plan.trading().books().map(|venue| (Role::Exchange(venue), Access::Read)).collect(),
        ),
    }
}

/// The tape of a venue that is an exchange. Each trade closes an order, of a strategy or of the
/// opening book, but for those with an iceberg: these have as much room again.
fn tape(plan: &Plan, venue: u16) -> Segment {
    let trading = plan.trading();
    let closed = trading.total_orders().saturating_add(trading.house_orders);
    let trades = closed.saturating_mul(2);
    Segment {
        spec: SegmentSpec {
            name: tape::tape_segment(venue),
            place: SegmentPlace::Memory,
            words: tape::words(trades as usize),
            kind: tape::KIND,
            capacity: trades,
            slot_words: tape::TRADE_WORDS as u64,
            index: venue.into(),
            ends: EndRights::NONE,
        },
        purpose: Purpose::Tape(venue),
        renewed_with: None,
        rights: Rights::Roles(vec![(Role::Exchange(venue), Access::Write)]),
    }
}

/// The board of a venue's touches: its exchange writes it, every strategy reads it, from read-only
/// pages if it is a process. `None`: more instruments than boards have cells for.
fn market(plan: &Plan, venue: u16) -> Option<Segment> {
    let shape = market::shape(plan.trading().instrument_count()).ok()?;
    let readers = (0..plan.trading().strategies).map(|index| (Role::Strategy(index), Access::Read));
    Some(Segment {
        spec: SegmentSpec {
            name: market::market_segment(venue),
            place: SegmentPlace::Memory,
            words: shape.segment_words(),
            kind: board::KIND,
            capacity: shape.cells() as u64,
            slot_words: 0,
            index: venue.into(),
            ends: EndRights::NONE,
        },
        purpose: Purpose::Market(venue),
        renewed_with: None,
        rights: Rights::Roles(readers.chain([(Role::Exchange(venue), Access::Write)]).collect()),
    })
}

/// The ring of a thread's log; `None`: it is not spilled.
///
/// # Panics
/// If the plan has no such thread, or is not valid.
pub fn ring(plan: &Plan, index: usize) -> Option<Ring> {
    let chunks = u64::from(plan.spill.as_ref()?.chunks[index]);
    let thread = &plan.threads[index];
    Some(Ring { chunks, last: thread.log_records / CHUNK_RECORDS, instruments: instruments(plan, thread) })
}

/// Of how many instruments touches are in a thread's log.
pub fn instruments(plan: &Plan, thread: &ThreadPlan) -> usize {
    let has_exchange = thread.roles.iter().any(|role| matches!(role, Role::Exchange(_)));
    if has_exchange { plan.trading().instrument_count() } else { 0 }
}

/// The segment of a thread's status block and stamp log.
pub(crate) fn thread(plan: &Plan, index: usize) -> Segment {
    let records =
        ring(plan, index).map_or(plan.threads[index].log_records, |ring| ring.chunks * CHUNK_RECORDS);
    Segment {
        spec: log(plan, index, records),
        purpose: Purpose::Thread(index),
        renewed_with: None,
        rights: Rights::Roles(plan.threads[index].roles.iter().map(|role| (*role, Access::Write)).collect()),
    }
}

/// Status block and stamp log of a thread, with room for so many records.
pub(crate) fn log(plan: &Plan, index: usize, records: u64) -> SegmentSpec {
    SegmentSpec {
        name: thread_segment(&plan.threads[index].name),
        place: SegmentPlace::Memory,
        words: LOG_OFFSET + records as usize * RECORD_WORDS,
        kind: status::KIND,
        capacity: records,
        slot_words: RECORD_WORDS as u64,
        index: index as u64,
        ends: EndRights::NONE,
    }
}

/// What the spiller says of a thread's log, which the thread reads; `None`: it is not spilled.
fn spilled(plan: &Plan, index: usize) -> Option<Segment> {
    let ring = ring(plan, index)?;
    let thread = &plan.threads[index];
    Some(Segment {
        spec: single(spilled_segment(&thread.name), ring.spilled_words(), SPILLED_KIND, index as u64),
        purpose: Purpose::Spilled(index),
        renewed_with: None,
        rights: Rights::Roles(thread.roles.iter().map(|role| (*role, Access::Read)).collect()),
    })
}

/// A thread's bell, which only that thread writes and its peers read: see [`shm::bell`].
fn bell(plan: &Plan, index: usize) -> Segment {
    let roles = &plan.threads[index].roles;
    let readers = peers(plan, index).into_iter().flat_map(|peer| &plan.threads[peer].roles);
    let read = readers.map(|role| (*role, Access::Read));
    let threads = plan.threads.len();
    Segment {
        spec: SegmentSpec {
            capacity: threads as u64,
            ..single(
                bell_segment(&plan.threads[index].name),
                bell::bell_words(threads),
                bell::KIND,
                index as u64,
            )
        },
        purpose: Purpose::Bell(index),
        renewed_with: None,
        rights: Rights::Roles(roles.iter().map(|role| (*role, Access::Write)).chain(read).collect()),
    }
}

/// The other threads that share a link with that one, in the order of the plan, and each once.
pub(crate) fn peers(plan: &Plan, index: usize) -> Vec<usize> {
    let ours = &plan.threads[index].roles;
    let is_ours = |role: &Role| ours.contains(role);
    let mut peers = vec![false; plan.threads.len()];
    let mut add = |roles: &[Role]| {
        for peer in roles.iter().filter_map(|role| plan.thread_of(*role)).filter(|peer| *peer != index) {
            peers[peer] = true;
        }
    };
    for link in &plan.links {
        if link.readers.iter().any(is_ours) {
            add(&link.writers);
        }
        if link.writers.iter().any(is_ours) {
            add(&link.readers);
        }
    }
    peers.iter().enumerate().filter_map(|(peer, is_peer)| is_peer.then_some(peer)).collect()
}

#[cfg(test)]
mod tests;
