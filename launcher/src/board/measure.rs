//! One case from its beginning to its end: segments, processes, the start, the end.
//!
//! No segment has a name and the kernel kills every child of a launcher that dies: whatever is killed, nothing is left.

use super::carrier;
use super::child;
use super::log::{self, LogView, State};
use super::plan::{
    self, BOARD, BoardPlan, CONTROL, Case, DUE, GO, LAST, START, STATE, STOP, Segment, Waiting,
};
use crate::host::Machine;
use crate::runtime::process::Process;
use crate::runtime::progress::Progress;
use crate::runtime::signals::Signals;
use analysis::experiment::BoardDeath;
use anyhow::{Context, Result, anyhow, bail};
use protocol::plan::{ClockSource, Isolation};
use shm::board::Shape;
use shm::memory::Words;
use shm::sync::Ordering;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};
use system::clock::{Clock, ClockPair};
use system::{descriptors, pin, process, sandbox};

/// How long processes may take to get ready.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// From the launcher's word to the start: everybody has heard it by then.
const LEAD: Duration = Duration::from_millis(5);
/// How long readers may take to read the last values.
const GRACE: Duration = Duration::from_secs(5);
/// The tick is calibrated over at least this long.
const CALIBRATION: Duration = Duration::from_millis(50);
/// So many successors of a writer are started.
const SUCCESSORS: usize = 3;

/// What all cases have in common.
pub struct Setting<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The cores to use: the writer's first.
    pub cores: &'a [u32],
    /// Whether a kernel that lacks a piece of the sandbox is good enough.
    pub weaker_sandbox: bool,
    /// Where what processes print is kept.
    pub folder: &'a Path,
    /// Ctrl-C and its relatives.
    pub signals: &'a Signals,
    /// The progress bar.
    pub progress: &'a Progress,
    /// How long all cases before this one take, and all together.
    pub before_ns: u64,
    /// See `before_ns`.
    pub all_ns: u64,
}

/// A case that has ended.
pub struct Ended {
    /// Its plan.
    pub plan: BoardPlan,
    /// Its slots.
    pub slots: usize,
    /// Whether readers shared their cores.
    pub shared: bool,
    /// The logs: the writer's, then the readers'.
    pub logs: Vec<LogView>,
    /// Each cell's version in the end.
    pub versions: Vec<u64>,
    /// The tick at which it started.
    pub start_ticks: u64,
    /// Nanoseconds a tick over the case.
    pub ns_per_tick: f64,
    /// Who died.
    pub deaths: Vec<BoardDeath>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// The cores of the writer and the readers, and whether readers share theirs with others.
pub fn place(cores: &[u32], readers: usize) -> (Vec<Option<u32>>, bool) {
    let rest = match cores {
        [] => return (vec![None; readers + 1], true),
        [only] => std::slice::from_ref(only),
        [_, rest @ ..] => rest,
    };
    let places = (0..readers).map(|reader| Some(rest[reader % rest.len()]));
    let all = std::iter::once(Some(cores[0])).chain(places).collect();
    (all, readers > 0 && (cores.len() == 1 || readers > rest.len()))
}

/// The processes of a case; whoever still runs is killed when it is dropped.
struct Family {
    all: Vec<Process>,
}

impl Drop for Family {
    fn drop(&mut self) {
        self.all.iter_mut().for_each(Process::end);
    }
}

/// Measures one case.
///
/// # Errors
/// What cannot be had; a process that could not begin. A process that dies later is in [`Ended::deaths`].
pub fn measure(case: &Case, setting: &Setting<'_>) -> Result<Ended> {
    let running = Running::begin(case, setting)?;
    running.run(case, setting)
}

struct Running {
    plan: BoardPlan,
    shape: Shape,
    shared: bool,
    /// The plan's own, the state, the due times.
    plan_segment: Segment,
    control: Segment,
    due: Option<Segment>,
    board: Segment,
    logs: Vec<Segment>,
    family: Family,
    first_pair: ClockPair,
    deaths: Vec<BoardDeath>,
    interrupted: bool,
}

impl Running {
    fn begin(case: &Case, setting: &Setting<'_>) -> Result<Self> {
        if case.isolation == Isolation::Sandbox && !setting.weaker_sandbox {
            let missing = sandbox::missing().join("; ");
            if !missing.is_empty() {
                bail!("no full sandbox here: {missing}. --allow-weaker-sandbox goes on all the same");
            }
        }
        descriptors::allow(64 + 3 * case.readers as u64).context("cannot open so many files")?;
        let clock = if setting.machine.tsc_invariant { ClockSource::Tsc } else { ClockSource::Monotonic };
        let first_pair = ClockPair::read(&clock);
        let times = case.mode.due(case.duration_ns, case.seed)?;
        let shape = Shape::of_cells(case.cells, case.words)?;
        let (cores, shared) = place(setting.cores, case.readers);
        let board = board(case, carrier::words(case.carrier, shape), cores[0])?;
        carrier::begin(case.carrier, shape, &board.words);
        let control = Segment::memory(CONTROL, 8)?;
        let due = times.as_ref().map(|times| filled(DUE, times)).transpose()?;
        let log = |agent| Segment::memory(&plan::log_name(agent), log::WORDS);
        let logs = (0..=case.readers).map(log).collect::<Result<Vec<_>, _>>()?;
        std::thread::sleep(CALIBRATION);
        let usual = if shared { Waiting::Yield } else { Waiting::Spin };
        let segments = [&control, &board].into_iter().chain(&due).chain(&logs);
        let plan = BoardPlan {
            launcher_pid: std::process::id(),
            clock,
            ns_per_tick: ClockPair::read(&clock).ns_per_tick_since(&first_pair),
            isolation: case.isolation,
            weaker_sandbox: setting.weaker_sandbox,
            carrier: case.carrier,
            waiting: case.waiting.unwrap_or(usual),
            cells: case.cells,
            words: case.words,
            scheduled: times.map(|times| times.len() as u64),
            duration_ns: case.duration_ns,
            cores,
            handles: segments.flat_map(Segment::handles).collect(),
        };
        let plan_segment = filled("plan", &plan.to_words()?)?;
        let family = Family { all: Vec::new() };
        let (deaths, interrupted) = (Vec::new(), false);
        Ok(Self {
            plan,
            shape,
            shared,
            plan_segment,
            control,
            due,
            board,
            logs,
            family,
            first_pair,
            deaths,
            interrupted,
        })
    }

