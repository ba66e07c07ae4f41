//! The segments of a run as data, derived from the plan: purpose, rights, and whose death resets
//! each. A role without rights cannot map a segment.

use crate::benchmark::{BOARD_SEGMENT, RESULTS_KIND, WRITE_TIMES_KIND, WRITE_TIMES_SEGMENT, results_segment};
use crate::commands::{
    ANSWERS_KIND, ANSWERS_SEGMENT, ANSWERS_WORDS, COMMANDS_KIND, COMMANDS_SEGMENT, COMMANDS_WORDS,
};
use crate::control;
use crate::index::{StrategyIndex, VenueIndex};
use crate::market;
use crate::plan::{BoardWork, Idle, Isolation, Plan, ProcessPlan, Workload};
use crate::positions::{POSITIONS_KIND, positions_segment};
use crate::role::Role;
use crate::status;
use crate::supervision::{self, REPAIRS, REPAIRS_WORDS};
use crate::tape;
use crate::workload::OrderSequence;
use shm::attached::Access;
use shm::bell;
use shm::board;
use shm::memory::SegmentKind;
use shm::memory::header::HEADER_WORDS;
use shm::ring::{EndRights, SegmentPlace, SegmentSpec};
use std::path::Path;

/// The name of the control segment within the run.
pub const CONTROL: &str = "control";

/// The segment kind (code, name and layout hash) of the control segment; its layout hash covers the
/// layouts of all kinds of segments.
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
        COMMANDS_KIND,
        ANSWERS_KIND,
        SCHEDULE_KIND,
        POSITIONS_KIND,
        REPLAY_KIND,
        RESULTS_KIND,
        WRITE_TIMES_KIND,
    ];
    let mut layouts = [("", 0); 18];
    let mut i = 0;
    while i < layouts.len() {
        layouts[i] = (kinds[i].name, kinds[i].layout as usize);
        i += 1;
    }
    SegmentKind { layout: SegmentKind::new(1, "control", &layouts).layout, ..control::KIND }
};

/// Number of 64-bit words of an order in a strategy's schedule segment.
pub const SCHEDULE_ENTRY_WORDS: usize = 4;

/// The kind of the segment with a strategy's schedule; written by the launcher before the start.
pub const SCHEDULE_KIND: SegmentKind = SegmentKind::new(4, "schedule", &[("entry", SCHEDULE_ENTRY_WORDS)])
    .of_slots(HEADER_WORDS, SCHEDULE_ENTRY_WORDS);

/// The name within the run of the segment with the sequence in which recorded orders are replayed.
pub const REPLAY_SEGMENT: &str = "turns";

/// The kind of the segment with the sequence of replayed orders, one word (strategy and venue)
/// each. Written by the launcher.
pub const REPLAY_KIND: SegmentKind = SegmentKind::new(21, "turns", &[("turn", 1)]).of_slots(HEADER_WORDS, 1);

/// One step in the replay of recorded orders: the strategy that sends the order, and the order's
/// venue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayStep {
    /// The strategy that sends the order.
    pub strategy: StrategyIndex,
    /// The venue of the order.
    pub venue: VenueIndex,
}

impl ReplayStep {
    /// Encodes the replay step (strategy and venue of an order) as one word.
    pub const fn word(self) -> u64 {
        (self.venue.0 as u64) << 16 | self.strategy.0 as u64
    }

    /// Decodes a replay step (strategy and venue of an order) from one word.
    pub const fn from_word(word: u64) -> Self {
        Self { strategy: StrategyIndex(word as u16), venue: VenueIndex((word >> 16) as u16) }
    }
}

/// Returns the name of the segment with a strategy's schedule within the run.
pub fn schedule_segment(strategy: StrategyIndex) -> String {
    format!("schedule-{strategy}")
}

/// Returns the name of the segment with a thread's doorbell within the run.
pub fn bell_segment(thread: &str) -> String {
    format!("bell-{thread}")
}

/// Returns the name within the run of the segment with the word that the thread `from` writes to
/// wake the thread `to`. It is not the doorbell segment of either thread ([`bell_segment`]).
pub fn wake_segment(from: &str, to: &str) -> String {
    format!("wake-{from}-{to}")
}

