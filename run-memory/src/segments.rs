//! Creates the segments of a run before anything starts, and removes them on every path.

use crate::headers::SegmentHeaders;
use crate::journal_locks::JournalLocks;
use crate::own_binaries::OwnBinaries;
use anyhow::{Context, Result, anyhow};
use protocol::commands::{
    self, COMMANDS_SEGMENT, Command, CommandAnswers, CommandEntry, CommandStatus, CommandWriter,
};
use protocol::control::{self, Control, ControlWriter};
use protocol::index::{StrategyIndex, VenueIndex};
use protocol::launcher_watch::LAUNCHER;
use protocol::plan::{Handle, Plan, ProcessPlan, Role};
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::segments::{self, CONTROL};
use protocol::status::{self, LOG_OFFSET};
use protocol::supervision::REPAIRS_WORDS;
use protocol::topology::{self, RunSegment, SegmentPurpose};
use record::run;
use shm::attached::{Access, Attached};
use shm::memory::header::HEADER_WORDS;
use shm::memory::sealed::Shared;
use shm::memory::{AtomicWords, ReadOnlyWords, Region, SHM_DIR, list_segments, sigbus, unlink};
use shm::sync::{AtomicU64, Ordering};
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use strategy::schedule::Schedule;
use supervision::observations::{OperatorAddition, OperatorEnd};
use system::pin::pin_beyond_mask;
use system::process;

/// The launcher's handle of a run's shared-memory segments, plan, journal locks and executable
/// copies. Dropping it removes the segments' names.
pub struct Segments {
    /// The run's plan, with the file descriptors of segments that processes inherit.
    pub plan: Plan,
    /// The control segment.
    pub control: ControlWriter,
    /// Each thread's status block and stamp log, in the order of the plan.
    pub threads: Vec<ReadOnlyWords>,
    /// The schedules of the strategies, by index.
    pub schedules: Vec<ReadOnlyWords>,
    /// The trade tape of each exchange, with its venue.
    pub tapes: Vec<(VenueIndex, ReadOnlyWords)>,
    /// The engine's repair reports about dead strategies; present once all segments are.
    pub repairs: Option<AtomicWords>,
    /// The doorbell of the orchestrator's thread: rung after a fence, which must wake the engine.
    pub engine_bell: Option<AtomicWords>,
    /// The original headers of the segments that strategies can write.
    pub headers: SegmentHeaders,
    command_channel: Option<ReadOnlyWords>,
    command_answers: Option<ReadOnlyWords>,
    /// All segments that the launcher keeps mapped: those above, and the memory of each strategy
    /// and of each gateway that may die, which is reset when its role is restarted.
    pub kept: Vec<(RunSegment, AtomicWords)>,
    /// Segments that are passed as descriptors; empty where segments have names.
    shared: Vec<(RunSegment, Shared)>,
    /// Number of lost pages that this process had accessed before the run: see
    /// [`shm::memory::sigbus`].
    pub faults_before: u64,
    /// Names of segments that are not removed at the end, because their logs could not be saved.
    pub left_behind: Vec<String>,
    /// A pidfd of the launcher itself, by which contained processes and programs see its exit. In a
    /// container they can do nothing else with it. (A pipe could be reopened for writing through
    /// `/proc/self/fd` and signal a false exit.)
    own_pidfd: Option<File>,
    /// The control segment for shims of containers that run as another user, which cannot open it
    /// by name. The strategy inside takes the plan's descriptor of it.
    shim_control: Option<File>,
    /// The locks of the run's journals, which their writers inherit.
    pub journal_locks: JournalLocks,
    /// Copies of the executable for processes that run from their own.
    pub binaries: OwnBinaries,
    /// The segments themselves, where they are on the heap of this process; empty otherwise.
    heap: Vec<(RunSegment, Arc<Region>)>,
}

