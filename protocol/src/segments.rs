//! The segments of a run: which ones a plan needs, creating them all, and attaching the ones a process needs.

use crate::codec::{self, CodecError};
use crate::control::{self, Control, Launching};
use crate::plan::{Handle, Plan, ProcessPlan, Role};
use crate::stamps::RECORD_WORDS;
use crate::status::{self, LOG_OFFSET};
use crate::supervision::{self, REPAIRS, REPAIRS_WORDS};
use shm::attached::{Access, Attached, Peers, SameProcess, Source};
use shm::bell::{self, BELL_WORDS, Bell};
use shm::memory::header::{HEADER_WORDS, run_hash};
use shm::memory::sealed::{self, Shared};
use shm::memory::{Header, Kind, Region, RegionError, View, Words};
use shm::os::fifo;
use shm::ring::{Link, LinkSpec, Place, SegmentSpec, spsc_mux};
use shm::sync::Ordering;
use std::sync::Arc;

/// Words in a schedule entry: see `strategy::schedule`.
pub const SCHEDULE_ENTRY_WORDS: usize = 4;

/// A strategy's schedule; written by the launcher before the start.
pub const SCHEDULE_KIND: Kind =
    Kind::new(4, "schedule", &[("entry", SCHEDULE_ENTRY_WORDS)]).of_slots(HEADER_WORDS, SCHEDULE_ENTRY_WORDS);

/// The submit hand-off: strategies to orchestrator.
pub fn submit_link(plan: &Plan) -> LinkSpec {
    LinkSpec { name: "submit", producers: plan.strategies.into(), capacity: plan.capacity }
}

/// The completion hand-off: gateways to orchestrator.
pub fn completion_link(plan: &Plan) -> LinkSpec {
    LinkSpec { name: "completion", producers: plan.venues.into(), capacity: plan.capacity }
}

/// Words of a page.
const PAGE_WORDS: usize = 512;
/// The control segment's name within the run.
pub const CONTROL: &str = "control";

/// The name of a thread's segment within the run.
pub fn thread_segment(name: &str) -> String {
    format!("thread-{name}")
}

/// Whose line a segment belongs to: the strategy whose own memory it is, or through which it is served. It is made anew for
/// each incarnation: `submit-3`, `submit-3.head`, `submit-3.intent`, `return-3`, `return-3.head`.
pub fn line_of(what: &str) -> Option<u16> {
    let part = what.strip_prefix("submit-").or_else(|| what.strip_prefix("return-"))?;
    part.split('.').next()?.parse().ok()
}

/// All segments of a run but the control segment.
pub fn all<T: Link>(plan: &Plan) -> Vec<SegmentSpec> {
    let mut specs = T::segments(&submit_link(plan));
    specs.extend(T::segments(&completion_link(plan)));
    for venue in 0..plan.venues {
        specs.extend(spsc_mux::ring_segments(format!("inbox-{venue}"), plan.capacity, venue.into()));
    }
    for (strategy, &orders) in plan.orders.iter().enumerate() {
        specs.extend(spsc_mux::ring_segments(format!("return-{strategy}"), plan.capacity, strategy as u64));
        specs.push(SegmentSpec {
            what: format!("schedule-{strategy}"),
            place: Place::Memory,
            words: HEADER_WORDS + orders as usize * SCHEDULE_ENTRY_WORDS,
            kind: SCHEDULE_KIND,
            capacity: orders,
            slot_words: SCHEDULE_ENTRY_WORDS as u64,
            index: strategy as u64,
        });
    }
    specs.push(SegmentSpec {
        what: REPAIRS.into(),
        place: Place::Memory,
        words: REPAIRS_WORDS,
        kind: supervision::KIND,
        capacity: 1,
        slot_words: 1,
        index: 0,
    });
    for (index, thread) in plan.threads.iter().enumerate() {
        specs.push(thread_spec(plan, index));
        specs.push(SegmentSpec {
            what: format!("bell-{}", thread.name),
            place: Place::Memory,
            words: BELL_WORDS,
            kind: bell::KIND,
            capacity: 1,
            slot_words: 1,
            index: index as u64,
        });
    }
    specs
}

