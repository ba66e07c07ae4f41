//! Computes how far apart a board's readers decided, from the values that each reader read for a
//! decision tick.

use crate::benchmark::EndResults;
use analysis::experiment::BoardSkew;
use merge::figures::MeasureSeries;
use protocol::benchmark::decisions::BoardDecision;
use std::collections::BTreeMap;

/// Compares the readers' decisions, tick by tick. A tick that one of them did not see is left out.
pub(super) fn skew_of(readers: &[EndResults], ns_per_tick: f64) -> BoardSkew {
    let of_reader = |end: &EndResults| end.words.as_ref().map_or_else(Vec::new, BoardDecision::all);
    skew(&readers.iter().map(of_reader).collect::<Vec<_>>(), ns_per_tick)
}

fn skew(readers: &[Vec<BoardDecision>], ns_per_tick: f64) -> BoardSkew {
    let mut by_tick: BTreeMap<u64, Vec<BoardDecision>> = BTreeMap::new();
    for decision in readers.iter().flatten() {
        by_tick.entry(decision.number).or_default().push(*decision);
    }
    let (mut found, mut apart) = (BoardSkew::default(), Vec::new());
    for decisions in by_tick.into_values().filter(|decisions| decisions.len() == readers.len()) {
        let distance = |of: fn(&BoardDecision) -> u64| {
            let all = || decisions.iter().map(of);
            all().max().unwrap_or(0) - all().min().unwrap_or(0)
        };
        let versions = distance(|decision| decision.newest);
        found.decisions += 1;
        found.differing += u64::from(versions > 0);
        found.max_versions = found.max_versions.max(versions);
        found.overwritten += u64::from(decisions.iter().any(|decision| !decision.has_named));
        apart.push(distance(|decision| decision.at));
    }
    found.apart = distribution(apart, ns_per_tick);
    found
}

fn distribution(values: Vec<u64>, ns_per_tick: f64) -> verdict::summary::Distribution {
    let bounds = (
        values.iter().min().copied().unwrap_or(0),
        values.iter().max().copied().unwrap_or(0),
        values.iter().fold(0, |sum: u64, value| sum.saturating_add(*value)),
    );
    let mut series = MeasureSeries::default();
    series.record_counts(values.into_iter().map(|value| (value, 1)), bounds, ns_per_tick);
    series.distribution(ns_per_tick)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(number: u64, newest: u64, at: u64, has_named: bool) -> BoardDecision {
        BoardDecision { number, newest, at, has_named }
    }

    #[test]
    fn versions_and_times_are_compared_tick_by_tick() {
        let first = [decision(1, 10, 100, true), decision(2, 20, 200, true), decision(3, 30, 300, true)];
        let second = [decision(2, 22, 260, false), decision(1, 10, 140, true)];
        let found = skew(&[first.to_vec(), second.to_vec()], 2.0);
        let counts = (found.decisions, found.differing, found.max_versions, found.overwritten);
        assert_eq!(counts, (2, 1, 2, 1), "a tick that one reader missed is left out");
        assert_eq!((found.apart.count, found.apart.max_ns), (2, Some(120)));
    }

    #[test]
    fn reader_without_decisions_leaves_nothing_to_compare() {
        assert_eq!(skew(&[vec![decision(1, 1, 1, true)], Vec::new()], 1.0).decisions, 0);
    }
}
