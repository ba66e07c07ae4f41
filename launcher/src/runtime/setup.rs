//! The segments of a run, created before anything starts and removed whatever happens.

use crate::runtime::headers::Headers;
use analysis::record;
use anyhow::{Context, Result};
use protocol::control::{self, Control, ControlWriter};
use protocol::desk::{self, DESK, Entry, Operator};
use protocol::orphan::LAUNCHER;
use protocol::plan::{Handle, Isolation, Plan, ProcessPlan, Role};
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::segments::{self, CONTROL};
use protocol::status::{GAPS, LOG_OFFSET, SPILL};
use protocol::topology::{self, Purpose, Segment};
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

/// A run's segments. Dropping it removes their names.
pub struct Segments {
    /// The plan, with the descriptors to inherit where segments are handed over.
    pub plan: Plan,
    /// The control segment.
    pub control: ControlWriter,
    /// Each thread's status block and stamp log, in the order of the plan.
    pub threads: Vec<ReadOnlyWords>,
    /// What the spiller says of each thread's log, in the same order; none where no log is spilled.
    pub spilled: Vec<ReadOnlyWords>,
    /// Each strategy's schedule.
    pub schedules: Vec<ReadOnlyWords>,
    /// What each exchange has done, with its venue.
    pub tapes: Vec<(u16, ReadOnlyWords)>,
    /// What the engine says about strategies that died; there once all segments are.
    pub repairs: Option<AtomicWords>,
    /// The bell of the orchestrator's thread: told of a fence it must not sleep on.
    pub engine_bell: Option<AtomicWords>,
    /// The headers that strategies can overwrite.
    pub headers: Headers,
    /// The commands of operators.
    desk: Option<ReadOnlyWords>,
    /// The own memory of each strategy and of each gateway that may die, to make anew when it is
    /// started again.
    renewable: Vec<(Segment, AtomicWords)>,
    /// Each thread's status block and stamp log as `threads`, to make anew.
    statuses: Vec<AtomicWords>,
    /// What is handed over; empty where segments have names.
    shared: Vec<(Segment, Shared)>,
    /// What was created to be handed over and is not in its place here yet, by its name within the
    /// run.
    sealed: HashMap<String, AtomicWords>,
    /// Everything that stays mapped here, by its name within the run.
    pub(super) mapped: Vec<(String, ReadOnlyWords)>,
    /// Pages that were lost in this process before: see [`shm::memory::sigbus`].
    pub(super) faults_before: u64,
    /// Segments whose names stay: logs that could not be saved.
    pub left_behind: Vec<String>,
    /// By what processes in containers see this one's end: see [`own_end`].
    end: Option<File>,
    /// The segments themselves, where they are on the heap of this process.
    heap: Option<Vec<(Segment, Arc<Region>)>>,
}

impl Segments {
    /// Creates the control segment only, with the plan in it: the run can be found, and cleaned up
    /// after, from here on.
    ///
    /// # Errors
    /// No room, no permission, a plan that does not fit; nothing is left behind.
    pub fn begin(plan: &Plan) -> Result<Self> {
        let mut plan = plan.clone();
        let end = match plan.isolation {
            Isolation::Container => Some(own_end().context("cannot get hold of this process")?),
            _ => None,
        };
        let handle = |end: &File| Handle { name: LAUNCHER.into(), fd: end.as_raw_fd(), writable: false };
        plan.handles = end.iter().map(handle).collect();
        let plan = &plan;
        let control = segments::create_control(plan, &topology::segments(plan));
        let remove = |_: &_| drop(unlink(&plan.segment_name(CONTROL)));
        let control = control.inspect_err(remove).context("cannot start the run")?;
        let mut segments = Self::around(plan, control, None);
        segments.end = end;
        Ok(segments)
    }

    /// Segments of which only the control segment is there.
    fn around(plan: &Plan, control: ControlWriter, heap: Option<Vec<(Segment, Arc<Region>)>>) -> Self {
        Self {
            plan: plan.clone(),
            control,
            threads: Vec::new(),
            spilled: Vec::new(),
            schedules: Vec::new(),
            tapes: Vec::new(),
            repairs: None,
            engine_bell: None,
            headers: Headers::default(),
            desk: None,
            renewable: Vec::new(),
            statuses: Vec::new(),
            shared: Vec::new(),
            sealed: HashMap::new(),
            mapped: Vec::new(),
            faults_before: sigbus::faults(),
            left_behind: Vec::new(),
            end: None,
            heap,
        }
    }

