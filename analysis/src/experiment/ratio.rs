//! Formats the comparison of two latencies in words and for charts, by the rule of evidence.

use crate::chart::interval_plot::IntervalRow;
use crate::numbers::plain;
use crate::stats::{self, ComparisonLine, Evidence, Finding, Percentile, Spread};
use crate::summary::Measure;

/// The legend of [`format_evidence`], for the note below a table.
pub(super) const MARKS: &str = "▲ slower, ▼ faster, no mark: no difference seen; unclear: the interval holds 1 and is wider than ±25 %; –: not comparable";

/// Returns the line that compares a measure at a percentile.
pub(super) fn line_of(
    lines: &[ComparisonLine],
    measure: Measure,
    percentile: Percentile,
) -> Option<&ComparisonLine> {
    lines.iter().find(|line| line.measure == measure.name() && line.percentile == percentile)
}

pub(super) const fn finding_mark(finding: Finding) -> &'static str {
    match finding {
        Finding::Slower => "▲ ",
        Finding::Faster => "▼ ",
        Finding::NoDifferenceSeen | Finding::Unclear | Finding::NotComparable => "",
    }
}

/// Formats a ratio with its interval for a table; a dash if the two cannot be compared.
pub(super) fn format_ratio(line: &ComparisonLine) -> String {
    ratio_cell(&line.evidence())
}

/// Formats what is shown as a ratio with its interval; a dash if the two cannot be compared.
pub(super) fn ratio_cell(evidence: &Evidence) -> String {
    match evidence.difference.filter(|_| evidence.is_known()) {
        Some(found) => stats::format_ratio(&found),
        None if evidence.finding == Finding::NotComparable => "–".into(),
        None => evidence.finding.name().into(),
    }
}

/// Returns the 95 % interval of a latency ratio, as an error bar of a chart. `None`: there is none.
pub(super) fn interval(line: &ComparisonLine) -> Option<Spread> {
    let ratio = line.evidence().difference?.ratio;
    let known = [ratio.low, ratio.value, ratio.high];
    // An interval that is not ordered and positive comes from a damaged file.
    let is_interval = known.iter().all(|value| value.is_finite() && *value > 0.0) && known.is_sorted();
    is_interval.then_some(Spread { median: ratio.value, low: ratio.low, high: ratio.high })
}

/// Returns a row of a chart of latency ratios.
pub(super) fn interval_row(name: String, class: &'static str, line: &ComparisonLine) -> IntervalRow {
    IntervalRow { name, note: format_finding(line), class, interval: interval(line) }
}

/// Formats what a line shows for a chart: `+3.2%, slower`, or the finding alone without a figure.
pub(super) fn format_finding(line: &ComparisonLine) -> String {
    let evidence = line.evidence();
    let finding = evidence.finding.name();
    match interval(line).filter(|_| evidence.is_known()) {
        Some(spread) => format!("{}, {finding}", format_change(spread.median)),
        None => finding.to_owned(),
    }
}

/// A ratio as a change: `+3.2%`, or `×4.12` where that is shorter.
fn format_change(ratio: f64) -> String {
    if ratio >= 2.0 { format!("×{}", plain(ratio)) } else { format!("{:+.1}%", (ratio - 1.0) * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Difference, Estimate, Verdict, compare_figure, fixtures, pair_runs};

    fn line(low: f64, value: f64, high: f64) -> ComparisonLine {
        let [a, b] = [300.0, 301.0].map(|ns| (0..9).map(|run| fixtures::run(run, ns)).collect::<Vec<_>>());
        let found = compare_figure(&pair_runs(&a, &b), Measure::RtVenue, Percentile::P50);
        let ratio = Estimate { value, low, high };
        let difference = found.difference.map(|found| Difference { ratio, ..found });
        ComparisonLine { difference, verdict: Verdict::NoDifferenceSeen, ..found }
    }

    #[test]
    fn tables_and_charts_show_the_same_finding() {
        let why = vec!["too few repeats: 4 of at least 5 pairs".into()];
        let incomparable = ComparisonLine { verdict: Verdict::NotComparable, why, ..line(1.0, 1.047, 1.1) };
        let slower = ComparisonLine { verdict: Verdict::Slower, ..line(1.2, 4.0, 9.0) };
        for (line, cell, note) in [
            (line(0.98, 1.0, 1.02), "1.000 [0.980–1.020]", "+0.0%, no difference seen"),
            (line(0.9, 1.03, 1.1), "1.030 [0.900–1.100]", "+3.0%, no difference seen"),
            // A regression: the table had "unclear", the chart "-1.4%, no difference seen".
            (line(0.4, 0.986, 1.8), "unclear", "unclear"),
            (slower, "4.00 [1.200–9.00]", "×4.00, slower"),
            (incomparable, "–", "not comparable"),
        ] {
            assert_eq!((format_ratio(&line).as_str(), format_finding(&line).as_str()), (cell, note));
        }
    }

    #[test]
    fn damaged_or_missing_intervals_are_not_drawn() {
        assert_eq!(
            [1.0, 1.032, 0.97, 4.12, 250.0].map(format_change),
            ["+0.0%", "+3.2%", "-3.0%", "×4.12", "×250"]
        );
        let none = ComparisonLine { difference: None, ..line(0.9, 1.0, 1.1) };
        for line in [line(1.1, 1.0, 0.9), line(0.0, 1.0, 2.0), line(0.5, f64::NAN, 2.0), none] {
            assert_eq!(interval(&line), None);
        }
    }
}
