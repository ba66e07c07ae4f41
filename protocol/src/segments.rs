//! Creates the segments that a plan needs, and attaches those that a process needs.

mod doorbells;

use crate::index::{StrategyIndex, VenueIndex};
pub use doorbells::{bell_of, listener};

use crate::codec::{self, CodecError};
use crate::commands::{self, CommandChannel};
use crate::control::{self, Control, ControlWriter};
use crate::journals;
use crate::launcher_watch::LAUNCHER;
use crate::market::{self, Market, market_segment};
use crate::plan::{Handle, Plan, ProcessPlan, Role, ThreadPlan};
use crate::positions::{POSITIONS_KIND, positions_segment};
use crate::stamps::StampLog;
use crate::status;
use crate::topology::{self, RunSegment};
pub use crate::topology::{
    CONTROL, SCHEDULE_ENTRY_WORDS, SCHEDULE_KIND, bell_segment, schedule_segment, thread_segment,
    wake_segment,
};
use crate::trading::{COMPLETION, KIND_VARIABLE, SUBMIT};
use shm::attached::{Access, Attached, Peers, SameProcess, Source};
use shm::board::{self, BoardError, BoardShape};
use shm::memory::fifo;
use shm::memory::header::{HEADER_WORDS, run_hash};
use shm::memory::sealed::{self, Shared};
use shm::memory::{AtomicWords, Header, ReadOnlyWords, Region, RegionError, directory};
use shm::ring::{LinkSpec, SegmentPlace, SegmentSpec};
use shm::sync::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// Returns the link of a trading plan that carries orders: strategies to orchestrator.
pub fn submit_link(plan: &Plan) -> LinkSpec<'_> {
    plan.link(SUBMIT).expect("a trading plan has it").spec()
}

/// Returns the link of a trading plan that carries reports: gateways to orchestrator.
pub fn completion_link(plan: &Plan) -> LinkSpec<'_> {
    plan.link(COMPLETION).expect("a trading plan has it").spec()
}

const PAGE_WORDS: usize = 512;

/// Returns the original header words of a thread's segment, for the log saver: the thread may have
/// overwritten the header.
pub fn thread_header(plan: &Plan, index: usize) -> [u64; HEADER_WORDS] {
    header_of(plan, &topology::thread(plan, index).spec)
}

/// Returns the header words that a segment with this specification gets when it is created.
pub fn header_of(plan: &Plan, spec: &SegmentSpec) -> [u64; HEADER_WORDS] {
    let words = Region::heap(HEADER_WORDS).words();
    header(plan, spec).write(&words);
    std::array::from_fn(|word| words[word].load(Ordering::Relaxed))
}

/// Resets a segment of a dead strategy: zeroes the segment and writes its original header.
pub fn reset(plan: &Plan, spec: &SegmentSpec, words: &AtomicWords) {
    for word in &words[HEADER_WORDS..] {
        // Relaxed: published by the Release store of the next incarnation.
        word.store(0, Ordering::Relaxed);
    }
    write_header(plan, spec, words);
}

/// Creates a segment of the run in `/dev/shm`: memory with a header, or a FIFO or directory.
/// Returns its words, with the header, if it is memory.
pub fn create(plan: &Plan, spec: &SegmentSpec) -> Result<Option<AtomicWords>, RegionError> {
    let name = plan.segment_name(&spec.name);
    let words = match spec.place {
        SegmentPlace::Memory => Region::create(&name, spec.words)?.words(),
        SegmentPlace::Reserve => Region::create_reserve(&name, spec.words)?.words(),
        SegmentPlace::Fifo => return fifo::create(&name).map(|()| None),
        SegmentPlace::Socket => return Ok(None),
        SegmentPlace::Directory => return directory::create(&name).map(|()| None),
    };
    write_header(plan, spec, &words);
    Ok(Some(words))
}

/// Creates a segment with its header on the heap, for tests and benches ([`Attached::adopt`]).
pub fn heap_segment(plan: &Plan, spec: &SegmentSpec) -> Arc<Region> {
    assert!(
        matches!(spec.place, SegmentPlace::Memory | SegmentPlace::Reserve),
        "{} is not memory",
        spec.name
    );
    let region = Region::heap(spec.words);
    write_header(plan, spec, &region.words());
    region
}

/// Creates a segment without a name, as sealed memory or an unnamed file, which processes receive
/// as a descriptor.
pub fn create_shared(plan: &Plan, segment: &RunSegment) -> Result<(Shared, AtomicWords), RegionError> {
    let spec = &segment.spec;
    if let Some(folder) = segment.folder(plan) {
        let (shared, words) =
            Shared::create_in(folder, &spec.name, plan.segment_name(&spec.name), spec.words)?;
        write_header(plan, spec, &words);
        return Ok((shared, words));
    }
    let create = if segment.is_read_only_after_start() { Shared::create_read_only } else { Shared::create };
    let is_prefaulted = spec.place == SegmentPlace::Memory;
    let (shared, words) = create(&spec.name, plan.segment_name(&spec.name), spec.words, is_prefaulted)?;
    write_header(plan, spec, &words);
    Ok((shared, words))
}

