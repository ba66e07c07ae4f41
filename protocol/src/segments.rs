//! The segments of a run: which ones a plan needs, creating them all, and attaching the ones a
//! process needs.

mod bells;

pub use bells::{bell_of, listener};

use crate::codec::{self, CodecError};
use crate::control::{self, Control, ControlWriter};
use crate::desk::{self, CommandChannel};
use crate::market::{self, Market, market_segment};
use crate::plan::{Handle, Plan, ProcessPlan, Role, ThreadPlan};
use crate::spill::{Ring, SPILLED_KIND};
use crate::stamps::StampLog;
use crate::status;
use crate::topology::{self, Segment};
pub use crate::topology::{
    CONTROL, SCHEDULE_ENTRY_WORDS, SCHEDULE_KIND, bell_segment, schedule_segment, spilled_segment,
    thread_segment,
};
use crate::trading::{COMPLETION, SUBMIT};
use shm::attached::{Access, Attached, Peers, SameProcess, Source};
use shm::board::{self, BoardError};
use shm::memory::fifo;
use shm::memory::header::{HEADER_WORDS, run_hash};
use shm::memory::sealed::{self, Shared};
use shm::memory::{AtomicWords, Header, ReadOnlyWords, Region, RegionError, directory};
use shm::ring::{LinkSpec, SegmentPlace, SegmentSpec};
use shm::sync::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

/// The submit hand-off of a trading plan: strategies to orchestrator.
///
/// # Panics
/// If the plan has no such link.
pub fn submit_link(plan: &Plan) -> LinkSpec<'_> {
    plan.link(SUBMIT).expect("a trading plan has it").spec()
}

/// The completion hand-off of a trading plan: gateways to orchestrator.
///
/// # Panics
/// If the plan has no such link.
pub fn completion_link(plan: &Plan) -> LinkSpec<'_> {
    plan.link(COMPLETION).expect("a trading plan has it").spec()
}

/// Words of a page.
const PAGE_WORDS: usize = 512;

/// The header of a thread's segment as it was created: for who saves the segment after its thread
/// may have written over it.
///
/// # Panics
/// If the plan has no such thread.
pub fn thread_header(plan: &Plan, index: usize) -> [u64; HEADER_WORDS] {
    header_of(plan, &topology::thread(plan, index).spec)
}

/// The header of a thread's log as it is saved: that of its segment, but where the log is spilled
/// and all of it has more room than its ring.
///
/// # Panics
/// As [`thread_header`].
pub fn log_header(plan: &Plan, index: usize) -> [u64; HEADER_WORDS] {
    header_of(plan, &topology::log(plan, index, plan.threads[index].log_records))
}

/// The words of a segment's header as they were written when it was created.
pub fn header_of(plan: &Plan, spec: &SegmentSpec) -> [u64; HEADER_WORDS] {
    let words = Region::heap(HEADER_WORDS).words();
    write_header(plan, spec, &words);
    std::array::from_fn(|word| words[word].load(Ordering::Relaxed))
}

/// Makes a dead strategy's segment anew: all zero, and its header as it was created, whatever the
/// dead one has written there.
pub fn renew(plan: &Plan, spec: &SegmentSpec, words: &AtomicWords) {
    for word in &words[HEADER_WORDS..] {
        // Relaxed: published by the Release store of the next life.
        word.store(0, Ordering::Relaxed);
    }
    write_header(plan, spec, words);
}

/// Creates a run's segment, with its header if it is memory: then its words.
///
/// # Errors
/// See [`Region::create`], [`fifo::create`], [`directory::create`].
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

/// A segment of zeroed words on the heap, with its header: what [`Attached::adopt`] takes, for
/// tests and benches.
///
/// # Panics
/// If the segment is not memory.
pub fn on_heap(plan: &Plan, spec: &SegmentSpec) -> Arc<Region> {
    assert!(
        matches!(spec.place, SegmentPlace::Memory | SegmentPlace::Reserve),
        "{} is not memory",
        spec.name
    );
    let region = Region::heap(spec.words);
    write_header(plan, spec, &region.words());
    region
}

