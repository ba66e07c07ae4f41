//! Compares cells of a lab with each other, run by run, by the rule of evidence.
//!
//! The runs of one number are made one after the other, so that they are pairs.

use super::figures::MeasuredLabCell;
use super::{LabCell, LabRun, Wait};
use crate::stats::{Evidence, Ranking, median, rank};
use record::numbers::plain;
use std::collections::BTreeMap;

/// A function that returns the figure of one run of the queue benchmark, by which settings are
/// compared.
pub type RunFigure = fn(&LabRun) -> Option<f64>;

/// Reads from a run of the queue benchmark the CPU time of its producers and consumers
/// (nanoseconds).
pub const CPU: RunFigure = |run| Some(run.producer.plus(run.consumer).cpu_ns as f64);
/// Reads from a run of the queue benchmark its median latency (nanoseconds).
pub const P50: RunFigure = |run| run.latency?.p50_ns.map(|ns| ns as f64);
/// Reads from a run of the queue benchmark the 99th percentile of its latency (nanoseconds).
pub const P99: RunFigure = |run| run.latency?.p99_ns.map(|ns| ns as f64);
/// Reads from a run of the queue benchmark its duration (nanoseconds).
pub const RUN_TIME: RunFigure = |run| Some(run.run_ns as f64);

fn by_number(cell: &LabCell, figure: RunFigure) -> BTreeMap<u32, f64> {
    cell.valid_runs().filter_map(|run| Some((run.number, figure(run)?))).collect()
}

/// Returns the figures of two cells in the runs that both have.
fn paired(a: &LabCell, b: &LabCell, figure: RunFigure) -> Vec<(u32, f64, f64)> {
    let (a, b) = (by_number(a, figure), by_number(b, figure));
    a.into_iter().filter_map(|(number, a)| Some((number, a, *b.get(&number)?))).collect()
}

/// Returns the evidence on cell B (combination of settings) of the queue benchmark against cell A,
/// by a figure of their runs.
pub fn judge_cells(a: &LabCell, b: &LabCell, figure: RunFigure) -> Evidence {
    let pairs = paired(a, b, figure);
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().map(|(_, a, b)| (a, b)).unzip();
    Evidence::from_repeats(&a, &b, 0.0)
}

/// Finds the cell (combination of settings) of the queue benchmark with the lowest median of a
/// figure, and its closest rival. Returns the cells that have the figure, and the ranking of their
/// indices. `None` for fewer than two such cells.
pub fn rank_cells<'a>(cells: &[&'a LabCell], figure: RunFigure) -> Option<(Vec<&'a LabCell>, Ranking)> {
    let middle = |cell: &LabCell| median(&by_number(cell, figure).into_values().collect::<Vec<_>>());
    let known = cells.iter().filter_map(|cell| Some((*cell, middle(cell)?)));
    let (cells, medians): (Vec<&LabCell>, Vec<f64>) = known.unzip();
    let ranking = rank(&medians, |a, b| judge_cells(cells[a], cells[b], figure))?;
    Some((cells, ranking))
}

/// Compares `figure` under a way of waiting with busy waiting, at equal queue and speeds, by each
/// repeat's median ratio over the selected cells. `None`: no such cell has a counterpart.
pub fn wait_against_busy(
    measured: &[MeasuredLabCell<'_>],
    wait: Wait,
    is_it: &dyn Fn(&LabCell) -> bool,
    figure: RunFigure,
) -> Option<Evidence> {
    let mut ratios: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (cell, _) in measured.iter().filter(|(cell, _)| cell.wait == wait && is_it(cell)) {
        let busy = measured.iter().find(|(busy, _)| {
            busy.wait == Wait::Busy && (busy.carrier(), busy.speeds()) == (cell.carrier(), cell.speeds())
        });
        let pairs = busy.into_iter().flat_map(|(busy, _)| paired(busy, cell, figure));
        pairs.for_each(|(number, busy, waiting)| ratios.entry(number).or_default().push(waiting / busy));
    }
    let ratios: Vec<f64> = ratios.values().filter_map(|ratios| median(ratios)).collect();
    (!ratios.is_empty()).then(|| Evidence::from_repeats(&vec![1.0; ratios.len()], &ratios, 0.0))
}

/// Formats the ratio of a comparison for a table: `4.20×`, or its interval where the repeats
/// disagree on the factor.
pub fn multiple(evidence: &Evidence) -> String {
    match evidence.difference.filter(|_| evidence.is_known()) {
        Some(found) if evidence.has_factor() => format!("{}×", plain(found.ratio.value)),
        Some(found) => format!("{}–{}×", plain(found.ratio.low), plain(found.ratio.high)),
        None if evidence.difference.is_none() => "–".into(),
        None => evidence.verdict.name().into(),
    }
}

/// Formats the ratio of a comparison for a sentence: `4.20 × [4.10–4.35]`, or why there is none.
pub fn factor(evidence: &Evidence) -> String {
    let Some(found) = evidence.difference.filter(|_| evidence.is_known()) else {
        return evidence.describe();
    };
    let [value, low, high] = [found.ratio.value, found.ratio.low, found.ratio.high].map(plain);
    // Repeats that disagree give no factor, only its bounds.
    if evidence.has_factor() {
        format!("{value} × [{low}–{high}]")
    } else {
        format!("[{low}–{high}] ×")
    }
}
