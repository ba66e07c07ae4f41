//! Formats the comparison of two latencies in words and for charts, by the rule of evidence.

use super::time_unit::TimeUnit;
use crate::chart::interval_plot::IntervalRow;
use crate::stats::{self, ComparisonLine, Evidence, Percentile, Spread, Verdict};
use record::numbers::plain;
use verdict::summary::Measure;

/// The legend of [`format_ratio`], for the note below a table.
pub(super) const MARKS: &str =
    "▲ slower, ▼ faster, = equivalent within the margin, ? cannot tell, –: not comparable";

/// Returns the line that compares a measure at a percentile.
pub(super) fn line_of(
    lines: &[ComparisonLine],
    measure: Measure,
    percentile: Percentile,
) -> Option<&ComparisonLine> {
    lines.iter().find(|line| line.measure == measure.name() && line.percentile == percentile)
}

pub(super) const fn verdict_mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Slower => "▲ ",
        Verdict::Faster => "▼ ",
        Verdict::Equivalent => "= ",
        Verdict::CannotTell => "? ",
    }
}

/// Formats a ratio with its interval and the mark of its verdict for a table; a dash if the two
/// cannot be compared.
pub(super) fn format_ratio(line: &ComparisonLine) -> String {
    ratio_cell(&line.evidence())
}

/// Formats what is shown as a ratio with its interval; a dash if the two cannot be compared.
pub(super) fn ratio_cell(evidence: &Evidence) -> String {
    let ratio = evidence.difference.map(|found| stats::format_ratio(&found));
    ratio.map_or_else(|| "–".into(), |ratio| format!("{}{ratio}", verdict_mark(evidence.verdict)))
}

/// Formats the difference over all pairs, kept or not, with their number: `+3 [−10, +20] of 12`.
pub(super) fn format_all_pairs(line: &ComparisonLine, unit: TimeUnit) -> String {
    line.all_pairs.map_or_else(
        || "–".into(),
        |found| {
            let [value, interval] = unit.difference(found.difference);
            format!("{value} {interval} of {}", found.pairs)
        },
    )
}

/// Describes a verdict with its figures: `slower: costs +52 ns [+40, +61]`. A figure is left out if
/// the repeats disagree on it.
pub(super) fn describe_verdict(line: &ComparisonLine) -> String {
    let evidence = line.evidence();
    let Some(found) = evidence.difference else { return evidence.describe() };
    let by = found.difference;
    let unit = TimeUnit::for_durations([by.value, by.low, by.high]);
    let [value, interval] = unit.difference(by);
    let symbol = unit.symbol();
    let figure = if evidence.has_factor() {
        format!("{value} {symbol} {interval}")
    } else {
        format!("{interval} {symbol}")
    };
    let margin = found.equivalence.map_or(0.0, |test| test.margin);
    match evidence.verdict {
        Verdict::Equivalent => {
            format!("equivalent within ±{} {symbol}: {value} {interval}", unit.format(margin))
        }
        Verdict::Slower => format!("slower: costs {figure}"),
        Verdict::Faster => format!("faster: {figure}"),
        Verdict::CannotTell => format!("{} ({value} {symbol} {interval})", evidence.describe()),
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
    IntervalRow { name, note: format_change_and_verdict(line), class, interval: interval(line) }
}

/// Formats what a line shows for a chart: `+3.2%, slower`, or the verdict alone without a figure.
pub(super) fn format_change_and_verdict(line: &ComparisonLine) -> String {
    let verdict = line.verdict.name();
    match interval(line) {
        Some(spread) => format!("{}, {verdict}", format_change(spread.median)),
        None => verdict.to_owned(),
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
        ComparisonLine { difference, ..found }
    }

    #[test]
    fn tables_and_charts_show_the_same_verdict() {
        let why = vec!["too few repeats: 4 of at least 5 pairs".into()];
        let cannot_tell = |line| ComparisonLine { verdict: Verdict::CannotTell, ..line };
        let incomparable = ComparisonLine { why, ..cannot_tell(line(1.0, 1.047, 1.1)) };
        let slower = ComparisonLine { verdict: Verdict::Slower, ..line(1.2, 4.0, 9.0) };
        for (line, cell, note) in [
            (line(0.98, 1.0, 1.02), "= 1.000 [0.980–1.020]", "+0.0%, equivalent"),
            (cannot_tell(line(0.9, 1.03, 1.1)), "? 1.030 [0.900–1.100]", "+3.0%, cannot tell"),
            (slower, "▲ 4.00 [1.200–9.00]", "×4.00, slower"),
            (incomparable, "–", "cannot tell"),
        ] {
            assert_eq!(
                (format_ratio(&line).as_str(), format_change_and_verdict(&line).as_str()),
                (cell, note)
            );
        }
    }

    #[test]
    fn verdict_words_have_margin_cost_or_what_is_missing() {
        let same = line(0.98, 1.0, 1.02);
        assert_eq!(
            describe_verdict(&same),
            "equivalent within ±15 ns: +1 ns [+1, +1]".replace(" ns [", " [")
        );
        let with = |verdict, value, low, high| {
            let mut line = ComparisonLine { verdict, ..same.clone() };
            let found = line.difference.as_mut().unwrap();
            (found.difference, found.ratio) =
                (Estimate { value, low, high }, Estimate { value: 1.1, low: 1.0, high: 1.2 });
            let test = found.equivalence.as_mut().unwrap();
            (test.low, test.high) = (low, high);
            line
        };
        assert_eq!(
            describe_verdict(&with(Verdict::Slower, 52.0, 40.0, 61.0)),
            "slower: costs +52 ns [+40, +61]"
        );
        let open = describe_verdict(&with(Verdict::CannotTell, 5.0, -20.0, 30.0));
        assert_eq!(open, "cannot tell: about 170 more pairs for a power of 0.8 (+5 ns [−20, +30])");
        let few = ComparisonLine { why: vec!["too few repeats: 4 of at least 5 pairs".into()], ..same };
        assert!(describe_verdict(&few).starts_with("cannot tell: too few repeats"), "{few:?}");
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
