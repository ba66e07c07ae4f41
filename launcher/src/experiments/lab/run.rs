//! One run: segments, processes, start, watch, end, account.

use super::account::{DONE, Field, READY, Said, problems};
use super::plan::{
    CONTROL, CONTROL_KIND, DRAIN, GO, LabPlan, PIDS, PLAN, Planned, Role, STATE, STOP, segment_name,
    strongest,
};
use crate::runtime::process::Process;
use crate::runtime::run_id::RunId;
use crate::runtime::signals::Signals;
use analysis::experiment::{LabLatency, LabRun, SideCost, histogram};
use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use shm::attached::Access;
use shm::memory::fifo;
use shm::memory::header::run_hash;
use shm::memory::sealed::Shared;
use shm::memory::{Header, Words, folder, unlink};
use shm::process::start_time;
use shm::ring::{SegmentPlace, SegmentSpec};
use shm::sync::Ordering;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use system::process;

/// Nothing moved for so long, beside what the pace explains: the run is ended.
const STANDSTILL: Duration = Duration::from_secs(10);
/// How long the roles may take to be ready.
const START: Duration = Duration::from_secs(30);
/// How often the launcher looks. Seldom: it may share a core with the run.
const LOOK: Duration = Duration::from_millis(20);

/// What a run gave.
pub(super) struct Done {
    pub run: LabRun,
    pub latencies: Histogram<u64>,
}

/// The segments of a run. Dropping it removes what has a name.
struct Segments {
    plan: LabPlan,
    control: Words,
    control_file: Shared,
    shared: Vec<(Planned, Shared)>,
    accounts: Vec<Said>,
    named: Vec<String>,
}

impl Drop for Segments {
    fn drop(&mut self) {
        for name in &self.named {
            // A socket that was never bound has no name yet.
            let _ = unlink(name);
        }
    }
}

fn header(plan: &LabPlan, spec: &SegmentSpec) -> Header {
    Header {
        kind: spec.kind,
        bytes: spec.words as u64 * 8,
        capacity: spec.capacity,
        slot_words: spec.slot_words,
        creator_pid: plan.launcher_pid,
        creator_start: start_time(plan.launcher_pid).unwrap_or(0),
        run: run_hash(&plan.run),
        index: spec.index,
    }
}

impl Segments {
    fn create(mut plan: LabPlan) -> Result<Self> {
        let (mut shared, mut accounts) = (Vec::new(), Vec::new());
        let mut named = Named(Vec::new());
        let own: Vec<String> = plan.roles().iter().map(|role| format!("lab.{}", role.name())).collect();
        for planned in plan.segments() {
            let spec = &planned.spec;
            let name = segment_name(&plan, &spec.what);
            let prefault = match spec.place {
                SegmentPlace::Memory => true,
                SegmentPlace::Reserve => false,
                SegmentPlace::Fifo => {
                    fifo::create(&name)?;
                    named.0.push(name);
                    continue;
                }
                SegmentPlace::Folder => {
                    folder::create(&name)?;
                    named.0.push(name);
                    continue;
                }
                SegmentPlace::Socket => {
                    named.0.push(name);
                    continue;
                }
            };
            let (memory, words) = Shared::create(&spec.what, name, spec.words, prefault)?;
            header(&plan, spec).write(&words);
            plan.handles.extend(memory.handles());
            if own.contains(&spec.what) {
                accounts.push(Said(words.into()));
            }
            shared.push((planned, memory));
        }
        let json = serde_json::to_vec(&plan)?;
        let words = (PLAN + 1 + json.len().div_ceil(8)).next_multiple_of(512);
        let (control_file, control) = Shared::create(CONTROL, segment_name(&plan, CONTROL), words, true)?;
        header(&plan, &super::account::memory(CONTROL.into(), words, CONTROL_KIND)).write(&control);
        // Relaxed: the roles start afterwards.
        control[PLAN].store(json.len() as u64, Ordering::Relaxed);
        for (word, bytes) in control[PLAN + 1..].iter().zip(json.chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
        }
        Ok(Self { plan, control, control_file, shared, accounts, named: std::mem::take(&mut named.0) })
    }