/// Returns the name of a thread's segment (status block and stamp log) within the run.
pub fn thread_segment(name: &str) -> String {
    format!("thread-{name}")
}

/// The purpose of a shared-memory segment, such as a ring, a schedule or a stamp log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPurpose {
    /// The control segment: plan and state of the run.
    Control,
    /// A part of the link with this index in [`Plan::links`].
    Link(usize),
    /// A strategy's schedule.
    Schedule(StrategyIndex),
    /// The positions that a strategy's successor inherits.
    Positions(StrategyIndex),
    /// Status block and stamp log of the thread with this index in [`Plan::threads`].
    Thread(usize),
    /// The doorbell of the thread with this index in [`Plan::threads`].
    Bell(usize),
    /// The word through which the first of two threads wakes the second one.
    Wake(usize, usize),
    /// The engine's reports about strategies and gateways that died.
    Repairs,
    /// The tape of a venue's exchange.
    Tape(VenueIndex),
    /// The top-of-book board of a venue.
    Market(VenueIndex),
    /// The sequence of a recording's orders.
    ReplaySequence,
    /// Commands of operators, or the engine's answers to them; such segments have names at every
    /// isolation level.
    Commands,
    /// The board of a board benchmark.
    Board,
    /// The times at which a board's writes are due.
    WriteTimes,
    /// The results of a benchmark's role.
    Results(Role),
}

/// The access rights of the processes of a run to one of its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentRights {
    /// One right for every process of the run.
    Everybody(Access),
    /// Rights of these roles only.
    Roles(Vec<(Role, Access)>),
}

/// A segment of a run: specification, purpose and rights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSegment {
    /// Name, place, size and kind of the segment.
    pub spec: SegmentSpec,
    /// The purpose of the segment.
    pub purpose: SegmentPurpose,
    /// The role after whose death the segment is reset; `None` if the segment is kept for the whole
    /// run.
    pub reset_with_role: Option<Role>,
    /// The rights of the roles; the launcher has all, and the reaper reads logs.
    pub rights: SegmentRights,
}

impl RunSegment {
    /// Makes a segment with rights of roles that is kept for the whole run.
    fn new(
        spec: SegmentSpec,
        purpose: SegmentPurpose,
        rights: impl IntoIterator<Item = (Role, Access)>,
    ) -> Self {
        let rights = SegmentRights::Roles(rights.into_iter().collect());
        Self { spec, purpose, reset_with_role: None, rights }
    }

