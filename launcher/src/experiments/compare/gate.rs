//! `--fail-if-slower 5%`: a comparison as a gate for CI, by its exit code.

use crate::config::Slower;
use analysis::experiment::Comparisons;
use analysis::stats::Verdict;
use analysis::summary::Measure;
use anyhow::{Result, ensure};

/// Checks that no comparison exceeds the allowed slowdown. What counts is rt_venue: a percentile
/// whose verdict is *slower*, by more than the share; and a median that cannot be compared at all,
/// which must not pass either.
pub fn pass(gate: Slower, found: &Comparisons) -> Result<()> {
    let mut failures = Vec::new();
    for comparison in &found.comparisons {
        let lines = comparison.lines.iter().filter(|line| line.measure == Measure::RtVenue.name());
        for (place, line) in lines.enumerate() {
            let what =
                format!("{} against {}: rt_venue {}", comparison.b, comparison.a, line.percentile.name());
            match (line.verdict, &line.difference) {
                (Verdict::Slower, Some(found)) if found.ratio.value > 1.0 + gate.share() => {
                    let by = (found.ratio.value - 1.0) * 100.0;
                    failures.push(format!("{what} is {by:.1} % slower, more than {gate}"));
                }
                (Verdict::NotComparable, _) if place == 0 => {
                    failures.push(format!("{what} cannot be compared: {}", line.why.join("; ")));
                }
                _ => {}
            }
        }
    }
    if found.comparisons.is_empty() {
        failures.push("nothing was compared".into());
    }
    ensure!(failures.is_empty(), "--fail-if-slower: {}", failures.join("\n  "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::experiment::Comparison;
    use analysis::stats::{ComparisonLine, Difference, Estimate, Method, Percentile};

    fn line(percentile: Percentile, verdict: Verdict, value: f64) -> ComparisonLine {
        let estimate = Estimate { value, low: value, high: value };
        let difference =
            Difference { pairs: 5, method: Method::Ranks, ratio: estimate, difference: estimate };
        ComparisonLine {
            measure: Measure::RtVenue.name().into(),
            percentile,
            a_ns: None,
            b_ns: None,
            pairs: 5,
            made: 5,
            excluded_share: None,
            difference: Some(difference),
            hosts: Vec::new(),
            verdict,
            why: vec!["two pairs".into()],
        }
    }

    #[test]
    fn only_what_is_slower_by_more_fails() {
        let check = |lines: Vec<ComparisonLine>| {
            let (a, b) = ("A".into(), "B".into());
            let comparison = Comparison { a, b, pairs: 5, caveats: Vec::new(), placed: Vec::new(), lines };
            let found = Comparisons { comparisons: vec![comparison], notes: Vec::new() };
            pass("5%".parse().unwrap(), &found).map_err(|error| error.to_string())
        };
        let of = |verdict, value| check(vec![line(Percentile::P50, verdict, value)]);
        assert!(of(Verdict::Faster, 0.5).is_ok() && of(Verdict::NoDifferenceSeen, 1.3).is_ok());
        assert!(of(Verdict::Slower, 1.04).is_ok());
        assert!(of(Verdict::Slower, 1.06).unwrap_err().contains("6.0 % slower, more than 5%"));
        assert!(of(Verdict::NotComparable, 1.0).unwrap_err().contains("two pairs"));
        assert!(pass("5%".parse().unwrap(), &Comparisons::default()).is_err());
        let few = line(Percentile::P99, Verdict::NotComparable, 1.0);
        let median = line(Percentile::P50, Verdict::NoDifferenceSeen, 1.0);
        assert!(check(vec![median, few]).is_ok(), "few samples for a tail fail nothing");
    }
}
