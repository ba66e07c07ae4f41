//! Two threads on two cores, for benches: a peer does jobs on its core while the calling thread
//! measures. The core-to-core round trip before and after shows whether the cores moved.

use crate::{floor, pin};
use shm::memory::{AtomicWords, Region};
use std::ops::Range;
use std::sync::mpsc;
use std::time::Instant;

/// Number of batches into which a measurement is cut, so that a preemption spoils one batch and not
/// their median.
pub const BATCHES: u64 = 50;

/// A second thread, pinned to a core of its own, that does jobs one after another for the thread
/// that started it.
pub struct Peer<J> {
    /// `None` is the job to answer a measurement of the core-to-core round trip.
    jobs: mpsc::Sender<Option<J>>,
    done: mpsc::Receiver<()>,
    line: AtomicWords,
}

impl<J: Send + 'static> Peer<J> {
    /// Starts the peer thread on the CPU core with index `core`. `work` does one job.
    ///
    /// # Panics
    /// On the peer's thread, if the core is not allowed.
    pub fn start(core: u32, mut work: impl FnMut(J) + Send + 'static) -> Self {
        let (jobs, todo) = mpsc::channel::<Option<J>>();
        let (says, done) = mpsc::channel();
        let line = Region::heap(16).words();
        let ours = line.clone();
        std::thread::spawn(move || {
            pin::pin_to(core).expect("an allowed core");
            for job in todo {
                job.map_or_else(|| floor::answer(&line[0]), &mut work);
                let _ = says.send(());
            }
        });
        Self { jobs, done, line: ours }
    }

    /// Calls `ours` on this thread while the peer thread does `job`. Returns the value of `ours`
    /// when both are done.
    ///
    /// # Panics
    /// If the peer has panicked.
    pub fn with<R>(&self, job: J, ours: impl FnOnce() -> R) -> R {
        self.ask(Some(job), ours)
    }

    fn ask<R>(&self, job: Option<J>, ours: impl FnOnce() -> R) -> R {
        self.jobs.send(job).expect("the other thread waits");
        let result = ours();
        self.done.recv().expect("the other thread goes on");
        result
    }

    /// Measures the round trip of a cache line between the calling thread's core and the peer's, in
    /// nanoseconds.
    pub fn floor(&self, rounds: u64) -> f64 {
        self.ask(None, || {
            let round_trip = floor::measure(&self.line[0], rounds as u32);
            floor::stop_answering(&self.line[0]);
            round_trip
        })
    }

    /// Runs `measure` between two measurements of the cores' cache-line round trip (floor). Returns
    /// the mean of the floors in nanoseconds, and the measurement; `None` if the floors differ by
    /// more than a tenth.
    pub fn between_floors<R>(&self, rounds: u64, measure: impl FnOnce() -> R) -> Option<(f64, R)> {
        between_yardsticks(&mut || self.floor(rounds), measure)
    }
}

/// Calls `measure` between two calls of `yardstick`, a reference measurement whose two results show
/// whether the machine was steady. Returns the mean of these two, and the result of `measure`;
/// `None` if the two differ by more than a tenth.
pub fn between_yardsticks<R>(
    yardstick: &mut impl FnMut() -> f64,
    measure: impl FnOnce() -> R,
) -> Option<(f64, R)> {
    let before = yardstick();
    let measured = measure();
    let after = yardstick();
    let is_steady = (before - after).abs() <= 0.1 * before.min(after);
    is_steady.then_some(((before + after) / 2.0, measured))
}

/// Returns the time of one operation in nanoseconds: the median over [`BATCHES`] batches of the
/// mean of `count` operations. `work` does the operations with these numbers.
#[inline(always)]
pub fn median_ns(count: u64, mut work: impl FnMut(Range<u64>)) -> f64 {
    let mut batches = Vec::new();
    for first in (0..BATCHES).map(|batch| batch * count) {
        let start = Instant::now();
        work(first..first + count);
        batches.push(start.elapsed().as_nanos() as f64 / count as f64);
    }
    floor::median(batches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shm::sync::{AtomicU64, Ordering};
    use std::sync::Arc;

    #[test]
    fn peer_does_each_job_while_the_caller_measures() {
        let sum = Arc::new(AtomicU64::new(0));
        let theirs = Arc::clone(&sum);
        let core = pin::allowed_cores()[0];
        let peer = Peer::start(core, move |job: u64| {
            theirs.fetch_add(job, Ordering::SeqCst);
        });
        let ours: Vec<u64> = (1..=3).map(|job| peer.with(job, || job * 2)).collect();
        assert_eq!((ours, sum.load(Ordering::SeqCst)), (vec![2, 4, 6], 6));
        assert!(peer.floor(2) > 0.0);
    }

    #[test]
    fn measurement_between_unequal_yardsticks_is_dropped() {
        let measure = |lengths: [f64; 2]| {
            let mut lengths = lengths.into_iter();
            between_yardsticks(&mut || lengths.next().unwrap(), || "measured")
        };
        assert_eq!(measure([100.0, 109.0]), Some((104.5, "measured")));
        assert_eq!(measure([100.0, 111.0]), None);
    }

    #[test]
    fn batches_cover_every_number_once() {
        let mut received = Vec::new();
        median_ns(3, |numbers| received.extend(numbers));
        assert!(received.into_iter().eq(0..3 * BATCHES));
    }
}
