//! The verdict in words: is B faster or slower than A, is no difference seen, or can the two not be compared?
//!
//! Each line of a comparison is a test of its own at 95 %: of twenty lines without a difference one may be
//! expected to say otherwise. Read `rt_venue` first; the stages explain it.

use super::interval::{Difference, FEWEST_PAIRS, difference};
use super::outline::{Outline, Percentile, values};
use super::placement::{floor, moved, placements};
use super::sample::median;
use super::shift::Sample;
use crate::summary::Measure;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// B takes less time than A.
    Faster,
    /// B takes more time than A.
    Slower,
    /// The interval holds the ratio of 1: the repeats do not tell them apart.
    NoDifferenceSeen,
    /// The two sides cannot be compared; there are reasons beside this.
    NotComparable,
}

impl Verdict {
    /// As it is printed.
    pub const fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifferenceSeen => "no difference seen",
            Verdict::NotComparable => "not comparable",
        }
    }
}

/// Which repeats of A and B belong together, and what speaks against comparing them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pairing<'a> {
    /// The runs of A, in the order of their pairs.
    pub a: Vec<&'a Outline>,
    /// The runs of B.
    pub b: Vec<&'a Outline>,
    /// Why the two are not comparable; none: they are.
    pub against: Vec<String>,
    /// What weakens the comparison without forbidding it.
    pub caveats: Vec<String>,
    /// Where the machine had its cores during the runs: those of A, then those of B.
    placements: Vec<usize>,
    same_runs: bool,
}

/// The runs of one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// Median of their core-to-core floors, in nanoseconds.
    pub floor_ns: Option<f64>,
    /// Runs of A.
    pub a: usize,
    /// Runs of B.
    pub b: usize,
    /// Median p50 of rt_venue of A's, in nanoseconds.
    pub a_ns: Option<f64>,
    /// Median p50 of rt_venue of B's.
    pub b_ns: Option<f64>,
}

/// Finds the pairs: sound runs of the same schedule on the same machine, in the order in which they were run.
pub fn pair<'a>(a: &'a [Outline], b: &'a [Outline]) -> Pairing<'a> {
    let mut found = Pairing::default();
    let mut by_hash: BTreeMap<&str, Vec<&Outline>> = BTreeMap::new();
    for run in b.iter().rev() {
        by_hash.entry(&run.schedule_hash).or_default().push(run);
    }
    let (mut unsound, mut in_between, mut matched) = (0, 0, 0);
    for left in a {
        let Some(right) = by_hash.get_mut(left.schedule_hash.as_str()).and_then(Vec::pop) else { continue };
        matched += 1;
        // A run against itself is always like itself.
        if left.run != right.run && (moved(left) || moved(right)) {
            in_between += 1;
        } else if left.is_sound() && right.is_sound() {
            found.a.push(left);
            found.b.push(right);
        } else {
            unsound += 1;
        }
    }
    found.same_runs = !found.a.is_empty() && found.a.iter().zip(&found.b).all(|(a, b)| a.run == b.run);
    let machines = a.first().zip(b.first()).map(|(a, b)| (&a.machine, &b.machine));
    let all_on_one = machines.is_some_and(|(first, _)| a.iter().chain(b).all(|run| run.machine == *first));
    if let Some((left, right)) = machines.filter(|_| !all_on_one) {
        found.against.push(match (left.hostname == right.hostname, left.cpu_model == right.cpu_model) {
            (false, _) => format!("other machine: {} and {}", left.hostname, right.hostname),
            (_, false) => format!("other machine: {} and {}", left.cpu_model, right.cpu_model),
            _ => "other machine: the cores that may be used are not the same".into(),
        });
    }
    if matched == 0 {
        found.against.push("other schedule: no run of A played the orders of a run of B".into());
    } else if found.a.is_empty() && in_between == 0 {
        found.against.push(format!("invalid: none of {matched} pairs is complete and valid"));
    } else if unsound > 0 {
        found.caveats.push(format!("{unsound} of {matched} pairs left out: not complete or not valid"));
    }
    if in_between > 0 {
        let out = "pairs left out: the core-to-core floor changed during a run";
        found.caveats.push(format!("{in_between} of {matched} {out}"));
    }
    found.placements = placements(&found.a.iter().chain(&found.b).copied().collect::<Vec<_>>());
    if found.same_runs {
        found.against.push(SAME_RUNS.into());
    } else {
        found.judge_runs();
    }
    found
}

