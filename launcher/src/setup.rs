//! The segments of a run, created before anything starts and removed whatever happens.

use anyhow::{Context, Result};
use shm::control::Control;
use shm::memory::header::{HEADER_WORDS, SCHEDULE_ENTRY_WORDS};
use shm::memory::{Words, region};
use shm::plan::Plan;
use shm::ring::SegmentSpec;
use shm::segments::{self, CONTROL, thread_segment};
use shm::sync::Ordering;
use shm::with_link;
use strategy::schedule::Schedule;

/// A run's segments. Dropping it removes their names.
pub struct Segments {
    plan: Plan,
    /// The control segment.
    pub control: Control,
    /// Each thread's status block and stamp log, in the order of the plan.
    pub threads: Vec<Words>,
}

/// All segments but the control segment, for the plan's technique.
pub fn specs(plan: &Plan) -> Vec<SegmentSpec> {
    with_link!(plan.technique, T => segments::all::<T>(plan))
}

/// Bytes that a plan needs in `/dev/shm`, control segment included.
pub fn bytes_needed(plan: &Plan) -> u64 {
    let pages = |words: usize| (words as u64 * 8).next_multiple_of(4096);
    specs(plan).iter().map(|spec| pages(spec.words)).sum::<u64>() + pages(segments::CONTROL_WORDS)
}

impl Segments {
    /// Creates the control segment only, with the plan in it: the run can be found, and cleaned up after, from here on.
    ///
    /// # Errors
    /// No room, no permission, a plan that does not fit; nothing is left behind.
    pub fn begin(plan: &Plan) -> Result<Self> {
        let remove = RemoveOnError(plan);
        let control = segments::create_control(plan).context("cannot start the run")?;
        std::mem::forget(remove);
        Ok(Self { plan: plan.clone(), control, threads: Vec::new() })
    }

    /// Creates the other segments and copies the schedule into its own.
    ///
    /// # Errors
    /// As [`Segments::begin`].
    pub fn create(&mut self, schedule: &Schedule) -> Result<()> {
        for spec in specs(&self.plan) {
            let Some(words) = segments::create(&self.plan, &spec)? else { continue };
            if let Some(strategy) = spec.what.strip_prefix("schedule-").and_then(|index| index.parse().ok()) {
                fill_schedule(&words, schedule, strategy);
            }
            if spec.what.starts_with(&thread_segment("")) {
                self.threads.push(words);
            }
        }
        Ok(())
    }
}

fn fill_schedule(words: &Words, schedule: &Schedule, strategy: u16) {
    let entries = schedule.words(strategy).iter().flatten();
    for (word, value) in words[HEADER_WORDS..].iter().zip(entries) {
        // Relaxed: the children start afterwards.
        word.store(*value, Ordering::Relaxed);
    }
    debug_assert_eq!(schedule.words(strategy).len() * SCHEDULE_ENTRY_WORDS + HEADER_WORDS, words.len());
}

/// Removes what a failing [`Segments::begin`] has created.
struct RemoveOnError<'a>(&'a Plan);

impl Drop for RemoveOnError<'_> {
    fn drop(&mut self) {
        let _ = region::unlink(&self.0.segment_name(CONTROL));
    }
}

impl Drop for Segments {
    fn drop(&mut self) {
        remove_all(&self.plan.run);
    }
}

/// Removes every segment of a run, the control segment last, so that the run can be found while anything of it is there.
pub fn remove_all(run: &str) {
    let prefix = format!("{}{run}.", Plan::PREFIX);
    let control = format!("{prefix}{CONTROL}");
    let names = region::list_segments().unwrap_or_default();
    for name in names.iter().filter(|name| name.starts_with(&prefix) && **name != control) {
        let _ = region::unlink(name);
    }
    let _ = region::unlink(&control);
}
