//! A hot standby: a process that is ready to become the next incarnation of an exchange or of the
//! engine.
//!
//! ```text
//! start ─▶ map memory ─▶ follow the journal, write snapshots ─▶ resume ─▶ as a new process
//! ```
//! Until it resumes the roles it writes nothing that others read, except snapshots. It sleeps, and
//! wakes regularly to apply new journal records. A failure here, such as a damaged journal or a
//! full disk, does not prevent a restart: the successor then recovers like a process that is
//! started without a standby.

mod engine;
mod exchange;

use super::recovered::StandbyState;
use anyhow::{Result, bail};
use journal::{JournalFollower, Reader, RecoveryError, State};
use protocol::control::Control;
use protocol::plan::{Plan, ProcessPlan, Role};
use protocol::segments;
use protocol::status::{self, ThreadState};
use shm::attached::Attached;
use shm::memory::{AtomicWords, ReadOnlyWords};
use shm::ring::{MESSAGE_WORDS, spsc, spsc_mux};
use std::fmt::Display;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use system::clock::Timebase;
use system::process;

/// Prefix of the process name of a hot standby.
pub const STANDBY_PREFIX: &str = "spare:";

/// Interval between polls of the journal. A successor has to apply the records of one interval; a
/// poll costs some ten microseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of records applied between two checks for a promotion.
const BATCH: usize = 512;
/// Minimum number of records between two snapshots.
const SNAPSHOT_EVERY: u64 = 16_384;

/// The part of a standby that differs between engine and exchange.
trait StandbyBody {
    /// The state that follows the journal of the process that the standby may replace.
    type State: State;

    /// Returns the state before the first record of the journal. Called once.
    fn initial_state(&mut self, time: Timebase) -> Option<Self::State>;

    /// Returns `true` if the state keeps outputs that may not have been sent.
    fn has_unconfirmed(state: &Self::State) -> bool;

    /// Drops the outputs from the state that are known to be sent.
    fn confirm(&self, state: &mut Self::State);

    /// Counts the new records in the stamp log of the process that the standby would replace.
    fn poll_log(&mut self);

    /// Returns the standby's state for the roles of its process, with the replica and the reader of
    /// its journal.
    fn hand_over(self, replica: Option<(Self::State, Reader)>) -> StandbyState;
}

/// The hot standby of an engine or an exchange, which follows the journal of the running process.
pub trait StandbyRole {
    /// Applies the new records of the journal to the standby's state. Returns `true` if more are
    /// waiting.
    fn try_follow(&mut self) -> bool;

    /// Returns `true` if the standby has a state that follows the journal.
    fn has_state(&self) -> bool;

    /// Ends the standby, and returns the state from which the roles of the crashed process are
    /// recovered.
    fn resume(self: Box<Self>) -> StandbyState;
}

/// Waits until the launcher promotes the standby through standard input, a socket, and acknowledges
/// that. Returns the standby's state; `None` if the run is over.
pub(super) fn wait(
    plan: &Plan,
    process_plan: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<Option<StandbyState>> {
    let mut standby = standby(plan, process_plan, control, attached)?;
    let mut stdin = io::stdin();
    loop {
        let nap = if standby.try_follow() { Duration::ZERO } else { POLL_INTERVAL };
        if is_promotion_requested(&stdin, nap)? {
            // A byte is a request; end of file means that the launcher is gone.
            if stdin.read(&mut [0])? == 0 {
                return Ok(None);
            }
            acknowledge(&stdin)?;
            return Ok(Some(standby.resume()));
        }
    }
}

/// Creates the hot standby of a process, with all memory mapped.
pub fn standby<'a>(
    plan: &'a Plan,
    process_plan: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<Box<dyn StandbyRole + 'a>> {
    let control = control.clone();
    let threads: Vec<_> = process_plan.threads.iter().map(|thread| &plan.threads[*thread as usize]).collect();
    let roles: Vec<Role> = plan.roles_of(process_plan).collect();
    let mut thread_segments = Vec::new();
    for thread in &threads {
        thread_segments.push(segments::attach_log(attached, &thread.name)?);
    }
    match (&threads[..], &roles[..]) {
        ([thread], [Role::Exchange(venue)]) => {
            let body = exchange::ExchangeStandby::new(plan, thread, *venue, attached)?;
            let folder = super::book::journal_folder(plan, *venue);
            Ok(FollowingStandby::boxed(plan, control, thread_segments, folder, body))
        }
        _ if roles.contains(&Role::Orchestrator) => {
            let body = engine::EngineStandby::new(plan, attached)?;
            let folder = super::engine::journal_folder(plan);
            Ok(FollowingStandby::boxed(plan, control, thread_segments, folder, body))
        }
        _ => bail!("{}: only an exchange and an engine have spares", process_plan.name),
    }
}

