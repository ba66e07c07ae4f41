//! The processes of a run as those see them who bring them back: [`Incidents`](super::incidents::Incidents) and
//! [`Comebacks`](super::comebacks::Comebacks).

use crate::runtime::setup::Segments;
use anyhow::Result;
use protocol::supervision::Death;

/// The processes of a run, by their places in the plan, as far as incidents have to do with them. In a simulation they are
/// none of the kernel's.
pub trait Children {
    /// Whether it ended in order; `None`: it runs.
    fn ended(&self, process: usize) -> Option<bool>;
    /// Whether a signal ended it.
    fn was_killed(&self, process: usize) -> bool;
    /// How it ended, in words.
    fn how(&self, process: usize) -> String;
    /// Its process id.
    fn pid(&self, process: usize) -> u32;
    /// Kills it, unless it has ended.
    fn kill(&mut self, process: usize);
    /// Proof that it has ended, if it has.
    ///
    /// # Errors
    /// What the system refused.
    fn death(&mut self, process: usize) -> std::io::Result<Option<Death>>;
    /// Starts it again, after it has ended.
    ///
    /// # Errors
    /// It cannot be started: nothing of the attempt runs.
    fn restart(&mut self, segments: &Segments, process: usize) -> Result<()>;
    /// Sees to it that a process stands ready to be its next incarnation, where there are such.
    fn keep_spare(&mut self, segments: &Segments, process: usize) {
        let _ = (segments, process);
    }
}
