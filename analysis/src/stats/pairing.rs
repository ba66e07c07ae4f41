//! Pairs the runs of two settings: which pairs count, and why two settings cannot be compared.
//!
//! **The rule.** A pair is *kept* if both runs are complete and valid, and the core-to-core time of
//! neither changed by more than [`CORE_RTT_TOLERANCE`](super::placement::CORE_RTT_TOLERANCE) from
//! its start to its end. Two levels of one run are always kept. No latency decides which pairs are
//! kept. *All pairs* are those of complete and valid runs, wherever the cores were.

use super::median;
use super::outline::{MachineKey, Percentile, RunOutline, values};
use super::placement::{core_rtt, has_moved, host_placements, hosts};
use serde::{Deserialize, Serialize};
use statistics::Margin;
use statistics::Sample;
use statistics::{Difference, HostDifference, MIN_PAIRS, difference};
use std::collections::BTreeMap;
use verdict::summary::Measure;

/// The pairs of runs of settings A and B, and the reasons against comparing them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunPairing<'a> {
    /// Runs of A in the pairs that are kept, in pair order.
    pub a: Vec<&'a RunOutline>,
    /// Runs of B in the pairs that are kept, in pair order.
    pub b: Vec<&'a RunOutline>,
    /// All pairs of complete and valid runs, kept or not.
    pub all: Vec<[&'a RunOutline; 2]>,
    /// The largest difference that counts as none.
    pub margin: Margin,
    /// Reasons for which A and B are not comparable; empty if they are.
    pub reasons: Vec<String>,
    /// Caveats that weaken the comparison without preventing it.
    pub caveats: Vec<String>,
    /// Number of pairs that were made on one host, counted or left out.
    pub made: usize,
    /// Host and placement number of each run: those of A, then those of B.
    placements: Vec<usize>,
}

/// The number and median latency of the runs of A and of B in one core placement, recognized by its
/// core-to-core round trip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacementRuns {
    /// Name of the host; empty if there was only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Median core-to-core round trip, in nanoseconds.
    pub floor_ns: Option<f64>,
    /// Number of runs of A.
    pub a: usize,
    /// Number of runs of B.
    pub b: usize,
    /// Median p50 of rt_venue of A, in nanoseconds.
    pub a_ns: Option<f64>,
    /// Median p50 of rt_venue of B, in nanoseconds.
    pub b_ns: Option<f64>,
}

/// Minimum share (0 to 1) of valid run pairs without core moves, from which those pairs decide a
/// comparison alone.
pub const MIN_KEPT_SHARE: f64 = 0.5;

/// Returns `true` if the valid run pairs without core moves are enough to decide a comparison; else
/// all valid pairs decide.
pub fn kept_pairs_decide(kept: usize, all: usize) -> bool {
    kept >= MIN_PAIRS && kept as f64 >= MIN_KEPT_SHARE * all as f64
}