/// Returns the size (words) of a run's control segment, with space for the inherited file
/// descriptors that the plan will list.
pub fn control_words(plan: &Plan, segments: &[RunSegment]) -> Result<usize, CodecError> {
    let locks: Vec<String> = journals::writers(plan).map(journals::lock_handle).collect();
    let names = segments.iter().map(|segment| segment.spec.name.as_str());
    let names = names.chain([CONTROL, LAUNCHER]).chain(locks.iter().map(String::as_str));
    // The longest encoding of a file descriptor.
    let handle = |what: &str| Handle { name: what.into(), fd: i32::MAX, writable: true };
    let handles = names.flat_map(|what| [handle(what), handle(what)]).collect();
    let bytes = codec::encode(&Plan { handles, ..plan.clone() })?.len();
    Ok((control::PLAN + 1 + bytes.div_ceil(8)).next_multiple_of(PAGE_WORDS))
}

/// Creates the control segment, by which a run is found, and writes the plan into it.
pub fn create_control(plan: &Plan, segments: &[RunSegment]) -> Result<ControlWriter, RegionError> {
    let name = plan.segment_name(CONTROL);
    let unwritable = |error: CodecError| RegionError::Os {
        name: name.clone(),
        what: "write the plan into it",
        source: std::io::Error::other(error.to_string()),
    };
    let words = control_words(plan, segments).map_err(unwritable)?;
    let words = Region::create_control(&name, words)?.words();
    let control = ControlWriter::new(words.clone());
    control.write_plan(plan).map_err(unwritable)?;
    write_header(plan, &topology::control_segment(words.len()).spec, &words);
    Ok(control)
}

fn header(plan: &Plan, spec: &SegmentSpec) -> Header {
    let header = Header {
        kind: spec.kind,
        bytes: spec.words as u64 * 8,
        capacity: spec.capacity,
        slot_words: spec.slot_words,
        creator_pid: plan.launcher_pid,
        creator_start: plan.launcher_start,
        run: run_hash(&plan.run),
        index: spec.index,
    };
    board_shape(spec).map_or(header, |shape| shape.header(header))
}

/// Returns the dimensions of a board by its specification; `None` for a segment of another kind.
fn board_shape(spec: &SegmentSpec) -> Option<BoardShape> {
    let (cells, words) = (spec.capacity as usize, spec.slot_words as usize);
    let shape = || BoardShape::with_cells(cells, words).ok();
    (spec.kind == board::KIND).then(shape).flatten()
}

/// Writes the header of a fresh, zeroed segment; a board's header includes its shape.
fn write_header(plan: &Plan, spec: &SegmentSpec, words: &AtomicWords) {
    match board_shape(spec) {
        Some(shape) => shape.write_header(words, header(plan, spec)),
        None => header(plan, spec).write(words),
    }
}

/// Opens the control segment of a run, given the run's id, and copies its plan.
pub fn open_control(run: &str) -> Result<(Control, Plan), RegionError> {
    let name = format!("{}{run}.{CONTROL}", Plan::PREFIX);
    let view = Region::open_read_only(&name)?;
    read_control(name, view)
}

/// The prefix of the address of a control segment that is handed over.
const HANDLE_PREFIX: &str = "fd:";

/// Returns the address at which a child finds its run: the run's id, or a descriptor as `fd:N`.
pub fn run_address(plan: &Plan) -> String {
    let control = plan.handles.iter().find(|handle| handle.name == CONTROL && !handle.writable);
    control.map_or_else(|| plan.run.clone(), |handle| descriptor_address(handle.fd))
}

/// Returns the address `fd:N` of a control segment that a child process inherits as this
/// descriptor.
pub fn descriptor_address(fd: i32) -> String {
    format!("{HANDLE_PREFIX}{fd}")
}

/// Opens the control segment at an address from [`run_address`], and copies its plan.
pub fn control_at(address: &str) -> Result<(Control, Plan), RegionError> {
    let Some(fd) = address.strip_prefix(HANDLE_PREFIX) else { return open_control(address) };
    let os =
        |name: &str, source| RegionError::Os { name: name.into(), what: "take the descriptor of it", source };
    let fd = fd.parse().map_err(|_| os(address, std::io::Error::other("not a number")))?;
    let handle = Handle { name: CONTROL.into(), fd, writable: false };
    let fd = sealed::take(&handle).map_err(|error| os(CONTROL, error))?;
    read_control(CONTROL.into(), Region::map_read_only(CONTROL, &fd)?)
}