impl Segments {
    /// Locks the run's journals and creates its control segment, which contains the plan. From now
    /// on the run can be found and cleaned up.
    pub fn begin(plan: &Plan) -> Result<Self> {
        let mut plan = plan.clone();
        let own_pidfd =
            || process::pidfd_open(std::process::id()).context("cannot open a pidfd of the launcher");
        let is_inherited = plan.processes.iter().any(|process| plan.inherits_launcher(process));
        let end = is_inherited.then(own_pidfd).transpose()?.map(File::from);
        let handle = |end: &File| Handle { name: LAUNCHER.into(), fd: end.as_raw_fd(), writable: false };
        let locks = JournalLocks::take(&plan)?;
        plan.handles = end.iter().map(handle).chain(locks.handles()).collect();
        let control = segments::create_control(&plan, &topology::segments(&plan));
        let remove = |_: &_| drop(unlink(&plan.segment_name(CONTROL)));
        let control = control.inspect_err(remove).context("cannot start the run")?;
        let mut segments = Self::with_control(plan, control, end);
        segments.journal_locks = locks;
        Ok(segments)
    }

    /// Creates the state with only the control segment present.
    fn with_control(plan: Plan, control: ControlWriter, own_pidfd: Option<File>) -> Self {
        plan.trading().spares().for_each(|spare| control.fence_spare(spare));
        Self {
            plan,
            control,
            threads: Vec::new(),
            schedules: Vec::new(),
            tapes: Vec::new(),
            repairs: None,
            engine_bell: None,
            headers: SegmentHeaders::default(),
            command_channel: None,
            command_answers: None,
            kept: Vec::new(),
            shared: Vec::new(),
            faults_before: sigbus::faults(),
            left_behind: Vec::new(),
            own_pidfd,
            shim_control: None,
            journal_locks: JournalLocks::default(),
            binaries: OwnBinaries::default(),
            heap: Vec::new(),
        }
    }

    /// Creates the segments of a simulated run on the heap of this process, without names. The plan
    /// is not in the control segment; [`Segments::attached`] gives each process of the plan its
    /// segments.
    pub fn on_heap(plan: &Plan, schedule: &Schedule) -> Self {
        let control = ControlWriter::new(Region::heap(control::PLAN + 1).words());
        let mut segments = Self::with_control(plan.clone(), control, None);
        for segment in topology::segments(plan) {
            let region = segments::heap_segment(plan, &segment.spec);
            fill(&segment, &region.words(), schedule);
            segments.keep(segment.clone(), region.words());
            segments.heap.push((segment, region));
        }
        segments
    }

    /// Returns the heap segments of a simulated process, with the process's access rights.
    pub fn attached<'a>(&'a self, process: &'a ProcessPlan) -> Attached<'a> {
        let mut attached = segments::attach(&self.plan, Some(process));
        for (segment, region) in &self.heap {
            let what = &segment.spec.name;
            match segment.access(self.plan.roles_of(process)) {
                Some(Access::Write) => attached.adopt(what, Arc::clone(region)),
                Some(Access::Read) => attached.adopt_view(what, Arc::clone(region)),
                None => {}
            }
        }
        attached
    }

    /// Returns the writer for operators' commands to a simulated run; `None` if the run has no
    /// segment for them.
    pub fn operator(&self) -> Option<CommandWriter> {
        let (_, region) = self.heap.iter().find(|(segment, _)| segment.spec.name == COMMANDS_SEGMENT)?;
        Some(CommandWriter::new(&region.words()))
    }

    /// Creates the run's nameless (sealed) segments, and writes their descriptors into the plan. In
    /// a sandbox, and by another user, no other can be opened by its name, so those that have one
    /// are created and handed over as well. Returns what was created, by name within the run.
    pub fn create_sealed(&mut self) -> Result<HashMap<String, AtomicWords>> {
        let mut created = HashMap::new();
        let hands_over = self.plan.hands_over_segments();
        let path = |what: &str| format!("{SHM_DIR}/{}", self.plan.segment_name(what));
        for segment in topology::segments(&self.plan) {
            let what = segment.spec.name.clone();
            let shared = if segment.is_sealed(&self.plan) {
                let create = || segments::create_shared(&self.plan, &segment);
                let (shared, words) = on_core(board_core(&self.plan, &segment), create)??;
                created.insert(what, words);
                shared
            } else if hands_over && segment.purpose == SegmentPurpose::Commands {
                // Operators find it by name at every level.
                let words = segments::create(&self.plan, &segment.spec)?;
                let shared =
                    Shared::named(&what, &path(&what)).with_context(|| format!("cannot open {what}"))?;
                created.extend(words.map(|words| (what, words)));
                shared
            } else {
                continue;
            };
            self.shared.push((segment, shared));
        }
        if hands_over {
            let control =
                Shared::read_only(CONTROL, &path(CONTROL)).context("cannot open the control segment")?;
            self.shim_control = Some(control.file(Access::Read).try_clone().context("too few descriptors")?);
            self.shared.push((topology::control_segment(0), control));
        }
        if !self.shared.is_empty() {
            // Now that the descriptors have their numbers.
            self.plan.handles.extend(self.shared.iter().flat_map(|(_, shared)| shared.handles()));
            self.control.write_plan(&self.plan)?;
        }
        Ok(created)
    }

