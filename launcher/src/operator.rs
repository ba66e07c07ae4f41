//! Operator commands: finds an active run and its command channel, sends the command and waits for
//! the engine's answer.

use crate::active_view::ActiveRunView;
use anyhow::{Context, Result, bail};
use catalog::RUNS;
use catalog::active::{RunLife, active_runs, runs_with_life};
use catalog::run_id::RunId;
use planner::config::UsageError;
use planner::host::locks;
use protocol::commands::{
    self, ANSWERS_SEGMENT, COMMANDS_SEGMENT, Command, CommandAnswer, CommandAnswers, CommandEntry,
    CommandStatus, CommandWriter,
};
use protocol::control::{Control, RunState};
use protocol::index::StrategyIndex;
use protocol::plan::{Plan, Role};
use protocol::segments::{bell_segment, open_control, thread_segment};
use protocol::status::{self, LOG_OFFSET, ThreadState};
use protocol::supervision::{self, Incarnation, REPAIRS, REPAIRS_WORDS, Repairs};
use record::document::Document;
use record::run::RunRecord;
use shm::bell::Doorbell;
use shm::memory::header::run_hash;
use shm::memory::{Header, ReadOnlyWords, Region, SegmentKind, open_safely};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use system::clock::Clock;
use system::process;

/// How long a command waits for the lock of the command channel.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// Time limits for the engine to see an operator's command and to complete it, from the time when
/// the command was sent.
#[derive(Clone, Copy, Debug)]
pub struct CommandTimeouts {
    /// Maximum time until the engine has seen the command.
    pub seen: Duration,
    /// Maximum time until the command is completed. One that is over earlier still leaves the time
    /// to be seen.
    pub done: Duration,
}

impl CommandTimeouts {
    /// Maximum time until a running engine has seen an operator's command, also on a busy machine.
    pub const SEEN: Duration = Duration::from_secs(10);

    /// Creates the timeouts of an operator's command with this maximum time until it is completed.
    pub const fn with_done(done: Duration) -> Self {
        Self { seen: Self::SEEN, done }
    }

    /// Returns `true` if a command with this status is not waited for any more.
    fn is_over(self, status: CommandStatus, elapsed: Duration) -> bool {
        elapsed >= if status == CommandStatus::Given { self.seen } else { self.done }
    }
}

/// An active run, open for operator commands.
pub struct ActiveRunHandle {
    pub plan: Plan,
    control: Control,
}

