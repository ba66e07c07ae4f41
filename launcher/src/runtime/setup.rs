//! Creates the segments of a run before anything starts, and removes them on every path.

use crate::runtime::headers::SegmentHeaders;
use analysis::record;
use anyhow::{Context, Result};
use protocol::commands::{self, COMMANDS_SEGMENT, CommandEntry, CommandWriter};
use protocol::control::{self, Control, ControlWriter};
use protocol::launcher_watch::LAUNCHER;
use protocol::plan::{Handle, Isolation, Plan, ProcessPlan, Role};
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::segments::{self, CONTROL};
use protocol::status::{GAPS, LOG_OFFSET};
use protocol::topology::{self, RunSegment, SegmentPurpose};
use shm::attached::{Access, Attached};
use shm::memory::header::HEADER_WORDS;
use shm::memory::sealed::Shared;
use shm::memory::{AtomicWords, ReadOnlyWords, Region, SHM_DIR, list_segments, sigbus, unlink};
use shm::sync::Ordering;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use strategy::schedule::Schedule;
use system::process;

/// The shared-memory segments of a run, as the launcher holds them. Dropping it removes their
/// names.
pub struct Segments {
    /// The plan, with the descriptors to inherit where segments are handed over.
    pub plan: Plan,
    /// The control segment.
    pub control: ControlWriter,
    /// Each thread's status block and stamp log, in the order of the plan.
    pub threads: Vec<ReadOnlyWords>,
    /// Each strategy's schedule.
    pub schedules: Vec<ReadOnlyWords>,
    /// The trade tape of each exchange, with its venue.
    pub tapes: Vec<(u16, ReadOnlyWords)>,
    /// The engine's repair reports about dead strategies; present once all segments are.
    pub repairs: Option<AtomicWords>,
    /// The doorbell of the orchestrator's thread: rung after a fence, which must wake the engine.
    pub engine_bell: Option<AtomicWords>,
    /// The headers that strategies can overwrite.
    pub headers: SegmentHeaders,
    /// The commands of operators.
    command_channel: Option<ReadOnlyWords>,
    /// Memory of each strategy and of each gateway that may die, to reset when it is restarted.
    resettable: Vec<(RunSegment, AtomicWords)>,
    /// Writable views of `threads`, to reset status blocks.
    statuses: Vec<AtomicWords>,
    /// Segments that are passed as descriptors; empty where segments have names.
    shared: Vec<(RunSegment, Shared)>,
    /// Segments created as descriptors and not yet registered here, by name within the run.
    sealed: HashMap<String, AtomicWords>,
    /// All segments that stay mapped here, by name within the run.
    pub(super) mapped: Vec<(String, ReadOnlyWords)>,
    /// Lost pages of this process before the run: see [`shm::memory::sigbus`].
    pub(super) faults_before: u64,
    /// Segments whose names stay: logs that could not be saved.
    pub left_behind: Vec<String>,
    /// The launcher's own pidfd, by which contained processes see its exit: see [`open_own_pidfd`].
    own_pidfd: Option<File>,
    /// The segments themselves, where they are on the heap of this process.
    heap: Option<Vec<(RunSegment, Arc<Region>)>>,
}

impl Segments {
    /// Creates the control segment with the plan in it. From now on the run can be found and
    /// cleaned up.
    ///
    /// # Errors
    /// No space, no permission, or a plan that does not fit; nothing is left behind.
    pub fn begin(plan: &Plan) -> Result<Self> {
        let mut plan = plan.clone();
        let end = match plan.isolation {
            Isolation::Container => Some(open_own_pidfd().context("cannot open a pidfd of the launcher")?),
            _ => None,
        };
        let handle = |end: &File| Handle { name: LAUNCHER.into(), fd: end.as_raw_fd(), writable: false };
        plan.handles = end.iter().map(handle).collect();
        let plan = &plan;
        let control = segments::create_control(plan, &topology::segments(plan));
        let remove = |_: &_| drop(unlink(&plan.segment_name(CONTROL)));
        let control = control.inspect_err(remove).context("cannot start the run")?;
        let mut segments = Self::with_control(plan, control, None);
        segments.own_pidfd = end;
        Ok(segments)
    }