    fn run(mut self, case: &Case, setting: &Setting<'_>) -> Result<Ended> {
        let names: Vec<String> = match case.isolation {
            Isolation::Thread => vec![child::ALL.into()],
            _ => {
                let readers = (0..case.readers).map(child::reader_name);
                readers.chain([child::WRITER.to_owned()]).collect()
            }
        };
        for name in names {
            let started = self.start(&name, setting)?;
            self.family.all.push(started);
        }
        self.wait_for_all(setting)?;
        let ticks = |time: Duration| (time.as_nanos() as f64 / self.plan.ns_per_tick) as u64;
        let start_ticks = self.plan.clock.now() + ticks(LEAD);
        self.control.words[START].store(start_ticks, Ordering::Relaxed);
        self.say(GO);
        self.watch(setting)?;
        self.end(case);
        let versions = self.versions();
        let last_pair = ClockPair::read(&self.plan.clock);
        Ok(Ended {
            slots: self.shape.slots(),
            shared: self.shared,
            logs: self.logs.iter().map(|log| LogView(log.words.clone().into())).collect(),
            versions,
            start_ticks,
            ns_per_tick: last_pair.ns_per_tick_since(&self.first_pair),
            deaths: std::mem::take(&mut self.deaths),
            interrupted: self.interrupted,
            plan: self.plan,
        })
    }

    fn say(&self, state: u64) {
        // Release: pairs with the agents' Acquire; the start's tick is there.
        self.control.words[STATE].store(state, Ordering::Release);
    }

    /// Starts a process with what it needs: only the writer's may write the board.
    fn start(&self, name: &str, setting: &Setting<'_>) -> Result<Process> {
        let mut files: Vec<&File> = vec![self.plan_segment.file(false), self.control.file(false)];
        files.extend(self.due.as_ref().map(|due| due.file(false)));
        match name {
            child::WRITER => files.extend([self.board.file(true), self.logs[0].file(true)]),
            child::ALL => {
                files.extend([self.board.file(true), self.board.file(false)]);
                files.extend(self.logs.iter().map(|log| log.file(true)));
            }
            _ => {
                let reader = name.rsplit('-').next().and_then(|number| number.parse::<usize>().ok());
                let reader = reader.ok_or_else(|| anyhow!("no process {name}"))?;
                files.extend([self.board.file(false), self.logs[reader + 1].file(true)]);
            }
        }
        let address = self.plan_segment.file(false).as_raw_fd().to_string();
        Process::start(name, &address, setting.folder, &files)
    }