/// Pairs the usable runs of A and B that had the same schedule (due times of orders) on the same
/// machine, in the order made.
pub fn pair_runs<'a>(a: &'a [RunOutline], b: &'a [RunOutline]) -> RunPairing<'a> {
    let mut found = RunPairing::default();
    let mut by_hash: BTreeMap<&str, Vec<&RunOutline>> = BTreeMap::new();
    for run in b.iter().rev() {
        by_hash.entry(&run.schedule_hash).or_default().push(run);
    }
    let (mut unusable, mut in_between, mut matched) = (0, 0, 0);
    // The first run of A whose counterparts are all on other hosts, and one of those.
    let mut split_across_hosts: Vec<(&RunOutline, &RunOutline)> = Vec::new();
    for left in a {
        let Some(waiting) = by_hash.get_mut(left.schedule_hash.as_str()) else { continue };
        let Some(right) = waiting.iter().rposition(|right| right.machine == left.machine) else {
            split_across_hosts.extend(waiting.last().map(|right| (left, *right)));
            continue;
        };
        let right = waiting.remove(right);
        matched += 1;
        let is_usable = left.is_usable() && right.is_usable();
        found.all.extend(is_usable.then_some([left, right]));
        // The levels of one run had the same cores at the same time.
        if left.run_id() != right.run_id() && (has_moved(left) || has_moved(right)) {
            in_between += 1;
        } else if is_usable {
            found.a.push(left);
            found.b.push(right);
        } else {
            unusable += 1;
        }
    }
    let are_same = !found.a.is_empty() && found.a.iter().zip(&found.b).all(|(a, b)| a.run == b.run);
    if matched > 0 && !split_across_hosts.is_empty() {
        let (all, out) =
            (matched + split_across_hosts.len(), "pairs left out: A and B were made on two hosts");
        found.caveats.push(format!("{} of {all} {out}", split_across_hosts.len()));
    }
    let split_across_hosts = split_across_hosts
        .first()
        .filter(|_| matched == 0)
        .map(|(left, right)| (&left.machine, &right.machine));
    if let Some((left, right)) = split_across_hosts {
        found.reasons.push(match (left.hostname == right.hostname, left.cpu_model == right.cpu_model) {
            (false, _) => format!("other machine: {} and {}", left.hostname, right.hostname),
            (_, false) => format!("other machine: {} and {}", left.cpu_model, right.cpu_model),
            _ => "other machine: the cores that may be used are not the same".into(),
        });
    }
    if matched == 0 && split_across_hosts.is_none() {
        found.reasons.push("other schedule: no run of A played the orders of a run of B".into());
    } else if found.a.is_empty() && in_between == 0 && matched > 0 {
        found.reasons.push(format!("invalid: none of {matched} pairs is complete and valid"));
    } else if unusable > 0 {
        found.caveats.push(format!("{unusable} of {matched} pairs left out: not complete or not valid"));
    }
    if in_between > 0 {
        let out = "pairs left out: the core-to-core floor changed during a run";
        found.caveats.push(format!("{in_between} of {matched} {out}"));
    }
    found.made = matched;
    found.placements = host_placements(&found.a.iter().chain(&found.b).copied().collect::<Vec<_>>());
    if are_same {
        found.reasons.push(SAME_RUNS.into());
    } else {
        found.judge_runs();
    }
    found
}