impl Pairing<'_> {
    fn judge_runs(&mut self) {
        let pairs = self.a.len();
        if pairs < FEWEST_PAIRS && self.against.is_empty() {
            self.against.push(format!("too few repeats: {pairs} of at least {FEWEST_PAIRS} pairs"));
        }
        let runs = || self.a.iter().chain(&self.b);
        let of = |what: &str, is: fn(&Outline) -> bool| {
            let count = runs().filter(|run| is(run)).count();
            (count > 0).then(|| format!("{what} in {count} of {} runs", runs().count()))
        };
        let oversubscribed = of("oversubscribed: threads share a core", |run| run.oversubscribed);
        // A run that fell behind now and then is noise; half of them are a setting that the machine does not carry.
        let behind = runs().filter(|run| !run.kept_up()).count();
        let overloaded = (behind > 0 && behind * 2 >= runs().count())
            .then(|| format!("not fit for latency claims: {behind} of {} runs fell behind", runs().count()));
        let unfit = of("not fit for latency claims", |run| !run.fit_for_latency);
        let first = runs().find_map(|run| run.reasons.first());
        let unfit = unfit.map(|unfit| first.map_or(unfit.clone(), |first| format!("{unfit}, e.g. {first}")));
        self.against.extend(oversubscribed);
        self.against.extend(overloaded);
        self.caveats.extend(unfit);
    }

    /// Where the machine had its cores, if they were moved between the runs; empty: they were not.
    pub fn placed(&self) -> Vec<Placed> {
        let all: Vec<&Outline> = self.a.iter().chain(&self.b).copied().collect();
        let highest = self.placements.iter().max().copied().unwrap_or(0);
        let of = |placement: usize| {
            let here = |place: &usize| self.placements[*place] == placement;
            let side = |range: std::ops::Range<usize>| -> Vec<&Outline> {
                range.filter(here).map(|place| all[place]).collect()
            };
            let (a, b) = (side(0..self.a.len()), side(self.a.len()..all.len()));
            let floors: Vec<f64> = a.iter().chain(&b).filter_map(|run| floor(run)).collect();
            let usual = |runs: &[&Outline]| median(&values(runs, Measure::RtVenue, Percentile::P50)?);
            Placed { floor_ns: median(&floors), a: a.len(), b: b.len(), a_ns: usual(&a), b_ns: usual(&b) }
        };
        (0..=highest).filter(|_| highest > 0).map(of).collect()
    }

    fn samples(&self, a: &[f64], b: &[f64]) -> (Vec<Sample>, Vec<Sample>) {
        let placed = |values: &[f64], placements: &[usize]| -> Vec<Sample> {
            let samples = values.iter().zip(placements);
            samples.map(|(value, placement)| Sample { value: *value, placement: *placement }).collect()
        };
        let (placements_a, placements_b) = self.placements.split_at(a.len());
        (placed(a, placements_a), placed(b, placements_b))
    }
}

/// Nobody measured twice.
const SAME_RUNS: &str = "A and B are the same runs: what was measured once cannot differ from itself";
/// Why there is no difference where every pair is sound.
const TORN: &str =
    "the machine moved its cores: too few runs of A and B had the same core-to-core floor; repeat more";

/// One line of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonLine {
    /// The measure's name.
    pub measure: String,
    /// The percentile.
    pub percentile: Percentile,
    /// Median over the repeats of A, in nanoseconds.
    pub a_ns: Option<f64>,
    /// Median over the repeats of B, in nanoseconds.
    pub b_ns: Option<f64>,
    /// Of a figure without the machine's stalls: the share of orders that was taken out, A's and B's, medians over the repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_out: Option<[f64; 2]>,
    /// B against A, with intervals; null where there is none.
    pub difference: Option<Difference>,
    /// In words.
    pub verdict: Verdict,
    /// Why the verdict is not comparable; empty otherwise.
    pub why: Vec<String>,
}

/// Compares one figure of B with A's.
pub fn judge(pairing: &Pairing<'_>, measure: Measure, percentile: Percentile) -> ComparisonLine {
    let side = |runs: &[&Outline]| values(runs, measure, percentile);
    let (a, b) = (side(&pairing.a), side(&pairing.b));
    let middle = |values: &Option<Vec<f64>>| values.as_deref().and_then(median);
    let out = |runs: &[&Outline]| median(&runs.iter().filter_map(|run| run.taken_out()).collect::<Vec<_>>());
    let taken_out = || Some([out(&pairing.a)?, out(&pairing.b)?]);
    let step = pairing.a.iter().chain(&pairing.b).map(|run| run.clock_step_ns).fold(0.0, f64::max);
    let difference = a.as_deref().zip(b.as_deref()).and_then(|(a, b)| {
        let (a, b) = pairing.samples(a, b);
        difference(&a, &b, step)
    });
    let mut why = pairing.against.clone();
    let enough = a.is_some() && b.is_some();
    if why.is_empty() && !enough {
        why.push(format!("too few orders for a {}", percentile.name()));
    }
    let verdict = match difference.map(|difference| difference.direction()) {
        _ if !why.is_empty() => Verdict::NotComparable,
        Some(1) => Verdict::Slower,
        Some(-1) => Verdict::Faster,
        Some(_) => Verdict::NoDifferenceSeen,
        None => {
            let zero = a.iter().chain(&b).flatten().any(|value| *value <= 0.0);
            why.push(if zero { "a figure of 0 ns has no ratio" } else { TORN }.into());
            Verdict::NotComparable
        }
    };
    ComparisonLine {
        measure: measure.name().into(),
        percentile,
        a_ns: middle(&a),
        b_ns: middle(&b),
        taken_out: (measure == Measure::StallFree).then(taken_out).flatten(),
        difference,
        verdict,
        why,
    }
}

#[cfg(test)]
mod tests;