    /// The descriptors for the process with these roles.
    fn handed_to(&self, roles: &[usize]) -> Vec<&File> {
        let rights = |planned: &Planned| strongest(roles.iter().filter_map(|role| planned.rights[*role]));
        let files = self.shared.iter().filter_map(|(planned, shared)| Some(shared.file(rights(planned)?)));
        files.chain([self.control_file.file(Access::Read)]).collect()
    }

    fn set_state(&self, state: u64) {
        // Release: pairs with the roles' Acquire load.
        self.control[STATE].store(state, Ordering::Release);
    }

    fn moved(&self) -> u64 {
        self.accounts.iter().fold(0, |all, said| all.wrapping_add(said.get(Field::Count)))
    }
}

/// Names to remove if no [`Segments`] come to be.
struct Named(Vec<String>);

impl Drop for Named {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = unlink(name);
        }
    }
}

/// Makes one run; `None`: Ctrl-C. What its processes say goes to files in `folder`, which stay only if they say something.
///
/// # Errors
/// What kept it from starting at all. A role that dies, hangs or finds something wrong is no error: the run says so.
pub(super) fn run(mut plan: LabPlan, folder: &Path, signals: &Signals) -> Result<Option<Done>> {
    let pid = std::process::id();
    let start = start_time(pid).context("cannot read /proc")?;
    plan.run = RunId::new(SystemTime::now(), pid, start).to_string();
    plan.launcher_pid = pid;
    let segments = Segments::create(plan)?;
    let address = format!("fd:{}", segments.control_file.file(Access::Read).as_raw_fd());
    let mut family = Family(Vec::new());
    for (name, roles) in segments.plan.processes() {
        let process = Process::start(&name, &address, folder, &segments.handed_to(&roles))?;
        for role in roles {
            // Release: pairs with the Acquire load of whoever asks who that is.
            segments.control[PIDS + role].store(process.pid().into(), Ordering::Release);
        }
        family.0.push(process);
    }
    let ended = family.watch(&segments, signals)?;
    let problem = match ended {
        Ended::Interrupted => return Ok(None),
        Ended::Well => None,
        Ended::Badly(why) => Some(why),
    };
    segments.set_state(STOP);
    drop(family);
    Ok(Some(read(&segments, problem)))
}

/// How the processes of a run ended.
enum Ended {
    Well,
    Interrupted,
    Badly(String),
}

/// The processes of a run. Dropping it kills and reaps whatever still runs.
struct Family(Vec<Process>);

impl Drop for Family {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(Process::end);
    }
}

impl Family {
    /// From the start to the last process's end, or to the first thing that is wrong.
    fn watch(&mut self, segments: &Segments, signals: &Signals) -> Result<Ended> {
        let deadline = Instant::now() + START;
        let is = |wanted| move |said: &Said| said.state() == wanted;
        while !segments.accounts.iter().all(is(READY)) {
            if let Some(ended) = self.look(signals, Duration::from_micros(300))? {
                return Ok(ended);
            }
            if Instant::now() > deadline {
                return Ok(Ended::Badly(format!("not ready within {START:?}: {}", self.unready(segments))));
            }
        }
        segments.set_state(GO);
        let plan = &segments.plan;
        let patience = STANDSTILL + Duration::from_nanos(plan.slow.ns().saturating_mul(20));
        let producers = usize::from(plan.producers());
        let (mut moved, mut since) = (0, Instant::now());
        loop {
            if let Some(ended) = self.look(signals, LOOK)? {
                return Ok(ended);
            }
            if self.0.iter().all(|process| process.status.is_some()) {
                return Ok(Ended::Well);
            }
            if segments.accounts[..producers].iter().all(is(DONE)) {
                segments.set_state(DRAIN);
            }
            let now = segments.moved();
            if now != moved {
                (moved, since) = (now, Instant::now());
            } else if since.elapsed() > patience {
                let why = format!("nothing moved for {patience:?}: {}", self.unready(segments));
                return Ok(Ended::Badly(why));
            }
        }
    }

