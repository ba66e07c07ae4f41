//! Starts the processes of a run with their descriptors, sandbox and cores, watches them through
//! pidfds, and ends all of them.

use crate::container::cgroups::ContainerCgroups;
use crate::cpu_accounts::accounts_of;
use crate::debugger::RunOwner;
use crate::process::{Process, RoleProcess};
use crate::progress::print_warning;
use crate::reaper;
use crate::resources;
use crate::signals::Interrupted;
use crate::standbys::Standbys;
use anyhow::{Context, Result, bail};
use planner::host;
use protocol::plan::{Role, Trading};
use protocol::supervision::ProofOfDeath;
use record::run::ProcessExit;
use run_memory::segments::Segments;
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use supervision::INTERRUPTED_GRACE;
use supervision::actions::ExitTime;
use supervision::restart_policy::Backoff;
use supervision::stuck::ShutdownTimeout;
use system::process;
use system::start::StartConditions;

/// Maximum time in which leftover children of strategies end once they are killed.
const LEFTOVERS_TIMEOUT: Duration = Duration::from_secs(1);

/// The processes of a run, and the reaper, which cleans up if the launcher is killed. Dropping it
/// kills and reaps whatever still runs.
pub struct Processes {
    /// Processes in the order of the plan; `None` for that of a spare strategy which was never
    /// added.
    pub all: Vec<Option<Process>>,
    /// Removes everything that a killed launcher leaves.
    reaper: Process,
    reaper_started: Instant,
    reaper_backoff: Backoff,
    standbys: Standbys,
    /// The cgroups of strategies; `None` before they were created.
    groups: Option<ContainerCgroups<'static>>,
    /// Which processes are strategies, by index in the plan: others trace nobody.
    are_strategies: Vec<bool>,
    owner: RunOwner,
    /// Children that this process had before the run, with their start times.
    earlier_children: Vec<(u32, u64)>,
    /// Tracers that a note has named.
    named_tracers: Vec<u32>,
    /// The kinds of strategies that were replaced by others, by process.
    kinds: HashMap<usize, String>,
}

/// Starts a process of the plan, and ends it again if what was asked for has not reached it.
fn start(segments: &Segments, index: usize, kind: Option<&str>) -> Result<Process> {
    let mut started = start_unverified(segments, index, kind)?;
    let plan = &segments.plan;
    if started.container_failure().is_none()
        && let Err(error) = resources::verify_speculation(plan, &plan.processes[index], started.pid())
    {
        started.end();
        return Err(error);
    }
    Ok(started)
}

/// Starts a process of the plan: this executable, or the program that its strategy is. A program's
/// process id is published before `exec`: it may disable its parent-death signal, and the launcher
/// may die before it reads the id.
fn start_unverified(segments: &Segments, index: usize, kind: Option<&str>) -> Result<Process> {
    let process = &segments.plan.processes[index];
    let will_start = |command: &mut Command| segments.control.prepare_start(index, command);
    let (folder, address) = (Path::new(&segments.plan.folder), segments.address());
    let role = RoleProcess {
        name: &process.name,
        address: &address,
        executable: segments.binaries.path(index),
        inherited: segments.inherited_by(process),
        kind,
        conditions: resources::start_conditions(&segments.plan, process, host::root())?,
    };
    if segments.plan.is_contained(process) {
        let address = segments.shim_address(process);
        return Process::start_contained(RoleProcess { address: &address, ..role }, folder);
    }
    match kind.map_or(segments.plan.program_of(process), Trading::command_of) {
        Some(program) => Process::start_program(program, will_start, role, folder),
        None => Process::start(role, folder),
    }
}

/// Starts the reaper, which inherits the logs and the control segment, for reading.
fn start_reaper(segments: &Segments) -> Result<Process> {
    let folder = Path::new(&segments.plan.folder);
    let role = RoleProcess {
        name: reaper::NAME,
        address: &segments.address(),
        executable: None,
        inherited: segments.inherited_by_reaper(),
        kind: None,
        conditions: StartConditions::default(),
    };
    Process::start(role, folder)
}

