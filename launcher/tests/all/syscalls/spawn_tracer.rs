//! Stops a process of a run before its first instruction. Only process creation of the launcher is
//! traced, so it otherwise runs at full speed.

use nix::sys::ptrace::{self, Event, Options};
use nix::unistd::Pid;
use stepper::{Resume, Stop, Tracee};

pub struct Births {
    launcher: Tracee,
    /// Children that have not yet executed their program.
    children: Vec<Tracee>,
    role: String,
}

impl Births {
    /// Starts tracing the launcher for processes of a role.
    pub fn watch(launcher: u32, role: &str) -> nix::Result<Self> {
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACEEXEC;
        let launcher = Tracee::seize(Pid::from_raw(launcher as i32), options)?;
        Ok(Self { launcher, children: Vec::new(), role: format!("\0role\0{role}\0") })
    }

    /// Resumes every stopped tracee. Returns the awaited process once it has executed its program,
    /// stopped before its first instruction and no longer polled.
    pub fn poll(&mut self) -> nix::Result<Option<Tracee>> {
        if let Some(stop) = self.launcher.poll()? {
            self.on_launcher_stop(stop)?;
        }
        for child in self.children.clone() {
            match child.poll()? {
                None => {}
                Some(stop) if stop.is_exec() => {
                    self.children.retain(|other| *other != child);
                    let cmdline = std::fs::read(format!("/proc/{}/cmdline", child.pid())).unwrap_or_default();
                    if String::from_utf8_lossy(&cmdline).contains(&self.role) {
                        return Ok(Some(child));
                    }
                    child.detach(None)?;
                }
                Some(stop) if stop.is_end() => self.children.retain(|other| *other != child),
                Some(stop) => run_on(child, stop)?,
            }
        }
        Ok(None)
    }

    fn on_launcher_stop(&mut self, stop: Stop) -> nix::Result<()> {
        let fork_events = [Event::PTRACE_EVENT_FORK as i32, Event::PTRACE_EVENT_VFORK as i32];
        if matches!(stop, Stop::Event(event) if fork_events.contains(&event)) {
            let child = Pid::from_raw(ptrace::getevent(self.launcher.pid())? as i32);
            self.children.push(Tracee::new(child));
        }
        run_on(self.launcher, stop)
    }

    /// Detaches from all children and then from the launcher.
    pub fn end(mut self) -> nix::Result<()> {
        loop {
            while !self.children.is_empty() {
                if let Some(child) = self.poll()? {
                    child.detach(None)?;
                }
                std::thread::sleep(std::time::Duration::from_micros(100));
            }
            self.launcher.interrupt()?;
            match self.launcher.wait()? {
                stop if stop.is_interruption() => return self.launcher.detach(None),
                stop => self.on_launcher_stop(stop)?,
            }
        }
    }
}

/// Resumes a stopped task with its signal.
fn run_on(task: Tracee, stop: Stop) -> nix::Result<()> {
    let signal = if let Stop::Signal(signal) = stop { Some(signal) } else { None };
    task.resume(Resume::Run, signal)
}