    /// Returns the highest access right that any of these roles has to the segment.
    pub fn access(&self, roles: impl IntoIterator<Item = Role>) -> Option<Access> {
        match &self.rights {
            SegmentRights::Everybody(access) => Some(*access),
            SegmentRights::Roles(rights) => {
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

    /// Returns `true` if the segment has no name and is handed over as a descriptor; never the
    /// command channel.
    pub fn is_sealed(&self, plan: &Plan) -> bool {
        let is_memory = matches!(self.spec.place, SegmentPlace::Memory | SegmentPlace::Reserve);
        let is_candidate = is_memory && self.purpose != SegmentPurpose::Commands;
        let levels = &plan.isolation;
        is_candidate
            && (self.folder(plan).is_some()
                || plan.hands_over_segments()
                || levels.has(Isolation::Container) && self.is_writable_by_isolated())
    }

    /// Returns the directory, on a chosen file system, in which a board benchmark's board is an
    /// unnamed file; else `None`.
    pub fn folder<'a>(&self, plan: &'a Plan) -> Option<&'a Path> {
        match (&plan.workload, self.purpose) {
            (Workload::Board(work), SegmentPurpose::Board) => work.folder.as_deref(),
            _ => None,
        }
    }

    /// Returns `true` if only the launcher writes the segment, and only before the start.
    pub const fn is_read_only_after_start(&self) -> bool {
        matches!(
            self.purpose,
            SegmentPurpose::Schedule(_) | SegmentPurpose::ReplaySequence | SegmentPurpose::WriteTimes
        )
    }

    /// Returns the strategy that is the only role with write access to the segment; `None` if
    /// others may write as well, or if the strategy shares its process with other kinds of roles
    /// and has no protection key. The launcher can write as well. In a group, the other strategies
    /// of the process could: they end with it.
    pub fn sole_strategy_writer(&self, plan: &Plan) -> Option<StrategyIndex> {
        let SegmentRights::Roles(rights) = &self.rights else { return None };
        let mut writers = rights.iter().filter(|(_, access)| *access == Access::Write).map(|(role, _)| *role);
        let (Some(Role::Strategy(strategy)), None) = (writers.next(), writers.next()) else { return None };
        let process = &plan.processes[plan.process_of(Role::Strategy(strategy))?];
        let is_apart = !plan.strategies_of(process).is_empty();
        (is_apart || plan.isolation.kind_of(strategy) == Isolation::Keys).then_some(strategy)
    }

    /// Returns `true` if a role that is not trusted can write the segment, such as a strategy.
    pub fn is_writable_by_isolated(&self) -> bool {
        let SegmentRights::Roles(rights) = &self.rights else { return false };
        rights.iter().any(|(role, access)| *access == Access::Write && role.is_isolated())
    }
}

/// Returns all segments of a run except the control segment.
pub fn segments(plan: &Plan) -> Vec<RunSegment> {
    let mut segments: Vec<RunSegment> =
        (0..plan.links.len()).flat_map(|link| link_segments(plan, link)).collect();
    match &plan.workload {
        Workload::Trading(_) => segments.extend(trading_segments(plan)),
        Workload::Queue(_) => {}
        Workload::Board(work) => segments.extend(board_segments(work)),
    }
    for index in 0..plan.threads.len() {
        segments.extend(results(plan, index));
        segments.push(thread(plan, index));
        segments.push(bell(plan, index));
        segments.extend(wakes(plan, index));
    }
    segments
}

/// Returns the segments of a trading run besides links, logs and doorbells.
fn trading_segments(plan: &Plan) -> Vec<RunSegment> {
    let orders = StrategyIndex::first(u16::MAX).zip(&plan.trading().orders);
    let mut segments: Vec<RunSegment> = orders.map(|(index, orders)| schedule(index, *orders)).collect();
    if plan.has_inheritance() {
        let instruments = plan.trading().instrument_count() as u64;
        let strategies = StrategyIndex::first(plan.trading().strategies);
        segments.extend(strategies.map(|strategy| positions(strategy, instruments)));
    }
    // A restarted gateway reads there what the engine had received from its predecessor.
    let readers = plan.restartable_gateways().map(|role| (role, Access::Read));
    let rights = [(Role::Orchestrator, Access::Write)].into_iter().chain(readers);
    let repairs = memory(REPAIRS, supervision::KIND, REPAIRS_WORDS);
    segments.push(RunSegment::new(repairs, SegmentPurpose::Repairs, rights));
    segments.extend(plan.trading().books().map(|venue| tape(plan, venue)));
    segments.extend(plan.trading().boards().filter_map(|venue| market(plan, venue)));
    if plan.trading().sequence == OrderSequence::Recorded {
        segments.push(replay_sequence(plan));
    }
    let commands = memory(COMMANDS_SEGMENT, COMMANDS_KIND, COMMANDS_WORDS);
    let answers = memory(ANSWERS_SEGMENT, ANSWERS_KIND, ANSWERS_WORDS);
    for (spec, access) in [(commands, Access::Read), (answers, Access::Write)] {
        segments.push(RunSegment::new(spec, SegmentPurpose::Commands, [(Role::Orchestrator, access)]));
    }
    segments
}

/// Returns the board of a board benchmark, which only its writer can write, and the times at which
/// writes are due.
fn board_segments(work: &BoardWork) -> Vec<RunSegment> {
    let all = |writer| {
        let readers = (0..work.readers).map(|reader| (Role::Reader(reader), Access::Read));
        readers.chain([(Role::Writer, writer)])
    };
    let words = work.shape().map_or(HEADER_WORDS, |shape| shape.segment_words());
    let spec = SegmentSpec {
        capacity: work.shape().map_or(work.cells, |shape| shape.cells()) as u64,
        slot_words: work.words as u64,
        ..memory(BOARD_SEGMENT, board::KIND, words)
    };
    let mut segments = vec![RunSegment::new(spec, SegmentPurpose::Board, all(Access::Write))];
    if let Some(times) = work.scheduled {
        let spec = slots(WRITE_TIMES_SEGMENT.into(), WRITE_TIMES_KIND, times, 0);
        segments.push(RunSegment::new(spec, SegmentPurpose::WriteTimes, all(Access::Read)));
    }
    segments
}

/// Returns the segment with the results of a thread's role, which no other role maps.
fn results(plan: &Plan, index: usize) -> Option<RunSegment> {
    let role = *plan.threads[index].roles.first()?;
    let words = plan.workload.result_words(role);
    let spec = || slots(results_segment(role), RESULTS_KIND, words as u64, index);
    let rights = [(role, Access::Write)];
    (words > 0).then(|| RunSegment::new(spec(), SegmentPurpose::Results(role), rights))
}

/// Describes the run's control segment, of `words` words, which every process maps for reading.
pub fn control_segment(words: usize) -> RunSegment {
    RunSegment {
        spec: memory(CONTROL, CONTROL_KIND, words),
        purpose: SegmentPurpose::Control,
        reset_with_role: None,
        rights: SegmentRights::Everybody(Access::Read),
    }
}

/// Returns the name of each segment that a process may map, and its access right to the segment.
pub fn rights<'a>(plan: &Plan, process: &'a ProcessPlan) -> impl Iterator<Item = (String, Access)> + use<'a> {
    let roles: Vec<Role> = plan.roles_of(process).collect();
    let all = segments(plan).into_iter().chain([control_segment(0)]);
    all.filter_map(move |segment| {
        segment.access(roles.iter().copied()).map(|access| (segment.spec.name, access))
    })
}