impl Processes {
    /// Starts the reaper, before any other process: it cleans up after a launcher that is killed.
    /// This process becomes the subreaper of the run's orphans: process 1 may be one that reaps
    /// none, or this one.
    pub fn start_reaper(segments: &Segments) -> Result<Self> {
        if let Err(error) = process::adopt_orphans() {
            print_warning(&format!("note: orphans of the run are left to process 1: {error}"));
        }
        let plan = &segments.plan;
        let is_strategy = |role: Role| matches!(role, Role::Strategy(_));
        let are_strategies =
            plan.processes.iter().map(|process| plan.roles_of(process).all(is_strategy)).collect();
        Ok(Self {
            groups: None,
            are_strategies,
            owner: RunOwner::this_process(),
            earlier_children: process::children(),
            named_tracers: Vec::new(),
            all: Vec::new(),
            reaper: start_reaper(segments)?,
            reaper_started: Instant::now(),
            reaper_backoff: Backoff::default(),
            standbys: Standbys::default(),
            kinds: HashMap::new(),
        })
    }

    /// Restarts the reaper if it has exited.
    pub fn watch_reaper(&mut self, segments: &Segments) {
        let now = Instant::now();
        if self.reaper.status.is_none() {
            if self.reaper.poll().is_err() || self.reaper.status.is_none() {
                return;
            }
            self.reaper_backoff.charge_loss(self.reaper_started, now);
            let (pid, how) = (self.reaper.pid(), self.reaper.exit_text());
            print_warning(&format!("note: the reaper (pid {pid}) exited ({how}) and is restarted"));
        }
        if self.reaper_backoff.is_over(now) {
            match start_reaper(segments) {
                Ok(process) => (self.reaper, self.reaper_started) = (process, now),
                Err(error) => {
                    print_warning(&format!("note: the reaper cannot be started again: {error:#}"));
                    self.reaper_backoff.charge_loss(now, now);
                }
            }
        }
    }

    /// Takes ownership of the cgroups of strategies, which are removed once all processes have
    /// ended.
    pub fn set_groups(&mut self, groups: ContainerCgroups<'static>) {
        self.groups = Some(groups);
    }

    /// Starts a process of the plan. If another program removes its cgroups, they are created again
    /// and the start is repeated once.
    fn start_in_groups(&mut self, segments: &Segments, index: usize) -> Result<Process> {
        let kind = self.kinds.get(&index).map(String::as_str);
        let process = &segments.plan.processes[index];
        let mut restore = || {
            let groups = self.groups.as_mut();
            let is_restored = groups.map_or(Ok(false), |groups| groups.restore(&segments.plan, process))?;
            if is_restored {
                let name = &process.name;
                print_warning(&format!(
                    "note: another program has removed cgroups of {name}: they are created again"
                ));
            }
            anyhow::Ok(is_restored)
        };
        restore()?;
        match start(segments, index, kind) {
            Err(error) if restore().with_context(|| format!("{error:#}"))? => start(segments, index, kind),
            started => started,
        }
    }

    /// Starts every process of the plan, except those of spare strategies (slots that an operator
    /// may fill later).
    pub fn start(&mut self, segments: &Segments) -> Result<()> {
        for (index, planned) in segments.plan.processes.iter().enumerate() {
            Interrupted::check()?;
            if segments.plan.is_spare(planned) {
                self.all.push(None);
                continue;
            }
            let started = self.start_in_groups(segments, index)?;
            if let Some(why) = started.container_failure() {
                bail!("cannot start process {} in a container: {why}", started.name);
            }
            segments.control.record_start(index, started.pid());
            self.all.push(Some(started));
        }
        Ok(())
    }

