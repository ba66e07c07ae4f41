//! Processes that stand ready to be the next incarnation of one that dies: what they do meanwhile is a matter of their roles.
//!
//! A spare is told to go on with a byte, and ends by itself when its standard input does: it outlives no launcher. One that ends is started
//! again a few times; without one a comeback only takes longer.

use crate::runtime::process::Process;
use crate::runtime::setup::Segments;
use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Stdio};

/// What the name of such a process begins with.
pub const PREFIX: &str = "spare:";
/// So many spares that ended unasked may be replaced.
const LOST: u32 = 16;

struct Spare {
    /// Whose next incarnation it is, by its place in the plan.
    of: usize,
    process: Process,
    stdin: ChildStdin,
}

/// The spares of a run.
#[derive(Default)]
pub struct Spares {
    all: Vec<Spare>,
    /// How many were started.
    started: u32,
    lost: u32,
}

impl Spares {
    /// Sees to it that a process has one. What cannot be started is not: nobody needs it to come back.
    pub fn keep(&mut self, segments: &Segments, of: usize) {
        let is_alive = |spare: &mut Spare| spare.process.look().is_ok() && spare.process.status.is_none();
        if let Some(place) = self.all.iter().position(|spare| spare.of == of) {
            if is_alive(&mut self.all[place]) {
                return;
            }
            self.all.remove(place).process.end();
            self.lost += 1;
        }
        if self.lost > LOST {
            return;
        }
        let plan = &segments.plan.processes[of];
        self.started += 1;
        let stderr = format!("{}.spare-{}.stderr", plan.name, self.started);
        let name = format!("{}{}", PREFIX, plan.name);
        let process = Process::start_with(
            &name,
            &segments.address(),
            &Path::new(&segments.plan.folder).join(stderr),
            &segments.handed_to(plan),
            Stdio::piped(),
        );
        let started = process.ok().and_then(|mut process| Some((process.stdin()?, process)));
        match started {
            Some((stdin, mut process)) => {
                process.name.clone_from(&plan.name);
                self.all.push(Spare { of, process, stdin });
            }
            None => self.lost += 1,
        }
    }

    /// The spare of a process, told to go on; `None`: there is none that could.
    pub fn take(&mut self, of: usize) -> Option<Process> {
        let place = self.all.iter().position(|spare| spare.of == of)?;
        let mut spare = self.all.remove(place);
        let is_alive = spare.process.look().is_ok() && spare.process.status.is_none();
        if is_alive && spare.stdin.write_all(&[1]).is_ok() {
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