/// As [`create`], without a name: sealed memory to hand over.
///
/// # Errors
/// See [`Shared::create`].
pub fn create_shared(plan: &Plan, segment: &Segment) -> Result<(Shared, AtomicWords), RegionError> {
    let spec = &segment.spec;
    let create = if segment.is_final() { Shared::create_read_only } else { Shared::create };
    let is_prefaulted = spec.place == SegmentPlace::Memory;
    let (shared, words) = create(&spec.name, plan.segment_name(&spec.name), spec.words, is_prefaulted)?;
    write_header(plan, spec, &words);
    Ok((shared, words))
}

/// The size in words of the control segment of a run with these segments: room for its plan, also
/// when that lists both descriptors of each segment that is handed over.
///
/// # Errors
/// [`CodecError`] if the plan cannot be encoded.
pub fn control_words(plan: &Plan, segments: &[Segment]) -> Result<usize, CodecError> {
    let names = segments.iter().map(|segment| segment.spec.name.as_str()).chain([CONTROL]);
    // The longest that a descriptor's number can be.
    let handle = |what: &str| Handle { name: what.into(), fd: i32::MAX, writable: true };
    let handles = names.flat_map(|what| [handle(what), handle(what)]).collect();
    let bytes = codec::encode(&Plan { handles, ..plan.clone() })?.len();
    Ok((control::PLAN + 1 + bytes.div_ceil(8)).next_multiple_of(PAGE_WORDS))
}

/// Creates the control segment of a run with these segments and writes the plan into it: a run is
/// found by it.
///
/// # Errors
/// See [`Region::create_control`]; a plan that cannot be encoded.
pub fn create_control(plan: &Plan, segments: &[Segment]) -> Result<ControlWriter, RegionError> {
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
    write_header(plan, &topology::control(words.len()).spec, &words);
    Ok(control)
}

/// The header that a segment of a run is created with.
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
    match market::shape(spec.capacity as usize) {
        Ok(shape) if spec.kind == board::KIND => shape.header(header),
        _ => header,
    }
}

/// Writes the header of a fresh segment, all zero so far; that of a board says its shape too.
fn write_header(plan: &Plan, spec: &SegmentSpec, words: &AtomicWords) {
    match market::shape(spec.capacity as usize) {
        Ok(shape) if spec.kind == board::KIND => shape.write_header(words, header(plan, spec)),
        _ => header(plan, spec).write(words),
    }
}

/// Finds a run by its id and copies its plan.
///
/// # Errors
/// No such run, or a control segment that is not one of this build.
pub fn open_control(run: &str) -> Result<(Control, Plan), RegionError> {
    let name = format!("{}{run}.{CONTROL}", Plan::PREFIX);
    let view = Region::open_read_only(&name)?;
    read_control(name, view)
}

/// Finds a run by the inherited, read-only descriptor of its control segment and copies its plan.
///
/// # Errors
/// As [`open_control`].
pub fn inherit_control(fd: i32) -> Result<(Control, Plan), RegionError> {
    let handle = Handle { name: CONTROL.into(), fd, writable: false };
    let os = |source| RegionError::Os { name: CONTROL.into(), what: "take the descriptor of it", source };
    let view = Region::map_read_only(CONTROL, &sealed::take(&handle).map_err(os)?)?;
    read_control(CONTROL.into(), view)
}

/// What begins the address of a control segment that is handed over.
const HANDLE_PREFIX: &str = "fd:";

/// How a child finds the control segment of its run: by the run's id, or by an inherited
/// descriptor, `fd:N`.
pub fn address(plan: &Plan) -> String {
    let control = plan.handles.iter().find(|handle| handle.name == CONTROL && !handle.writable);
    control.map_or_else(|| plan.run.clone(), |handle| format!("{HANDLE_PREFIX}{}", handle.fd))
}

/// Opens the control segment at an [`address`] and copies its plan.
///
/// # Errors
/// As [`open_control`]; no such descriptor.
pub fn control_at(address: &str) -> Result<(Control, Plan), RegionError> {
    let Some(fd) = address.strip_prefix(HANDLE_PREFIX) else { return open_control(address) };
    inherit_control(fd.parse().map_err(|_| RegionError::Os {
        name: address.into(),
        what: "take the descriptor of it",
        source: std::io::Error::other("it is no number"),
    })?)
}

