//! Starts and stops the reaper. It is started before the roles, and restarted if it exits unasked.

use super::process::Process;
use super::progress::complain;
use super::reaper;
use super::restart_policy::Backoff;
use super::setup::Segments;
use anyhow::Result;
use std::path::Path;
use std::time::Instant;

/// The process that removes everything that a killed launcher leaves.
pub(super) struct ReaperProcess {
    process: Process,
    started: Instant,
    backoff: Backoff,
}

/// The reaper inherits the logs and the control segment, for reading.
fn start(segments: &Segments) -> Result<Process> {
    let folder = Path::new(&segments.plan.folder);
    Process::start(reaper::NAME, &segments.address(), folder, &segments.inherited_by_reaper())
}

impl ReaperProcess {
    /// Starts the reaper of a run.
    pub fn start(segments: &Segments) -> Result<Self> {
        Ok(Self { process: start(segments)?, started: Instant::now(), backoff: Backoff::default() })
    }

    /// Restarts the reaper if it has exited. Until then nobody removes the segments of a killed
    /// launcher.
    pub fn watch(&mut self, segments: &Segments) {
        let now = Instant::now();
        if self.process.status.is_none() {
            if self.process.poll().is_err() || self.process.status.is_none() {
                return;
            }
            self.backoff.charge_loss(self.started, now);
            let (pid, how) = (self.process.pid(), self.process.exit_text());
            complain(&format!("note: the reaper (pid {pid}) exited ({how}) and is restarted"));
        }
        if self.backoff.is_over(now) {
            match start(segments) {
                Ok(process) => (self.process, self.started) = (process, now),
                Err(error) => {
                    complain(&format!("note: the reaper cannot be started again: {error:#}"));
                    self.backoff.charge_loss(now, now);
                }
            }
        }
    }

    /// Returns the reaper's process.
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// Ends the reaper.
    pub fn end(&mut self) {
        self.process.end();
    }
}
