//! The verdict in words: is B faster or slower than A, is no difference seen, or can the two not be
//! compared?
//!
//! Each line of a comparison is a test of its own at 95 %: of twenty lines without a difference one
//! may be expected to say otherwise. Read `rt_venue` first; the stages explain it.

use super::hosts::{HostDifference, disagreement, opposed};
use super::interval::{Difference, FEWEST_PAIRS, difference};
use super::outline::{MachineKey, Outline, Percentile, values};
use super::placement::{floor, hosts, moved, places};
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
    /// On which host, and where that had its cores during the runs: those of A, then those of B.
    placements: Vec<usize>,
    same_runs: bool,
}

/// The runs of one placement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// The host; empty: there was only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
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

/// Finds the pairs: sound runs of the same schedule on the same host, in the order in which they
/// were run.
pub fn pair<'a>(a: &'a [Outline], b: &'a [Outline]) -> Pairing<'a> {
    let mut found = Pairing::default();
    let mut by_hash: BTreeMap<&str, Vec<&Outline>> = BTreeMap::new();
    for run in b.iter().rev() {
        by_hash.entry(&run.schedule_hash).or_default().push(run);
    }
    let (mut unsound, mut in_between, mut matched) = (0, 0, 0);
    // The first run of A whose counterparts are all on other hosts, and one of those.
    let mut apart: Vec<(&Outline, &Outline)> = Vec::new();
    for left in a {
        let Some(waiting) = by_hash.get_mut(left.schedule_hash.as_str()) else { continue };
        let Some(right) = waiting.iter().rposition(|right| right.machine == left.machine) else {
            apart.extend(waiting.last().map(|right| (left, *right)));
            continue;
        };
        let right = waiting.remove(right);
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
    if matched > 0 && !apart.is_empty() {
        let (all, out) = (matched + apart.len(), "pairs left out: A and B were made on two hosts");
        found.caveats.push(format!("{} of {all} {out}", apart.len()));
    }
    let apart = apart.first().filter(|_| matched == 0).map(|(left, right)| (&left.machine, &right.machine));
    if let Some((left, right)) = apart {
        found.against.push(match (left.hostname == right.hostname, left.cpu_model == right.cpu_model) {
            (false, _) => format!("other machine: {} and {}", left.hostname, right.hostname),
            (_, false) => format!("other machine: {} and {}", left.cpu_model, right.cpu_model),
            _ => "other machine: the cores that may be used are not the same".into(),
        });
    }
    if matched == 0 && apart.is_none() {
        found.against.push("other schedule: no run of A played the orders of a run of B".into());
    } else if found.a.is_empty() && in_between == 0 && matched > 0 {
        found.against.push(format!("invalid: none of {matched} pairs is complete and valid"));
    } else if unsound > 0 {
        found.caveats.push(format!("{unsound} of {matched} pairs left out: not complete or not valid"));
    }
    if in_between > 0 {
        let out = "pairs left out: the core-to-core floor changed during a run";
        found.caveats.push(format!("{in_between} of {matched} {out}"));
    }
    found.placements = places(&found.a.iter().chain(&found.b).copied().collect::<Vec<_>>());
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
        // A run that fell behind now and then is noise; half of them are a setting that the machine
        // does not carry.
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

    /// Which host had its cores where, if there was more than one place; empty: there was not.
    pub fn placed(&self) -> Vec<Placed> {
        let all: Vec<&Outline> = self.a.iter().chain(&self.b).copied().collect();
        let highest = self.placements.iter().max().copied().unwrap_or(0);
        let has_hosts = hosts(&self.a).len() > 1;
        let of = |placement: usize| {
            let here = |place: &usize| self.placements[*place] == placement;
            let side = |range: std::ops::Range<usize>| -> Vec<&Outline> {
                range.filter(here).map(|place| all[place]).collect()
            };
            let (a, b) = (side(0..self.a.len()), side(self.a.len()..all.len()));
            let floors: Vec<f64> = a.iter().chain(&b).filter_map(|run| floor(run)).collect();
            let usual = |runs: &[&Outline]| median(&values(runs, Measure::RtVenue, Percentile::P50)?);
            let host = a.iter().chain(&b).next().filter(|_| has_hosts);
            Placed {
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

    fn samples(&self, a: &[f64], b: &[f64]) -> (Vec<Sample>, Vec<Sample>) {
        let placed = |values: &[f64], placements: &[usize]| -> Vec<Sample> {
            let samples = values.iter().zip(placements);
            samples.map(|(value, placement)| Sample { value: *value, placement: *placement }).collect()
        };
        let (placements_a, placements_b) = self.placements.split_at(a.len());
        (placed(a, placements_a), placed(b, placements_b))
    }

    /// B against A on each host, where there are several: of those with pairs enough.
    fn by_host(&self, a: &[Sample], b: &[Sample], step: f64) -> Vec<HostDifference> {
        let all = hosts(&self.a);
        let of = |host: &&MachineKey| {
            let here: Vec<usize> = (0..self.a.len()).filter(|pair| self.a[*pair].machine == **host).collect();
            let side = |side: &[Sample]| here.iter().map(|pair| side[*pair]).collect::<Vec<_>>();
            let difference = difference(&side(a), &side(b), step);
            HostDifference { host: host.hostname.clone(), pairs: here.len(), difference }
        };
        if all.len() > 1 { all.iter().map(of).collect() } else { Vec::new() }
    }
}

/// Nobody measured twice.
const SAME_RUNS: &str = "A and B are the same runs: what was measured once cannot differ from itself";
/// Why there is no difference where every pair is sound.
const TORN: &str =
    "the machine moved its cores: too few runs of A and B had the same core-to-core floor; repeat more";
/// The same where there are several hosts.
const TORN_HOSTS: &str =
    "too few runs of A and B were made on one host with the same core-to-core floor; repeat more";

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
    /// Of a figure without the machine's stalls: the share of orders that was taken out, A's and
    /// B's, medians over the repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_out: Option<[f64; 2]>,
    /// B against A, with intervals; null where there is none.
    pub difference: Option<Difference>,
    /// The same on each host, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostDifference>,
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
    let samples = a.as_deref().zip(b.as_deref()).map(|(a, b)| pairing.samples(a, b));
    let difference = samples.as_ref().and_then(|(a, b)| difference(a, b, step));
    let by_host = samples.as_ref().map_or_else(Vec::new, |(a, b)| pairing.by_host(a, b, step));
    let mut why = pairing.against.clone();
    let enough = a.is_some() && b.is_some();
    if why.is_empty() && !enough {
        why.push(format!("too few orders for a {}", percentile.name()));
    }
    // What one host calls slower and another faster has no answer for both.
    why.extend(opposed(&by_host).filter(|_| why.is_empty()));
    let verdict = match difference.map(|difference| difference.direction()) {
        _ if !why.is_empty() => Verdict::NotComparable,
        Some(1) => Verdict::Slower,
        Some(-1) => Verdict::Faster,
        Some(_) => Verdict::NoDifferenceSeen,
        None => {
            let zero = a.iter().chain(&b).flatten().any(|value| *value <= 0.0);
            let torn = if by_host.is_empty() { TORN } else { TORN_HOSTS };
            why.push(if zero { "a figure of 0 ns has no ratio" } else { torn }.into());
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
        hosts: by_host,
        verdict,
        why,
    }
}

impl ComparisonLine {
    /// How the hosts disagree, in words; `None`: they do not, or nobody can tell.
    pub fn disagreement(&self) -> Option<String> {
        disagreement(&self.hosts)
    }
}

#[cfg(test)]
mod tests;
