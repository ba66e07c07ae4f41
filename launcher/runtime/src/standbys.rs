//! Hot standbys: processes that are ready to become the next incarnation of a crashed engine or
//! exchange.
//!
//! A standby is promoted by a byte on its socket, and exits by itself when its standard input
//! closes: it does not outlive the launcher. A standby that exits is replaced, immediately at first
//! and after a backoff if that repeats. Without a standby a restart only takes longer.
//!
//! A promoted standby answers with a byte. If it does not (it is stopped, or hangs) it is killed,
//! and a process is started cold in its place.

use crate::process::{Process, RoleProcess};
use roles::STANDBY_PREFIX;
use run_memory::segments::Segments;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use supervision::restart_policy::Backoff;
use system::start::StartConditions;

/// Maximum time for a promoted standby to answer. It may have to finish a snapshot; and a cold
/// start must still finish before the run counts as stalled.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

struct Standby {
    /// Index of the process in the plan whose next incarnation it is.
    of: usize,
    process: Process,
    socket: UnixStream,
    started: Instant,
}

impl Standby {
    fn is_alive(&mut self) -> bool {
        self.process.poll().is_ok() && self.process.status.is_none()
    }
}

/// The hot standbys of a run: processes that follow a journal and wait to be promoted.
#[derive(Default)]
pub struct Standbys {
    all: Vec<Standby>,
    /// Promoted standbys that have not answered: of which process, the socket, and since when.
    promoted: Vec<(usize, UnixStream, Instant)>,
    /// Number of promotions. Standbys lost between two promotions share a stderr file.
    promotions: u32,
    /// Backoff of each process's standby, by index in the plan.
    backoffs: Vec<Backoff>,
}

impl Standbys {
    /// Starts a hot standby for the process with index `of`, unless it has one. A start that fails
    /// is tried again after a pause: a restart does not need it.
    pub fn ensure(&mut self, segments: &Segments, of: usize) {
        let now = Instant::now();
        self.backoffs.resize_with(segments.plan.processes.len(), Backoff::default);
        if let Some(place) = self.all.iter().position(|spare| spare.of == of) {
            if self.all[place].is_alive() {
                return;
            }
            let mut spare = self.all.remove(place);
            spare.process.end();
            self.backoffs[of].charge_loss(spare.started, now);
        }
        if !self.backoffs[of].is_over(now) {
            return;
        }
        match self.start(segments, of) {
            Some((process, socket)) => self.all.push(Standby { of, process, socket, started: now }),
            None => self.backoffs[of].charge_loss(now, now),
        }
    }

    fn start(&self, segments: &Segments, of: usize) -> Option<(Process, UnixStream)> {
        let plan = &segments.plan.processes[of];
        let (ours, its) = UnixStream::pair().ok()?;
        ours.set_nonblocking(true).ok()?;
        let stderr = format!("{}.spare-{}.stderr", plan.name, self.promotions + 1);
        let role = RoleProcess {
            name: &format!("{STANDBY_PREFIX}{}", plan.name),
            address: &segments.address(),
            executable: segments.binaries.path(of),
            inherited: segments.inherited_by(plan),
            kind: None,
            conditions: StartConditions::default(),
        };
        let stderr = Path::new(&segments.plan.folder).join(stderr);
        let mut process = Process::start_with(role, &stderr, Stdio::from(OwnedFd::from(its))).ok()?;
        process.name.clone_from(&plan.name);
        Some((process, ours))
    }

    /// Promotes the hot standby of the dead process with index `of`. Returns the running process,
    /// if there is one.
    pub fn promote(&mut self, of: usize) -> Option<Process> {
        let place = self.all.iter().position(|spare| spare.of == of)?;
        let mut spare = self.all.remove(place);
        if spare.is_alive() && spare.socket.write_all(&[1]).is_ok() {
            self.promotions += 1;
            self.promoted.push((of, spare.socket, Instant::now()));
            return Some(spare.process);
        }
        spare.process.end();
        None
    }

    /// Returns the indices of processes whose promoted standbys have not resumed in time, each
    /// once.
    pub fn take_unresponsive(&mut self) -> Vec<usize> {
        let mut silent = Vec::new();
        self.promoted.retain_mut(|(of, socket, since)| {
            let waits = socket.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
            let is_late = waits && since.elapsed() > ANSWER_TIMEOUT;
            silent.extend(is_late.then_some(*of));
            waits && !is_late
        });
        silent
    }

    /// Reaps the hot standbys that have exited.
    pub fn poll(&mut self) {
        for spare in &mut self.all {
            // An error shows when the standby is needed.
            let _ = spare.process.poll();
        }
    }

    /// Returns the process ids of the run's hot standbys.
    pub fn pids(&self) -> impl Iterator<Item = u32> + '_ {
        self.all.iter().map(|spare| spare.process.child_pid())
    }

    /// Kills and reaps all hot standbys of the run.
    pub fn end(&mut self) {
        self.all.drain(..).for_each(|mut spare| spare.process.end());
    }
}

impl Drop for Standbys {
    fn drop(&mut self) {
        self.end();
    }
}