impl RunPairing<'_> {
    /// Returns this pairing with `margin`, the largest difference between A and B that counts as
    /// none.
    #[must_use]
    pub fn with_margin(self, margin: Margin) -> Self {
        Self { margin, ..self }
    }

    /// Returns the pairs of runs that decide a comparison: those without core moves, or all valid
    /// pairs if those are too few.
    pub fn deciding_pairs(&self) -> Vec<[&RunOutline; 2]> {
        if kept_pairs_decide(self.a.len(), self.all.len()) {
            self.a.iter().zip(&self.b).map(|(a, b)| [*a, *b]).collect()
        } else {
            self.all.clone()
        }
    }

    /// Compares all pairs of complete and valid runs, whatever their core placements. `None`:
    /// too few, or a run lacks the figure.
    pub(super) fn difference_of_all(
        &self,
        measure: Measure,
        percentile: Percentile,
        step: f64,
    ) -> Option<Difference> {
        let side = |side: usize| -> Option<Vec<Sample>> {
            let runs: Vec<&RunOutline> = self.all.iter().map(|pair| pair[side]).collect();
            let hosts = hosts(&runs);
            let host = |run: &RunOutline| hosts.iter().position(|host| **host == run.machine).unwrap_or(0);
            let values = values(&runs, measure, percentile)?;
            let samples = runs.iter().zip(values);
            Some(samples.map(|(run, value)| Sample { value, placement: host(run) }).collect())
        };
        difference(&side(0)?, &side(1)?, step, self.margin)
    }

    fn judge_runs(&mut self) {
        let pairs = self.a.len();
        let are_few = pairs < MIN_PAIRS && self.reasons.is_empty();
        let deciding = self.deciding_pairs().concat();
        let runs = || deciding.iter();
        let of = |what: &str, is: fn(&RunOutline) -> bool| {
            let count = runs().filter(|run| is(run)).count();
            (count > 0).then(|| format!("{what} in {count} of {} runs", runs().count()))
        };
        let oversubscribed = of("shared cores: threads wait for each other", |run| run.oversubscribed);
        // Occasional runs that fell behind are noise; in half of the runs it means that the machine
        // cannot carry the setting. Levels of one run fall behind together.
        let are_side_by_side = self.deciding_pairs().iter().all(|[a, b]| a.run_id() == b.run_id());
        let overloaded = runs().filter(|run| !run.has_kept_up()).count();
        let overloaded = (overloaded > 0 && overloaded * 2 >= runs().count()).then(|| {
            format!("not fit for latency claims: {overloaded} of {} runs fell behind", runs().count())
        });
        let unfit = of("not fit for latency claims", |run| !run.fit_for_latency);
        let first = runs().find_map(|run| run.reasons.first());
        let unfit = unfit.map(|unfit| first.map_or(unfit.clone(), |first| format!("{unfit}, e.g. {first}")));
        if are_side_by_side {
            self.caveats.extend(overloaded);
        } else {
            self.reasons.extend(overloaded);
        }
        // Last: more repeats mend it, and nothing of the above.
        self.reasons.extend(are_few.then(|| too_few_repeats(pairs)));
        // Strategies that share cores are a normal layout: measured and marked.
        self.caveats.extend(oversubscribed);
        self.caveats.extend(unfit);
    }

    /// Returns the numbers of runs of A and B by host and core placement; empty if there was only
    /// one.
    pub fn runs_by_placement(&self) -> Vec<PlacementRuns> {
        let all: Vec<&RunOutline> = self.a.iter().chain(&self.b).copied().collect();
        let highest = self.placements.iter().max().copied().unwrap_or(0);
        let has_hosts = hosts(&self.a).len() > 1;
        let of = |placement: usize| {
            let in_group = |index: &usize| self.placements[*index] == placement;
            let side = |range: std::ops::Range<usize>| -> Vec<&RunOutline> {
                range.filter(in_group).map(|index| all[index]).collect()
            };
            let (a, b) = (side(0..self.a.len()), side(self.a.len()..all.len()));
            let floors: Vec<f64> = a.iter().chain(&b).filter_map(|run| core_rtt(run)).collect();
            let usual = |runs: &[&RunOutline]| median(&values(runs, Measure::RtVenue, Percentile::P50)?);
            let host = a.iter().chain(&b).next().filter(|_| has_hosts);
            PlacementRuns {
                host: host.map_or_else(String::new, |run| run.machine.hostname.clone()),
                floor_ns: median(&floors),
                a: a.len(),
                b: b.len(),
                a_ns: usual(&a),
                b_ns: usual(&b),
            }
        };
        (0..=highest).filter(|_| highest > 0).map(of).collect()
    }

    pub(super) fn samples(&self, a: &[f64], b: &[f64]) -> (Vec<Sample>, Vec<Sample>) {
        let placed = |values: &[f64], placements: &[usize]| -> Vec<Sample> {
            let samples = values.iter().zip(placements);
            samples.map(|(value, placement)| Sample { value: *value, placement: *placement }).collect()
        };
        let (placements_a, placements_b) = self.placements.split_at(a.len());
        (placed(a, placements_a), placed(b, placements_b))
    }

    /// Compares B with A on each host, if there are several, for hosts with enough pairs.
    pub(super) fn by_host(&self, a: &[Sample], b: &[Sample], step: f64) -> Vec<HostDifference> {
        let all = hosts(&self.a);
        let of = |host: &&MachineKey| {
            let pairs_on_host: Vec<usize> =
                (0..self.a.len()).filter(|pair| self.a[*pair].machine == **host).collect();
            let side = |side: &[Sample]| pairs_on_host.iter().map(|pair| side[*pair]).collect::<Vec<_>>();
            let difference = difference(&side(a), &side(b), step, self.margin);
            HostDifference { host: host.hostname.clone(), pairs: pairs_on_host.len(), difference }
        };
        if all.len() > 1 { all.iter().map(of).collect() } else { Vec::new() }
    }
}

const TOO_FEW: &str = "too few repeats: ";

/// Returns the reason against comparing fewer than [`MIN_PAIRS`] pairs.
pub(super) fn too_few_repeats(pairs: usize) -> String {
    format!("{TOO_FEW}{pairs} of at least {MIN_PAIRS} pairs")
}

/// Returns `true` if a reason against comparing is that too few pairs count.
pub(super) fn is_too_few(why: &str) -> bool {
    why.starts_with(TOO_FEW)
}

/// Returns `true` if more repeats of the settings can mend a reason against comparing them.
pub(super) fn can_repeats_mend(why: &str) -> bool {
    is_too_few(why) || [NO_SHARED_PLACEMENT, NO_SHARED_HOST].contains(&why)
}

/// Reason against comparing runs with themselves.
const SAME_RUNS: &str = "A and B are the same runs: what was measured once cannot differ from itself";
/// Reason without a difference although every pair is usable.
pub(super) const NO_SHARED_PLACEMENT: &str =
    "the machine moved its cores: too few runs of A and B had the same core-to-core floor; repeat more";