    /// Sleeps until a process ends or the time is over; what ends the run, if something does.
    fn look(&mut self, signals: &Signals, at_most: Duration) -> Result<Option<Ended>> {
        let running: Vec<_> = self.0.iter().filter(|process| process.status.is_none()).collect();
        let fds: Vec<_> = running.iter().map(|process| process.pidfd()).chain([signals.as_fd()]).collect();
        process::wait_readable(&fds, at_most)?;
        for process in self.0.iter_mut().filter(|process| process.status.is_none()) {
            process.look()?;
        }
        if signals.take() > 0 {
            return Ok(Some(Ended::Interrupted));
        }
        let failed = self.0.iter().find(|process| process.status.is_some_and(|status| !status.success()));
        Ok(failed.map(|process| {
            let words = process.last_words();
            let words = if words.is_empty() { words } else { format!(": {words}") };
            Ended::Badly(format!("{} (pid {}): {}{words}", process.name, process.pid(), process.how()))
        }))
    }

    /// The roles that are not done, by name.
    fn unready(&self, segments: &Segments) -> String {
        let roles = segments.plan.roles();
        let waiting = roles.iter().zip(&segments.accounts).filter(|(_, said)| said.state() != DONE);
        waiting.map(|(role, _)| role.name()).collect::<Vec<_>>().join(", ")
    }
}

/// What the roles said.
fn read(segments: &Segments, problem: Option<String>) -> Done {
    let plan = &segments.plan;
    let ns = |ticks: u64| (ticks as f64 * plan.ns_per_tick) as u64;
    let (producers, consumers) = segments.accounts.split_at(plan.producers().into());
    let cost = |said: &Said| SideCost {
        cpu_ns: said.get(Field::Cpu),
        voluntary: said.get(Field::Voluntary),
        involuntary: said.get(Field::Involuntary),
        looks: said.get(Field::Looks),
        wakes: said.get(Field::Wakes),
    };
    let side = |accounts: &[Said]| accounts.iter().map(cost).fold(SideCost::default(), SideCost::and);
    let mut found: Vec<String> = problem.into_iter().collect();
    if found.is_empty() {
        let pushed = producers.iter().map(|said| said.get(Field::Count)).sum();
        let sum = producers.iter().fold(0u64, |sum, said| sum.wrapping_add(said.get(Field::Sum)));
        if pushed != plan.total() {
            found.push(format!("{pushed} events pushed of {}", plan.total()));
        }
        for (index, said) in consumers.iter().enumerate() {
            found.extend(problems(&Role::Consumer(index as u16).name(), said, pushed, sum));
        }
    }
    let mut latencies = histogram();
    for said in consumers {
        for ticks in said.latencies() {
            // It grows with its values, so that none is refused.
            let _ = latencies.record(ns(ticks).max(1));
        }
    }
    let begin = producers.iter().map(|said| said.get(Field::Begin)).min().unwrap_or(0);
    let end = segments.accounts.iter().map(|said| said.get(Field::End)).max().unwrap_or(0);
    let halves = consumers.first().map_or_else(Vec::new, |said| said.shares(plan.producers()));
    let half: u64 = halves.iter().sum();
    let run = LabRun {
        number: 0,
        run_ns: ns(end.saturating_sub(begin)),
        taken: consumers.iter().map(|said| said.get(Field::Count)).sum(),
        latency: LabLatency::of(&latencies),
        producer: side(producers),
        consumer: side(consumers),
        shares: halves.iter().map(|share| *share as f64 / half.max(1) as f64).collect(),
        longest_wait_ns: producers.iter().map(|said| ns(said.get(Field::LongestWait))).collect(),
        problems: found,
    };
    Done { run, latencies }
}