fn memory(name: impl Into<String>, kind: SegmentKind, words: usize) -> SegmentSpec {
    SegmentSpec::memory(name, kind, words, EndRights::NONE)
}

/// Specifies a segment of `capacity` slots of a kind with a fixed size of slots.
fn slots(name: String, kind: SegmentKind, capacity: u64, index: usize) -> SegmentSpec {
    let slot_words = kind.slot_words.unwrap_or(1);
    let words = kind.offset + capacity as usize * slot_words;
    SegmentSpec { capacity, slot_words: slot_words as u64, index: index as u64, ..memory(name, kind, words) }
}

fn link_segments(plan: &Plan, index: usize) -> impl Iterator<Item = RunSegment> + '_ {
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
        // A segment of one producer and the consumer is reset after the death of either; one that
        // all producers share is never reset. Also kept are segments with an exchange at one end,
        // which keeps running, and the inbox of a gateway that is resumed.
        let ends = || writers.iter().chain(&link.readers).copied();
        let is_resumed =
            matches!(link.readers[..], [Role::Gateway(gateway)] if plan.can_resume_gateway(gateway));
        let is_kept = is_resumed || ends().any(|role| matches!(role, Role::Exchange(_)));
        let restartable = ends().find(|role| role.info().is_restartable && !is_kept);
        RunSegment {
            purpose: SegmentPurpose::Link(index),
            reset_with_role: restartable.filter(|_| only.is_some()),
            rights: SegmentRights::Roles([right(writers, producer), right(&link.readers, consumer)].concat()),
            spec,
        }
    })
}

fn schedule(strategy: StrategyIndex, orders: u64) -> RunSegment {
    let spec = slots(schedule_segment(strategy), SCHEDULE_KIND, orders, strategy.as_usize());
    let rights = [(Role::Strategy(strategy), Access::Read)];
    RunSegment::new(spec, SegmentPurpose::Schedule(strategy), rights)
}

/// Returns the positions that a strategy's successor inherits, which only the engine writes.
fn positions(strategy: StrategyIndex, instruments: u64) -> RunSegment {
    let spec = slots(positions_segment(strategy), POSITIONS_KIND, instruments, strategy.as_usize());
    let rights = [(Role::Orchestrator, Access::Write), (Role::Strategy(strategy), Access::Read)];
    RunSegment::new(spec, SegmentPurpose::Positions(strategy), rights)
}

