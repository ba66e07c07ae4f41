use super::super::fixtures::run;
use super::super::{Percentile, RunOutline, Verdict, compare_figure, pair_runs};
use super::*;
use verdict::summary::Measure;

#[test]
fn holm_corrects_in_order_of_p_values() {
    let found = holm(&[0.01, 0.04, 0.03, 0.005]);
    assert_eq!(found.map_to_thousandths(), [30, 60, 60, 20]);
    assert_eq!(holm(&[]), [0.0; 0]);
    assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0], "never above 1");
    // The broken variant: factors by position instead of rank.
    let unordered = |p: &[f64]| -> Vec<f64> {
        p.iter().enumerate().map(|(index, value)| (value * (p.len() - index) as f64).min(1.0)).collect()
    };
    assert!(
        is_ordered(&[0.01, 0.04, 0.03, 0.005], holm) && !is_ordered(&[0.01, 0.04, 0.03, 0.005], unordered)
    );
}

/// Returns `true` if a correction keeps the order of p-values and the least is multiplied by the
/// number of all.
fn is_ordered(p: &[f64], correct: impl Fn(&[f64]) -> Vec<f64>) -> bool {
    let mut both: Vec<(f64, f64)> = p.iter().copied().zip(correct(p)).collect();
    both.sort_by(|a, b| a.0.total_cmp(&b.0));
    both.is_sorted_by(|a, b| a.1 <= b.1) && (both[0].1 - both[0].0 * p.len() as f64).abs() < 1e-12
}

trait Thousandths {
    fn map_to_thousandths(&self) -> Vec<i64>;
}

impl Thousandths for Vec<f64> {
    fn map_to_thousandths(&self) -> Vec<i64> {
        self.iter().map(|value| (value * 1_000.0).round() as i64).collect()
    }
}

#[test]
fn secondary_figures_need_corrected_p_values() {
    // A difference that 12 pairs show at about 1 %.
    let side = |ns: f64, steps: [f64; 12]| -> Vec<RunOutline> {
        steps.iter().enumerate().map(|(repeat, step)| run(repeat, ns + step)).collect()
    };
    let noise = [0.0, 90.0, 180.0, 30.0, 120.0, 60.0, 150.0, 210.0, 15.0, 75.0, 135.0, 195.0];
    let (a, b) = (
        side(1_000.0, noise),
        side(
            1_080.0,
            [
                noise[3], noise[1], noise[0], noise[2], noise[6], noise[8], noise[4], noise[7], noise[5],
                noise[10], noise[9], noise[11],
            ],
        ),
    );
    let pairing = pair_runs(&a, &b);
    let line = compare_figure(&pairing, Measure::RtVenue, Percentile::P50);
    assert_eq!(line.verdict, Verdict::Slower, "{line:?}");
    let mut lines = vec![line; 40];
    correct_secondary(lines.iter_mut().map(|line| (line, false)));
    assert!(
        lines.iter().all(|line| line.is_secondary && line.verdict == Verdict::CannotTell),
        "{:?}",
        lines[0]
    );
    assert!(lines[0].evidence().describe().contains("Holm"), "{}", lines[0].evidence().describe());
    let corrected = lines.clone();
    correct_secondary(lines.iter_mut().map(|line| (line, false)));
    assert_eq!(lines, corrected, "corrected once");
}

/// Returns the comparison of runs that take 1,000 ns, with ones that take this much, at a
/// percentile.
fn compared(pairs: usize, ns: f64, percentile: Percentile) -> ComparisonLine {
    let a: Vec<RunOutline> = (0..pairs).map(|repeat| run(repeat, 1_000.0 + repeat as f64)).collect();
    let b: Vec<RunOutline> = (0..pairs).map(|repeat| run(repeat, ns + (pairs - 1 - repeat) as f64)).collect();
    let line = compare_figure(&pair_runs(&a, &b), Measure::RtVenue, Percentile::P50);
    ComparisonLine { percentile, ..line }
}

#[test]
fn clear_figures_are_shown_among_a_hundred() {
    let mut lines = vec![compared(16, 1_500.0, Percentile::P50); 100];
    correct_secondary(lines.iter_mut().map(|line| (line, false)));
    assert!(lines.iter().all(|line| line.verdict == Verdict::Slower), "{:?}", lines[0]);
}

#[test]
fn p999_is_tested_only_behind_its_p99() {
    // Of 8 pairs the least p-value is 1 of 128: nothing is shown among seven figures and more.
    let rows = |p99: f64| {
        let row = [(Percentile::P99, p99), (Percentile::P999, 1_500.0)];
        let rows = [row; 4].as_flattened().to_vec();
        rows.into_iter().map(|(percentile, ns)| compared(8, ns, percentile)).collect::<Vec<_>>()
    };
    for (p99, is_shown, is_declared) in
        [(1_500.0, true, false), (1_000.0, false, false), (1_500.0, true, true), (1_000.0, false, true)]
    {
        let mut lines = rows(p99);
        let declared = |line: &ComparisonLine| is_declared && line.percentile == Percentile::P99;
        correct_secondary(lines.iter_mut().map(|line| {
            let is_declared = declared(line);
            (line, is_declared)
        }));
        let p999 = lines.iter().filter(|line| line.percentile == Percentile::P999);
        let shown = p999.filter(|line| line.verdict == Verdict::Slower).count();
        assert_eq!(shown, if is_shown { 4 } else { 0 }, "{p99} {is_declared}: {:?}", lines[1]);
    }
}