fn thread_spec(plan: &Plan, index: usize) -> SegmentSpec {
    let thread = &plan.threads[index];
    SegmentSpec {
        what: thread_segment(&thread.name),
        place: Place::Memory,
        words: LOG_OFFSET + thread.log_records as usize * RECORD_WORDS,
        kind: status::KIND,
        capacity: thread.log_records,
        slot_words: RECORD_WORDS as u64,
        index: index as u64,
    }
}

/// The header of a thread's segment as it was created: for who saves the segment after its thread may have written over it.
///
/// # Panics
/// If the plan has no such thread.
pub fn thread_header(plan: &Plan, index: usize) -> [u64; HEADER_WORDS] {
    let words = Region::heap(HEADER_WORDS).words();
    header(plan, &thread_spec(plan, index)).write(&words);
    std::array::from_fn(|word| words[word].load(Ordering::Relaxed))
}

/// Makes a dead strategy's segment anew: all zero, and its header as it was created, whatever the dead one has written there.
pub fn renew(plan: &Plan, spec: &SegmentSpec, words: &Words) {
    for word in &words[HEADER_WORDS..] {
        // Relaxed: published by the Release store of the next life.
        word.store(0, Ordering::Relaxed);
    }
    header(plan, spec).write(words);
}

/// Creates a run's segment, with its header if it is memory: then its words.
///
/// # Errors
/// See [`Region::create`], [`fifo::create`].
pub fn create(plan: &Plan, spec: &SegmentSpec) -> Result<Option<Words>, RegionError> {
    let name = plan.segment_name(&spec.what);
    let words = match spec.place {
        Place::Memory => Region::create(&name, spec.words)?.words(),
        Place::Reserve => Region::create_reserve(&name, spec.words)?.words(),
        Place::Fifo => return fifo::create(&name).map(|()| None),
        Place::Socket => return Ok(None),
    };
    header(plan, spec).write(&words);
    Ok(Some(words))
}

/// A segment of zeroed words on the heap, with its header: what [`Attached::adopt`] takes, for tests and benches.
///
/// # Panics
/// If the segment is not memory.
pub fn on_heap(plan: &Plan, spec: &SegmentSpec) -> Arc<Region> {
    assert!(matches!(spec.place, Place::Memory | Place::Reserve), "{} is not memory", spec.what);
    let region = Region::heap(spec.words);
    header(plan, spec).write(&region.words());
    region
}

/// As [`create`], without a name: sealed memory to hand over.
///
/// # Errors
/// See [`Shared::create`].
pub fn create_shared(plan: &Plan, spec: &SegmentSpec) -> Result<(Shared, Words), RegionError> {
    let name = plan.segment_name(&spec.what);
    let (shared, words) = Shared::create(&spec.what, name, spec.words, spec.place == Place::Memory)?;
    header(plan, spec).write(&words);
    Ok((shared, words))
}

/// The size in words of the control segment of a run with these segments: room for its plan, also when that lists both
/// descriptors of each segment that is handed over.
///
/// # Errors
/// [`CodecError`] if the plan cannot be encoded.
pub fn control_words(plan: &Plan, specs: &[SegmentSpec]) -> Result<usize, CodecError> {
    let names = specs.iter().map(|spec| spec.what.as_str()).chain([CONTROL]);
    // The longest that a descriptor's number can be.
    let handle = |what: &str| Handle { what: what.into(), fd: i32::MAX, writable: true };
    let handles = names.flat_map(|what| [handle(what), handle(what)]).collect();
    let bytes = codec::encode(&Plan { handles, ..plan.clone() })?.len();
    Ok((control::PLAN + 1 + bytes.div_ceil(8)).next_multiple_of(PAGE_WORDS))
}

/// Creates the control segment of a run with these segments and writes the plan into it: a run is found by it.
///
/// # Errors
/// See [`Region::create_control`]; a plan that cannot be encoded.
pub fn create_control(plan: &Plan, specs: &[SegmentSpec]) -> Result<Launching, RegionError> {
    let name = plan.segment_name(CONTROL);
    let unwritable = |error: CodecError| RegionError::Os {
        name: name.clone(),
        what: "write the plan into it",
        source: std::io::Error::other(error.to_string()),
    };
    let words = control_words(plan, specs).map_err(unwritable)?;
    let words = Region::create_control(&name, words)?.words();
    let control = Launching::new(words.clone());
    control.write_plan(plan).map_err(unwritable)?;
    let spec = SegmentSpec {
        what: CONTROL.into(),
        place: Place::Memory,
        words: words.len(),
        kind: control::KIND,
        capacity: 1,
        slot_words: 1,
        index: 0,
    };
    header(plan, &spec).write(&words);
    Ok(control)
}