fn replay_sequence(plan: &Plan) -> RunSegment {
    let spec = slots(REPLAY_SEGMENT.into(), REPLAY_KIND, plan.trading().total_orders(), 0);
    let readers = plan.trading().books().map(|venue| (Role::Exchange(venue), Access::Read));
    RunSegment::new(spec, SegmentPurpose::ReplaySequence, readers)
}

/// Returns an exchange's tape. A trade closes an order, except with an iceberg: room for twice as
/// many.
fn tape(plan: &Plan, venue: VenueIndex) -> RunSegment {
    let trading = plan.trading();
    let closed = trading.total_orders().saturating_add(trading.opening_orders);
    let trades = closed.saturating_mul(2);
    let spec = slots(tape::tape_segment(venue), tape::KIND, trades, venue.as_usize());
    RunSegment::new(spec, SegmentPurpose::Tape(venue), [(Role::Exchange(venue), Access::Write)])
}

/// Returns the top-of-book board of a venue, which its exchange writes and every strategy reads;
/// `None` if there are more instruments than a board has cells.
fn market(plan: &Plan, venue: VenueIndex) -> Option<RunSegment> {
    let shape = market::shape(plan.trading().instrument_count()).ok()?;
    let readers =
        StrategyIndex::first(plan.trading().strategies).map(|index| (Role::Strategy(index), Access::Read));
    let spec = SegmentSpec {
        capacity: shape.cells() as u64,
        slot_words: shape.words() as u64,
        index: venue.0.into(),
        ..memory(market::market_segment(venue), board::KIND, shape.segment_words())
    };
    let rights = readers.chain([(Role::Exchange(venue), Access::Write)]);
    Some(RunSegment::new(spec, SegmentPurpose::Market(venue), rights))
}

/// Describes the segment of a thread's status block and stamp log, with its rights.
pub(crate) fn thread(plan: &Plan, index: usize) -> RunSegment {
    let thread = &plan.threads[index];
    let spec = slots(thread_segment(&thread.name), status::KIND, thread.log_records, index);
    let rights = thread.roles.iter().map(|role| (*role, Access::Write));
    RunSegment::new(spec, SegmentPurpose::Thread(index), rights)
}

/// Returns a thread's doorbell, which only it writes and its peers read: [`shm::bell`].
fn bell(plan: &Plan, index: usize) -> RunSegment {
    let readers = peers(plan, index).into_iter().flat_map(|peer| &plan.threads[peer].roles);
    doorbell(plan, bell_segment(&plan.threads[index].name), SegmentPurpose::Bell(index), index, readers)
}

/// Returns the words through which a thread wakes those of its peers that park. Each is a segment
/// of its own, which only that peer reads: no strategy maps a word on which another one waits.
fn wakes(plan: &Plan, from: usize) -> impl Iterator<Item = RunSegment> {
    let parks = |to: &usize| plan.threads[*to].idle == Idle::Park;
    peers(plan, from).into_iter().filter(parks).map(move |to| {
        let (name, listener) = (&plan.threads[from].name, &plan.threads[to]);
        let name = wake_segment(name, &listener.name);
        doorbell(plan, name, SegmentPurpose::Wake(from, to), from, &listener.roles)
    })
}

/// Makes a segment of a doorbell that a thread writes and these roles read.
fn doorbell<'a>(
    plan: &Plan,
    name: String,
    purpose: SegmentPurpose,
    writer: usize,
    readers: impl IntoIterator<Item = &'a Role>,
) -> RunSegment {
    let spec =
        SegmentSpec { capacity: 1, index: writer as u64, ..memory(name, bell::KIND, bell::BELL_WORDS) };
    let writers = plan.threads[writer].roles.iter().map(|role| (*role, Access::Write));
    let readers = readers.into_iter().map(|role| (*role, Access::Read));
    RunSegment::new(spec, purpose, writers.chain(readers))
}

/// Returns the other threads that share a link with a thread, in the order of the plan, each once.
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