    /// Creates the state with only the control segment present.
    fn with_control(
        plan: &Plan,
        control: ControlWriter,
        heap: Option<Vec<(RunSegment, Arc<Region>)>>,
    ) -> Self {
        Self {
            plan: plan.clone(),
            control,
            threads: Vec::new(),
            schedules: Vec::new(),
            tapes: Vec::new(),
            repairs: None,
            engine_bell: None,
            headers: SegmentHeaders::default(),
            command_channel: None,
            resettable: Vec::new(),
            statuses: Vec::new(),
            shared: Vec::new(),
            sealed: HashMap::new(),
            mapped: Vec::new(),
            faults_before: sigbus::faults(),
            left_behind: Vec::new(),
            own_pidfd: None,
            heap,
        }
    }

    /// Creates the segments of a simulated run on the heap of this process, without names. The plan
    /// is not in the control segment; [`Segments::attached`] gives each process of the plan its
    /// segments.
    ///
    /// # Panics
    /// If the technique is not memory.
    pub fn on_heap(plan: &Plan, schedule: &Schedule) -> Self {
        let control = ControlWriter::new(Region::heap(control::PLAN + 1).words());
        let mut segments = Self::with_control(plan, control, None);
        let mut heap = Vec::new();
        for segment in topology::segments(plan) {
            let region = segments::heap_segment(plan, &segment.spec);
            fill(&segment, &region.words(), schedule);
            segments.keep(&segment, region.words());
            heap.push((segment, region));
        }
        segments.heap = Some(heap);
        segments
    }

    /// Returns the heap segments that a process of a simulated run may access, with its access
    /// rights.
    pub fn attached<'a>(&'a self, process: &'a ProcessPlan) -> Attached<'a> {
        let mut attached = segments::attach(&self.plan, Some(process));
        for (segment, region) in self.heap.iter().flatten() {
            let what = &segment.spec.name;
            match segment.access(self.plan.roles_of(process)) {
                Some(Access::Write) => attached.adopt(what, Arc::clone(region)),
                Some(Access::Read) => attached.adopt_view(what, Arc::clone(region)),
                None => {}
            }
        }
        attached
    }

    /// Returns the operators' end of the command channel, if the segments are on this process's
    /// heap.
    pub fn operator(&self) -> Option<CommandWriter> {
        let mut all = self.heap.iter().flatten();
        let (_, region) = all.find(|(segment, _)| segment.spec.name == COMMANDS_SEGMENT)?;
        Some(CommandWriter::new(&region.words()))
    }

    /// Creates the run's segments without names, and writes their descriptors into the plan. At
    /// `sandbox` no other can be opened by its name, so those that have one are created and handed
    /// over as well.
    pub fn create_sealed(&mut self) -> Result<()> {
        for segment in topology::segments(&self.plan) {
            if segment.is_sealed(&self.plan) {
                let (shared, words) = segments::create_shared(&self.plan, &segment)?;
                self.sealed.insert(segment.spec.name.clone(), words);
                self.shared.push((segment, shared));
            }
        }
        if self.plan.isolation == Isolation::Sandbox {
            self.create_command_channel()?;
            let path = format!("{SHM_DIR}/{}", self.plan.segment_name(CONTROL));
            let control = Shared::read_only(CONTROL, &path).context("cannot open the control segment")?;
            self.shared.push((topology::control(0), control));
        }
        if !self.shared.is_empty() {
            // Now that the descriptors have their numbers.
            self.plan.handles.extend(self.shared.iter().flat_map(|(_, shared)| shared.handles()));
            self.control.write_plan(&self.plan)?;
        }
        Ok(())
    }

    /// Creates the command channel where it is passed as a descriptor: operators find it by name at
    /// every level.
    fn create_command_channel(&mut self) -> Result<()> {
        for segment in topology::segments(&self.plan) {
            if segment.purpose != SegmentPurpose::Commands {
                continue;
            }
            let what = &segment.spec.name;
            let words = segments::create(&self.plan, &segment.spec)?;
            let path = format!("{SHM_DIR}/{}", self.plan.segment_name(what));
            let shared = Shared::named(what, &path).with_context(|| format!("cannot open {what}"))?;
            self.sealed.extend(words.map(|words| (what.clone(), words)));
            self.shared.push((segment, shared));
        }
        Ok(())
    }

    /// Creates the run's segments with names, and copies the schedule into its own.
    pub fn create_named(&mut self, schedule: &Schedule) -> Result<()> {
        for segment in topology::segments(&self.plan) {
            let words = match self.sealed.remove(&segment.spec.name) {
                Some(words) => Some(words),
                None => segments::create(&self.plan, &segment.spec)?,
            };
            let Some(words) = words else { continue };
            fill(&segment, &words, schedule);
            self.keep(&segment, words);
        }
        Ok(())
    }