/// Checks the header of a mapped control segment, and returns the segment's view and a copy of its
/// plan.
pub fn read_control(name: String, view: ReadOnlyWords) -> Result<(Control, Plan), RegionError> {
    let check = Header::read(|i, ordering| view.load(i, ordering), view.len(), topology::CONTROL_KIND)
        .and_then(|header| header.check_geometry(control::PLAN, 1));
    check.map_err(|source| RegionError::Header { name: name.clone(), source })?;
    let control = Control::new(view);
    let mut plan = control.read_plan().map_err(|error| RegionError::Os {
        name,
        what: "read its plan",
        source: std::io::Error::other(error.to_string()),
    })?;
    if let Ok(named) = std::env::var(KIND_VARIABLE) {
        apply_kind(&mut plan, &named);
    }
    Ok((control, plan))
}

/// Gives a strategy the kind that its successor has: `strategy-2=maker`.
fn apply_kind(plan: &mut Plan, named: &str) {
    let Some((name, kind)) = named.split_once('=') else { return };
    let is_named = |index: &StrategyIndex| Role::Strategy(*index).to_string() == name;
    if plan.is_trading()
        && let Some(index) = StrategyIndex::first(plan.trading().strategies).find(is_named)
    {
        plan.trading_mut().set_strategy_kind(index, kind);
    }
}

/// The process that maps segments of a run.
enum SegmentUser {
    /// The launcher, with all rights.
    Launcher,
    /// Another process, with these rights.
    Other(HashMap<String, Access>),
}

impl SegmentUser {
    fn from_process(plan: &Plan, process: Option<&ProcessPlan>) -> Self {
        process.map_or(Self::Launcher, |process| Self::Other(topology::rights(plan, process).collect()))
    }
}

/// The segments of a plan, as one process sees them.
struct RunSegments<'a> {
    plan: &'a Plan,
    who: SegmentUser,
    /// The original header of each segment, by the segment's name.
    headers: HashMap<String, Header>,
    /// The control segment with the process ids.
    control: Option<Control>,
}

impl<'a> RunSegments<'a> {
    fn new(plan: &'a Plan, who: SegmentUser, control: Option<Control>) -> Self {
        let header_of_segment = |segment: RunSegment| (header(plan, &segment.spec), segment.spec.name);
        let headers =
            topology::segments(plan).into_iter().map(header_of_segment).map(|(header, what)| (what, header));
        Self { plan, who, headers: headers.collect(), control }
    }
}

/// The ends of a link as indices of the plan's processes, and the control segment with their ids.
struct LinkPeers {
    control: Control,
    producers: Vec<usize>,
    consumer: usize,
}

impl Peers for LinkPeers {
    fn producer(&self, index: usize) -> Option<u32> {
        self.control.pid(*self.producers.get(index)?)
    }

    fn consumer(&self) -> Option<u32> {
        self.control.pid(self.consumer)
    }
}

impl Source for RunSegments<'_> {
    fn name(&self, what: &str) -> String {
        self.plan.segment_name(what)
    }

    fn run(&self) -> u64 {
        run_hash(&self.plan.run)
    }

    fn header(&self, what: &str) -> Option<Header> {
        self.headers.get(what).copied()
    }

    fn right(&self, what: &str) -> Option<Access> {
        match &self.who {
            SegmentUser::Launcher => Some(Access::Write),
            SegmentUser::Other(rights) => rights.get(what).copied(),
        }
    }

    fn handles(&self) -> &[Handle] {
        &self.plan.handles
    }

    fn peers(&self, link: &str) -> Box<dyn Peers> {
        let Some(control) = self.control.clone() else { return Box::new(SameProcess) };
        // A role without a process has no peer.
        let process_index = |role| self.plan.process_of(role).unwrap_or(usize::MAX);
        let link = self.plan.link(link);
        let ends = |roles: Option<&Vec<Role>>| {
            roles.into_iter().flatten().copied().map(process_index).collect::<Vec<_>>()
        };
        let producers = ends(link.map(|link| &link.writers));
        let consumer = ends(link.map(|link| &link.readers)).first().copied().unwrap_or(usize::MAX);
        Box::new(LinkPeers { control, producers, consumer })
    }
}

/// Returns a context that attaches the run's segments with the access rights of `process`; if
/// `process` is `None`, with those of the launcher (all).
pub fn attach<'a>(plan: &'a Plan, process: Option<&ProcessPlan>) -> Attached<'a> {
    Attached::new(RunSegments::new(plan, SegmentUser::from_process(plan, process), None))
}

