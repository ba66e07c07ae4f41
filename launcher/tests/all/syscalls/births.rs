//! Catches a process of a run before its first instruction: the launcher is traced as far as it
//! starts processes, and goes on at full speed else.

use super::tracer::unless_gone;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

pub struct Births {
    launcher: Pid,
    /// What it has started and what has not executed its program yet.
    new: Vec<Pid>,
    role: String,
}

impl Births {
    /// Watches for processes of that role.
    pub fn watch(launcher: u32, role: &str) -> nix::Result<Self> {
        let launcher = Pid::from_raw(launcher as i32);
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC;
        ptrace::seize(launcher, options)?;
        Ok(Self { launcher, new: Vec::new(), role: format!("\0role\0{role}\0") })
    }

    /// Resumes every stopped tracee; the process, if it exists: it has not yet run its first
    /// instruction, and is not looked after any more.
    pub fn look(&mut self) -> nix::Result<Option<Pid>> {
        match now(self.launcher)? {
            WaitStatus::StillAlive => {}
            status => self.born(status)?,
        }
        for child in self.new.clone() {
            match now(child)? {
                WaitStatus::StillAlive => {}
                WaitStatus::PtraceEvent(_, _, event) if event == Event::PTRACE_EVENT_EXEC as i32 => {
                    self.new.retain(|other| *other != child);
                    let cmdline = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                    if String::from_utf8_lossy(&cmdline).contains(&self.role) {
                        return Ok(Some(child));
                    }
                    unless_gone(ptrace::detach(child, None))?;
                }
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => self.new.retain(|other| *other != child),
                WaitStatus::Stopped(_, signal) if signal != Signal::SIGTRAP => {
                    unless_gone(ptrace::cont(child, Some(signal)))?;
                }
                _ => unless_gone(ptrace::cont(child, None))?,
            }
        }
        Ok(None)
    }

    fn born(&mut self, status: WaitStatus) -> nix::Result<()> {
        let starts = [Event::PTRACE_EVENT_FORK as i32, Event::PTRACE_EVENT_VFORK as i32];
        match status {
            WaitStatus::PtraceEvent(_, _, event) if starts.contains(&event) => {
                self.new.push(Pid::from_raw(ptrace::getevent(self.launcher)? as i32));
                unless_gone(ptrace::cont(self.launcher, None))
            }
            WaitStatus::Stopped(_, signal) if signal != Signal::SIGTRAP => {
                unless_gone(ptrace::cont(self.launcher, Some(signal)))
            }
            _ => unless_gone(ptrace::cont(self.launcher, None)),
        }
    }

    /// Lets go of the launcher, once everybody that it has started goes on without us.
    pub fn end(mut self) -> nix::Result<()> {
        loop {
            while !self.new.is_empty() {
                if let Some(child) = self.look()? {
                    unless_gone(ptrace::detach(child, None))?;
                }
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            unless_gone(ptrace::interrupt(self.launcher))?;
            match waitpid(self.launcher, Some(WaitPidFlag::__WALL))? {
                WaitStatus::PtraceEvent(_, _, event) if event == Event::PTRACE_EVENT_STOP as i32 => {
                    return unless_gone(ptrace::detach(self.launcher, None));
                }
                status => self.born(status)?,
            }
        }
    }
}

fn now(task: Pid) -> nix::Result<WaitStatus> {
    waitpid(task, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG))
}
