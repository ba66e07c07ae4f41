//! Detects two peaks in the run times of a cell, and the differences between the two groups of
//! runs.

use super::{Lab, LabCell, LabRun};
use crate::numbers::{duration, plain};

/// Two peaks in the run times of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoPeaks {
    /// Mean run time of the faster group in nanoseconds, and its runs.
    pub fast: (f64, usize),
    /// Run times of the slower group.
    pub slow: (f64, usize),
}

/// How much of the variance two groups must explain. Of a normal distribution cut in the middle
/// they explain 64 %, of an even one 75 %.
const MIN_EXPLAINED_VARIANCE: f64 = 0.85;
/// Fewer runs than this have no distribution.
const MIN_RUNS: usize = 8;

/// Returns two groups of run times, cut where that explains most of their variance; `None` if one
/// group fits.
pub fn two_peaks(times: impl Iterator<Item = f64>) -> Option<TwoPeaks> {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let min_group = (times.len() / 6).max(2);
    if times.len() < MIN_RUNS {
        return None;
    }
    let squares = |part: &[f64]| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        (mean, part.iter().map(|time| (time - mean).powi(2)).sum::<f64>())
    };
    let all = squares(&times).1;
    let cut = |at: usize| {
        let ((fast, within_fast), (slow, within_slow)) = (squares(&times[..at]), squares(&times[at..]));
        let peaks = TwoPeaks { fast: (fast, at), slow: (slow, times.len() - at) };
        (1.0 - (within_fast + within_slow) / all, peaks)
    };
    let (explained, peaks) =
        (min_group..=times.len() - min_group).map(cut).max_by(|a, b| a.0.total_cmp(&b.0))?;
    (explained >= MIN_EXPLAINED_VARIANCE && peaks.slow.0 > peaks.fast.0 * 1.05).then_some(peaks)
}

/// Returns the cells with two peaks, with the differences between the two groups of runs.
pub fn peaks(lab: &Lab) -> Vec<String> {
    let found: Vec<String> = lab.cells.iter().filter_map(describe_peaks).collect();
    let all = found.len();
    let mut shown: Vec<String> = found.into_iter().take(4).collect();
    if all > shown.len() {
        shown.push(format!("two peaks in {} more: see report.html", all - shown.len()));
    }
    shown
}

/// A figure of a run.
type Figure = fn(&LabRun) -> u64;

fn describe_peaks(cell: &LabCell) -> Option<String> {
    let found = two_peaks(cell.sound().map(|run| run.run_ns as f64))?;
    let border = f64::midpoint(found.fast.0, found.slow.0);
    let mean = |slow: bool, of: Figure| {
        let group: Vec<f64> = cell
            .sound()
            .filter(|run| (run.run_ns as f64 > border) == slow)
            .map(|run| of(run) as f64)
            .collect();
        group.iter().sum::<f64>() / group.len().max(1) as f64
    };
    let figures: [(&str, Figure); 5] = [
        ("forced context switches", |run| run.producer.plus(run.consumer).involuntary),
        ("chosen context switches", |run| run.producer.plus(run.consumer).voluntary),
        ("looks of the producer at a full queue", |run| run.producer.polls),
        ("looks of the consumer at an empty queue", |run| run.consumer.polls),
        ("CPU nanoseconds", |run| run.producer.plus(run.consumer).cpu_ns),
    ];
    let differ = figures.map(|(what, of)| (what, mean(false, of), mean(true, of)));
    let apart = |(_, fast, slow): &(&str, f64, f64)| ((slow + 1.0) / (fast + 1.0)).ln().abs();
    let (what, fast, slow) = differ.into_iter().max_by(|a, b| apart(a).total_cmp(&apart(b)))?;
    Some(format!(
        "two peaks: {}: {} ({} runs) and {} ({} runs); what differs most between them: {what}, {} against {}",
        cell.name(),
        duration(found.fast.0 as u64),
        found.fast.1,
        duration(found.slow.0 as u64),
        found.slow.1,
        plain(fast),
        plain(slow)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_peaks_need_two_separate_groups() {
        let around = |middle: f64, runs: usize| (0..runs).map(move |run| middle + run as f64 * 0.1);
        let found = two_peaks(around(10.0, 6).chain(around(20.0, 4))).unwrap();
        assert_eq!((found.fast.1, found.slow.1), (6, 4));
        assert!((found.fast.0 - 10.25).abs() < 1e-9 && (found.slow.0 - 20.15).abs() < 1e-9);
        assert_eq!(two_peaks((0..100).map(f64::from)), None, "evenly spread");
        assert_eq!(two_peaks(around(10.0, 20)), None);
        assert_eq!(two_peaks([1.0, 1.0, 1.0, 9.0, 9.0, 9.0].into_iter()), None, "too few runs to say");
        assert_eq!(two_peaks(std::iter::repeat_n(5.0, 20)), None, "no spread at all");
    }
}
