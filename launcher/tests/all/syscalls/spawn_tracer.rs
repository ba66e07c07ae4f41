//! Stops a process of a run before its first instruction. Only process creation of the launcher is
//! traced, so it otherwise runs at full speed.

use super::tracer::unless_gone;
use nix::sys::ptrace::{self, Event, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

pub struct Births {
    launcher: Pid,
    /// Children that have not yet executed their program.
    children: Vec<Pid>,
    role: String,
}

impl Births {
    /// Starts tracing the launcher for processes of a role.
    pub fn watch(launcher: u32, role: &str) -> nix::Result<Self> {
        let launcher = Pid::from_raw(launcher as i32);
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC;
        ptrace::seize(launcher, options)?;
        Ok(Self { launcher, children: Vec::new(), role: format!("\0role\0{role}\0") })
    }

    /// Resumes every stopped tracee. Returns the awaited process once it has executed its program,
    /// stopped before its first instruction and no longer polled.
    pub fn poll(&mut self) -> nix::Result<Option<Pid>> {
        match poll_status(self.launcher)? {
            WaitStatus::StillAlive => {}
            status => self.on_launcher_stop(status)?,
        }
        for child in self.children.clone() {
            match poll_status(child)? {
                WaitStatus::StillAlive => {}
                WaitStatus::PtraceEvent(_, _, event) if event == Event::PTRACE_EVENT_EXEC as i32 => {
                    self.children.retain(|other| *other != child);
                    let cmdline = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
                    if String::from_utf8_lossy(&cmdline).contains(&self.role) {
                        return Ok(Some(child));
                    }
                    unless_gone(ptrace::detach(child, None))?;
                }
                WaitStatus::Exited(..) | WaitStatus::Signaled(..) => {
                    self.children.retain(|other| *other != child)
                }
                WaitStatus::Stopped(_, signal) if signal != Signal::SIGTRAP => {
                    unless_gone(ptrace::cont(child, Some(signal)))?;
                }
                _ => unless_gone(ptrace::cont(child, None))?,
            }
        }
        Ok(None)
    }

    fn on_launcher_stop(&mut self, status: WaitStatus) -> nix::Result<()> {
        let fork_events = [Event::PTRACE_EVENT_FORK as i32, Event::PTRACE_EVENT_VFORK as i32];
        match status {
            WaitStatus::PtraceEvent(_, _, event) if fork_events.contains(&event) => {
                self.children.push(Pid::from_raw(ptrace::getevent(self.launcher)? as i32));
                unless_gone(ptrace::cont(self.launcher, None))
            }
            WaitStatus::Stopped(_, signal) if signal != Signal::SIGTRAP => {
                unless_gone(ptrace::cont(self.launcher, Some(signal)))
            }
            _ => unless_gone(ptrace::cont(self.launcher, None)),
        }
    }

    /// Detaches from all children and then from the launcher.
    pub fn end(mut self) -> nix::Result<()> {
        loop {
            while !self.children.is_empty() {
                if let Some(child) = self.poll()? {
                    unless_gone(ptrace::detach(child, None))?;
                }
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            unless_gone(ptrace::interrupt(self.launcher))?;
            match waitpid(self.launcher, Some(WaitPidFlag::__WALL))? {
                WaitStatus::PtraceEvent(_, _, event) if event == Event::PTRACE_EVENT_STOP as i32 => {
                    return unless_gone(ptrace::detach(self.launcher, None));
                }
                status => self.on_launcher_stop(status)?,
            }
        }
    }
}

fn poll_status(task: Pid) -> nix::Result<WaitStatus> {
    waitpid(task, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG))
}
