//! A spare: a process that has everything ready and waits to be the next incarnation of an exchange
//! or of the engine.
//!
//! ```text
//! start ─▶ map the memory ─▶ follow the journal, write snapshots ─▶ told to go on ─▶ as a process that was just started
//! ```
//! It writes nothing that anybody but it reads, snapshots aside, until it is told. While it waits
//! it sleeps, and wakes up now and then to carry out what was written into the journal since. It
//! keeps nobody from coming back: what goes wrong here, a damaged journal or a full disk, is left
//! to what a process does that is started in the ordinary way.

mod engine;
mod exchange;

use super::parts::Parts;
use super::takeover::Takeover;
use crate::faults::own;
use anyhow::{Result, bail};
use journal::{JournalFollower, RecoveryError, State};
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

/// What the name of a process that is a spare begins with.
pub const SPARE_PREFIX: &str = "spare:";

/// How long it sleeps. A successor has to carry out again what was written meanwhile; a look costs
/// some ten microseconds.
const NAP: Duration = Duration::from_millis(20);
/// Records that it carries out between two looks at whether it is told to go on.
const BATCH: usize = 512;
/// Records between two snapshots, at least.
const SNAPSHOT_EVERY: u64 = 16_384;

/// What a spare has of its own kind.
trait Body {
    /// What follows the journal.
    type State: State;

    /// The state before the first record. Asked once.
    fn begin(&mut self, time: Timebase) -> Option<Self::State>;

    /// Whether the state keeps something that may not have gone out.
    fn keeps_something(state: &Self::State) -> bool;

    /// Tells the state what has gone out.
    fn has_gone(&self, state: &mut Self::State);

    /// Tells it that everything has, which nobody can know.
    fn has_all_gone(state: &mut Self::State);

    /// Counts what was logged since.
    fn look(&mut self);

    /// The process goes on from here.
    fn keep(self, follower: Option<JournalFollower<Self::State>>, attached: &mut Attached<'_>);
}

/// What stands ready, whatever it is the spare of.
pub trait Standby {
    /// Follows the journal further, if it is there; whether there is more.
    fn look(&mut self) -> bool;

    /// Whether it has a state that follows the journal.
    fn follows(&self) -> bool;

    /// The process goes on from here.
    fn go_on(self: Box<Self>, attached: &mut Attached<'_>);
}

/// Waits until the launcher says on standard input, which is a socket, that this process is its
/// role from now on, and answers. `false`: the run is over.
///
/// # Errors
/// A process that has no spare; memory that is not there.
pub(super) fn wait(
    plan: &Plan,
    me: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<bool> {
    let mut spare = standby(plan, me, control, attached)?;
    let mut stdin = io::stdin();
    loop {
        let nap = if spare.look() { Duration::ZERO } else { NAP };
        if is_told(&stdin, nap)? {
            // A byte, or the end: the launcher is gone.
            let told = stdin.read(&mut [0])? > 0;
            if told {
                answer(&stdin)?;
                spare.go_on(attached);
            }
            return Ok(told);
        }
    }
}

/// The spare of that process, with everything mapped.
///
/// # Errors
/// A process that has no spare; memory that is not there.
pub fn standby<'a>(
    plan: &'a Plan,
    me: &ProcessPlan,
    control: &Control,
    attached: &mut Attached<'_>,
) -> Result<Box<dyn Standby + 'a>> {
    let own = control.clone();
    let threads: Vec<_> = me.threads.iter().map(|thread| &plan.threads[*thread as usize]).collect();
    let roles: Vec<Role> = plan.roles_of(me).collect();
    let mut living = Vec::new();
    for thread in &threads {
        living.push(segments::log(attached, &thread.name)?);
    }
    match (&threads[..], &roles[..]) {
        ([thread], [Role::Exchange(venue)]) => {
            let mut parts =
                Parts { plan, thread, control, attached, act: own::act, when_attached: Vec::new() };
            let body = exchange::Spare::new(&mut parts, *venue)?;
            let folder = super::book::journal_folder(plan, *venue);
            Ok(Box::new(Waiting { plan, control: own, living, folder, body, follower: None }))
        }
        _ if roles.contains(&Role::Orchestrator) => {
            let body = engine::Spare::new(plan, attached)?;
            let folder = super::engine::journal_folder(plan);
            Ok(Box::new(Waiting { plan, control: own, living, folder, body, follower: None }))
        }
        _ => bail!("{}: only an exchange and an engine have spares", me.name),
    }
}

/// Who waits.
struct Waiting<'a, B: Body> {
    plan: &'a Plan,
    control: Control,
    /// The segments of the threads of the process whose spare this is.
    living: Vec<ReadOnlyWords>,
    /// Where the journal is.
    folder: PathBuf,
    body: B,
    follower: Option<JournalFollower<B::State>>,
}