impl ActiveRunHandle {
    /// Finds an active run by name and opens its command channel: see [`find_run`].
    pub fn find(name: &str) -> Result<Self> {
        let run = find_run(name)?;
        let (control, plan) = open_control(&run).with_context(|| format!("cannot read run {run}"))?;
        if control.state() == RunState::Stop {
            return Err(UsageError(format!("run {run} is over")).into());
        }
        if !plan.is_trading() {
            let why = "a benchmark has no engine to command; end it with Ctrl-C, or watch it";
            return Err(UsageError(format!("run {run}: {why}")).into());
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
        let words =
            if kind == commands::COMMANDS_KIND { commands::COMMANDS_WORDS } else { commands::ANSWERS_WORDS };
        if header.run != run_hash(&self.plan.run) || view.len() < words {
            bail!("segment {name} is not of this run");
        }
        Ok(())
    }

    /// Returns the operators' commands to the run so far, and the engine's answers.
    pub fn commands(&self) -> Result<(Vec<CommandEntry>, CommandAnswers)> {
        let channel = self.view(COMMANDS_SEGMENT, commands::COMMANDS_KIND)?;
        let answers = self.view(ANSWERS_SEGMENT, commands::ANSWERS_KIND)?;
        Ok((commands::entries(&channel).collect(), CommandAnswers::new(&answers)))
    }

    /// Sends an operator command to the run, and waits until the engine has completed it or the
    /// timeout expires. Returns the entry and the answer.
    pub fn send(&self, command: Command, timeout: Duration) -> Result<(CommandEntry, CommandAnswer)> {
        self.send_with_text(command, "", CommandTimeouts { seen: timeout, done: timeout })
    }

    /// Sends an operator command with a text, such as a strategy's kind, and waits as
    /// [`ActiveRunHandle::send`] does.
    pub fn send_with_text(
        &self,
        command: Command,
        text: &str,
        timeouts: CommandTimeouts,
    ) -> Result<(CommandEntry, CommandAnswer)> {
        let name = self.plan.segment_name(COMMANDS_SEGMENT);
        let file = match open_safely(&name, OpenOptions::new().read(true).write(true)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                bail!(
                    "no permission to send commands to run {}: run this as the user who started it",
                    self.plan.run
                )
            }
            Err(error) if error.kind() == ErrorKind::NotFound => bail!("run {} is over", self.plan.run),
            Err(error) => return Err(error).with_context(|| format!("cannot open {name}")),
        };
        let words = Region::map(&name, &file, true)?.words();
        self.check(&name, &words.clone().into(), commands::COMMANDS_KIND)?;
        let answers = CommandAnswers::new(&self.view(ANSWERS_SEGMENT, commands::ANSWERS_KIND)?);
        lock_channel(&file)?;
        let (ticks, pid) = (self.plan.clock.now(), std::process::id());
        let number = CommandWriter::new(&words).append_with(command, text, ticks, pid);
        drop(file.unlock());
        let Some(number) = number else {
            bail!("the command channel is full: a run accepts {} commands", commands::MAX_COMMANDS)
        };
        self.ring();
        let entry = CommandEntry { number, ticks, pid, command: Some(command) };
        let began = Instant::now();
        loop {
            let answer = answers.answer(number);
            if !matches!(answer.status, CommandStatus::Given | CommandStatus::Seen) {
                return Ok((entry, answer));
            }
            if self.is_over() {
                bail!("the run ended before command {number} was done ({})", answer.status);
            }
            if timeouts.is_over(answer.status, began.elapsed()) {
                match answer.status {
                    CommandStatus::Given => bail!(
                        "the engine has not seen command {number} within {:?}: it is stopped or hangs; the command stays \
                         in the command channel",
                        timeouts.seen
                    ),
                    _ => return Ok((entry, answer)),
                }
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// Wakes a parked engine. An engine whose doorbell has no name polls every 10 ms.
    fn ring(&self) {
        let thread = self.plan.thread_of(Role::Orchestrator).and_then(|index| self.plan.threads.get(index));
        let Some(thread) = thread else { return };
        if let Ok(region) = Region::open(&self.plan.segment_name(&bell_segment(&thread.name)))
            && region.words().len() >= shm::bell::BELL_WORDS
        {
            Doorbell::from_outside(&region.words()).ring();
        }
    }

    /// Wakes the launcher of the run, which otherwise looks for commands every half a second.
    pub fn wake_launcher(&self) {
        // One that has ended, or belongs to somebody else, need not be woken.
        if let Ok(launcher) = process::pidfd_open(self.plan.launcher_pid) {
            _ = process::wake(launcher.as_fd());
        }
    }

    /// Returns the number of a strategy's latest incarnation (process start, from 0), and whether
    /// the launcher has declared it dead.
    pub fn incarnation(&self, strategy: StrategyIndex) -> Incarnation {
        self.control.incarnation(strategy)
    }

    /// Returns `true` if the run is over, or is ending because its launcher was killed.
    pub fn is_over(&self) -> bool {
        let is_launched = || process::is_running(self.plan.launcher_pid, self.plan.launcher_start);
        self.control.state() == RunState::Stop || !is_launched()
    }

    /// Returns whether a strategy's thread is starting, ready, running, done or failed; `None` if
    /// the segment with its state cannot be read.
    pub fn state_of(&self, strategy: StrategyIndex) -> Option<ThreadState> {
        let thread = &self.plan.threads[self.plan.thread_of(Role::Strategy(strategy))?];
        let run = ActiveRunView::open(&self.plan.run).ok()?;
        let segment = run.segment(&thread_segment(&thread.name), status::KIND).ok()?;
        Some(status::state(&segment.copy(LOG_OFFSET).ok()?))
    }

    /// Returns `true` if the engine has repaired the rings after the end of a strategy's
    /// incarnation `epoch`; `None` if the engine's report cannot be read. Also `true` for
    /// incarnation 0 of a spare strategy, which never ran.
    pub fn is_repaired(&self, strategy: StrategyIndex, epoch: u16) -> Option<bool> {
        if epoch == 0 && self.plan.trading().is_spare(strategy) {
            return Some(true);
        }
        let run = ActiveRunView::open(&self.plan.run).ok()?;
        let repairs = run.segment(REPAIRS, supervision::KIND).ok()?.copy(REPAIRS_WORDS).ok()?;
        Some(Repairs::new(repairs).strategy_repair(strategy).repaired == Some(epoch))
    }

    /// Returns `true` if a strategy has ended by itself: it has reported done, and its process has
    /// exited. Its incarnation is not declared dead.
    pub fn has_finished(&self, strategy: StrategyIndex) -> bool {
        let runs = |process| {
            let pidfd = self.control.pidfd(process);
            let has_ended = |pidfd: OwnedFd| process::wait_readable(&[pidfd.as_fd()], Duration::ZERO);
            pidfd.is_some_and(|pidfd| has_ended(pidfd).is_ok_and(|ended| !ended[0]))
        };
        self.state_of(strategy) == Some(ThreadState::Done)
            && !self.incarnation(strategy).fenced
            && self.plan.process_of(Role::Strategy(strategy)).is_some_and(|process| !runs(process))
    }

    /// Returns the nanoseconds between two ticks of the run's clock.
    pub fn ns(&self, from: u64, to: u64) -> u64 {
        (to.saturating_sub(from) as f64 * self.plan.ns_per_tick) as u64
    }
}

/// Returns the id of the active run that a name refers to. The run with that id, the only one whose
/// id starts with the text, the run of a folder or of one in `runs`, or for `latest` the one that
/// started last.
pub fn find_run(name: &str) -> Result<String> {
    let has_run = |folder: &PathBuf| folder.join(RunRecord::FILE).exists();
    let folder = [PathBuf::from(name), Path::new(RUNS).join(name)].into_iter().find(has_run);
    let of_folder = folder.map(|folder| RunRecord::read(&folder)).transpose()?.map(|record| record.plan.run);
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
        (None, []) if name != "latest" && is_saved(name) => {
            format!("run {name} is over: launcher report {name} shows what it was")
        }
        (None, []) if names(runs_with_life(RunLife::Dead))?.iter().any(|run| run.starts_with(name)) => {
            format!("run {name} is over: its launcher has ended")
        }
        (None, []) if living.is_empty() => {
            format!("no run {name}: no run is going on; start one with launcher run")
        }
        (None, []) => format!("no run {name}: name one of\n  {}", listed(&living)),
        (None, several) => {
            format!("{} runs begin with {name:?}: name one of\n  {}", several.len(), listed(several))
        }
    };
    Err(UsageError(why).into())
}

/// Returns `true` if the results in `runs` have a run whose id begins with the name.
fn is_saved(name: &str) -> bool {
    catalog::find_named(Path::new(RUNS), Path::new(name)).is_ok_and(|found| found.is_some())
}

fn lock_channel(file: &File) -> Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_TIMEOUT => sleep(POLL_INTERVAL),
            Err(TryLockError::WouldBlock) => {
                let holder = locks::holder(file);
                let holder = holder.unwrap_or_else(|| "a process that is not seen from here".into());
                bail!(
                    "cannot send the command: {holder} has held the channel's lock for {LOCK_TIMEOUT:?}, so no command reaches the engine; end that process \
                     and try again, or end the run"
                )
            }
            Err(TryLockError::Error(error)) => return Err(error).context("cannot lock the command channel"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_seen_before_its_time_counts() {
        let second = Duration::from_secs(1);
        let at_once = CommandTimeouts::with_done(Duration::ZERO);
        assert!(!at_once.is_over(CommandStatus::Given, 9 * second), "the engine may be slow");
        assert!(at_once.is_over(CommandStatus::Given, 10 * second));
        assert!(at_once.is_over(CommandStatus::Seen, Duration::ZERO));
        let long = CommandTimeouts::with_done(60 * second);
        assert!(long.is_over(CommandStatus::Given, 10 * second), "it hangs");
        assert!(!long.is_over(CommandStatus::Seen, 59 * second));
    }
}
