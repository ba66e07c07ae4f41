//! The spiller as the launcher has it: started before the roles, started again when it ends unasked, and ended before the logs are saved.

use super::process::Process;
use super::progress::complain;
use super::setup::Segments;
use super::spares::Pause;
use super::spill;
use anyhow::Result;
use std::path::Path;
use std::time::Instant;

/// The spiller of a run.
pub(super) struct Spilling {
    process: Process,
    started: Instant,
    pause: Pause,
    /// How often it ended unasked, and how the last time.
    ended: u64,
    how: String,
}

fn start(segments: &Segments) -> Result<Process> {
    let folder = Path::new(&segments.plan.folder);
    Process::start(spill::NAME, &segments.address(), folder, &segments.handed_to_spiller())
}

impl Spilling {
    /// Starts it, if the plan has one.
    pub fn begin(segments: &Segments) -> Result<Option<Self>> {
        if segments.plan.spill.is_none() {
            return Ok(None);
        }
        let (pause, how) = (Pause::default(), String::new());
        Ok(Some(Self { process: start(segments)?, started: Instant::now(), pause, ended: 0, how }))
    }

    /// One that has ended is started again: meanwhile the rings hold what is logged.
    pub fn watch(&mut self, segments: &Segments) {
        let now = Instant::now();
        if self.process.status.is_none() {
            if self.process.look().is_err() || self.process.status.is_none() {
                return;
            }
            self.ended += 1;
            self.how = self.process.how();
            self.pause.lost(self.started, now);
            complain(&format!("note: the spiller (pid {}) has ended: {}", self.process.pid(), self.how));
        }
        if self.pause.is_over(now) {
            match start(segments) {
                Ok(process) => (self.process, self.started) = (process, now),
                Err(error) => {
                    complain(&format!("note: the spiller cannot be started again: {error:#}"));
                    self.pause.lost(now, now);
                }
            }
        }
    }

    /// The process, to be waited for.
    pub const fn process(&self) -> &Process {
        &self.process
    }

    /// Ends it: the rest of the logs is saved by others. What there is to be said of it.
    pub fn end(&mut self) -> Option<String> {
        self.process.end();
        let how = if self.how.is_empty() { "it never ended unasked" } else { &self.how };
        let times = if self.ended == 1 { "time" } else { "times" };
        (self.ended > 0).then(|| {
            format!(
                "the spiller ended {} {times} in the middle of the run (the last time: {how}) and was started again: it moves \
                 logs, which are whole unless the run says that records are missing",
                self.ended
            )
        })
    }
}