    /// The segments of a run that takes place in this process alone: on the heap, without names.
    /// The plan is not in the control segment; [`Segments::attached`] gives each process of the
    /// plan what it may have.
    ///
    /// # Panics
    /// If the technique is not memory.
    pub fn on_heap(plan: &Plan, schedule: &Schedule) -> Self {
        let control = ControlWriter::new(Region::heap(control::PLAN + 1).words());
        let mut segments = Self::around(plan, control, None);
        let mut heap = Vec::new();
        for segment in topology::segments(plan) {
            let region = segments::on_heap(plan, &segment.spec);
            fill(&segment, &region.words(), schedule);
            segments.keep(&segment, region.words());
            heap.push((segment, region));
        }
        segments.heap = Some(heap);
        segments
    }

    /// What a process of the plan has of the segments on the heap: with the rights that it would
    /// have of real ones.
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

    /// The desk as an operator has it, where segments are on the heap of this process.
    pub fn operator(&self) -> Option<Operator> {
        let mut all = self.heap.iter().flatten();
        let (_, region) = all.find(|(segment, _)| segment.spec.name == DESK)?;
        Some(Operator::new(&region.words()))
    }

    /// Creates the sealed segments, which have no names, and writes their descriptors into the
    /// plan. At `sandbox` no other can be opened by its name, so those that have one are created
    /// and handed over as well.
    pub fn create_sealed(&mut self) -> Result<()> {
        for segment in topology::segments(&self.plan) {
            if segment.is_sealed(&self.plan) {
                let (shared, words) = segments::create_shared(&self.plan, &segment)?;
                self.sealed.insert(segment.spec.name.clone(), words);
                self.shared.push((segment, shared));
            }
        }
        if self.plan.isolation == Isolation::Sandbox {
            self.create_desk()?;
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

    /// The desk where it is handed over: operators find it by its name at every level.
    fn create_desk(&mut self) -> Result<()> {
        for segment in topology::segments(&self.plan) {
            if segment.purpose != Purpose::Desk {
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

    /// Creates the segments that have names, and copies the schedule into its own.
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

    /// Keeps hold of what the launcher reads while the run lasts, or makes anew.
    fn keep(&mut self, segment: &Segment, words: AtomicWords) {
        self.headers.guard(&self.plan, segment, &words);
        let view = ReadOnlyWords::from(words.clone());
        if self.place(segment, words) && self.heap.is_none() {
            self.mapped.push((segment.spec.name.clone(), view));
        }
    }

    /// Puts a segment where the launcher looks for it. Returns `false` if it looks for it nowhere.
    fn place(&mut self, segment: &Segment, words: AtomicWords) -> bool {
        if segment.renewed_with.is_some() {
            let is_lasting =
                matches!(segment.renewed_with, Some(Role::Gateway(_))) && !self.plan.gateways_may_die();
            if !is_lasting {
                self.renewable.push((segment.clone(), words));
            }
            return !is_lasting;
        }
        match segment.purpose {
            Purpose::Thread(_) => {
                self.statuses.push(words.clone());
                self.threads.push(words.into());
            }
            Purpose::Spilled(_) => self.spilled.push(words.into()),
            Purpose::Schedule(_) => self.schedules.push(words.into()),
            Purpose::Tape(venue) => self.tapes.push((venue, words.into())),
            Purpose::Repairs => self.repairs = Some(words),
            Purpose::Desk if segment.spec.name == DESK => self.desk = Some(words.into()),
            Purpose::Bell(thread) if self.plan.thread_of(Role::Orchestrator) == Some(thread) => {
                self.engine_bell = Some(words);
            }
            _ => return false,
        }
        true
    }

    /// Makes a dead strategy's own memory anew, as it was before its first incarnation; its stamp
    /// log stays. Only after the engine has said that it no longer reads it.
    pub fn renew(&self, strategy: u16) {
        self.renew_of(Role::Strategy(strategy));
        if let Some(thread) = self.plan.thread_of(Role::Strategy(strategy)) {
            self.renew_status(thread, if self.plan.spill.is_some() { SPILL } else { 0..0 });
        }
    }

    /// Makes a dead gateway's own memory anew: its part of the completion hand-off, and its inbox
    /// unless its successor goes on with that. Only after the engine has said that it no longer
    /// reads or writes it.
    pub fn renew_gateway(&self, gateway: u16) {
        self.renew_of(Role::Gateway(gateway));
    }

    fn renew_of(&self, role: Role) {
        for (segment, words) in
            self.renewable.iter().filter(|(segment, _)| segment.renewed_with == Some(role))
        {
            segments::renew(&self.plan, &segment.spec, words);
        }
    }

    /// Makes the status of a thread anew whose process is dead and comes back; its stamp log stays,
    /// and what is said there of its gaps.
    pub fn renew_thread(&self, thread: usize) {
        self.renew_status(thread, GAPS.start..SPILL.end);
    }

    /// Nothing of a strategy's word stays, but for what its log needs to go on where it is spilled.
    fn renew_status(&self, thread: usize, stays: Range<usize>) {
        let header = segments::thread_header(&self.plan, thread);
        let rest = [0; LOG_OFFSET - HEADER_WORDS];
        // Relaxed: published by the Release store of the next life.
        for (place, (word, value)) in
            self.statuses[thread].iter().zip(header.into_iter().chain(rest)).enumerate()
        {
            if !stays.contains(&place) {
                word.store(value, Ordering::Relaxed);
            }
        }
    }

    /// What operators gave the engine to do, for the run's record.
    pub fn commands(&self) -> Vec<record::Command> {
        let of = |entry: Entry| record::Command {
            number: entry.number,
            ticks: entry.ticks,
            pid: entry.pid,
            what: entry.to_string(),
        };
        self.desk.iter().flat_map(desk::entries).map(of).collect()
    }

    /// The descriptors that a process of the plan inherits.
    pub fn handed_to(&self, process: &ProcessPlan) -> Vec<&File> {
        let end = self.end.as_ref().filter(|_| self.plan.is_contained(process));
        let right = |segment: &Segment| segment.access(self.plan.roles_of(process));
        let shared = self.shared.iter().filter_map(|(segment, shared)| Some(shared.file(right(segment)?)));
        end.into_iter().chain(shared).collect()
    }

    /// The descriptors that a helper inherits: the logs, which the warden only reads and the
    /// spiller writes, and the control segment.
    pub(super) fn handed_logs(&self, writes: bool) -> Vec<&File> {
        let access = if writes { Access::Write } else { Access::Read };
        let right = |segment: &Segment| match segment.purpose {
            Purpose::Control => Some(Access::Read),
            Purpose::Thread(_) | Purpose::Spilled(_) => Some(access),
            _ => None,
        };
        self.shared.iter().filter_map(|(segment, shared)| Some(shared.file(right(segment)?))).collect()
    }

    /// How a child finds the control segment: by the run's id, or by an inherited descriptor,
    /// `fd:N`.
    pub fn address(&self) -> String {
        segments::address(&self.plan)
    }
}

/// The launcher's own process as a descriptor: who has it sees that the launcher is gone, and can
/// do nothing with it. (A pipe could be opened again for writing, in `/proc/self/fd`, and everybody
/// would be told.)
fn own_end() -> io::Result<File> {
    Ok(process::pidfd_open(std::process::id())?.into())
}

/// Opens the control segment that a child was told of: see [`Segments::address`].
pub fn open_control(address: &str) -> Result<(Control, Plan)> {
    segments::control_at(address).context("this command is started by the launcher")
}

/// Copies a strategy's schedule into its segment, if this is one.
fn fill(segment: &Segment, words: &AtomicWords, schedule: &Schedule) {
    if let Purpose::Schedule(strategy) = segment.purpose {
        fill_schedule(words, schedule, strategy);
    }
    if segment.purpose == Purpose::Turns {
        for (word, turn) in words[HEADER_WORDS..].iter().zip(schedule.turns()) {
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

/// What the folders begin with in which bridges to other hosts keep their files: no segments of the
/// plan's, but they go with the run.
pub const BRIDGE: &str = "bridge";

/// Those of a run that are there.
pub fn bridges(plan: &Plan) -> Vec<String> {
    let stem = plan.segment_name(&format!("{BRIDGE}-"));
    let names = list_segments().unwrap_or_default();
    names.into_iter().filter(|name| name.starts_with(&stem)).collect()
}

/// Removes every segment of a run but those to be left behind. The control segment goes last, so
/// that the run can be found while anything of it is there. Needs no descriptor: it works when
/// there are none left.
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
    fn the_plan_of_the_largest_run_is_written_and_read_back() {
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