/// Checks a control segment that was found and copies its plan.
///
/// # Errors
/// As [`open_control`].
pub fn read_control(name: String, view: ReadOnlyWords) -> Result<(Control, Plan), RegionError> {
    let check = Header::read(|i, ordering| view.load(i, ordering), view.len(), topology::CONTROL_KIND)
        .and_then(|header| header.check_geometry(control::PLAN, 1));
    check.map_err(|source| RegionError::Header { name: name.clone(), source })?;
    let control = Control::new(view);
    let plan = control.read_plan().map_err(|error| RegionError::Os {
        name,
        what: "read its plan",
        source: std::io::Error::other(error.to_string()),
    })?;
    Ok((control, plan))
}

/// Who maps segments of a run.
enum Who {
    /// The launcher, which may do everything.
    Launcher,
    /// Somebody else, with these rights.
    Other(HashMap<String, Access>),
}

impl Who {
    fn of(plan: &Plan, process: Option<&ProcessPlan>) -> Self {
        process.map_or(Self::Launcher, |process| Self::Other(topology::rights(plan, process).collect()))
    }
}

/// The segments of a plan, as one process sees them.
struct Segments<'a> {
    plan: &'a Plan,
    who: Who,
    /// What each segment's header was when it was created, by the segment's name.
    headers: HashMap<String, Header>,
    /// Who knows the processes' ids.
    control: Option<Control>,
}

impl<'a> Segments<'a> {
    fn new(plan: &'a Plan, who: Who, control: Option<Control>) -> Self {
        let of = |segment: Segment| (header(plan, &segment.spec), segment.spec.name);
        let headers = topology::segments(plan).into_iter().map(of).map(|(header, what)| (what, header));
        Self { plan, who, headers: headers.collect(), control }
    }
}

/// The ends of a link, as places among the plan's processes, and who knows their ids.
struct Ends {
    control: Control,
    producers: Vec<usize>,
    consumer: usize,
}

impl Peers for Ends {
    fn producer(&self, index: usize) -> Option<u32> {
        self.control.pid(*self.producers.get(index)?)
    }

    fn consumer(&self) -> Option<u32> {
        self.control.pid(self.consumer)
    }
}

impl Source for Segments<'_> {
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
            Who::Launcher => Some(Access::Write),
            Who::Other(rights) => rights.get(what).copied(),
        }
    }

    fn handles(&self) -> &[Handle] {
        &self.plan.handles
    }

    fn peers(&self, link: &str) -> Box<dyn Peers> {
        let Some(control) = self.control.clone() else { return Box::new(SameProcess) };
        // A role that has no process is nobody's.
        let of = |role| self.plan.process_of(role).unwrap_or(usize::MAX);
        let link = self.plan.link(link);
        let ends =
            |roles: Option<&Vec<Role>>| roles.into_iter().flatten().copied().map(of).collect::<Vec<_>>();
        let producers = ends(link.map(|link| &link.writers));
        let consumer = ends(link.map(|link| &link.readers)).first().copied().unwrap_or(usize::MAX);
        Box::new(Ends { control, producers, consumer })
    }
}

/// Nothing attached yet; by `process`, one of the plan's, with the rights of its roles, or by the
/// launcher, which has all.
pub fn attach<'a>(plan: &'a Plan, process: Option<&ProcessPlan>) -> Attached<'a> {
    Attached::new(Segments::new(plan, Who::of(plan, process), None))
}

/// As [`attach`], with the other ends of links in other processes, whose ids the control segment
/// has.
pub fn attach_with<'a>(plan: &'a Plan, process: Option<&ProcessPlan>, control: &Control) -> Attached<'a> {
    Attached::new(Segments::new(plan, Who::of(plan, process), Some(control.clone())))
}

/// Nothing attached yet; by the warden, which reads the threads' logs.
pub fn attach_as_warden(plan: &Plan) -> Attached<'_> {
    attach_logs(plan, Access::Read)
}

/// Nothing attached yet; by the spiller, which moves them.
pub fn attach_as_spiller(plan: &Plan) -> Attached<'_> {
    attach_logs(plan, Access::Write)
}

fn attach_logs(plan: &Plan, access: Access) -> Attached<'_> {
    let of = |thread: &ThreadPlan| [thread_segment(&thread.name), spilled_segment(&thread.name)];
    let logs = plan.threads.iter().flat_map(of).map(|what| (what, access));
    Attached::new(Segments::new(plan, Who::Other(logs.collect()), None))
}