/// Returns a context as [`attach`] does, which also reads the process ids of the links' other ends
/// from the control segment. By these ids a technique over sockets checks which process has
/// connected.
pub fn attach_with<'a>(plan: &'a Plan, process: Option<&ProcessPlan>, control: &Control) -> Attached<'a> {
    Attached::new(RunSegments::new(plan, SegmentUser::from_process(plan, process), Some(control.clone())))
}

/// Returns a context for attaching segments with the rights of the reaper, which only reads the
/// threads' logs.
pub fn attach_as_reaper(plan: &Plan) -> Attached<'_> {
    let logs = plan.threads.iter().map(|thread| (thread_segment(&thread.name), Access::Read));
    Attached::new(RunSegments::new(plan, SegmentUser::Other(logs.collect()), None))
}

/// Attaches the segment with a strategy's schedule of orders, read-only. Returns it and its number
/// of entries.
pub fn attach_schedule(
    attached: &mut Attached<'_>,
    strategy: StrategyIndex,
) -> Result<(ReadOnlyWords, usize), RegionError> {
    let view = attached.view(&schedule_segment(strategy), SCHEDULE_KIND)?;
    let entries = (view.len() - HEADER_WORDS) / SCHEDULE_ENTRY_WORDS;
    Ok((view, entries))
}

/// Attaches, for reading, the segment in which the engine keeps a strategy's trading positions for
/// its next incarnation.
pub fn attach_inherited_positions(
    attached: &mut Attached<'_>,
    strategy: StrategyIndex,
) -> Result<ReadOnlyWords, RegionError> {
    attached.view(&positions_segment(strategy), POSITIONS_KIND)
}

/// Attaches, for the engine, the segments for the positions that strategies' successors inherit;
/// none in a run without successors.
pub fn attach_inherited_positions_writers(
    attached: &mut Attached<'_>,
    plan: &Plan,
) -> Result<Vec<AtomicWords>, RegionError> {
    let strategies = if plan.has_inheritance() { plan.trading().strategies } else { 0 };
    let attach = |strategy| Ok(attached.region(&positions_segment(strategy), POSITIONS_KIND)?.words());
    StrategyIndex::first(strategies).map(attach).collect()
}

/// Maps a thread's own segment, which holds its status block and stamp log, for writing.
pub fn attach_thread(attached: &mut Attached<'_>, name: &str) -> Result<AtomicWords, RegionError> {
    Ok(attached.region(&thread_segment(name), status::KIND)?.words())
}

/// Attaches a thread's segment read-only, to save its log.
pub fn attach_log(attached: &mut Attached<'_>, name: &str) -> Result<ReadOnlyWords, RegionError> {
    attached.view(&thread_segment(name), status::KIND)
}

/// Opens the writing end of a thread's stamp log in its segment.
pub fn stamp_log(plan: &Plan, thread: &ThreadPlan, segment: &AtomicWords) -> StampLog {
    StampLog::new(segment).with_stamps(plan.stamps).with_sleep_records(thread.sleep_records)
}

/// Attaches the engine's end of the operators' command channel.
pub fn attach_command_channel(attached: &mut Attached<'_>) -> Result<CommandChannel, RegionError> {
    let commands = attached.view(commands::COMMANDS_SEGMENT, commands::COMMANDS_KIND)?;
    let answers = attached.region(commands::ANSWERS_SEGMENT, commands::ANSWERS_KIND)?;
    Ok(CommandChannel::new(&commands, &answers.words()))
}

/// Attaches the writing end of a venue's market-data board, for its exchange.
pub fn attach_market_writer(
    attached: &mut Attached<'_>,
    plan: &Plan,
    venue: VenueIndex,
) -> Result<board::Writer, RegionError> {
    let what = market_segment(venue);
    let words = attached.region(&what, board::KIND)?.words();
    let shape = market::shape(plan.trading().instrument_count());
    shape.and_then(|shape| board::Writer::attach_as(shape, &words)).map_err(|error| board_error(what, error))
}

/// Attaches the market-data boards of all exchanges for a strategy; `None` if there are none.
pub fn attach_market(attached: &mut Attached<'_>, plan: &Plan) -> Result<Option<Market>, RegionError> {
    let mut market = None;
    for venue in plan.trading().boards() {
        let what = market_segment(venue);
        let view = attached.view(&what, board::KIND)?;
        let market = market.get_or_insert_with(Market::default);
        let followed = market.follow(venue, &view, plan.trading().instrument_count());
        followed.map_err(|error| board_error(what, error))?;
    }
    Ok(market)
}

fn board_error(name: String, error: BoardError) -> RegionError {
    let source = std::io::Error::other(error.to_string());
    RegionError::Os { name, what: "attach to the board in it", source }
}

#[cfg(all(test, not(loom)))]
mod tests;
