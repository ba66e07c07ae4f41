//! Exports each histogram as HdrHistogram's percentile output (`hgrm`).

use hdrhistogram::Histogram;
use std::io::{self, Write};

/// Lines for each halving of the distance to 100 %.
const TICKS_PER_HALF: u32 = 5;

/// Writes a histogram of nanoseconds as HdrHistogram's tools print and plot it.
pub fn write(histogram: &Histogram<u64>, out: &mut impl Write) -> io::Result<()> {
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
        write(&histogram, &mut text).unwrap();
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
