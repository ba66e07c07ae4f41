//! How an operator's command finds a living run and its desk, gives its command, and waits for the
//! answer.

use crate::config::UsageError;
use crate::host::locks;
use crate::runtime::active::{active_runs, dead_runs};
use crate::runtime::run_id::RunId;
use analysis::document::Document;
use analysis::record::RunRecord;
use anyhow::{Context, Result, bail};
use protocol::commands::{
    self, ANSWERS_SEGMENT, COMMANDS_SEGMENT, Command, CommandAnswer, CommandAnswers, CommandEntry,
    CommandStatus, CommandWriter,
};
use protocol::control::{Control, RunState};
use protocol::plan::{Plan, Role};
use protocol::segments::{bell_segment, open_control};
use shm::bell::Doorbell;
use shm::memory::header::run_hash;
use shm::memory::{Header, ReadOnlyWords, Region, SegmentKind, open_safely};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use system::clock::Clock;

/// How long a command waits for its turn at the desk.
const TURN: Duration = Duration::from_secs(2);
/// How often it looks for the answer.
const LOOK: Duration = Duration::from_micros(200);

/// A living run.
pub struct LiveRun {
    /// Its plan.
    pub plan: Plan,
    control: Control,
}

impl LiveRun {
    /// The run of that name: see [`find_run`].
    ///
    /// # Errors
    /// As there; a control segment that cannot be read.
    pub fn find(name: &str) -> Result<Self> {
        let run = find_run(name)?;
        let (control, plan) = open_control(&run).with_context(|| format!("cannot read run {run}"))?;
        if control.state() == RunState::Stop {
            return Err(UsageError(format!("run {run} is over")).into());
        }
        Ok(Self { plan, control })
    }

    fn view(&self, what: &str, kind: SegmentKind) -> Result<ReadOnlyWords> {
        let name = self.plan.segment_name(what);
        let view = Region::open_read_only(&name)?;
        self.check(&name, &view, kind)?;
        Ok(view)
    }

    fn check(&self, name: &str, view: &ReadOnlyWords, kind: SegmentKind) -> Result<()> {
        let header = Header::read(|i, ordering| view.load(i, ordering), view.len(), kind)
            .with_context(|| format!("segment {name}"))?;
        if header.run != run_hash(&self.plan.run)
            || view.len() < commands::ANSWERS_WORDS.min(commands::COMMANDS_WORDS)
        {
            bail!("segment {name} is not of this run");
        }
        Ok(())
    }

    /// The commands so far, and what the engine says of each.
    ///
    /// # Errors
    /// Segments that are gone or are not the run's.
    pub fn commands(&self) -> Result<(Vec<CommandEntry>, CommandAnswers)> {
        let desk = self.view(COMMANDS_SEGMENT, commands::COMMANDS_KIND)?;
        let answers = self.view(ANSWERS_SEGMENT, commands::ANSWERS_KIND)?;
        Ok((commands::entries(&desk).collect(), CommandAnswers::new(&answers)))
    }

