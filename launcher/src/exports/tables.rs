//! `npy`: a record for each order, as NumPy reads and maps it; `hgrm`: each histogram as HdrHistogram's percentile output.

use analysis::merge::{Merged, OrderRow};
use analysis::record::RunRecord;
use analysis::summary::to_ns;
use hdrhistogram::Histogram;
use protocol::flow::PATH;
use protocol::stamps::Point;
use std::io::{self, Write};

/// The columns of an order, and NumPy's names of their types.
const COLUMNS: [(&str, &str); 15] = [
    ("strategy", "<u2"),
    ("epoch", "<u2"),
    ("sequence", "<u8"),
    ("due", "<i8"),
    ("t1", "<i8"),
    ("t2", "<i8"),
    ("t3", "<i8"),
    ("t4", "<i8"),
    ("t5", "<i8"),
    ("t6", "<i8"),
    ("t7", "<i8"),
    ("t8", "<i8"),
    ("rejected", "|u1"),
    ("measured", "|u1"),
    ("venue", "<i2"),
];
/// A time that was not stamped: NumPy's own "not a time", and the least of all numbers.
const NO_TIME: i64 = i64::MIN;

/// Writes all orders of a run: times in nanoseconds since its start; `rejected` is the reason's code or 0, `measured` is 1 where the
/// order counts in the figures, `venue` is -1 where no gateway's log has it.
///
/// # Errors
/// What the writer says.
pub fn npy(record: &RunRecord, merged: &Merged, out: &mut impl Write) -> io::Result<()> {
    let types: Vec<String> = COLUMNS.iter().map(|(name, kind)| format!("('{name}', '{kind}')")).collect();
    let many = merged.orders().count();
    let head = format!("{{'descr': [{}], 'fortran_order': False, 'shape': ({many},), }}", types.join(", "));
    // Magic, version and length are ten bytes; all of the head is a multiple of 64, and ends a line.
    let length = (10 + head.len() + 1).next_multiple_of(64) - 10;
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&u16::try_from(length).map_err(io::Error::other)?.to_le_bytes())?;
    writeln!(out, "{head:<width$}", width = length - 1)?;
    let ns = |ticks: Option<u64>| ticks.map_or(NO_TIME, |ticks| since_start(record, ticks));
    for (id, row) in merged.orders() {
        out.write_all(&id.strategy().to_le_bytes())?;
        out.write_all(&id.epoch().to_le_bytes())?;
        out.write_all(&id.sequence().to_le_bytes())?;
        for point in [Point::Due].into_iter().chain(PATH) {
            out.write_all(&ns(row.at(point)).to_le_bytes())?;
        }
        out.write_all(&[row.reason().unwrap_or(0), u8::from(row.is_measured())])?;
        out.write_all(&venue(record, row).map_or(-1, |venue| venue as i16).to_le_bytes())?;
    }
    Ok(())
}

/// The venue whose gateway has taken the order; `None`: none has, or its log does not tell.
pub fn venue(record: &RunRecord, row: &OrderRow) -> Option<u16> {
    // A row has room for a gateway's number of seven bits.
    row.pushed().map(|(gateway, _)| record.plan.trading().venue_of(gateway as u16))
}

/// Nanoseconds since the run's start; what was before it is negative.
pub fn since_start(record: &RunRecord, ticks: u64) -> i64 {
    let start = record.clock.start_ticks;
    let since = to_ns(ticks.abs_diff(start), record.clock.ns_per_tick) as i64;
    if ticks < start { -since } else { since }
}

/// Halvings of the way to 100 % have so many lines each.
const TICKS_PER_HALF: u32 = 5;

/// Writes a histogram of nanoseconds as HdrHistogram's tools print and plot it.
///
/// # Errors
/// What the writer says.
pub fn hgrm(histogram: &Histogram<u64>, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    let mut counted = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF) {
        counted += step.count_since_last_iteration();
        let (value, share) = (step.value_iterated_to() as f64, step.quantile_iterated_to());
        if share < 1.0 {
            writeln!(out, "{value:>12.3} {share:>14.12} {counted:>10} {:>14.2}", 1.0 / (1.0 - share))?;
        } else {
            writeln!(out, "{value:>12.3} {share:>14.12} {counted:>10}")?;
        }
    }
    let (mean, deviation) = (histogram.mean(), histogram.stdev());
    writeln!(out, "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]")?;
    writeln!(out, "#[Max     = {:>12.3}, Total count    = {:>12}]", histogram.max() as f64, histogram.len())?;
    writeln!(out, "#[Buckets = {:>12}, SubBuckets     = {:>12}]", histogram.buckets(), 2_048)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_rise_to_all_of_them() {
        let mut histogram = Histogram::<u64>::new_with_bounds(1, 1_000_000, 3).unwrap();
        (1..=1_000).for_each(|value| histogram.record(value).unwrap());
        let mut text = Vec::new();
        hgrm(&histogram, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.len() > 20 && rows.is_sorted_by(|a, b| a[0] <= b[0] && a[1] <= b[1] && a[2] <= b[2]));
        assert_eq!(rows.last().unwrap()[..3], [1_000.0, 1.0, 1_000.0]);
        assert!(text.contains("Total count    =         1000]"), "{text}");
    }
}