    /// Registers a segment that the launcher reads or resets during the run.
    fn keep(&mut self, segment: &RunSegment, words: AtomicWords) {
        self.headers.guard(&self.plan, segment, &words);
        let view = ReadOnlyWords::from(words.clone());
        if self.try_register(segment, words) && self.heap.is_none() {
            self.mapped.push((segment.spec.name.clone(), view));
        }
    }

    /// Registers a segment in the field for its purpose. Returns `false` if the launcher does not
    /// use it.
    fn try_register(&mut self, segment: &RunSegment, words: AtomicWords) -> bool {
        if segment.reset_with_role.is_some() {
            let is_lasting =
                matches!(segment.reset_with_role, Some(Role::Gateway(_))) && !self.plan.can_lose_gateways();
            if !is_lasting {
                self.resettable.push((segment.clone(), words));
            }
            return !is_lasting;
        }
        match segment.purpose {
            SegmentPurpose::Thread(_) => {
                self.statuses.push(words.clone());
                self.threads.push(words.into());
            }
            SegmentPurpose::Schedule(_) => self.schedules.push(words.into()),
            SegmentPurpose::Tape(venue) => self.tapes.push((venue, words.into())),
            SegmentPurpose::Repairs => self.repairs = Some(words),
            SegmentPurpose::Commands if segment.spec.name == COMMANDS_SEGMENT => {
                self.command_channel = Some(words.into())
            }
            SegmentPurpose::Bell(thread) if self.plan.thread_of(Role::Orchestrator) == Some(thread) => {
                self.engine_bell = Some(words);
            }
            _ => return false,
        }
        true
    }

    /// Resets a dead strategy's memory to its initial state, except its stamp log. Only after the
    /// engine has reported that it no longer reads it.
    pub fn reset_strategy(&self, strategy: u16) {
        self.reset_segments_of(Role::Strategy(strategy));
        if let Some(thread) = self.plan.thread_of(Role::Strategy(strategy)) {
            self.reset_status(thread, 0..0);
        }
    }

    /// Resets a dead gateway's memory: its part of the completion hand-off, and its inbox unless
    /// its successor continues with it. Only after the engine has reported that it no longer uses
    /// it.
    pub fn reset_gateway(&self, gateway: u16) {
        self.reset_segments_of(Role::Gateway(gateway));
    }

    fn reset_segments_of(&self, role: Role) {
        for (segment, words) in
            self.resettable.iter().filter(|(segment, _)| segment.reset_with_role == Some(role))
        {
            segments::reset(&self.plan, &segment.spec, words);
        }
    }

    /// Resets the status block of a dead thread that is restarted. Counters of its gaps and its
    /// stamp log stay.
    pub fn reset_thread(&self, thread: usize) {
        self.reset_status(thread, GAPS);
    }

