//! Starts and stops the launcher's helper processes, the reaper and the spiller. Started before the
//! roles, and restarted if it exits unasked.

use super::process::Process;
use super::progress::complain;
use super::restart_policy::Backoff;
use super::setup::Segments;
use super::{reaper, spill};
use anyhow::Result;
use std::path::Path;
use std::time::Instant;

/// One of the launcher's helper processes: the reaper or the spiller.
pub(super) struct HelperProcess {
    name: &'static str,
    process: Process,
    started: Instant,
    backoff: Backoff,
    /// How often it exited unasked, and how the last time.
    ended: u64,
    how: String,
}

/// Both inherit the logs and the control segment; only the spiller writes them.
fn start(name: &str, segments: &Segments) -> Result<Process> {
    let folder = Path::new(&segments.plan.folder);
    Process::start(name, &segments.address(), folder, &segments.inherited_by_helper(name == spill::NAME))
}

impl HelperProcess {
    /// Starts the reaper, which removes everything that a killed launcher leaves.
    pub fn reaper(segments: &Segments) -> Result<Self> {
        Self::begin(reaper::NAME, segments)
    }

    /// Starts the spiller, the process that copies full stamp logs to files, if the plan has one.
    pub fn spiller(segments: &Segments) -> Result<Option<Self>> {
        segments.plan.spill.as_ref().map(|_| Self::begin(spill::NAME, segments)).transpose()
    }

    fn begin(name: &'static str, segments: &Segments) -> Result<Self> {
        let (process, started) = (start(name, segments)?, Instant::now());
        Ok(Self { name, process, started, backoff: Backoff::default(), ended: 0, how: String::new() })
    }

    /// Restarts the helper process if it has exited. Until then the rings buffer the logs, and a
    /// killed launcher leaves its segments behind.
    pub fn watch(&mut self, segments: &Segments) {
        let now = Instant::now();
        if self.process.status.is_none() {
            if self.process.poll().is_err() || self.process.status.is_none() {
                return;
            }
            self.ended += 1;
            self.how = self.process.exit_text();
            self.backoff.charge_loss(self.started, now);
            let (name, pid) = (self.display_name(), self.process.pid());
            complain(&format!("note: the {name} (pid {pid}) exited ({}) and is restarted", self.how));
        }
        if self.backoff.is_over(now) {
            match start(self.name, segments) {
                Ok(process) => (self.process, self.started) = (process, now),
                Err(error) => {
                    complain(&format!(
                        "note: the {} cannot be started again: {error:#}",
                        self.display_name()
                    ));
                    self.backoff.charge_loss(now, now);
                }
            }
        }
    }

    fn display_name(&self) -> &'static str {
        if self.name == spill::NAME { "spiller" } else { self.name }
    }

    /// Returns the helper's process.
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// Ends the helper process.
    pub fn end(&mut self) {
        self.process.end();
    }

    /// Returns a note for the user if the spiller exited unasked.
    pub fn exit_note(&self) -> Option<String> {
        let times = if self.ended == 1 { "time" } else { "times" };
        (self.ended > 0).then(|| {
            format!(
                "the spiller exited {} {times} during the run (the last time: {}) and was restarted: it moves \
                 logs, which are whole unless the run says that records are missing",
                self.ended, self.how
            )
        })
    }
}
