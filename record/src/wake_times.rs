//! How long idle cores of a machine take to run what wakes them, as `launcher doctor` measures it.

use crate::numbers::duration;
use serde::{Deserialize, Serialize};

/// Percentiles of the time from the call that wakes a parked thread on an idle core to its first
/// instruction, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WakeTimes {
    /// Number of wake-ups that were measured.
    pub wakes: u32,
    /// The median time from the wake-up call to the woken thread, in nanoseconds.
    pub p50_ns: f64,
    /// The time in nanoseconds that nine of ten wake-ups do not exceed.
    pub p90_ns: f64,
    /// The time in nanoseconds that 99 of 100 wake-ups do not exceed.
    pub p99_ns: f64,
}

impl WakeTimes {
    /// Summarizes measured wake-up times, in nanoseconds, as percentiles; `None` with fewer than
    /// 100, too few for a p99.
    pub fn from_times(mut all: Vec<f64>) -> Option<Self> {
        all.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
        (all.len() >= 100).then(|| Self {
            wakes: all.len() as u32,
            p50_ns: at(0.5),
            p90_ns: at(0.9),
            p99_ns: at(0.99),
        })
    }

    /// Describes the times that wake-ups of a thread took, for people: `9.1 µs at the median, 31 µs
    /// at p90, 1.2 ms at p99`.
    pub fn describe(&self) -> String {
        let [p50, p90, p99] = [self.p50_ns, self.p90_ns, self.p99_ns].map(|ns| duration(ns as u64));
        format!("{p50} at the median, {p90} at p90, {p99} at p99")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let all: Vec<f64> = (0..200).rev().map(|at| 1e6 + f64::from(at)).collect();
        let times = WakeTimes::from_times(all).unwrap();
        assert_eq!(
            (times.wakes, times.p50_ns, times.p90_ns, times.p99_ns),
            (200, 1e6 + 99.0, 1e6 + 179.0, 1e6 + 197.0)
        );
        assert!(times.describe().starts_with("1,000 µs at the median, "), "{}", times.describe());
        assert_eq!(WakeTimes::from_times(vec![1.0; 99]), None);
    }
}
