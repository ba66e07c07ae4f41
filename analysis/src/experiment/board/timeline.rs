//! Latencies of the board benchmark over time: a slice for each sixtieth of a case.

use serde::{Deserialize, Serialize};
use verdict::summary::Distribution;

/// Counts and latencies, in nanoseconds, of all threads in one sixtieth of a board benchmark case's
/// time. Percentiles are exact to one part in 32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BoardSlice {
    /// Beginning of the slice, in nanoseconds from the start.
    pub begin_ns: u64,
    /// Number of writes that began in the slice.
    pub writes: u64,
    /// Median of a write, in nanoseconds.
    pub write_p50_ns: Option<u64>,
    /// 99th percentile of a write, in nanoseconds.
    pub write_p99_ns: Option<u64>,
    /// Longest write, in nanoseconds.
    pub write_max_ns: Option<u64>,
    /// Number of reads that began in the slice.
    pub reads: u64,
    /// Median of a read, in nanoseconds.
    pub read_p50_ns: Option<u64>,
    /// 99th percentile of a read, in nanoseconds.
    pub read_p99_ns: Option<u64>,
    /// Longest read, in nanoseconds.
    pub read_max_ns: Option<u64>,
    /// Median time from a write until its value was read, in nanoseconds.
    pub propagation_p50_ns: Option<u64>,
    /// 99th percentile of the time from a write until its value was read, in nanoseconds.
    pub propagation_p99_ns: Option<u64>,
    /// Longest time from a write until its value was read, in nanoseconds.
    pub propagation_max_ns: Option<u64>,
}

/// The latency distributions of one measured duration (such as `write`) of one thread of the board
/// benchmark, by time slice.
#[derive(Clone, Debug)]
pub struct ThreadLatencies<'a> {
    /// Name of the thread: `writer`, `reader-3`.
    pub thread: &'a str,
    /// Name of the measured duration: `write`, `from due`, `read` or `propagation`.
    pub measure: &'static str,
    /// The beginning of each slice in nanoseconds, the slice's distribution and its p95.
    pub slices: Vec<(u64, Distribution, Option<u64>)>,
}

const HEAD: [&str; 10] =
    ["thread", "measure", "begin_ns", "count", "min_ns", "mean_ns", "p50_ns", "p95_ns", "p99_ns", "max_ns"];

/// Returns a CSV table of the board benchmark's latencies over time, with a row for each time slice
/// of each measure, ordered by time. Slices without a value are left out; an unknown percentile is
/// an empty cell.
///
/// # Errors
/// Never in memory.
pub fn latency_csv(latencies: &[ThreadLatencies<'_>]) -> Result<Vec<u8>, csv::Error> {
    let mut rows: Vec<_> = latencies
        .iter()
        .flat_map(|one| one.slices.iter().map(move |slice| (slice, one)))
        .filter(|((_, figures, _), _)| figures.count > 0)
        .collect();
    // Stable: threads and measures keep their order within a slice.
    rows.sort_by_key(|((begin, ..), _)| *begin);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(HEAD)?;
    for ((begin, figures, p95), one) in rows {
        let cell = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
        let Distribution { count, min_ns, mean_ns, p50_ns, p99_ns, max_ns, .. } = figures;
        let mean = mean_ns.map_or_else(String::new, |mean| format!("{mean:.1}"));
        let times = [cell(*p50_ns), cell(*p95), cell(*p99_ns), cell(*max_ns)];
        let begin = [begin.to_string(), count.to_string(), cell(*min_ns), mean];
        let names = [one.thread.to_owned(), one.measure.to_owned()];
        writer.write_record(names.into_iter().chain(begin).chain(times))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_merges_threads_by_time() {
        let figures = |count| Distribution {
            count,
            min_ns: Some(1),
            mean_ns: Some(2.25),
            max_ns: Some(9),
            ..Distribution::default()
        };
        let of = |thread, measure, counts: [u64; 2]| ThreadLatencies {
            thread,
            measure,
            slices: vec![(0, figures(counts[0]), None), (50, figures(counts[1]), Some(8))],
        };
        let csv = latency_csv(&[of("writer", "write", [3, 4]), of("reader-0", "read", [0, 5])]).unwrap();
        let expected = [
            "thread,measure,begin_ns,count,min_ns,mean_ns,p50_ns,p95_ns,p99_ns,max_ns",
            "writer,write,0,3,1,2.2,,,,9",
            "writer,write,50,4,1,2.2,,8,,9",
            "reader-0,read,50,5,1,2.2,,8,,9",
        ];
        assert_eq!(String::from_utf8(csv).unwrap().lines().collect::<Vec<_>>(), expected);
    }
}
