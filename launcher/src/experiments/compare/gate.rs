//! `--fail-if-slower 5%`: a comparison as a gate for CI, by its exit code.

use crate::config::Slower;
use analysis::experiment::{Comparison, Comparisons};
use analysis::stats::{ComparisonLine, Verdict};
use analysis::summary::Measure;

/// Why a comparison does not pass, in words; nothing if it does. What counts is rt_venue: a
/// percentile whose verdict is *slower*, by more than the share; and a median that cannot be
/// compared at all, which must not pass either.
fn failures(gate: Slower, found: &Comparisons) -> Vec<String> {
    let lines = found.comparisons.iter().flat_map(|comparison| {
        let of = comparison.lines.iter().filter(|line| line.measure == Measure::RtVenue.name());
        of.enumerate().map(move |(place, line)| (comparison, place, line))
    });
    let failed: Vec<String> = lines
        .filter_map(|(comparison, place, line)| failure_of(gate, comparison, place == 0, line))
        .collect();
    if found.comparisons.is_empty() { vec!["nothing was compared".into()] } else { failed }
}

fn failure_of(gate: Slower, of: &Comparison, is_median: bool, line: &ComparisonLine) -> Option<String> {
    let what = format!("{} against {}: rt_venue {}", of.b, of.a, line.percentile.name());
    match (line.verdict, &line.difference) {
        (Verdict::Slower, Some(found)) if found.ratio.value > 1.0 + gate.share() => {
            let by = (found.ratio.value - 1.0) * 100.0;
            Some(format!("{what} is {by:.1} % slower, more than {gate}"))
        }
        (Verdict::NotComparable, _) if is_median => {
            Some(format!("{what} cannot be compared: {}", line.why.join("; ")))
        }
        _ => None,
    }
}

/// Returns an error if the comparison exceeds the allowed slowdown.
pub(super) fn check(gate: Slower, found: &Comparisons) -> Result<(), TooSlow> {
    let why = failures(gate, found);
    if why.is_empty() { Ok(()) } else { Err(TooSlow(why.join("\n  "))) }
}

/// The error of a comparison that does not pass `--fail-if-slower`: the process exits with code 1.
#[derive(Clone, Debug, thiserror::Error)]
#[error("--fail-if-slower: {0}")]
pub(super) struct TooSlow(String);

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::stats::{Difference, Estimate, Method, Percentile};

    fn line(percentile: Percentile, verdict: Verdict, value: f64) -> ComparisonLine {
        let estimate = Estimate { value, low: value, high: value };
        ComparisonLine {
            measure: Measure::RtVenue.name().into(),
            percentile,
            a_ns: None,
            b_ns: None,
            excluded_share: None,
            difference: Some(Difference {
                pairs: 5,
                method: Method::Ranks,
                ratio: estimate,
                difference: estimate,
            }),
            hosts: Vec::new(),
            verdict,
            why: vec!["two pairs".into()],
        }
    }

    fn comparisons(lines: Vec<ComparisonLine>) -> Comparisons {
        let (a, b) = ("A".into(), "B".into());
        let comparison = Comparison { a, b, pairs: 5, caveats: Vec::new(), placed: Vec::new(), lines };
        Comparisons { comparisons: vec![comparison], notes: Vec::new() }
    }

    #[test]
    fn only_what_is_slower_by_more_fails() {
        let gate: Slower = "5%".parse().unwrap();
        let of = |verdict, value| failures(gate, &comparisons(vec![line(Percentile::P50, verdict, value)]));
        assert!(of(Verdict::Faster, 0.5).is_empty() && of(Verdict::NoDifferenceSeen, 1.3).is_empty());
        assert!(of(Verdict::Slower, 1.04).is_empty());
        assert!(of(Verdict::Slower, 1.06)[0].contains("6.0 % slower, more than 5%"));
        assert!(of(Verdict::NotComparable, 1.0)[0].contains("two pairs"));
        assert!(!failures(gate, &Comparisons::default()).is_empty());
        let tail = comparisons(vec![
            line(Percentile::P50, Verdict::NoDifferenceSeen, 1.0),
            line(Percentile::P99, Verdict::NotComparable, 1.0),
        ]);
        assert!(check(gate, &tail).is_ok(), "few samples for a tail fail nothing");
    }
}