fn header(plan: &Plan, spec: &SegmentSpec) -> Header {
    Header {
        kind: spec.kind,
        bytes: spec.words as u64 * 8,
        capacity: spec.capacity,
        slot_words: spec.slot_words,
        creator_pid: plan.launcher_pid,
        creator_start: plan.launcher_start,
        run: run_hash(&plan.run),
        index: spec.index,
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
    let handle = Handle { what: CONTROL.into(), fd, writable: false };
    let os = |source| RegionError::Os { name: CONTROL.into(), what: "take the descriptor of it", source };
    let view = Region::map_read_only(CONTROL, &sealed::take(&handle).map_err(os)?)?;
    read_control(CONTROL.into(), view)
}

fn read_control(name: String, view: View) -> Result<(Control, Plan), RegionError> {
    let check = Header::read(|i, ordering| view.load(i, ordering), view.len(), control::KIND)
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

/// What the processes of a run need of a segment. The engine owns everything but what only the launcher writes. A strategy
/// gets what it writes itself, and read-only what others write and it reads. Any other process gets nothing.
pub fn access(plan: &Plan, process: &ProcessPlan, what: &str) -> Option<Access> {
    let mut roles = process.threads.iter().flat_map(|thread| &plan.threads[*thread as usize].roles);
    if roles.clone().any(|role| *role == Role::Orchestrator) {
        return Some(Access::Write);
    }
    let (Some(Role::Strategy(index)), None) = (roles.next(), roles.next()) else {
        return None;
    };
    let own = |prefix: &str, suffix: &str| what == format!("{prefix}-{index}{suffix}");
    let own_thread = process.threads.iter().any(|thread| {
        let name = &plan.threads[*thread as usize].name;
        what == format!("thread-{name}") || what == format!("bell-{name}")
    });
    // A bell must be rung: that is a write to a word of the engine's thread, which loses at most the time of one sleep.
    let engine_bell = plan
        .thread_of(Role::Orchestrator)
        .is_some_and(|thread| what == format!("bell-{}", plan.threads[thread].name));
    // What all producers of a technique write: anything of the link's but the numbered rings of `spsc-mux`.
    let part = what.strip_prefix("submit");
    let shared_submit =
        part.is_some_and(|part| !part[1.min(part.len())..].starts_with(|c: char| c.is_ascii_digit()));
    if own("submit", "")
        || own("submit", ".intent")
        || own("return", ".head")
        || own_thread
        || engine_bell
        || shared_submit
    {
        Some(Access::Write)
    } else if own("submit", ".head")
        || own("return", "")
        || own("schedule", "")
        || what == crate::segments::CONTROL
    {
        Some(Access::Read)
    } else {
        None
    }
}

/// The segments of a plan, for one of its processes, or for the launcher or the warden.
struct Segments<'a> {
    plan: &'a Plan,
    process: Option<&'a ProcessPlan>,
    /// Who knows the processes' ids.
    control: Option<Control>,
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

    fn right(&self, what: &str) -> Option<Access> {
        // Who is no process of the plan is the warden, which reads logs.
        self.process.map_or(Some(Access::Read), |process| access(self.plan, process, what))
    }

    fn handles(&self) -> &[Handle] {
        &self.plan.handles
    }

    fn peers(&self, link: &str) -> Box<dyn Peers> {
        let Some(control) = self.control.clone() else { return Box::new(SameProcess) };
        // A role that has no process is nobody's.
        let of = |role| self.plan.process_of(role).unwrap_or(usize::MAX);
        let producers = if link == submit_link(self.plan).name {
            (0..self.plan.strategies).map(|index| of(Role::Strategy(index))).collect()
        } else {
            (0..self.plan.venues).map(|index| of(Role::Gateway(index))).collect()
        };
        Box::new(Ends { control, producers, consumer: of(Role::Orchestrator) })
    }
}

/// Nothing attached yet; by `process`, one of the plan's, or by the launcher or the warden.
pub fn attach<'a>(plan: &'a Plan, process: Option<&'a ProcessPlan>) -> Attached<'a> {
    Attached::new(Segments { plan, process, control: None })
}

/// As [`attach`], with the other ends of links in other processes, whose ids the control segment has.
pub fn attach_with<'a>(plan: &'a Plan, process: Option<&'a ProcessPlan>, control: &Control) -> Attached<'a> {
    Attached::new(Segments { plan, process, control: Some(control.clone()) })
}

/// A strategy's schedule, which it only reads, and its number of entries.
///
/// # Errors
/// As [`Attached::region`].
pub fn schedule(attached: &mut Attached<'_>, strategy: u16) -> Result<(View, usize), RegionError> {
    let view = attached.view(&format!("schedule-{strategy}"), SCHEDULE_KIND)?;
    let entries = (view.len() - HEADER_WORDS) / SCHEDULE_ENTRY_WORDS;
    Ok((view, entries))
}

/// A thread's segment: status block and stamp log, for the thread itself.
///
/// # Errors
/// As [`Attached::region`].
pub fn thread(attached: &mut Attached<'_>, name: &str) -> Result<Words, RegionError> {
    Ok(attached.region(&thread_segment(name), status::KIND)?.words())
}

/// A thread's segment, for who saves it.
///
/// # Errors
/// As [`Attached::region`].
pub fn log(attached: &mut Attached<'_>, name: &str) -> Result<View, RegionError> {
    attached.view(&thread_segment(name), status::KIND)
}

/// The doorbell of the thread that runs a role.
///
/// # Errors
/// As [`Attached::region`].
///
/// # Panics
/// If the plan runs no such role.
pub fn bell(attached: &mut Attached<'_>, plan: &Plan, role: Role) -> Result<Bell, RegionError> {
    let thread = plan.thread_of(role).expect("a valid plan runs every role");
    let what = format!("bell-{}", plan.threads[thread].name);
    Ok(Bell::new(&attached.region(&what, bell::KIND)?.words()))
}

#[cfg(test)]
mod tests {
    use super::{Access, access};
    use crate::plan::tests::small_plan;
    use crate::plan::{ProcessPlan, Role};

    #[test]
    fn a_strategy_writes_what_is_its_own() {
        let plan = small_plan();
        let (strategy, engine) = (&plan.processes[0], &plan.processes[1]);
        for (what, right) in [
            ("submit-0", Some(Access::Write)),
            ("submit-0.head", Some(Access::Read)),
            ("submit-0.intent", Some(Access::Write)),
            ("submit-1.intent", None),
            ("submit-1", None),
            ("submit-10", None),
            ("submit", Some(Access::Write)),
            ("submit-waker", Some(Access::Write)),
            ("return-0", Some(Access::Read)),
            ("return-0.head", Some(Access::Write)),
            ("return-1.head", None),
            ("completion", None),
            ("completion-0", None),
            ("inbox-0", None),
            ("schedule-0", Some(Access::Read)),
            ("schedule-1", None),
            ("thread-strategy-0", Some(Access::Write)),
            ("thread-engine", None),
            ("bell-strategy-0", Some(Access::Write)),
            ("bell-engine", Some(Access::Write)),
            ("repairs", None),
            ("control", Some(Access::Read)),
        ] {
            assert_eq!(access(&plan, strategy, what), right, "{what}");
            assert_eq!(access(&plan, engine, what), Some(Access::Write), "{what}");
            let all = ProcessPlan { name: "all".into(), threads: vec![0, 1] };
            assert_eq!(access(&plan, &all, what), Some(Access::Write), "{what}");
        }
    }

    #[test]
    fn a_process_that_is_neither_engine_nor_one_strategy_gets_nothing() {
        let mut plan = small_plan();
        plan.threads[1].roles.retain(|role| *role != Role::Orchestrator);
        for threads in [vec![], vec![1], vec![0, 1], vec![0, 0]] {
            let process = ProcessPlan { name: "unknown".into(), threads };
            for what in ["submit-0", "submit-1", "return-0", "inbox-0", "thread-strategy-0", "control", "new"]
            {
                assert_eq!(access(&plan, &process, what), None, "{process:?} {what}");
            }
        }
    }
}
