//! `--fail-if-slower 5%`: a comparison as a gate for CI, by its exit code.

use crate::config::Slower;
use analysis::experiment::Comparisons;
use anyhow::{Result, ensure};

/// Checks that no comparison exceeds the allowed slowdown. What counts is the endpoint: a
/// percentile that is slower by its 95 % interval, and by more than the share; and a first one that
/// cannot be compared at all, which must not pass either.
pub fn pass(gate: Slower, found: &Comparisons) -> Result<()> {
    let mut failures = Vec::new();
    for comparison in &found.comparisons {
        let lines = comparison.lines.iter().filter(|line| comparison.endpoint.is_of(line));
        for (place, line) in lines.enumerate() {
            let what = format!(
                "{} against {}: {} {}",
                comparison.b,
                comparison.a,
                line.measure,
                line.percentile.name()
            );
            match line.deciding().filter(|_| line.why.is_empty()) {
                Some(found) if found.direction() > 0 && found.ratio.value > 1.0 + gate.share() => {
                    let by = (found.ratio.value - 1.0) * 100.0;
                    failures.push(format!("{what} is {by:.1} % slower, more than {gate}"));
                }
                None if place == 0 => {
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
    use analysis::stats::{RunOutline, fixtures};

    fn comparisons(pairs: usize, ratio: f64) -> Comparisons {
        let side =
            |ns: f64| -> Vec<RunOutline> { (0..pairs).map(|repeat| fixtures::run(repeat, ns)).collect() };
        let comparison =
            Comparison::new(("A", &side(1_000.0)), ("B", &side(1_000.0 * ratio)), &Default::default());
        Comparisons { comparisons: vec![comparison], notes: Vec::new() }
    }

    #[test]
    fn only_what_is_slower_by_more_fails() {
        let check = |gate: &str, pairs, ratio| {
            pass(gate.parse().unwrap(), &comparisons(pairs, ratio)).map_err(|error| error.to_string())
        };
        assert!(check("5%", 8, 0.5).is_ok() && check("5%", 8, 1.001).is_ok() && check("5%", 8, 1.04).is_ok());
        let slower = check("5%", 8, 1.06).unwrap_err();
        assert!(slower.contains("rt_venue_from_due p50 is 6.0 % slower, more than 5%"), "{slower}");
        assert!(check("2%", 8, 1.04).is_err(), "within the margin of 5 %, and slower than the gate allows");
        assert!(check("5%", 2, 1.01).unwrap_err().contains("too few repeats: 2 of at least 5 pairs"));
        assert!(pass("5%".parse().unwrap(), &Comparisons::default()).is_err());
        let mut tail = comparisons(8, 1.001);
        for line in tail.comparisons[0].lines.iter_mut().filter(|line| line.percentile.name() == "p99") {
            (line.difference, line.why) = (None, vec!["too few orders for a p99".into()]);
        }
        assert!(pass("5%".parse().unwrap(), &tail).is_ok(), "few samples for a tail fail nothing");
    }
}