    /// Creates the run's named segments in `/dev/shm`. `created`: by [`Segments::create_sealed`].
    pub fn create_named(
        &mut self,
        mut created: HashMap<String, AtomicWords>,
        schedule: &Schedule,
    ) -> Result<()> {
        for segment in topology::segments(&self.plan) {
            let words = match created.remove(&segment.spec.name) {
                Some(words) => Some(words),
                None => {
                    let create = || segments::create(&self.plan, &segment.spec);
                    on_core(board_core(&self.plan, &segment), create)??
                }
            };
            let Some(words) = words else { continue };
            fill(&segment, &words, schedule);
            self.keep(segment, words);
        }
        Ok(())
    }

    /// Keeps a segment that the launcher reads or resets during the run.
    fn keep(&mut self, segment: RunSegment, words: AtomicWords) {
        self.headers.guard(&self.plan, &segment, &words);
        let view = || ReadOnlyWords::from(words.clone());
        match (segment.reset_with_role, segment.purpose) {
            (Some(Role::Gateway(_)), _) if !self.plan.can_lose_gateways() => return,
            (Some(_), _) => {}
            (_, SegmentPurpose::Thread(_)) => self.threads.push(view()),
            (_, SegmentPurpose::Schedule(_)) => self.schedules.push(view()),
            (_, SegmentPurpose::Tape(venue)) => self.tapes.push((venue, view())),
            (_, SegmentPurpose::Repairs) => self.repairs = Some(words.clone()),
            (_, SegmentPurpose::Results(_) | SegmentPurpose::Board) => {}
            (_, SegmentPurpose::Commands) if segment.spec.name == COMMANDS_SEGMENT => {
                self.command_channel = Some(view());
            }
            (_, SegmentPurpose::Commands) => self.command_answers = Some(view()),
            (_, SegmentPurpose::Bell(thread)) if self.plan.thread_of(Role::Orchestrator) == Some(thread) => {
                self.engine_bell = Some(words.clone());
            }
            _ => return,
        }
        self.kept.push((segment, words));
    }

    /// Resets the shared memory of a dead role for the role's next incarnation. Only after the
    /// engine has reported that it no longer uses it. Of a gateway it is its part of the completion
    /// hand-off, and its inbox unless its successor continues with it.
    pub fn reset_segments_of(&self, role: Role) {
        for (segment, words) in self.kept.iter().filter(|(segment, _)| segment.reset_with_role == Some(role))
        {
            segments::reset(&self.plan, &segment.spec, words);
        }
    }

