//! The latencies of a board's case over time: the timeline for the page, and a CSV table for each
//! thread.

use super::histogram::record_histogram;
use crate::benchmark::{BenchmarkRun, EndResults};
use analysis::experiment::{BoardSlice, ThreadLatencies, latency_csv};
use anyhow::Result;
use merge::figures::MeasureSeries;
use protocol::benchmark::BOARD_SLICES;
use protocol::benchmark::board_results::BoardMeasure;
use protocol::plan::BoardWork;
use protocol::shared_histogram::Resolution;
use record::document::write_atomically;
use std::path::Path;
use std::slice;
use verdict::summary::Distribution;

/// The measures of the writer that have a histogram for each slice.
const OF_WRITER: [(&str, BoardMeasure); 2] =
    [("write", BoardMeasure::First), ("from due", BoardMeasure::Second)];
/// The measures of a reader that have a histogram for each slice.
const OF_READER: [(&str, BoardMeasure); 2] =
    [("propagation", BoardMeasure::First), ("read", BoardMeasure::Second)];

/// Returns the samples of a measure in a slice, of several threads together.
fn series(ends: &[EndResults], measure: BoardMeasure, slice: usize, ns_per_tick: f64) -> MeasureSeries {
    let mut series = MeasureSeries::default();
    for words in ends.iter().filter_map(|end| end.words.as_ref()) {
        let words = words.slice(measure.slice_offset(slice), Resolution::COARSE.words());
        record_histogram(&mut series, &words, Resolution::COARSE, ns_per_tick);
    }
    series
}

const fn begin_ns(slice: usize, duration_ns: u64) -> u64 {
    (duration_ns as u128 * slice as u128 / BOARD_SLICES as u128) as u64
}

/// Returns the latencies of a case of the board benchmark in time slices of equal length.
pub fn timeline(made: &BenchmarkRun, duration_ns: u64, ns_per_tick: f64) -> Vec<BoardSlice> {
    let Some((writer, readers)) = made.ends.split_first() else { return Vec::new() };
    let figures = |ends: &[EndResults], measure, slice| {
        series(ends, measure, slice, ns_per_tick).distribution(ns_per_tick)
    };
    let slice = |number: usize| {
        let write = figures(slice::from_ref(writer), BoardMeasure::First, number);
        let [propagation, read] =
            [BoardMeasure::First, BoardMeasure::Second].map(|measure| figures(readers, measure, number));
        BoardSlice {
            begin_ns: begin_ns(number, duration_ns),
            writes: write.count,
            write_p50_ns: write.p50_ns,
            write_p99_ns: write.p99_ns,
            write_max_ns: write.max_ns,
            reads: read.count,
            read_p50_ns: read.p50_ns,
            read_p99_ns: read.p99_ns,
            read_max_ns: read.max_ns,
            propagation_p50_ns: propagation.p50_ns,
            propagation_p99_ns: propagation.p99_ns,
            propagation_max_ns: propagation.max_ns,
        }
    };
    (0..BOARD_SLICES).map(slice).collect()
}

/// Writes latencies over time as CSV: `latency-N-THREAD.csv` for each thread of the board
/// benchmark's case N, and `latency-N.csv` for all its threads.
pub fn save(
    folder: &Path,
    case: usize,
    made: &BenchmarkRun,
    work: &BoardWork,
    ns_per_tick: f64,
) -> Result<()> {
    let latencies = |(number, end): (usize, &EndResults)| {
        let thread = &made.plan.threads[number].name;
        let measures = if number == 0 { OF_WRITER } else { OF_READER };
        measures.map(|(measure, place)| {
            let slice = |slice| -> (u64, Distribution, Option<u64>) {
                let series = series(slice::from_ref(end), place, slice, ns_per_tick);
                let p95 = series.quantile(0.95, ns_per_tick);
                (begin_ns(slice, work.duration_ns), series.distribution(ns_per_tick), p95)
            };
            ThreadLatencies { thread, measure, slices: (0..BOARD_SLICES).map(slice).collect() }
        })
    };
    let threads: Vec<_> = made.ends.iter().enumerate().map(latencies).collect();
    for both in &threads {
        let name = format!("latency-{case}-{}.csv", both[0].thread);
        write_atomically(&folder.join(name), &latency_csv(both)?)?;
    }
    Ok(write_atomically(&folder.join(format!("latency-{case}.csv")), &latency_csv(&threads.concat())?)?)
}
