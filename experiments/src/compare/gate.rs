//! `--fail-if-slower 5%`: a comparison as a gate for CI, by its exit code.

use analysis::experiment::Comparisons;
use analysis::stats::{Difference, Verdict};
use anyhow::{Result, ensure};
use planner::config::{Slower, Undecided};

/// Returns an error if any comparison shows B slower than A by more than the gate
/// (`--fail-if-slower`) allows. What counts is the endpoint: a percentile that is slower by its 95
/// % interval, and by more than the share. A first percentile that cannot be compared, or whose
/// repeats neither show nor exclude such a slowdown, gives [`Undecided`]: it must not pass, and is
/// not slower either.
pub fn check_gate(gate: Slower, found: &Comparisons) -> Result<()> {
    let (mut slower, mut undecided) = (Vec::new(), Vec::new());
    let limit = 1.0 + gate.share();
    let is_slower = |found: &Difference| found.direction() > 0 && found.ratio.value > limit;
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
            let evidence = line.evidence();
            match &evidence.difference {
                Some(found) if is_slower(found) => {
                    let by = (found.ratio.value - 1.0) * 100.0;
                    slower.push(format!("{what} is {by:.1} % slower, more than {gate}"));
                }
                None if place == 0 => {
                    undecided.push(format!("{what} cannot be compared: {}", line.why.join("; ")));
                }
                Some(found)
                    if place == 0 && evidence.verdict == Verdict::CannotTell && found.ratio.high > limit =>
                {
                    undecided.push(format!("{what}: {}", evidence.describe()));
                }
                _ => {}
            }
        }
    }
    undecided.extend(found.notes.iter().filter(|note| note.contains("cannot be compared")).cloned());
    if found.comparisons.is_empty() && undecided.is_empty() {
        undecided.push("nothing was compared".into());
    }
    ensure!(slower.is_empty(), "--fail-if-slower: {}", slower.join("\n  "));
    match undecided.is_empty() {
        true => Ok(()),
        false => Err(Undecided(format!("--fail-if-slower: {}", undecided.join("\n  "))).into()),
    }
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
            check_gate(gate.parse().unwrap(), &comparisons(pairs, ratio)).map_err(|error| error.to_string())
        };
        assert!(check("5%", 8, 0.5).is_ok() && check("5%", 8, 1.001).is_ok() && check("5%", 8, 1.04).is_ok());
        let slower = check("5%", 8, 1.06).unwrap_err();
        assert!(slower.contains("rt_venue_from_due p50 is 6.0 % slower, more than 5%"), "{slower}");
        assert!(check("2%", 8, 1.04).is_err(), "within the margin of 5 %, and slower than the gate allows");
        assert!(check("5%", 2, 1.01).unwrap_err().contains("too few repeats: 2 of at least 5 pairs"));
        let mut tail = comparisons(8, 1.001);
        for line in tail.comparisons[0].lines.iter_mut().filter(|line| line.percentile.name() == "p99") {
            (line.difference, line.why) = (None, vec!["too few orders for a p99".into()]);
        }
        assert!(check_gate("5%".parse().unwrap(), &tail).is_ok(), "few samples for a tail fail nothing");
    }

    #[test]
    fn undecided_comparison_is_no_failure() {
        let gate: Slower = "5%".parse().unwrap();
        let is_undecided = |found: &Comparisons| check_gate(gate, found).unwrap_err().is::<Undecided>();
        assert!(is_undecided(&Comparisons::default()), "nothing was compared");
        assert!(is_undecided(&comparisons(2, 1.5)), "too few pairs");
        assert!(!is_undecided(&comparisons(8, 90.0)), "slower");
        // Pairs that disagree: slower by 20 % and faster by 20 % in turn.
        let apart = |slow: f64| {
            let side = |ratio: f64| -> Vec<RunOutline> {
                let ns = |repeat: usize| 1_000.0 * if repeat.is_multiple_of(2) { ratio } else { 1.0 / ratio };
                (0..8).map(|repeat| fixtures::run(repeat, ns(repeat))).collect()
            };
            let (a, b) = (side(1.0), side(slow));
            let comparison = Comparison::new(("A", &a), ("B", &b), &Default::default());
            Comparisons { comparisons: vec![comparison], notes: Vec::new() }
        };
        assert!(is_undecided(&apart(1.2)));
        assert!(check_gate("100%".parse().unwrap(), &apart(1.2)).is_ok(), "twice as slow is excluded");
        let mut other = comparisons(8, 1.0);
        other.notes.push("isolation=process: cannot be compared: other schedule".into());
        assert!(is_undecided(&other), "one of several settings");
    }
}