    /// Sleeps until a process exits, a descriptor in `others` is readable, or the time `at_most` is
    /// over. Updates exit statuses.
    pub fn wait(&mut self, others: &[BorrowedFd<'_>], at_most: Duration) -> Result<()> {
        // A caller that passes signals also watches the reaper; any other would be woken by its
        // exit repeatedly.
        let reaper = Some(&self.reaper).filter(|_| !others.is_empty());
        let running = self.started().chain(reaper).filter(|process| process.status.is_none());
        let fds: Vec<BorrowedFd<'_>> = running.map(Process::pidfd).chain(others.iter().copied()).collect();
        process::wait_readable(&fds, at_most)?;
        self.all.iter_mut().flatten().try_for_each(Process::poll)?;
        self.standbys.poll();
        for silent in self.standbys.take_unresponsive() {
            self.kill(silent);
        }
        self.end_tracers();
        self.reap_orphans();
        Ok(())
    }

    /// Kills the tracers of processes that were killed or have ended, if strategies have started
    /// them: a tracer can keep a process from ending, and a zombie from being reaped. Names each of
    /// them, and those from outside of the run. Returns `true` if one was killed.
    fn end_tracers(&mut self) -> bool {
        let mut has_killed = false;
        let held: Vec<(String, u32)> = self
            .started()
            .filter(|process| process.is_held_by_tracer())
            .map(|process| (process.name.clone(), process.pid()))
            .collect();
        for (name, pid) in held {
            for (tracer, is_in_run) in self.owner.tracers_of(pid) {
                let Some(id) = tracer.pid.filter(|id| !self.is_trusted(*id)) else { continue };
                if is_in_run {
                    let Ok(pidfd) = process::pidfd_open(id) else { continue };
                    // It still is the tracer: its id was not reused before the pidfd was opened.
                    let is_same = self.owner.tracers_of(pid).iter().any(|(found, _)| *found == tracer);
                    if !is_same || process::kill(pidfd.as_fd()).is_err() {
                        continue;
                    }
                    has_killed = true;
                }
                if !self.named_tracers.contains(&id) {
                    self.named_tracers.push(id);
                    let tracer = format!("{} (pid {id})", tracer.name);
                    print_warning(&match is_in_run {
                        true => format!(
                            "note: killed {tracer}, which a strategy started: it traced {name} (pid {pid}), which is dead"
                        ),
                        false => format!(
                            "note: {name} (pid {pid}) is dead and traced by {tracer}, which may keep it from ending: detach or end that"
                        ),
                    });
                }
            }
        }
        has_killed
    }

    /// Kills the tracers that keep killed processes from ending, and waits for these.
    fn end_held(&mut self) {
        let (began, step) = (Instant::now(), Duration::from_millis(30));
        while began.elapsed() < LEFTOVERS_TIMEOUT {
            let has_ended = |process: &Process, at_most| {
                process::wait_readable(&[process.pidfd()], at_most).is_ok_and(|ended| ended[0])
            };
            let is_running =
                |process: &&Process| process.status.is_none() && !has_ended(process, Duration::ZERO);
            let Some(is_held) = self.started().find(is_running).map(|first| !has_ended(first, step)) else {
                return;
            };
            if is_held && !self.end_tracers() {
                return;
            }
        }
    }

    /// Returns `true` for the reaper and the processes of engine, gateways and exchanges.
    fn is_trusted(&self, pid: u32) -> bool {
        let others = self.all.iter().zip(&self.are_strategies).filter(|(_, is_strategy)| !**is_strategy);
        let pids = others.filter_map(|(process, _)| Some(process.as_ref()?.child_pid()));
        pids.chain([self.reaper.child_pid()]).chain(self.standbys.pids()).any(|trusted| trusted == pid)
    }

    /// Kills and reaps leftover children of strategies, which this process has adopted.
    fn end_leftovers(&mut self) {
        let began = Instant::now();
        loop {
            // One that a tracer kept would be in the way of the others.
            let _ = self.all.iter_mut().flatten().try_for_each(Process::poll);
            self.reap_orphans();
            let own: Vec<u32> = self.own_children();
            let mut left = process::children();
            left.retain(|child| !own.contains(&child.0) && !self.earlier_children.contains(child));
            left.retain(|(pid, start)| process::is_running(*pid, *start));
            if left.is_empty() {
                return;
            }
            if began.elapsed() > LEFTOVERS_TIMEOUT {
                let pids: Vec<String> = left.iter().map(|(pid, _)| pid.to_string()).collect();
                let what = "which strategies have started, were killed and have not ended";
                return print_warning(&format!("note: the processes {}, {what}", pids.join(", ")));
            }
            let opened = left.iter().filter_map(|(pid, start)| {
                let pidfd = process::pidfd_open(*pid).ok()?;
                process::is_running(*pid, *start).then_some(pidfd)
            });
            let pidfds: Vec<_> = opened.collect();
            for pidfd in &pidfds {
                let _ = process::kill(pidfd.as_fd());
            }
            let pidfds: Vec<BorrowedFd<'_>> = pidfds.iter().map(AsFd::as_fd).collect();
            let _ = process::wait_readable(&pidfds, LEFTOVERS_TIMEOUT / 10);
        }
    }

    /// Returns the processes that were started.
    pub fn started(&self) -> impl Iterator<Item = &Process> {
        self.all.iter().flatten()
    }

    /// Kills a process of the plan, by index, if it was started.
    pub fn kill(&self, process: usize) {
        self.all[process].iter().for_each(Process::kill);
    }

    /// Treats a process (index in the plan) as exited, after its threads were all found exiting.
    pub fn conclude_exit(&mut self, process: usize) {
        self.all[process].iter_mut().for_each(Process::conclude_exit);
    }

    /// Stops a process of the plan by SIGSTOP, by index, if it was started.
    pub fn stop(&self, process: usize) {
        self.all[process].iter().for_each(Process::stop);
    }

    /// Returns the proof that a process (index in the plan) is gone, or was never started; `None`
    /// if it may run.
    pub fn proof_of_death(&self, segments: &Segments, process: usize) -> Result<Option<ProofOfDeath>> {
        match &self.all[process] {
            Some(started) => started.proof_of_death().context("cannot watch a process"),
            None => Ok(ProofOfDeath::of_unstarted(&segments.control.control(), process)),
        }
    }

    /// Reaps the orphans of processes of the run: no other process can.
    fn reap_orphans(&self) {
        process::reap_orphans(&self.own_children());
    }

    /// Returns the process ids of the children that this process has started for the run.
    fn own_children(&self) -> Vec<u32> {
        let own = self.started().chain([&self.reaper]).map(Process::child_pid);
        own.chain(self.standbys.pids()).collect()
    }

    /// Waits for the run's processes to exit, for a limited time, then kills and reaps the rest.
    /// Once `is_hurried`, at most the time that an interrupted run has.
    pub fn end_roles(&mut self, time: ExitTime, mut is_hurried: impl FnMut() -> bool) {
        let mut can_shorten = matches!(time, ExitTime::Extended(_));
        self.standbys.end();
        let told = Instant::now();
        let mut timeout = match time {
            ExitTime::Fixed(length) => ShutdownTimeout::fixed(length),
            ExitTime::Extended(length) => ShutdownTimeout::begin(length, accounts_of(&self.running_pids())),
        };
        let mut begun = told;
        while !self.running_pids().is_empty()
            && !timeout.is_over(begun.elapsed().as_nanos() as u64, || accounts_of(&self.running_pids()))
        {
            if self.wait(&[], Duration::from_millis(20)).is_err() {
                break;
            }
            if can_shorten && is_hurried() {
                (timeout, can_shorten) = (ShutdownTimeout::fixed(INTERRUPTED_GRACE), false);
                begun = Instant::now();
            }
        }
        let after = told.elapsed();
        // All first: each takes its time to exit.
        self.started().for_each(Process::kill);
        self.end_held();
        self.all.iter_mut().flatten().for_each(|process| process.end_overdue(after));
        self.end_leftovers();
    }

    fn running_pids(&self) -> Vec<u32> {
        self.started().filter(|process| process.status.is_none()).map(Process::pid).collect()
    }

    /// Starts the next incarnation of a process that has exited or never ran: by its hot standby,
    /// or as a new process.
    pub fn restart(&mut self, segments: &Segments, process: usize) -> Result<()> {
        let has_ended = self.all[process].as_ref().is_none_or(|earlier| earlier.status.is_some());
        assert!(has_ended, "a process has one incarnation at a time");
        let next = match self.standbys.promote(process) {
            Some(standby) => standby,
            None => {
                let started = self.start_in_groups(segments, process);
                // A program publishes its id before it is executed, which may fail.
                started.inspect_err(|_| segments.control.record_end(process))?
            }
        };
        segments.control.record_start(process, next.pid());
        self.all[process] = Some(match &self.all[process] {
            Some(earlier) => next.continuing(earlier),
            None => next,
        });
        Ok(())
    }

    /// Sets which kind of strategy, by name, a process (index in the plan) runs from its next
    /// incarnation on.
    pub fn set_kind(&mut self, process: usize, kind: String) {
        self.kinds.insert(process, kind);
    }

    /// Keeps a hot standby ready for a process (index in the plan).
    pub fn keep_standby(&mut self, segments: &Segments, process: usize) {
        self.standbys.ensure(segments, process);
    }

    /// Ends the reaper, the process that cleans up after a killed launcher.
    pub fn end_reaper(&mut self) {
        self.reaper.end();
    }

    /// Returns how each started process exited, with its resource usage.
    pub fn exits(&self) -> Vec<ProcessExit> {
        let exit = |process: &Process| ProcessExit {
            process: process.name.clone(),
            pid: process.pid(),
            how: process.exit_text(),
            usage: Some(process.account.usage()),
        };
        self.started().map(exit).collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.all.iter_mut().flatten().for_each(Process::end);
        self.end_leftovers();
        self.reaper.end();
    }
}