impl<B: Body> Standby for Waiting<'_, B> {
    fn look(&mut self) -> bool {
        let is_begun = self.control.start_ticks() != 0 && self.folder.join("lock").exists();
        if is_begun || self.follower.is_some() {
            let (start_ticks, ns_per_tick) = (self.control.start_ticks(), self.plan.ns_per_tick);
            if let Some(state) = self.body.begin(Timebase { start_ticks, ns_per_tick }) {
                self.follower = noted(JournalFollower::open(&self.folder, state));
            }
        }
        match self.follow() {
            Ok(has_more) => {
                self.body.look();
                has_more
            }
            Err(error) => {
                self.follower = None;
                let _ = noted::<(), _>(Err(error));
                false
            }
        }
    }

    fn follows(&self) -> bool {
        self.follower.is_some()
    }

    fn go_on(self: Box<Self>, attached: &mut Attached<'_>) {
        let Self { body, mut follower, .. } = *self;
        if let Some(follower) = &mut follower {
            Takeover::of(attached).of_followed(|| B::has_all_gone(&mut follower.state));
        }
        body.keep(follower, attached);
    }
}

impl<B: Body> Waiting<'_, B> {
    /// A few records further, and a snapshot if it is time for one; whether there is more.
    fn follow(&mut self) -> Result<bool, RecoveryError> {
        let is_at_work = self.is_at_work();
        let Some(follower) = &mut self.follower else { return Ok(false) };
        let is_far = follower.poll(BATCH)? == BATCH;
        let is_due = follower.is_snapshot_due(SNAPSHOT_EVERY) && is_at_work;
        if (is_due || !is_far) && B::keeps_something(&follower.state) {
            self.body.has_gone(&mut follower.state);
        }
        // Also far behind: whoever dies on the way has a successor that need not begin there again.
        if is_due && let Err(error) = follower.snapshot() {
            complain(&format!("note: no snapshot was written: {error}"));
        }
        Ok(is_far)
    }

    /// Whether the process is in its duty cycles. One that is not may be opening the journal: it
    /// and a snapshot would tidy up after each other.
    fn is_at_work(&self) -> bool {
        self.living.iter().all(|thread| status::state(thread) >= ThreadState::Running)
    }
}

/// Tells the launcher that this process goes on: one that says nothing is given up.
fn answer(stdin: &io::Stdin) -> io::Result<()> {
    UnixStream::from(stdin.as_fd().try_clone_to_owned()?).write_all(&[1])
}

fn is_told(stdin: &io::Stdin, at_most: Duration) -> io::Result<bool> {
    Ok(process::wait_readable(&[stdin.as_fd()], at_most)?[0])
}

/// Says what went wrong: it may be why a comeback takes long.
fn noted<T, E: Display>(result: Result<T, E>) -> Option<T> {
    result.map_err(|error| complain(&format!("note: the spare does not follow the journal: {error}"))).ok()
}

/// Rings that the living one writes: how much was sent stands there.
pub(super) struct Sent(Vec<(AtomicWords, ReadOnlyWords)>);

impl Sent {
    pub(super) fn new(rings: impl Iterator<Item = String>, attached: &mut Attached<'_>) -> Result<Self> {
        let ring = |what: String| {
            let head = attached.view(&spsc_mux::head_name(&what), spsc::HEAD_KIND)?;
            Ok((attached.region(&what, spsc::KIND)?.words(), head))
        };
        Ok(Self(rings.map(ring).collect::<Result<_>>()?))
    }

    /// How many messages each ring has had.
    pub(super) fn published(&self) -> Vec<u64> {
        let published = |(tail, head): &(AtomicWords, ReadOnlyWords)| {
            // What cannot be attached any more will be looked at by the successor.
            spsc::published::<MESSAGE_WORDS>(&tail.clone().into(), head).unwrap_or(0)
        };
        self.0.iter().map(published).collect()
    }
}

/// Prints a line to stderr, if that can be written, without the characters that a terminal obeys.
fn complain(line: &str) {
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    let _ = writeln!(io::stderr(), "{line}");
}
