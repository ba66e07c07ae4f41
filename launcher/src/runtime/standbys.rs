//! Processes that stand ready to be the next incarnation of one that dies: what they do meanwhile
//! is a matter of their roles.
//!
//! A spare is told to go on with a byte, and ends by itself when its standard input does: it
//! outlives no launcher. One that ends is replaced, however often that was: at once at first, and
//! after a pause where it happens again and again. Without one a comeback only takes longer.
//!
//! One that is told to go on answers with a byte. If it does not (it is stopped, or hangs) it is
//! given up, and a process is started in its place, as if there had been no spare.

use crate::runtime::process::Process;
use crate::runtime::restart_policy::Backoff;
use crate::runtime::setup::Segments;
use roles::SPARE_PREFIX;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// How long a spare may take to answer. It may have to finish a snapshot; and a cold start must
/// still be back before the run is said to stall.
const ANSWER: Duration = Duration::from_secs(2);

struct Spare {
    /// Whose next incarnation it is, by its place in the plan.
    of: usize,
    process: Process,
    socket: UnixStream,
    started: Instant,
}

impl Spare {
    fn is_alive(&mut self) -> bool {
        self.process.look().is_ok() && self.process.status.is_none()
    }
}

/// A spare that was told to go on and has not answered yet.
struct Told {
    of: usize,
    socket: UnixStream,
    at: Instant,
}

/// The spares of a run.
#[derive(Default)]
pub struct Spares {
    all: Vec<Spare>,
    told: Vec<Told>,
    /// How many have become what they were the spare of. Those that were lost share a file for
    /// their last words.
    taken: u32,
    /// What was lost of each, by its place in the plan.
    pauses: Vec<Backoff>,
}

impl Spares {
    /// Sees to it that a process has one. What cannot be started is not: nobody needs it to come
    /// back.
    pub fn keep(&mut self, segments: &Segments, of: usize) {
        let now = Instant::now();
        self.pauses.resize_with(segments.plan.processes.len(), Backoff::default);
        if let Some(place) = self.all.iter().position(|spare| spare.of == of) {
            if self.all[place].is_alive() {
                return;
            }
            let mut spare = self.all.remove(place);
            spare.process.end();
            self.pauses[of].charge_loss(spare.started, now);
        }
        if !self.pauses[of].is_over(now) {
            return;
        }
        match self.start(segments, of) {
            Some((process, socket)) => self.all.push(Spare { of, process, socket, started: now }),
            None => self.pauses[of].charge_loss(now, now),
        }
    }

    fn start(&self, segments: &Segments, of: usize) -> Option<(Process, UnixStream)> {
        let plan = &segments.plan.processes[of];
        let (ours, its) = UnixStream::pair().ok()?;
        ours.set_nonblocking(true).ok()?;
        let stderr = format!("{}.spare-{}.stderr", plan.name, self.taken + 1);
        let mut process = Process::start_with(
            &format!("{SPARE_PREFIX}{}", plan.name),
            &segments.address(),
            &Path::new(&segments.plan.folder).join(stderr),
            &segments.handed_to(plan),
            Stdio::from(OwnedFd::from(its)),
        )
        .ok()?;
        process.name.clone_from(&plan.name);
        Some((process, ours))
    }

    /// The spare of a process, told to go on; `None`: there is none that could.
    pub fn take(&mut self, of: usize) -> Option<Process> {
        let place = self.all.iter().position(|spare| spare.of == of)?;
        let mut spare = self.all.remove(place);
        if spare.is_alive() && spare.socket.write_all(&[1]).is_ok() {
            self.taken += 1;
            self.told.push(Told { of, socket: spare.socket, at: Instant::now() });
            return Some(spare.process);
        }
        spare.process.end();
        None
    }

    /// The processes whose spares were told to go on and have not answered in time. Each is given
    /// once.
    pub fn take_silent(&mut self) -> Vec<usize> {
        let mut silent = Vec::new();
        self.told.retain_mut(|told| {
            let waits = told.socket.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            if waits && told.at.elapsed() > ANSWER {
                silent.push(told.of);
            }
            waits && told.at.elapsed() <= ANSWER
        });
        silent
    }

    /// Takes note of the end of each that has ended.
    pub fn look(&mut self) {
        for spare in &mut self.all {
            // What the system refuses shows when it is needed.
            let _ = spare.process.look();
        }
    }

    /// Their process ids.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.all.iter().map(|spare| spare.process.child_pid())
    }

    /// Ends all of them.
    pub fn end(&mut self) {
        self.all.drain(..).for_each(|mut spare| spare.process.end());
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.end();
    }
}
