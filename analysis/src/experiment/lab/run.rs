//! One run of a cell: its latencies, its CPU time, and the checks that failed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};

/// One run of the queue benchmark with one combination of settings. Times are nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LabRun {
    /// Number of the run, from 0.
    pub number: u32,
    /// Nanoseconds from the first event pushed to the last one taken.
    pub run_ns: u64,
    /// Number of events taken by all consumers together.
    pub taken: u64,
    /// Latency from the creation of an event until it was taken; null where nothing was taken.
    pub latency: Option<LabLatency>,
    /// The latencies, in nanoseconds: HdrHistogram's V2 format with deflate, in base64; empty
    /// without any.
    #[serde(default)]
    pub histogram: String,
    /// CPU time and context switches of all producers together.
    pub producer: SideCost,
    /// CPU time and context switches of all consumers together.
    pub consumer: SideCost,
    /// Each producer's share of the first half of the events that consumer 0 took.
    pub shares: Vec<f64>,
    /// The longest wait of each producer for a free slot, in nanoseconds.
    pub longest_wait_ns: Vec<u64>,
    /// Number of unpinned runs made at the same time, this one included; 0: it was made alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub side_by_side: u32,
    /// Failed checks, or why the run ended early; empty if all is well.
    pub problems: Vec<String>,
}

const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The latencies of one run of the queue benchmark, in nanoseconds. A percentile with fewer than
/// ten events beyond it is null.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LabLatency {
    pub mean_ns: f64,
    pub p50_ns: Option<u64>,
    pub p90_ns: Option<u64>,
    pub p99_ns: Option<u64>,
    pub p999_ns: Option<u64>,
    pub max_ns: u64,
}

/// The costs of a queue's producers or of its consumers in one run: CPU time, context switches and
/// waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideCost {
    /// CPU time of the side's threads, user and system, in nanoseconds.
    pub cpu_ns: u64,
    /// Number of voluntary context switches of the side's threads.
    pub voluntary: u64,
    /// Number of context switches that the kernel forced on the side's threads.
    pub involuntary: u64,
    /// Number of waits: the queue was empty, or full.
    #[serde(rename = "looks")]
    pub polls: u64,
    /// Number of times the side's threads came back from a yield or a sleep.
    pub wakes: u64,
}

impl SideCost {
    /// Returns the sum of the costs of two ends of a queue.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_add(other.cpu_ns),
            voluntary: self.voluntary.saturating_add(other.voluntary),
            involuntary: self.involuntary.saturating_add(other.involuntary),
            polls: self.polls.saturating_add(other.polls),
            wakes: self.wakes.saturating_add(other.wakes),
        }
    }
}

/// The minimum number of samples beyond a percentile that is shown.
const MIN_SAMPLES_BEYOND: f64 = 10.0;

/// Creates an empty histogram of latencies in nanoseconds, with three significant digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are allowed")
}

/// Returns the percentile of a latency histogram in nanoseconds, if at least ten samples are beyond
/// it.
pub fn percentile(histogram: &Histogram<u64>, share: f64) -> Option<u64> {
    (histogram.len() as f64 * (1.0 - share) >= MIN_SAMPLES_BEYOND - 1e-6)
        .then(|| histogram.value_at_quantile(share))
}

impl LabLatency {
    /// Summarizes a run's latencies, in nanoseconds; `None` without any.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Option<Self> {
        (!histogram.is_empty()).then(|| Self {
            mean_ns: histogram.mean(),
            p50_ns: percentile(histogram, 0.5),
            p90_ns: percentile(histogram, 0.9),
            p99_ns: percentile(histogram, 0.99),
            p999_ns: percentile(histogram, 0.999),
            max_ns: histogram.max(),
        })
    }
}

impl LabRun {
    /// Stores the run's latencies as a packed histogram. Returns an error if a latency cannot be
    /// encoded.
    pub fn pack_latencies(&mut self, latencies: &Histogram<u64>) -> Result<(), String> {
        let mut packed = Vec::new();
        if !latencies.is_empty() {
            let packing = V2DeflateSerializer::new().serialize(latencies, &mut packed);
            packing.map_err(|error| format!("{error:?}"))?;
        }
        self.histogram = STANDARD.encode(packed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_needs_ten_samples_beyond_it() {
        let mut histogram = histogram();
        (1..=1000).for_each(|value| histogram.record(value).unwrap());
        let latency = LabLatency::from_histogram(&histogram).unwrap();
        assert_eq!((latency.p50_ns, latency.p90_ns, latency.p99_ns), (Some(500), Some(900), Some(990)));
        assert_eq!((latency.p999_ns, latency.max_ns), (None, 1000));
        assert_eq!(LabLatency::from_histogram(&super::histogram()), None);
    }
}