/// A strategy's schedule, which it only reads, and its number of entries.
///
/// # Errors
/// As [`Attached::region`].
pub fn schedule(attached: &mut Attached<'_>, strategy: u16) -> Result<(ReadOnlyWords, usize), RegionError> {
    let view = attached.view(&schedule_segment(strategy), SCHEDULE_KIND)?;
    let entries = (view.len() - HEADER_WORDS) / SCHEDULE_ENTRY_WORDS;
    Ok((view, entries))
}

/// A thread's segment: status block and stamp log, for the thread itself.
///
/// # Errors
/// As [`Attached::region`].
pub fn thread(attached: &mut Attached<'_>, name: &str) -> Result<AtomicWords, RegionError> {
    Ok(attached.region(&thread_segment(name), status::KIND)?.words())
}

/// A thread's segment, for who saves it.
///
/// # Errors
/// As [`Attached::region`].
pub fn log(attached: &mut Attached<'_>, name: &str) -> Result<ReadOnlyWords, RegionError> {
    attached.view(&thread_segment(name), status::KIND)
}

/// What the spiller says of a thread's log, for who reads it.
///
/// # Errors
/// As [`Attached::region`].
pub fn spilled(attached: &mut Attached<'_>, name: &str) -> Result<ReadOnlyWords, RegionError> {
    attached.view(&spilled_segment(name), SPILLED_KIND)
}

/// The same, for the spiller.
///
/// # Errors
/// As [`Attached::region`].
pub fn spilling(attached: &mut Attached<'_>, name: &str) -> Result<AtomicWords, RegionError> {
    Ok(attached.region(&spilled_segment(name), SPILLED_KIND)?.words())
}

/// The writing end of the log of that thread of the plan, in its segment.
///
/// # Errors
/// As [`Attached::region`].
///
/// # Panics
/// If the plan has no such thread.
pub fn stamp_log(
    attached: &mut Attached<'_>,
    plan: &Plan,
    thread: &ThreadPlan,
    segment: &AtomicWords,
) -> Result<StampLog, RegionError> {
    let log = match ring_of(plan, thread) {
        Some(ring) => StampLog::in_ring(segment, &spilled(attached, &thread.name)?, ring),
        None => StampLog::new(segment),
    };
    Ok(log.taking(plan.stamps).keeping(thread.sleep_records))
}

/// The ring of that thread of the plan; `None`: its log is not spilled.
pub(crate) fn ring_of(plan: &Plan, thread: &ThreadPlan) -> Option<Ring> {
    let index = plan.threads.iter().position(|other| other.name == thread.name);
    topology::ring(plan, index.expect("a thread of the plan"))
}

/// The desk, for the engine.
///
/// # Errors
/// As [`Attached::region`].
pub fn desk(attached: &mut Attached<'_>) -> Result<CommandChannel, RegionError> {
    let desk = attached.view(desk::DESK, desk::DESK_KIND)?;
    let answers = attached.region(desk::ANSWERS, desk::ANSWERS_KIND)?;
    Ok(CommandChannel::new(&desk, &answers.words()))
}

/// The writing end of a venue's board, for its exchange.
///
/// # Errors
/// As [`Attached::region`]; memory that is not a board.
pub fn market_writer(
    attached: &mut Attached<'_>,
    plan: &Plan,
    venue: u16,
) -> Result<board::Writer, RegionError> {
    let what = market_segment(venue);
    let words = attached.region(&what, board::KIND)?.words();
    let shape = market::shape(plan.trading().instrument_count());
    shape.and_then(|shape| board::Writer::attach_as(shape, &words)).map_err(|error| no_board(what, error))
}

/// The boards of all exchanges, for a strategy; `None`: there are none.
///
/// # Errors
/// As [`Attached::view`]; memory that is not a board of the plan's instruments.
pub fn market(attached: &mut Attached<'_>, plan: &Plan) -> Result<Option<Market>, RegionError> {
    let mut market = None;
    for venue in plan.trading().boards() {
        let what = market_segment(venue);
        let view = attached.view(&what, board::KIND)?;
        let market = market.get_or_insert_with(Market::default);
        let followed = market.follow(venue, &view, plan.trading().instrument_count());
        followed.map_err(|error| no_board(what, error))?;
    }
    Ok(market)
}

fn no_board(name: String, error: BoardError) -> RegionError {
    let source = std::io::Error::other(error.to_string());
    RegionError::Os { name, what: "attach to the board in it", source }
}

#[cfg(all(test, not(loom)))]
mod tests;