    /// Resets a status block except for the words `stays`.
    fn reset_status(&self, thread: usize, stays: Range<usize>) {
        let header = segments::thread_header(&self.plan, thread);
        let rest = [0; LOG_OFFSET - HEADER_WORDS];
        // Relaxed: published by the Release store of the next incarnation.
        for (place, (word, value)) in
            self.statuses[thread].iter().zip(header.into_iter().chain(rest)).enumerate()
        {
            if !stays.contains(&place) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }

    /// Returns the commands that operators gave, for the run's record.
    pub fn commands(&self) -> Vec<record::OperatorCommand> {
        let of = |entry: CommandEntry| record::OperatorCommand {
            number: entry.number,
            ticks: entry.ticks,
            pid: entry.pid,
            what: entry.to_string(),
        };
        self.command_channel.iter().flat_map(commands::entries).map(of).collect()
    }

    /// Returns the descriptors that a process of the plan inherits.
    pub fn inherited_by(&self, process: &ProcessPlan) -> Vec<&File> {
        let end = self.own_pidfd.as_ref().filter(|_| self.plan.is_contained(process));
        let right = |segment: &RunSegment| segment.access(self.plan.roles_of(process));
        let shared = self.shared.iter().filter_map(|(segment, shared)| Some(shared.file(right(segment)?)));
        end.into_iter().chain(shared).collect()
    }

    /// Returns the descriptors that the reaper inherits, for reading: all logs and the control
    /// segment.
    pub(super) fn inherited_by_reaper(&self) -> Vec<&File> {
        let is_read = |segment: &RunSegment| {
            matches!(segment.purpose, SegmentPurpose::Control | SegmentPurpose::Thread(_))
        };
        let shared = self.shared.iter().filter(|(segment, _)| is_read(segment));
        shared.map(|(_, shared)| shared.file(Access::Read)).collect()
    }

    /// Returns the address by which a child finds the control segment. It is the run's id, or an
    /// inherited descriptor, `fd:N`.
    pub fn address(&self) -> String {
        segments::address(&self.plan)
    }
}

/// Opens a pidfd of the launcher itself. A process that holds it sees the launcher exit and can do
/// nothing else with it. (A pipe could be reopened for writing through `/proc/self/fd` and signal a
/// false exit.)
fn open_own_pidfd() -> io::Result<File> {
    Ok(process::pidfd_open(std::process::id())?.into())
}

/// Opens the control segment at an address that a child received: see [`Segments::address`].
pub fn open_control(address: &str) -> Result<(Control, Plan)> {
    segments::control_at(address).context("this command is started by the launcher")
}

/// Copies a strategy's schedule into its segment, if this is one.
fn fill(segment: &RunSegment, words: &AtomicWords, schedule: &Schedule) {
    if let SegmentPurpose::Schedule(strategy) = segment.purpose {
        fill_schedule(words, schedule, strategy);
    }
    if segment.purpose == SegmentPurpose::ReplaySequence {
        for (word, turn) in words[HEADER_WORDS..].iter().zip(schedule.replay_order()) {
            // Relaxed: published with the start of the processes.
            word.store(turn.word(), Ordering::Relaxed);
        }
    }
}

fn fill_schedule(words: &AtomicWords, schedule: &Schedule, strategy: u16) {
    let entries = schedule.words(strategy).iter().flatten();
    for (word, value) in words[HEADER_WORDS..].iter().zip(entries) {
        // Relaxed: the children start afterwards.
        word.store(*value, Ordering::Relaxed);
    }
    debug_assert_eq!(schedule.words(strategy).len() * SCHEDULE_ENTRY_WORDS + HEADER_WORDS, words.len());
}

impl Drop for Segments {
    fn drop(&mut self) {
        if self.heap.is_none() {
            remove_all(&self.plan, &self.left_behind);
        }
    }
}

/// Name prefix of the folders in `/dev/shm` in which bridges to other hosts keep their files. They
/// are not segments of the plan, but removed with the run.
pub const BRIDGE: &str = "bridge";

/// Returns the names of the folders that a run's bridges use.
pub fn bridges(plan: &Plan) -> Vec<String> {
    let stem = plan.segment_name(&format!("{BRIDGE}-"));
    let names = list_segments().unwrap_or_default();
    names.into_iter().filter(|name| name.starts_with(&stem)).collect()
}

/// Removes every segment of a run except those in `left_behind`. The control segment goes last, so
/// that the run can be found while any of it exists. Opens no descriptor, so that it works when
/// none are left.
pub fn remove_all(plan: &Plan, left_behind: &[String]) {
    let names = topology::segments(plan).into_iter().map(|segment| plan.segment_name(&segment.spec.name));
    for name in names.filter(|name| !left_behind.contains(name)) {
        let _ = unlink(&name);
    }
    for name in bridges(plan) {
        let _ = unlink(&name);
    }
    let _ = unlink(&plan.segment_name(CONTROL));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Machine;
    use crate::planner::tests::planned;
    use shm::memory::Region;

    #[test]
    fn largest_plan_round_trips_through_control_segment() {
        let machine = Machine { cores_allowed: (0..400).collect(), ..Machine::default() };
        for isolation in ["thread", "process", "container", "sandbox"] {
            let words = format!("strategies=256 venues=64 orders=100M isolation={isolation}");
            let (_, mut plan, _) = planned(&words, &machine).unwrap();
            assert_eq!(plan.threads.len(), 256 + 64 + 1, "dedicated: the most threads");
            let all = topology::segments(&plan);
            let words = segments::control_words(&plan, &all).unwrap();
            assert!(crate::planner::bytes_needed(&plan) > words as u64 * 8);
            let names = all.iter().map(|segment| segment.spec.name.clone()).chain([CONTROL.to_owned()]);
            plan.handles = names
                .flat_map(|what| {
                    [true, false].map(|writable| Handle { name: what.clone(), fd: 99_999, writable })
                })
                .collect();
            let launching = ControlWriter::new(Region::heap(words).words());
            launching.write_plan(&plan).unwrap();
            assert_eq!(launching.control().read_plan().unwrap(), plan);
        }
    }
}
