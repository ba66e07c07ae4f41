//! The verdict of a comparison: equivalent within the margin, slower, faster, or cannot tell.
//!
//! The declared endpoint is tested at 95 %. Every other figure is secondary: its p-values are
//! corrected for the number of figures ([`correct_secondary`](super::correct_secondary)).

use super::median;
use super::outline::{Percentile, RunOutline, values};
use super::pairing::{NO_SHARED_HOST, NO_SHARED_PLACEMENT, RunPairing, can_repeats_mend, kept_pairs_decide};
use serde::{Deserialize, Serialize};
use statistics::{Difference, HostDifference, Verdict, difference, format_ratio};
use verdict::summary::Measure;

/// A comparison line: one percentile of one measured duration, compared between settings A and B.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparisonLine {
    /// Name of the measure.
    pub measure: String,
    /// The compared percentile of the measure.
    pub percentile: Percentile,
    /// Median over the repeats of A, in nanoseconds.
    pub a_ns: Option<f64>,
    /// Median over the repeats of B, in nanoseconds.
    pub b_ns: Option<f64>,
    /// Number of pairs of runs that count; 0 with `made` 0: an older launcher did not save them.
    #[serde(default)]
    pub pairs: usize,
    /// Number of pairs of runs that were made, those that do not count included.
    #[serde(default)]
    pub made: usize,
    /// For stall-free figures: the shares of A's and B's orders that were excluded.
    #[serde(rename = "taken_out", default, skip_serializing_if = "Option::is_none")]
    pub excluded_share: Option<[f64; 2]>,
    /// Whether the figure is not the declared endpoint, and its p-values are corrected for that.
    #[serde(default)]
    pub is_secondary: bool,
    /// Difference of B to A over the kept pairs; null if there is none.
    pub difference: Option<Difference>,
    /// Difference of B to A over all pairs of complete and valid runs, wherever the cores were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_pairs: Option<Difference>,
    /// Difference on each host, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostDifference>,
    /// Verdict on B against A.
    pub verdict: Verdict,
    /// Reasons against comparing the two sides; empty if they are comparable.
    pub why: Vec<String>,
}

impl ComparisonLine {
    /// Returns the difference of B to A that decides the verdict: over run pairs without core moves
    /// if enough, else over all.
    pub fn deciding(&self) -> Option<Difference> {
        self.all_pairs.filter(|all| !kept_pairs_decide(self.pairs, all.pairs)).or(self.difference)
    }

    /// Returns the difference that decides, to correct it.
    pub(super) fn deciding_mut(&mut self) -> Option<&mut Difference> {
        let pairs = self.pairs;
        let all = self.all_pairs.as_mut().filter(|all| !kept_pairs_decide(pairs, all.pairs));
        all.or(self.difference.as_mut())
    }

    /// Sets the verdict by the difference and the reasons.
    pub(super) fn judge(&mut self) {
        let known = self.deciding().filter(|_| self.why.is_empty());
        self.verdict = known.map_or(Verdict::CannotTell, |found| found.verdict());
    }
}

/// Compares one percentile of a measured duration between settings A and B.
pub fn compare_figure(pairing: &RunPairing<'_>, measure: Measure, percentile: Percentile) -> ComparisonLine {
    let side = |runs: &[&RunOutline]| values(runs, measure, percentile);
    let (a, b) = (side(&pairing.a), side(&pairing.b));
    let middle = |values: &Option<Vec<f64>>| values.as_deref().and_then(median);
    let out = |runs: &[&RunOutline]| {
        median(&runs.iter().filter_map(|run| run.excluded_share()).collect::<Vec<_>>())
    };
    let taken_out = || Some([out(&pairing.a)?, out(&pairing.b)?]);
    let step = pairing.a.iter().chain(&pairing.b).map(|run| run.clock_step_ns).fold(0.0, f64::max);
    let samples = a.as_deref().zip(b.as_deref()).map(|(a, b)| pairing.samples(a, b));
    let difference = samples.as_ref().and_then(|(a, b)| difference(a, b, step, pairing.margin));
    let by_host = samples.as_ref().map_or_else(Vec::new, |(a, b)| pairing.by_host(a, b, step));
    let mut why = pairing.reasons.clone();
    let enough = a.is_some() && b.is_some();
    if why.is_empty() && !enough {
        why.push(format!("too few orders for a {}", percentile.name()));
    }
    // A result that is slower on one host and faster on another is not an answer for both.
    why.extend(opposed(&by_host).filter(|_| why.is_empty()));
    if why.is_empty() && difference.is_none() {
        let zero = a.iter().chain(&b).flatten().any(|value| *value <= 0.0);
        let torn = if by_host.is_empty() { NO_SHARED_PLACEMENT } else { NO_SHARED_HOST };
        why.push(if zero { "a figure of 0 ns has no ratio" } else { torn }.into());
    }
    let all_pairs = pairing.difference_of_all(measure, percentile, step);
    let all_decide = all_pairs.is_some_and(|all| !kept_pairs_decide(pairing.a.len(), all.pairs));
    if all_decide {
        // Of all pairs there are enough.
        why.retain(|why| !can_repeats_mend(why));
    }
    let middle_of = |index: usize, kept: &Option<Vec<f64>>| {
        let all: Vec<&RunOutline> = pairing.all.iter().map(|pair| pair[index]).collect();
        if all_decide { middle(&side(&all)) } else { middle(kept) }
    };
    let mut line = ComparisonLine {
        measure: measure.name().into(),
        percentile,
        a_ns: middle_of(0, &a),
        b_ns: middle_of(1, &b),
        pairs: pairing.a.len(),
        made: pairing.made,
        excluded_share: (measure == Measure::StallFree).then(taken_out).flatten(),
        is_secondary: false,
        difference,
        all_pairs,
        hosts: by_host,
        verdict: Verdict::CannotTell,
        why,
    };
    line.judge();
    line
}

fn known(hosts: &[HostDifference]) -> impl Iterator<Item = (&HostDifference, &Difference)> {
    hosts.iter().filter_map(|host| Some((host, host.difference.as_ref()?)))
}

fn describe_pair(low: (&HostDifference, &Difference), high: (&HostDifference, &Difference)) -> String {
    let of = |(host, difference): (&HostDifference, &Difference)| {
        format!("B/A {} on {} ({} pairs)", format_ratio(difference), host.host, host.pairs)
    };
    format!("{}, {}", of(low), of(high))
}

/// Describes that B is faster on one host and slower on another, if so.
fn opposed(hosts: &[HostDifference]) -> Option<String> {
    let of = |wanted| known(hosts).find(|(_, difference)| difference.direction() == wanted);
    Some(format!("the hosts disagree: {}", describe_pair(of(-1)?, of(1)?)))
}

impl ComparisonLine {
    /// Describes two hosts whose confidence intervals for B against A do not overlap; `None` if
    /// those of all hosts do.
    pub fn disagreement(&self) -> Option<String> {
        let lowest = known(&self.hosts).min_by(|(_, a), (_, b)| a.ratio.high.total_cmp(&b.ratio.high))?;
        let highest = known(&self.hosts).max_by(|(_, a), (_, b)| a.ratio.low.total_cmp(&b.ratio.low))?;
        (lowest.1.ratio.high < highest.1.ratio.low).then(|| describe_pair(lowest, highest))
    }
}

#[cfg(test)]
mod tests;