/// A standby that follows the journal of its process.
struct FollowingStandby<'a, B: StandbyBody> {
    plan: &'a Plan,
    control: Control,
    /// The thread segments of the running process.
    thread_segments: Vec<ReadOnlyWords>,
    /// The journal's directory.
    folder: PathBuf,
    body: B,
    follower: Option<JournalFollower<B::State>>,
}

impl<'a, B: StandbyBody + 'a> StandbyRole for FollowingStandby<'a, B> {
    fn try_follow(&mut self) -> bool {
        let is_begun = self.control.start_ticks() != 0 && self.folder.join("lock").exists();
        if is_begun || self.follower.is_some() {
            let (start_ticks, ns_per_tick) = (self.control.start_ticks(), self.plan.ns_per_tick);
            if let Some(state) = self.body.initial_state(Timebase { start_ticks, ns_per_tick }) {
                self.follower = log_error(JournalFollower::open(&self.folder, state));
            }
        }
        match self.follow() {
            Ok(has_more) => {
                self.body.poll_log();
                has_more
            }
            Err(error) => {
                self.follower = None;
                let _ = log_error::<(), _>(Err(error));
                false
            }
        }
    }

    fn has_state(&self) -> bool {
        self.follower.is_some()
    }

    fn resume(self: Box<Self>) -> StandbyState {
        self.body.hand_over(self.follower.map(JournalFollower::into_parts))
    }
}

impl<'a, B: StandbyBody + 'a> FollowingStandby<'a, B> {
    fn boxed(
        plan: &'a Plan,
        control: Control,
        thread_segments: Vec<ReadOnlyWords>,
        folder: PathBuf,
        body: B,
    ) -> Box<dyn StandbyRole + 'a> {
        Box::new(Self { plan, control, thread_segments, folder, body, follower: None })
    }

    /// Applies a batch of records, and writes a snapshot if one is due. Returns `true` if more are
    /// waiting.
    fn follow(&mut self) -> Result<bool, RecoveryError> {
        let is_at_work = self.is_at_work();
        let Some(follower) = &mut self.follower else { return Ok(false) };
        let is_far = follower.poll(BATCH)? == BATCH;
        let is_due = follower.is_snapshot_due(SNAPSHOT_EVERY) && is_at_work;
        if (is_due || !is_far) && B::has_unconfirmed(&follower.state) {
            self.body.confirm(&mut follower.state);
        }
        // Also while catching up: a later successor then need not start from the beginning.
        if is_due && let Err(error) = follower.snapshot() {
            log_note(&format!("note: no snapshot was written: {error}"));
        }
        Ok(is_far)
    }

    /// Returns `true` if the process runs its duty cycles. Before, it may be opening the journal,
    /// and both would clean up its directory.
    fn is_at_work(&self) -> bool {
        self.thread_segments.iter().all(|thread| status::state(thread) >= ThreadState::Running)
    }
}

/// Acknowledges the promotion to the launcher, which gives up a process that does not answer.
fn acknowledge(stdin: &io::Stdin) -> io::Result<()> {
    UnixStream::from(stdin.as_fd().try_clone_to_owned()?).write_all(&[1])
}

fn is_promotion_requested(stdin: &io::Stdin, timeout: Duration) -> io::Result<bool> {
    Ok(process::wait_readable(&[stdin.as_fd()], timeout)?[0])
}

/// Logs an error: it may explain a slow restart.
fn log_error<T, E: Display>(result: Result<T, E>) -> Option<T> {
    result.map_err(|error| log_note(&format!("note: the spare does not follow the journal: {error}"))).ok()
}

pub(super) struct PublishedCounts(Vec<(AtomicWords, ReadOnlyWords)>);

impl PublishedCounts {
    pub(super) fn new(rings: impl Iterator<Item = String>, attached: &mut Attached<'_>) -> Result<Self> {
        let ring = |ring_name: String| {
            let head = attached.view(&spsc_mux::head_name(&ring_name), spsc::HEAD_KIND)?;
            Ok((attached.region(&ring_name, spsc::KIND)?.words(), head))
        };
        Ok(Self(rings.map(ring).collect::<Result<_>>()?))
    }

    pub(super) fn published(&self) -> Vec<u64> {
        let published = |(tail, head): &(AtomicWords, ReadOnlyWords)| {
            // What cannot be attached any more will be looked at by the successor.
            spsc::published::<MESSAGE_WORDS>(&tail.clone().into(), head).unwrap_or(0)
        };
        self.0.iter().map(published).collect()
    }
}

/// Prints a line to stderr, if that can be written, without the characters that a terminal obeys.
fn log_note(line: &str) {
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let _ = writeln!(io::stderr(), "{line}");
}
