//! The segments of a run: which ones a plan needs, creating them all, and attaching the ones a process needs.

use crate::bell::{BELL, BELL_WORDS, Bell};
use crate::control::{self, Control, Launching};
use crate::handles::{self, Access, Shared};
use crate::memory::header::{HEADER_WORDS, SCHEDULE_ENTRY_WORDS, run_hash};
use crate::memory::{Header, HeaderError, Kind, Region, RegionError, View, Words};
use crate::os::fifo;
use crate::plan::{Handle, Plan, ProcessPlan, Role};
use crate::ring::intent::{self, INTENT_WORDS};
use crate::ring::{Link, LinkSpec, Place, SegmentSpec, spsc, spsc_mux};
use crate::stamps::RECORD_WORDS;
use crate::status::LOG_OFFSET;
use crate::supervision::{REPAIRS, REPAIRS_WORDS};
use crate::sync::Ordering;
use std::any::Any;
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

/// The submit hand-off: strategies to orchestrator.
pub fn submit_link(plan: &Plan) -> LinkSpec {
    LinkSpec { name: "submit", producers: plan.strategies.into(), capacity: plan.capacity }
}

/// The completion hand-off: gateways to orchestrator.
pub fn completion_link(plan: &Plan) -> LinkSpec {
    LinkSpec { name: "completion", producers: plan.venues.into(), capacity: plan.capacity }
}

