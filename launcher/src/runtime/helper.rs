//! A helper of the launcher: the warden, or the spiller. It is started before the roles, and
//! started again when it ends unasked.

use super::process::Process;
use super::progress::complain;
use super::restart_policy::Backoff;
use super::setup::Segments;
use super::{reaper, spill};
use anyhow::Result;
use std::path::Path;
use std::time::Instant;

/// A helper that runs, or is about to be started again.
pub(super) struct Helper {
    name: &'static str,
    process: Process,
    started: Instant,
    backoff: Backoff,
    /// How often it ended unasked, and how the last time.
    ended: u64,
    how: String,
}

/// Each inherits the logs and the control segment; only the spiller writes them.
fn start(name: &str, segments: &Segments) -> Result<Process> {
    let folder = Path::new(&segments.plan.folder);
    Process::start(name, &segments.address(), folder, &segments.handed_logs(name == spill::NAME))
}

impl Helper {
    /// Starts the warden: from here on a launcher that is killed leaves nothing.
    pub fn warden(segments: &Segments) -> Result<Self> {
        Self::begin(reaper::NAME, segments)
    }

    /// Starts the spiller, if the plan has one.
    pub fn spiller(segments: &Segments) -> Result<Option<Self>> {
        segments.plan.spill.as_ref().map(|_| Self::begin(spill::NAME, segments)).transpose()
    }

    fn begin(name: &'static str, segments: &Segments) -> Result<Self> {
        let (process, started) = (start(name, segments)?, Instant::now());
        Ok(Self { name, process, started, backoff: Backoff::default(), ended: 0, how: String::new() })
    }

    /// Starts one again that has ended. Meanwhile the rings hold what is logged, and a launcher
    /// that is killed leaves its segments behind.
    pub fn watch(&mut self, segments: &Segments) {
        let now = Instant::now();
        if self.process.status.is_none() {
            if self.process.look().is_err() || self.process.status.is_none() {
                return;
            }
            self.ended += 1;
            self.how = self.process.how();
            self.backoff.charge_loss(self.started, now);
            let (name, pid) = (self.in_words(), self.process.pid());
            complain(&format!(
                "note: the {name} (pid {pid}) has ended: {}: another one is started",
                self.how
            ));
        }
        if self.backoff.is_over(now) {
            match start(self.name, segments) {
                Ok(process) => (self.process, self.started) = (process, now),
                Err(error) => {
                    complain(&format!("note: the {} cannot be started again: {error:#}", self.in_words()));
                    self.backoff.charge_loss(now, now);
                }
            }
        }
    }

    fn in_words(&self) -> &'static str {
        if self.name == spill::NAME { "spiller" } else { self.name }
    }

    /// Returns the process, to be waited for.
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// Ends it.
    pub fn end(&mut self) {
        self.process.end();
    }

    /// Returns what there is to be said of a spiller that ended unasked.
    pub fn said(&self) -> Option<String> {
        let times = if self.ended == 1 { "time" } else { "times" };
        (self.ended > 0).then(|| {
            format!(
                "the spiller ended {} {times} in the middle of the run (the last time: {}) and was started again: it moves \
                 logs, which are whole unless the run says that records are missing",
                self.ended, self.how
            )
        })
    }
}