    /// Gives a command and waits until it is done, or the time is over: when it was given, and the
    /// answer.
    ///
    /// # Errors
    /// No right to write the desk, no turn at it, no room on it, or an engine that does not answer.
    pub fn give(&self, command: Command, timeout: Duration) -> Result<(CommandEntry, CommandAnswer)> {
        let name = self.plan.segment_name(COMMANDS_SEGMENT);
        let file = match open_safely(&name, OpenOptions::new().read(true).write(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                bail!("no right to write the desk of run {}: be the user who started it", self.plan.run)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("run {} is over", self.plan.run),
            Err(error) => return Err(error).with_context(|| format!("cannot open {name}")),
        };
        let words = Region::map(&name, &file, true)?.words();
        self.check(&name, &words.clone().into(), commands::COMMANDS_KIND)?;
        let answers = CommandAnswers::new(&self.view(ANSWERS_SEGMENT, commands::ANSWERS_KIND)?);
        take_turn(&file)?;
        let (ticks, pid) = (self.plan.clock.now(), std::process::id());
        let number = CommandWriter::new(&words).append(command, ticks, pid);
        drop(file.unlock());
        let Some(number) = number else {
            bail!("the desk is full: a run takes {} commands", commands::MAX_COMMANDS)
        };
        self.ring();
        let entry = CommandEntry { number, ticks, pid, command: Some(command) };
        let began = Instant::now();
        loop {
            let answer = answers.answer(number);
            if !matches!(answer.status, CommandStatus::Given | CommandStatus::Seen) {
                return Ok((entry, answer));
            }
            if self.control.state() == RunState::Stop {
                bail!("the run ended before command {number} was done ({})", answer.status);
            }
            if began.elapsed() >= timeout {
                match answer.status {
                    CommandStatus::Given => bail!(
                        "the engine has not seen command {number} in {timeout:?}: it is stopped or hangs. The command stays on \
                         the desk"
                    ),
                    _ => return Ok((entry, answer)),
                }
            }
            sleep(LOOK);
        }
    }

    /// Wakes an engine that parks. Where its bell has no name, it looks by itself, every 10 ms.
    fn ring(&self) {
        let thread = self.plan.thread_of(Role::Orchestrator).and_then(|index| self.plan.threads.get(index));
        let Some(thread) = thread else { return };
        if let Ok(region) = Region::open(&self.plan.segment_name(&bell_segment(&thread.name)))
            && region.words().len() >= shm::bell::BELL_WORDS
        {
            Doorbell::from_outside(&region.words()).ring();
        }
    }

    /// A time between two looks at the run's clock, in nanoseconds.
    pub fn ns(&self, from: u64, to: u64) -> u64 {
        (to.saturating_sub(from) as f64 * self.plan.ns_per_tick) as u64
    }
}

/// The id of the living run with that id, of the one living run whose id begins so, of that
/// folder's run, or for `latest` of the living run that began last.
///
/// # Errors
/// [`UsageError`]: there is none, there are several, or it is over. A folder whose record cannot be read.
pub fn find_run(name: &str) -> Result<String> {
    let folder = Path::new(name);
    let of_folder = match folder.join(RunRecord::FILE).exists() {
        true => Some(RunRecord::read(folder)?.plan.run),
        false => None,
    };
    let names = |runs: std::io::Result<Vec<RunId>>| -> Result<Vec<String>> {
        Ok(runs.context("cannot look into /dev/shm")?.iter().map(RunId::to_string).collect())
    };
    let living = names(active_runs())?;
    if let Some(run) = of_folder.as_ref().filter(|run| !living.contains(run)) {
        return Err(UsageError(format!("run {run} is over: launcher report {name} shows what it was")).into());
    }
    let name = of_folder.as_deref().unwrap_or(name);
    let listed = |runs: &[String]| runs.join("\n  ");
    let found: Vec<String> = match name {
        "latest" => living.last().cloned().into_iter().collect(),
        name => living.iter().filter(|run| run.starts_with(name)).cloned().collect(),
    };
    let exact = found.iter().find(|run| run.as_str() == name);
    let why = match (exact, found.as_slice()) {
        (Some(run), _) | (None, [run]) => return Ok(run.clone()),
        (None, []) if names(dead_runs())?.iter().any(|run| run.starts_with(name)) => {
            format!("run {name} is over: its launcher has ended")
        }
        (None, []) if living.is_empty() => format!("no run {name}: no run is going on"),
        (None, []) => format!("no run {name}. There are\n  {}", listed(&living)),
        (None, several) => {
            format!("{} runs begin with {name:?}: name one of\n  {}", several.len(), listed(several))
        }
    };
    Err(UsageError(why).into())
}

/// Waits until no other operator writes.
fn take_turn(file: &File) -> Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began.elapsed() < TURN => sleep(LOOK),
            Err(TryLockError::WouldBlock) => {
                let holder = locks::holder(file);
                let holder = holder.unwrap_or_else(|| "a process that is not seen from here".into());
                bail!(
                    "cannot write the desk: {holder} has held its lock for {TURN:?}, so no command reaches the engine; end that process \
                     and try again, or end the run"
                )
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the desk"),
        }
    }
}
