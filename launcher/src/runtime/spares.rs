//! Processes that stand ready to be the next incarnation of one that dies: what they do meanwhile is a matter of their roles.
//!
//! A spare is told to go on with a byte, and ends by itself when its standard input does: it outlives no launcher. One that ends is replaced,
//! however often that was: at once at first, and after a pause where it happens again and again. Without one a comeback only takes longer.

mod pause;

use crate::runtime::process::Process;
use crate::runtime::setup::Segments;
pub(super) use pause::Pause;
use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::time::Instant;

/// What the name of such a process begins with.
pub const PREFIX: &str = "spare:";

struct Spare {
    /// Whose next incarnation it is, by its place in the plan.
    of: usize,
    process: Process,
    stdin: ChildStdin,
    started: Instant,
}

/// The spares of a run.
#[derive(Default)]
pub struct Spares {
    all: Vec<Spare>,
    /// How many have become what they were the spare of. Those that were lost share a file for their last words.
    taken: u32,
    /// What was lost of each, by its place in the plan.
    pauses: Vec<Pause>,
}

impl Spares {
    /// Sees to it that a process has one. What cannot be started is not: nobody needs it to come back.
    pub fn keep(&mut self, segments: &Segments, of: usize) {
        let now = Instant::now();
        self.pauses.resize_with(segments.plan.processes.len(), Pause::default);
        let is_alive = |spare: &mut Spare| spare.process.look().is_ok() && spare.process.status.is_none();
        if let Some(place) = self.all.iter().position(|spare| spare.of == of) {
            if is_alive(&mut self.all[place]) {
                return;
            }
            let mut spare = self.all.remove(place);
            spare.process.end();
            self.pauses[of].lost(spare.started, now);
        }
        if !self.pauses[of].is_over(now) {
            return;
        }
        match self.start(segments, of) {
            Some((process, stdin)) => self.all.push(Spare { of, process, stdin, started: now }),
            None => self.pauses[of].lost(now, now),
        }
    }

    fn start(&self, segments: &Segments, of: usize) -> Option<(Process, ChildStdin)> {
        let plan = &segments.plan.processes[of];
        let stderr = format!("{}.spare-{}.stderr", plan.name, self.taken + 1);
        let mut process = Process::start_with(
            &format!("{PREFIX}{}", plan.name),
            &segments.address(),
            &Path::new(&segments.plan.folder).join(stderr),
            &segments.handed_to(plan),
            Stdio::piped(),
        )
        .ok()?;
        process.name.clone_from(&plan.name);
        let stdin = process.stdin()?;
        Some((process, stdin))
    }

    /// The spare of a process, told to go on; `None`: there is none that could.
    pub fn take(&mut self, of: usize) -> Option<Process> {
        let place = self.all.iter().position(|spare| spare.of == of)?;
        let mut spare = self.all.remove(place);
        let is_alive = spare.process.look().is_ok() && spare.process.status.is_none();
        if is_alive && spare.stdin.write_all(&[1]).is_ok() {
            self.taken += 1;
            return Some(spare.process);
        }
        spare.process.end();
        None
    }

    /// Ends all of them.
    pub fn end(&mut self) {
        self.all.drain(..).for_each(|mut spare| spare.process.end());
    }
}

impl Drop for Spares {
    fn drop(&mut self) {
        self.end();
    }
}