    fn wait_for_all(&mut self, setting: &Setting<'_>) -> Result<()> {
        let begun = Instant::now();
        let is_ready = |log: &Segment| LogView(log.words.clone().into()).state() != State::Nothing;
        while !self.logs.iter().all(is_ready) {
            for process in &mut self.family.all {
                process.look()?;
                if process.status.is_some() {
                    bail!("{} did not begin: {}: {}", process.name, process.how(), process.last_words());
                }
            }
            if begun.elapsed() > START_TIMEOUT {
                bail!("not all processes were ready after {} s", START_TIMEOUT.as_secs());
            }
            if setting.signals.take() > 0 {
                return Err(crate::runtime::run::Interrupted.into());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Until the writer has ended: takes note of deaths, starts successors of a dead writer, hears Ctrl-C.
    fn watch(&mut self, setting: &Setting<'_>) -> Result<()> {
        let begun = Instant::now();
        let duration = Duration::from_nanos(self.plan.duration_ns);
        let (mut signals, mut successors) = (0, 0);
        let writer = LogView(self.logs[0].words.clone().into());
        loop {
            let running = self.family.all.iter().filter(|process| process.status.is_none());
            let fds: Vec<BorrowedFd<'_>> =
                running.map(Process::pidfd).chain([setting.signals.as_fd()]).collect();
            process::wait_readable(&fds, Duration::from_millis(20))?;
            let elapsed = begun.elapsed();
            setting.progress.of(setting.before_ns + elapsed.min(duration).as_nanos() as u64, setting.all_ns);
            signals += setting.signals.take();
            if signals > 0 {
                self.interrupted = true;
                self.say(LAST);
            }
            let is_over = signals > 0 || elapsed > duration;
            for index in 0..self.family.all.len() {
                let process = &mut self.family.all[index];
                let was_running = process.status.is_none();
                process.look()?;
                let has_died = was_running && process.status.is_some_and(|status| !status.success());
                if !has_died {
                    continue;
                }
                let succeeded = process.name == child::WRITER && successors < SUCCESSORS && !is_over;
                self.deaths.push(BoardDeath {
                    process: process.name.clone(),
                    how: said(process),
                    at_ns: elapsed.as_nanos() as u64,
                    succeeded,
                });
                if succeeded {
                    successors += 1;
                    self.family.all[index] = self.start(child::WRITER, setting)?;
                }
            }
            let has_writer = self.family.all.iter().any(|process| {
                process.status.is_none() && [child::WRITER, child::ALL].contains(&process.name.as_str())
            });
            let is_late = elapsed > duration + GRACE;
            if writer.state() == State::Done || signals > 1 || is_late || (!has_writer && is_over) {
                return Ok(());
            }
            if !has_writer && self.plan.isolation == Isolation::Thread {
                return Ok(());
            }
        }
    }

    /// Readers read the last values and end; who does not is killed.
    fn end(&mut self, case: &Case) {
        self.say(STOP);
        let deadline = Instant::now() + GRACE;
        while self.family.all.iter().any(|process| process.status.is_none()) && Instant::now() < deadline {
            let running = self.family.all.iter().filter(|process| process.status.is_none());
            let fds: Vec<BorrowedFd<'_>> = running.map(Process::pidfd).collect();
            let _ = process::wait_readable(&fds, Duration::from_millis(20));
            for process in &mut self.family.all {
                let was_running = process.status.is_none();
                let _ = process.look();
                if was_running && process.status.is_some_and(|status| !status.success()) {
                    self.deaths.push(death(process, case.duration_ns));
                }
            }
        }
        for process in &mut self.family.all {
            if process.status.is_none() {
                process.end();
                self.deaths.push(death(process, case.duration_ns));
            }
        }
    }

    fn versions(&self) -> Vec<u64> {
        let writer: Box<dyn carrier::Write> = match self.plan.carrier {
            plan::Carrier::Board => match shm::board::Writer::attach(&self.board.words) {
                Ok(writer) => Box::new(writer),
                Err(_) => return vec![0; self.plan.cells],
            },
            plan::Carrier::Careless => {
                Box::new(carrier::careless_writer(self.board.words.clone(), self.plan.words))
            }
        };
        (0..self.plan.cells).map(|cell| writer.version(cell)).collect()
    }
}

fn death(process: &Process, at_ns: u64) -> BoardDeath {
    BoardDeath { process: process.name.clone(), how: said(process), at_ns, succeeded: false }
}

fn said(process: &Process) -> String {
    match process.last_words() {
        words if words.is_empty() => process.how(),
        words => format!("{}: {words}", process.how()),
    }
}

/// The board's memory, first touched on the writer's core: Linux takes it from that core's node.
fn board(case: &Case, words: usize, core: Option<u32>) -> Result<Segment> {
    let make = || {
        if let Some(core) = core {
            pin::pin_to(core)?;
        }
        Segment::on(&case.on, BOARD, words)
    };
    // In a thread of its own, so that this one stays where it may be.
    std::thread::scope(|scope| scope.spawn(make).join().map_err(|_| anyhow!("a thread panicked"))?)
}

/// Memory that holds these words.
fn filled(what: &str, words: &[u64]) -> Result<Segment> {
    let segment = Segment::memory(what, words.len().max(1))?;
    let memory: &Words = &segment.words;
    for (place, word) in memory.iter().zip(words) {
        place.store(*word, Ordering::Relaxed);
    }
    Ok(segment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_writer_has_the_first_core_and_readers_the_others_in_turn() {
        let some = |cores: &[u32]| cores.iter().map(|core| Some(*core)).collect::<Vec<_>>();
        assert_eq!(place(&[4, 5, 6], 2), (some(&[4, 5, 6]), false));
        assert_eq!(place(&[4, 5, 6], 3), (some(&[4, 5, 6, 5]), true));
        assert_eq!(place(&[0], 1), (some(&[0, 0]), true));
        assert_eq!(place(&[0], 0), (some(&[0]), false));
        assert_eq!(place(&[], 1), (vec![None, None], true));
    }
}