    /// Resets the status block (state and counters) of a thread (index in the plan), except for the
    /// words in the range `stays`.
    pub fn reset_status(&self, thread: usize, stays: Range<usize>) {
        let header = segments::thread_header(&self.plan, thread);
        let rest = [0; LOG_OFFSET - HEADER_WORDS];
        // Relaxed: published by the Release store of the next incarnation.
        let purpose = SegmentPurpose::Thread(thread);
        let Some((_, status)) = self.kept.iter().find(|(segment, _)| segment.purpose == purpose) else {
            return;
        };
        for (place, (word, value)) in status.iter().zip(header.into_iter().chain(rest)).enumerate() {
            if !stays.contains(&place) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }

    /// Returns the robust-futex word that a thread (index in the plan) holds while it runs; `None`
    /// if it has none.
    pub fn robust_lock(&self, thread: usize) -> Option<AtomicWords> {
        let mut kept = self.kept.iter();
        let (_, words) = kept.find(|(segment, _)| segment.purpose == SegmentPurpose::Thread(thread))?;
        Some(status::robust_lock(words))
    }

    /// Returns the memory in which the engine reports its repairs after deaths of other processes;
    /// zeros in a run without an engine.
    pub fn repairs(&self) -> AtomicWords {
        self.repairs.clone().unwrap_or_else(|| Region::heap(REPAIRS_WORDS).words())
    }

    /// Returns a read-only view of the segment with this purpose, if the launcher keeps it mapped,
    /// such as a role's results.
    pub fn view(&self, purpose: SegmentPurpose) -> Option<ReadOnlyWords> {
        let (_, words) = self.kept.iter().find(|(segment, _)| segment.purpose == purpose)?;
        Some(words.clone().into())
    }

    /// Returns the commands of operators in the order in which the engine has taken them.
    pub fn commands(&self) -> Vec<run::OperatorCommand> {
        let of = |entry: CommandEntry| run::OperatorCommand {
            number: entry.number,
            ticks: entry.ticks,
            pid: entry.pid,
            what: entry.to_string(),
        };
        self.command_channel.iter().flat_map(commands::entries).map(of).collect()
    }

    /// Returns the strategies that operators have ended and those that they have added, as
    /// confirmed by the engine.
    pub fn changed_by_operators(&self) -> (Vec<OperatorEnd>, Vec<OperatorAddition>) {
        let (mut removals, mut additions) = (Vec::new(), Vec::new());
        let (Some(channel), Some(answers)) = (&self.command_channel, &self.command_answers) else {
            return (removals, additions);
        };
        let answers = CommandAnswers::new(answers);
        for CommandEntry { number, ticks, command, .. } in commands::entries(channel) {
            let is_done = || answers.answer(number).status == CommandStatus::Done;
            let text = || commands::text_of(channel, number);
            match command {
                Some(Command::EndStrategy { strategy, is_replaced, .. }) if is_done() => {
                    let successor = is_replaced.then(text);
                    removals.push(OperatorEnd { number, ticks, strategy, successor });
                }
                Some(Command::AddStrategy { strategy }) if is_done() => {
                    additions.push(OperatorAddition { number, strategy, kind: text() });
                }
                _ => {}
            }
        }
        (removals, additions)
    }

    /// Returns the files (segments, journal locks, the launcher's pidfd) whose descriptors a
    /// process inherits.
    pub fn inherited_by(&self, process: &ProcessPlan) -> Vec<&File> {
        let end = self.own_pidfd.as_ref().filter(|_| self.plan.inherits_launcher(process));
        let is_contained = self.plan.is_contained(process);
        let roles: Vec<Role> = self.plan.roles_of(process).collect();
        let right = |segment: &RunSegment| segment.access(roles.iter().copied());
        let is_foreign = self.plan.resources_of(process).user.is_some();
        let is_opened =
            |segment: &RunSegment| is_contained && !is_foreign && segment.purpose == SegmentPurpose::Control;
        let shared = self.shared.iter().filter(|(segment, _)| !is_opened(segment));
        let shared = shared.filter_map(|(segment, shared)| Some(shared.file(right(segment)?)));
        let shim = self.shim_control.iter().filter(|_| is_contained && is_foreign);
        end.into_iter().chain(shim).chain(shared).chain(self.journal_locks.inherited_by(&roles)).collect()
    }

    /// Returns the files that the reaper, which cleans up after a killed launcher, inherits for
    /// reading: all logs and the control segment.
    pub fn inherited_by_reaper(&self) -> Vec<&File> {
        let is_read = |segment: &RunSegment| {
            matches!(segment.purpose, SegmentPurpose::Control | SegmentPurpose::Thread(_))
        };
        let shared = self.shared.iter().filter(|(segment, _)| is_read(segment));
        shared.map(|(_, shared)| shared.file(Access::Read)).collect()
    }

    /// Returns the address by which the shim, which starts a container, opens the control segment:
    /// the run's id or a descriptor. The run's id is a name that only the launcher's user may open.
    pub fn shim_address(&self, process: &ProcessPlan) -> String {
        let foreign = self.shim_control.as_ref().filter(|_| self.plan.resources_of(process).user.is_some());
        foreign.map_or_else(|| self.plan.run.clone(), |file| segments::descriptor_address(file.as_raw_fd()))
    }

    /// Returns the address of the run's control segment: the run's id, or an inherited descriptor,
    /// `fd:N`.
    pub fn address(&self) -> String {
        segments::run_address(&self.plan)
    }
}

/// Opens a run's control segment at an address from [`Segments::address`], which a child process
/// received, and reads the plan.
pub fn open_control(address: &str) -> Result<(Control, Plan)> {
    segments::control_at(address).context("this command is started by the launcher")
}

/// Returns the core of a board's writer for the board's segment: its memory belongs on the NUMA
/// node of that core.
fn board_core(plan: &Plan, segment: &RunSegment) -> Option<u32> {
    let writer = plan.thread_of(Role::Writer).filter(|_| segment.purpose == SegmentPurpose::Board)?;
    plan.threads[writer].core
}

/// Creates something on a core, in a thread of its own: the kernel takes memory from the NUMA node
/// of the thread that first touches it.
fn on_core<T: Send>(core: Option<u32>, create: impl FnOnce() -> T + Send) -> Result<T> {
    let Some(core) = core else { return Ok(create()) };
    let pinned = || pin_beyond_mask(core).map(|()| create());
    let made = thread::scope(|scope| scope.spawn(pinned).join());
    let made = made.map_err(|_| anyhow!("the thread that creates a board's memory panicked"))?;
    made.context("cannot create the board's memory on the core of its writer")
}

/// Copies a strategy's schedule, or the sequence of a replay, into its segment.
fn fill(segment: &RunSegment, words: &AtomicWords, schedule: &Schedule) {
    // Relaxed: the children start afterwards.
    let put = |(word, value): (&AtomicU64, u64)| word.store(value, Ordering::Relaxed);
    match segment.purpose {
        SegmentPurpose::Schedule(strategy) => {
            let entries = schedule.words(strategy);
            debug_assert_eq!(entries.len() * SCHEDULE_ENTRY_WORDS + HEADER_WORDS, words.len());
            words[HEADER_WORDS..].iter().zip(entries.iter().flatten().copied()).for_each(put);
        }
        SegmentPurpose::ReplaySequence => {
            words[HEADER_WORDS..].iter().zip(schedule.replay_order().map(|turn| turn.word())).for_each(put);
        }
        SegmentPurpose::WriteTimes => {
            words[HEADER_WORDS..]
                .iter()
                .zip(schedule.entries(StrategyIndex(0)).map(|entry| entry.fire_ns))
                .for_each(put);
        }
        _ => {}
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        if self.heap.is_empty() {
            remove_all(&self.plan, &self.left_behind);
        }
    }
}

/// Name prefix of the folders in `/dev/shm` in which bridges to other hosts keep their files. They
/// are not segments of the plan, but removed with the run.
pub const BRIDGE: &str = "bridge";

/// Removes every segment of a run from `/dev/shm`, except those in `left_behind`. The control
/// segment goes last, so that the run can be found while any of it exists. Opens no descriptor, so
/// that it works when none are left.
pub fn remove_all(plan: &Plan, left_behind: &[String]) {
    let names = topology::segments(plan).into_iter().map(|segment| plan.segment_name(&segment.spec.name));
    for name in names.filter(|name| !left_behind.contains(name)) {
        let _ = unlink(&name);
    }
    let bridge = plan.segment_name(&format!("{BRIDGE}-"));
    for name in list_segments().unwrap_or_default().iter().filter(|name| name.starts_with(&bridge)) {
        let _ = unlink(name);
    }
    let _ = unlink(&plan.segment_name(CONTROL));
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::fixtures::planned;
    use planner::host::Machine;
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
            assert!(planner::bytes_needed(&plan) > words as u64 * 8);
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
