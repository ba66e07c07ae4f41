//! The processes of a run: started by executing this very executable, watched through pidfds, and
//! never left behind.

use crate::runtime::helper::Helper;
use crate::runtime::process::Process;
use crate::runtime::progress::complain;
use crate::runtime::restarts::Children;
use crate::runtime::setup::Segments;
use crate::runtime::spares::Spares;
use crate::runtime::stuck::Grace;
use analysis::record::ProcessExit;
use anyhow::{Result, bail};
use protocol::supervision::ProofOfDeath;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use system::process;

/// All processes of a run and their warden. Dropping it kills and reaps whatever still runs.
pub struct Processes {
    /// In the order of the plan.
    pub all: Vec<Process>,
    warden: Helper,
    spiller: Option<Helper>,
    spares: Spares,
}

/// Starts a process of the plan: this executable, or the program that its strategy is. That says
/// who it is before it runs that: it may take back what the launcher's death is to do to it, and
/// the launcher die before it knows it.
fn start(segments: &Segments, index: usize) -> Result<Process> {
    let process = &segments.plan.processes[index];
    let will_start = |command: &mut Command| segments.control.will_start(index, command);
    let (folder, address) = (Path::new(&segments.plan.folder), segments.address());
    if segments.plan.is_contained(process) {
        return Process::start_contained(&process.name, &address, folder, &segments.handed_to(process));
    }
    match segments.plan.program_of(process) {
        Some(program) => Process::start_program(program, will_start, &process.name, &address, folder),
        None => Process::start(&process.name, &address, folder, &segments.handed_to(process)),
    }
}

impl Processes {
    /// Starts the warden alone: from here on a launcher that is killed leaves nothing. Orphans of
    /// processes of the run are this process's from now on: process 1 may be one that reaps none,
    /// or this one.
    pub fn begin(segments: &Segments) -> Result<Self> {
        if let Err(error) = process::adopt_orphans() {
            complain(&format!("note: orphans of the run are left to process 1: {error}"));
        }
        let warden = Helper::warden(segments)?;
        Ok(Self { all: Vec::new(), warden, spiller: None, spares: Spares::default() })
    }

    /// Starts the warden and the spiller again if they have ended.
    pub fn watch_helpers(&mut self, segments: &Segments) {
        self.spiller.iter_mut().chain([&mut self.warden]).for_each(|helper| helper.watch(segments));
    }

    fn helpers(&self) -> impl Iterator<Item = &Process> {
        [&self.warden].into_iter().chain(&self.spiller).map(Helper::process)
    }

    /// Starts the plan's processes, and the spiller before them.
    pub fn start(&mut self, segments: &Segments) -> Result<()> {
        self.spiller = Helper::spiller(segments)?;
        for index in 0..segments.plan.processes.len() {
            let started = start(segments, index)?;
            if let Some(why) = started.unmade() {
                bail!("cannot start process {} in a container: {why}", started.name);
            }
            segments.control.started(index, started.pid());
            self.all.push(started);
        }
        Ok(())
    }

    /// Sleeps until a process that still runs ends, `other` becomes readable, or the time is over;
    /// then takes note of who has ended.
    pub fn wait(&mut self, other: Option<BorrowedFd<'_>>, at_most: Duration) -> Result<()> {
        // Who asks about signals looks after the warden and the spiller, too: whoever does not
        // would be woken by their end again and again.
        let helpers = self.helpers().filter(|_| other.is_some());
        let running = self.all.iter().chain(helpers).filter(|process| process.status.is_none());
        let fds: Vec<BorrowedFd<'_>> = running.map(Process::pidfd).chain(other).collect();
        process::wait_readable(&fds, at_most)?;
        self.all.iter_mut().try_for_each(Process::look)?;
        self.spares.look();
        for silent in self.spares.take_silent() {
            self.all[silent].kill();
        }
        self.reap_orphans();
        Ok(())
    }

    /// Reaps the orphans of processes of the run: nobody else may do it.
    fn reap_orphans(&self) {
        let own = self.all.iter().chain(self.helpers()).map(Process::child_pid);
        let own: Vec<u32> = own.chain(self.spares.pids()).collect();
        process::reap_orphans(&own);
    }

    /// Gives everybody but the warden `grace` to end by themselves, more to who waits for a core,
    /// then kills and reaps the rest.
    pub fn end(&mut self, grace: Duration) {
        self.spares.end();
        let told = Instant::now();
        let mut grace = Grace::begin(grace, &self.living());
        while !self.living().is_empty() && !grace.is_over(&self.living()) {
            if self.wait(None, Duration::from_millis(20)).is_err() {
                break;
            }
        }
        self.all.iter_mut().for_each(|process| process.end_late(told.elapsed()));
    }

    fn living(&self) -> Vec<u32> {
        self.all.iter().filter(|process| process.status.is_none()).map(Process::pid).collect()
    }

    /// Ends the spiller: what is left of the logs is for the caller to save. What is to be said of
    /// it.
    pub fn end_spiller(&mut self) -> Option<String> {
        let mut spiller = self.spiller.take()?;
        spiller.end();
        spiller.said()
    }

    /// Ends the warden: nothing is left for it to save.
    pub fn end_warden(&mut self) {
        self.warden.end();
    }

    pub fn exits(&self) -> Vec<ProcessExit> {
        let exit = |process: &Process| ProcessExit {
            process: process.name.clone(),
            pid: process.pid(),
            how: process.how(),
            usage: Some(process.account.usage()),
        };
        self.all.iter().map(exit).collect()
    }
}

impl Children for Processes {
    fn ended(&self, process: usize) -> Option<bool> {
        self.all[process].status.map(|status| status.success())
    }

    fn was_killed(&self, process: usize) -> bool {
        self.all[process].status.is_some_and(|status| status.signal().is_some())
    }

    fn how(&self, process: usize) -> String {
        self.all[process].how()
    }

    fn pid(&self, process: usize) -> u32 {
        self.all[process].pid()
    }

    fn kill(&mut self, process: usize) {
        self.all[process].kill();
    }

    fn death(&mut self, process: usize) -> io::Result<Option<ProofOfDeath>> {
        self.all[process].death()
    }

    fn restart(&mut self, segments: &Segments, process: usize) -> Result<()> {
        assert!(self.all[process].status.is_some(), "a process has one incarnation at a time");
        if let Some(spare) = self.spares.take(process) {
            segments.control.started(process, spare.pid());
            self.all[process] = spare.after(&self.all[process]);
            return Ok(());
        }
        let next = start(segments, process)?;
        self.all[process] = next.after(&self.all[process]);
        segments.control.started(process, self.all[process].pid());
        Ok(())
    }

    fn keep_spare(&mut self, segments: &Segments, process: usize) {
        self.spares.keep(segments, process);
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end_spiller();
        self.all.iter_mut().for_each(Process::end);
        self.warden.end();
    }
}