/// Reason without a difference over several hosts.
pub(super) const NO_SHARED_HOST: &str =
    "too few runs of A and B were made on one host with the same core-to-core floor; repeat more";

#[cfg(test)]
mod tests {
    use super::super::fixtures::run;
    use super::*;
    use proptest::prelude::*;

    /// Floors after the run, in nanoseconds, whether it is valid, and its latency.
    type RunShape = (u32, bool, u32);

    fn side(letter: &str, shapes: &[RunShape]) -> Vec<RunOutline> {
        let outline = |(repeat, (rtt, valid, ns)): (usize, &RunShape)| RunOutline {
            run: format!("{letter}{repeat}"),
            core_rtt_after_ns: Some(f64::from(*rtt)),
            valid: *valid,
            ..run(repeat, f64::from(*ns))
        };
        shapes.iter().enumerate().map(outline).collect()
    }

    fn kept(a: &[RunOutline], b: &[RunOutline]) -> Vec<String> {
        pair_runs(a, b).a.iter().map(|run| run.run.clone()).collect()
    }

    /// The broken variant: a pair whose latencies differ too much is called disturbed.
    fn kept_by_outcome(a: &[RunOutline], b: &[RunOutline]) -> Vec<String> {
        let ns = |run: &RunOutline| run.measure(Measure::RtVenue).p50_ns.unwrap_or(0);
        let found = pair_runs(a, b);
        let pairs = found.a.iter().zip(&found.b).filter(|(a, b)| ns(b) < 2 * ns(a));
        pairs.map(|(a, _)| a.run.clone()).collect()
    }

    /// Returns `true` if a rule keeps other pairs once all latencies are others.
    fn looks_at_outcome(
        rule: fn(&[RunOutline], &[RunOutline]) -> Vec<String>,
        [a, b]: [&[RunShape]; 2],
        other_ns: u32,
    ) -> bool {
        let other = |shapes: &[RunShape]| -> Vec<RunShape> {
            shapes.iter().map(|(rtt, valid, _)| (*rtt, *valid, other_ns)).collect()
        };
        rule(&side("a", a), &side("b", b)) != rule(&side("a", &other(a)), &side("b", &other(b)))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn kept_pairs_do_not_depend_on_latencies(
            shapes in prop::collection::vec(((60u32..160, any::<bool>(), 1u32..9_000), (60u32..160, any::<bool>(), 1u32..9_000)), 1..12),
            other_ns in 1u32..9_000,
        ) {
            let (a, b): (Vec<RunShape>, Vec<RunShape>) = shapes.into_iter().unzip();
            prop_assert!(!looks_at_outcome(kept, [&a, &b], other_ns));
        }
    }

    #[test]
    fn levels_of_one_run_may_fall_behind_together() {
        let side = |letter: &str, is_level: bool| -> Vec<RunOutline> {
            let name =
                |repeat| if is_level { format!("r{repeat}/{letter}") } else { format!("{letter}{repeat}") };
            let behind = |repeat| RunOutline {
                run: name(repeat),
                offered_per_s: Some(1_000.0),
                achieved_per_s: Some(900.0),
                ..run(repeat, 300.0)
            };
            (0..MIN_PAIRS).map(behind).collect()
        };
        let (a, b) = (side("thread", true), side("process", true));
        let found = pair_runs(&a, &b);
        assert!(found.reasons.is_empty() && found.caveats.iter().any(|why| why.contains("fell behind")));
        let (a, b) = (side("a", false), side("b", false));
        assert!(pair_runs(&a, &b).reasons[0].contains("fell behind"));
    }

    #[test]
    fn rule_that_looks_at_latencies_is_found() {
        let (a, b) = (
            [(100, true, 300); 6],
            [
                (100, true, 300),
                (100, true, 900),
                (130, true, 300),
                (100, false, 300),
                (100, true, 310),
                (100, true, 300),
            ],
        );
        assert!(looks_at_outcome(kept_by_outcome, [&a, &b], 300));
        assert_eq!(kept(&side("a", &a), &side("b", &b)), ["a0", "a1", "a4", "a5"]);
        let found = pair_runs(&side("a", &a), &side("b", &b)).all.len();
        assert_eq!(found, 5, "all pairs: also the one whose cores moved");
    }
}