/// The control segment's size in words: room for the plan of the largest run.
pub const CONTROL_WORDS: usize = 1 << 13;
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
            kind: Kind::Schedule,
            capacity: orders,
            slot_words: SCHEDULE_ENTRY_WORDS as u64,
            index: strategy as u64,
        });
    }
    specs.push(SegmentSpec {
        what: REPAIRS.into(),
        place: Place::Memory,
        words: REPAIRS_WORDS,
        kind: Kind::Repairs,
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
            kind: Kind::Bell,
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
        kind: Kind::Thread,
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
    let (shared, words) = Shared::create(plan, spec)?;
    header(plan, spec).write(&words);
    Ok((shared, words))
}

/// Creates the control segment and writes the plan into it, last of all: a run is found by it.
///
/// # Errors
/// See [`Region::create_control`]; a plan that does not fit.
pub fn create_control(plan: &Plan) -> Result<Launching, RegionError> {
    let name = plan.segment_name(CONTROL);
    let words = Region::create_control(&name, CONTROL_WORDS)?.words();
    let control = Launching::new(words.clone());
    control.write_plan(plan).map_err(|error| RegionError::Os {
        name,
        what: "write the plan into it",
        source: std::io::Error::other(error.to_string()),
    })?;
    let spec = SegmentSpec {
        what: CONTROL.into(),
        place: Place::Memory,
        words: words.len(),
        kind: Kind::Control,
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
    let view = Region::map_read_only(CONTROL, &handles::take(&handle).map_err(os)?)?;
    read_control(CONTROL.into(), view)
}

fn read_control(name: String, view: View) -> Result<(Control, Plan), RegionError> {
    let check = Header::read(|i, ordering| view.load(i, ordering), view.len(), Kind::Control)
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

/// One process's view of a run's segments: each is mapped once, however many threads use it.
pub struct Attached<'a> {
    plan: &'a Plan,
    /// The process that attaches, where segments are handed over and rights depend on who one is.
    process: Option<&'a ProcessPlan>,
    regions: HashMap<String, Arc<Region>>,
    /// Memory that was handed over for reading only.
    lent: HashMap<String, Arc<Region>>,
    /// What the techniques on the heap share between the threads of this process, by name.
    on_heap: HashMap<String, Arc<dyn Any + Send + Sync>>,
}

impl<'a> Attached<'a> {
    /// Nothing attached yet; by `process`, one of the plan's, or by the launcher or the warden.
    pub fn new(plan: &'a Plan, process: Option<&'a ProcessPlan>) -> Self {
        Self { plan, process, regions: HashMap::new(), lent: HashMap::new(), on_heap: HashMap::new() }
    }

    /// Maps a segment of the run, or gives the mapping that is there; checks that it belongs to this run.
    ///
    /// # Errors
    /// A segment that is missing, or whose header is not what it should be.
    pub fn region(&mut self, what: &str, kind: Kind) -> Result<Arc<Region>, RegionError> {
        if let Some(region) = self.regions.get(what) {
            return Ok(Arc::clone(region));
        }
        let name = self.plan.segment_name(what);
        // A reserve grows by the pages that are touched.
        let prefault = kind != Kind::Linked;
        let region = match self.handed_over(what, Access::Write)? {
            Some(file) => Region::map(&name, &file, prefault)?,
            None if prefault => Region::open(&name)?,
            None => Region::open_reserve(&name)?,
        };
        let words = region.words();
        self.check(name, kind, &words.into())?;
        self.regions.insert(what.to_owned(), Arc::clone(&region));
        Ok(region)
    }

    /// The full name, in `/dev/shm`, of one of the run's segments.
    pub fn name(&self, what: &str) -> String {
        self.plan.segment_name(what)
    }

    /// Takes a region as one of the run's segments, whether or not it has a name: for memory that was handed over, and
    /// for tests over the heap. Its header must be written.
    pub fn adopt(&mut self, what: &str, region: Arc<Region>) {
        self.regions.insert(what.to_owned(), region);
    }

    /// As [`Attached::adopt`], for reading only: [`Attached::view`] gives it, [`Attached::region`] does not.
    pub fn adopt_view(&mut self, what: &str, region: Arc<Region>) {
        self.lent.insert(what.to_owned(), region);
    }

    /// What the threads of this process share under that name on the heap; made by the first who asks.
    ///
    /// # Panics
    /// If it was made as another type: two techniques in one run.
    pub fn shared<T: Send + Sync + 'static>(&mut self, what: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let shared = self.on_heap.entry(what.to_owned()).or_insert_with(|| Arc::new(make()));
        Arc::clone(shared).downcast().expect("one run has one technique")
    }

    /// Everything that this process has mapped for writing, in the order of the names. Its memory of other kinds is not here.
    pub fn writable(&self) -> Vec<Words> {
        let mut named: Vec<_> = self.regions.iter().collect();
        named.sort_by_key(|(name, _)| *name);
        named.into_iter().map(|(_, region)| region.words()).collect()
    }

    /// A segment that is only read here. Unless this process writes it elsewhere, its pages are mapped read-only: a wild
    /// pointer cannot harm it. Where it has a name, a hostile process can still open it anew; the sandbox is for that.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn view(&mut self, what: &str, kind: Kind) -> Result<View, RegionError> {
        if let Some(region) = self.lent.get(what) {
            let view = region.words().into();
            self.check(self.plan.segment_name(what), kind, &view)?;
            return Ok(view);
        }
        // Who is no process of the plan is the warden, which reads logs.
        let right =
            self.process.map_or(Some(Access::Read), |process| handles::access(self.plan, process, what));
        if right == Some(Access::Write) || self.regions.contains_key(what) {
            return Ok(self.region(what, kind)?.words().into());
        }
        let name = self.plan.segment_name(what);
        let view = match self.handed_over(what, Access::Read)? {
            Some(file) => Region::map_read_only(&name, &file)?,
            None => Region::open_read_only(&name)?,
        };
        self.check(name, kind, &view)?;
        Ok(view)
    }

    fn by_handle(&self) -> bool {
        !self.plan.handles.is_empty()
    }

    /// The inherited descriptor of a segment; `None` where segments have names.
    fn handed_over(&self, what: &str, access: Access) -> Result<Option<File>, RegionError> {
        if !self.by_handle() {
            return Ok(None);
        }
        let wanted = |handle: &&Handle| handle.what == what && handle.writable == (access == Access::Write);
        let missing = || std::io::Error::other("it was not handed over");
        let file = self.plan.handles.iter().find(wanted).ok_or_else(missing).and_then(handles::take);
        let os =
            |source| RegionError::Os { name: what.to_owned(), what: "take the descriptor of it", source };
        file.map(Some).map_err(os)
    }

    fn check(&self, name: String, kind: Kind, view: &View) -> Result<Header, RegionError> {
        let header =
            Header::read(|i, ordering| view.load(i, ordering), view.len(), kind).and_then(|header| {
                // Rings check their own geometry when an end attaches.
                match kind {
                    Kind::Thread => header.check_geometry(LOG_OFFSET, RECORD_WORDS)?,
                    Kind::Bell => header.check_geometry(BELL, 1)?,
                    Kind::Repairs => header.check_geometry(HEADER_WORDS, 1)?,
                    Kind::Intent => header.check_geometry(intent::PLACE, INTENT_WORDS - intent::PLACE)?,
                    Kind::Schedule => header.check_geometry(HEADER_WORDS, SCHEDULE_ENTRY_WORDS)?,
                    _ => 0,
                };
                let ours = header.run == run_hash(&self.plan.run);
                if ours { Ok(header) } else { Err(HeaderError::OtherRun) }
            });
        header.map_err(|source| RegionError::Header { name, source })
    }

    /// The sending end of a contended hand-off.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn producer<T: Link>(&mut self, spec: &LinkSpec, index: usize) -> Result<T::Producer, RegionError> {
        T::producer(spec, index, self)
    }

    /// The receiving end of a contended hand-off.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn consumer<T: Link>(&mut self, spec: &LinkSpec) -> Result<T::Consumer, RegionError> {
        T::consumer(spec, self)
    }

    /// One end of what is in a segment.
    ///
    /// # Errors
    /// As [`Attached::region`]; what `attach` says.
    pub fn end<T>(
        &mut self,
        what: &str,
        kind: Kind,
        attach: impl FnOnce(&Words) -> Result<T, HeaderError>,
    ) -> Result<T, RegionError> {
        let words = self.region(what, kind)?.words();
        attach(&words).map_err(|source| RegionError::Header { name: what.into(), source })
    }

    /// The sending end of a 1→1 link: `inbox-J`, `return-I`.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn sender(&mut self, what: &str) -> Result<spsc::Producer, RegionError> {
        let head = self.view(&spsc_mux::head_name(what), Kind::RingHead)?;
        let tail = self.region(what, Kind::Ring)?.words();
        spsc::Producer::attach_parts(&tail, &head)
            .map_err(|source| RegionError::Header { name: what.into(), source })
    }

    /// The receiving end of a 1→1 link.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn receiver(&mut self, what: &str) -> Result<spsc::Consumer, RegionError> {
        let tail = self.view(what, Kind::Ring)?;
        let head = self.region(&spsc_mux::head_name(what), Kind::RingHead)?.words();
        spsc::Consumer::attach_parts(&tail, &head)
            .map_err(|source| RegionError::Header { name: what.into(), source })
    }

    /// A strategy's schedule, which it only reads, and its number of entries.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn schedule(&mut self, strategy: u16) -> Result<(View, usize), RegionError> {
        let view = self.view(&format!("schedule-{strategy}"), Kind::Schedule)?;
        let entries = (view.len() - HEADER_WORDS) / SCHEDULE_ENTRY_WORDS;
        Ok((view, entries))
    }

    /// A thread's segment: status block and stamp log, for the thread itself.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn thread(&mut self, name: &str) -> Result<Words, RegionError> {
        Ok(self.region(&thread_segment(name), Kind::Thread)?.words())
    }

    /// A thread's segment, for who saves it.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn log(&mut self, name: &str) -> Result<View, RegionError> {
        self.view(&thread_segment(name), Kind::Thread)
    }

    /// The doorbell of the thread that runs a role.
    ///
    /// # Errors
    /// As [`Attached::region`].
    pub fn bell(&mut self, role: Role) -> Result<Bell, RegionError> {
        let thread = self.plan.thread_of(role).expect("a valid plan runs every role");
        let what = format!("bell-{}", self.plan.threads[thread].name);
        Ok(Bell::new(&self.region(&what, Kind::Bell)?.words()))
    }
}
