//! Formats the comparison of two latencies: the ratio with its interval, in words and for charts.

use crate::chart::interval_plot::IntervalRow;
use crate::numbers::plain;
use crate::stats::{self, ComparisonLine, Percentile, Spread, Verdict};
use crate::summary::Measure;

/// A change that would be one if its interval did not hold 1.
const UNSURE_MIN_CHANGE: f64 = 0.02;
/// An interval that reaches further from its estimate than this share of it is not meaningful,
/// unless it excludes "no difference".
const TELLING_WIDTH: f64 = 0.25;

/// Returns the line that compares a measure at a percentile.
pub(super) fn line_of(
    lines: &[ComparisonLine],
    measure: Measure,
    percentile: Percentile,
) -> Option<&ComparisonLine> {
    lines.iter().find(|line| line.measure == measure.name() && line.percentile == percentile)
}

/// Returns `true` if the ratio's confidence interval is too wide to be meaningful.
pub(super) fn is_unclear(line: &ComparisonLine) -> bool {
    let is_wide = |found: stats::Difference| {
        let ratio = found.ratio;
        (ratio.high - ratio.value).max(ratio.value - ratio.low) > TELLING_WIDTH * ratio.value
    };
    line.verdict == Verdict::NoDifferenceSeen && line.difference.is_some_and(is_wide)
}

pub(super) const fn verdict_mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "▲ ",
        Verdict::Faster => "▼ ",
        Verdict::NoDifferenceSeen | Verdict::NotComparable => "",
    }
}

/// Formats a latency ratio with its interval; a dash if the two cannot be compared.
pub(super) fn format_ratio(line: &ComparisonLine) -> String {
    match &line.difference {
        Some(_) if is_unclear(line) => "unclear".into(),
        Some(found) if line.verdict != Verdict::NotComparable => stats::format_ratio(found),
        _ => "–".into(),
    }
}

/// Returns the 95 % interval of a latency ratio, as an error bar of a chart. `None`: there is none.
pub(super) fn interval(line: &ComparisonLine) -> Option<Spread> {
    let ratio = line.difference.filter(|_| line.verdict != Verdict::NotComparable)?.ratio;
    let known = [ratio.low, ratio.value, ratio.high];
    // An interval that is not ordered and positive comes from a damaged file.
    let is_interval = known.iter().all(|value| value.is_finite() && *value > 0.0) && known.is_sorted();
    is_interval.then_some(Spread { median: ratio.value, low: ratio.low, high: ratio.high })
}

/// Returns a row of a chart of latency ratios.
pub(super) fn interval_row(name: String, class: &'static str, line: &ComparisonLine) -> IntervalRow {
    IntervalRow { name, note: format_verdict(line), class, interval: interval(line) }
}

/// Formats the verdict of a comparison: `+3.2%, slower`. Without a verdict, returns the reason.
pub(super) fn format_verdict(line: &ComparisonLine) -> String {
    let verdict = line.verdict.name();
    match (line.verdict, interval(line)) {
        (Verdict::NotComparable, _) => {
            let why = line.why.first().map_or("", |why| why.split(':').next().unwrap_or(why));
            if why.is_empty() { verdict.to_owned() } else { why.to_owned() }
        }
        (Verdict::NoDifferenceSeen, Some(spread))
            if (spread.median - 1.0).abs() >= UNSURE_MIN_CHANGE
                && (spread.low..=spread.high).contains(&1.0) =>
        {
            format!("{}, but the bar holds 1", format_change(spread.median))
        }
        (_, Some(spread)) => format!("{}, {verdict}", format_change(spread.median)),
        (_, None) => verdict.to_owned(),
    }
}

/// A ratio as a change: `+3.2%`, or `×4.12` where that is shorter.
fn format_change(ratio: f64) -> String {
    if ratio >= 2.0 { format!("×{}", plain(ratio)) } else { format!("{:+.1}%", (ratio - 1.0) * 100.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Difference, Estimate, compare_figure, fixtures, pair_runs};

    fn line(low: f64, value: f64, high: f64) -> ComparisonLine {
        let [a, b] = [300.0, 301.0].map(|ns| (0..9).map(|run| fixtures::run(run, ns)).collect::<Vec<_>>());
        let found = compare_figure(&pair_runs(&a, &b), Measure::RtVenue, Percentile::P50);
        let ratio = Estimate { value, low, high };
        let difference = found.difference.map(|found| Difference { ratio, ..found });
        ComparisonLine { difference, verdict: Verdict::NoDifferenceSeen, ..found }
    }

    #[test]
    fn ratios_that_say_nothing_are_no_figures() {
        let incomparable = ComparisonLine { verdict: Verdict::NotComparable, ..line(1.0, 1.0, 1.1) };
        let shown =
            [line(0.98, 1.0, 1.02), line(0.4, 0.9, 1.8), incomparable].map(|line| format_ratio(&line));
        assert_eq!(shown, ["1.000 [0.980–1.020]", "unclear", "–"]);
        let slower = ComparisonLine { verdict: Verdict::Slower, ..line(1.2, 4.0, 9.0) };
        assert!(!is_unclear(&slower), "that it is slower is known");
    }

    #[test]
    fn damaged_or_missing_intervals_are_not_drawn() {
        assert_eq!(
            [1.0, 1.032, 0.97, 4.12, 250.0].map(format_change),
            ["+0.0%", "+3.2%", "-3.0%", "×4.12", "×250"]
        );
        assert_eq!(format_verdict(&line(0.9, 1.0, 1.1)), "+0.0%, no difference seen");
        assert_eq!(format_verdict(&line(0.9, 1.757, 3.1)), "+75.7%, but the bar holds 1");
        let why = vec!["too few repeats: 4 of at least 5 pairs".into()];
        let few = ComparisonLine { verdict: Verdict::NotComparable, why, ..line(1.0, 1.047, 1.1) };
        assert_eq!(format_verdict(&few), "too few repeats");
        let none = ComparisonLine { difference: None, ..line(0.9, 1.0, 1.1) };
        for line in [line(1.1, 1.0, 0.9), line(0.0, 1.0, 2.0), line(0.5, f64::NAN, 2.0), none] {
            assert_eq!(interval(&line), None);
        }
    }
}
