//! The rule of evidence: the verdict that repeated runs allow on B compared with A, with the same
//! words in every experiment.
//!
//! Banners, tables and charts ask [`Evidence`], and nothing else:
//!
//! - No ranking without a 95 % interval: [`rank`] names a lowest setting only if every other one is
//!   slower than it.
//! - No figure in a headline when the repeats disagree: [`Evidence::has_factor`].
//! - The binding reason comes first. More pairs are promised only where they can mend it.

use super::pairing::{can_repeats_mend, is_too_few, too_few_repeats};
use super::verdict::ComparisonLine;
use statistics::Margin;
use statistics::Sample;
use statistics::Verdict;
use statistics::{Difference, MIN_PAIRS, RESOLUTION, difference};

/// Maximum half-width of a confidence interval, as a share of the estimate (0.25 is 25 %), for
/// repeats to count as agreeing.
pub const MAX_HALF_WIDTH: f64 = 0.25;
/// Maximum number of repeats that are promised to mend something.
const MAX_MORE_REPEATS: usize = 1_000;
/// A difference is found with a power of 0.8 if it is this many times the half of its 95 %
/// interval: (z(0.975) + z(0.8)) / z(0.975).
const POWER_TO_DIFFER: f64 = 1.4294;
/// Equivalence of settings that do not differ is found with a power of 0.8 if the margin is this
/// many times the half of the 90 % interval: (z(0.95) + z(0.9)) / z(0.95).
const POWER_TO_EQUAL: f64 = 1.7791;
/// Reasons for which comparable pairs decide nothing, and more of them would not.
const FAR_APART: &str = "the pairs lie too far apart";
const COARSE_CLOCK: &str = "the clock's steps are too coarse for the margin";
const CORRECTED: &str = "not after Holm's correction for the number of figures";
const NO_MARGIN: &str = "no margin was declared";

/// What repeated runs show of B against A: verdict, difference of B to A, and, if undecided, the
/// reason and the repeats to add.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The verdict on B compared with A.
    pub verdict: Verdict,
    /// Difference of B to A with its intervals; `None` if the two cannot be compared.
    pub difference: Option<Difference>,
    /// The main reason of the verdict *cannot tell*; empty if more pairs decide, and for other
    /// verdicts.
    pub why: String,
    /// Approximate number of pairs to add for an answer with a power of 0.8; `None` if they would
    /// not help.
    pub more_repeats: Option<usize>,
}

impl ComparisonLine {
    /// Returns the verdict on this compared figure with the difference of B to A, or the reason and
    /// the remedy if undecided. Every table, chart and headline shows this.
    pub fn evidence(&self) -> Evidence {
        if let Some(known) = self.deciding().filter(|_| self.why.is_empty()) {
            return Evidence::from_difference(known, self.verdict, (self.made, self.is_secondary));
        }
        let why = self.why.first().map_or("no reason known", String::as_str).to_owned();
        let can_mend = !self.why.is_empty() && self.can_repeats_mend();
        let more = if can_mend { repeats_for_answer(&why, self.pairs, self.made) } else { None };
        Evidence {
            verdict: Verdict::CannotTell,
            difference: None,
            why,
            more_repeats: more.filter(is_promising),
        }
    }
}

impl ComparisonLine {
    /// Returns `true` if more repeats can remove every reason that keeps this comparison undecided;
    /// also if it has no such reason.
    pub fn can_repeats_mend(&self) -> bool {
        self.why.iter().all(|why| can_repeats_mend(why))
    }
}

/// Estimates the repeats to add until enough pairs count, if as many drop out as did.
fn repeats_for_answer(why: &str, pairs: usize, made: usize) -> Option<usize> {
    match pairs {
        // Nobody knows what share of the pairs will count.
        0 if made > 0 => None,
        _ if !is_too_few(why) => Some(made.max(pairs)),
        0 => Some(MIN_PAIRS),
        _ => Some((MIN_PAIRS.saturating_sub(pairs) * made.max(pairs)).div_ceil(pairs)),
    }
}

const fn is_promising(more: &usize) -> bool {
    matches!(*more, 1..=MAX_MORE_REPEATS)
}

/// Returns why comparable pairs decide nothing, and how many more would with a power of 0.8, by
/// their spread, if the difference is the estimated one.
fn open_reason(found: &Difference, made: usize, is_secondary: bool) -> (&'static str, Option<usize>) {
    let Some(test) = found.equivalence else { return (NO_MARGIN, None) };
    if found.direction() != 0 && !found.is_significant() {
        return (CORRECTED, None);
    }
    if is_secondary {
        // The number would be larger by an unknown factor: the correction's.
        return (FAR_APART, None);
    }
    let (by, value) = (found.difference, found.difference.value.abs());
    // An interval narrows with the root of the number of pairs, down to the clock's step.
    let wanted = |half: f64, reach: f64| {
        (reach > test.step.max(0.0)).then(|| found.pairs as f64 * (half / reach).powi(2))
    };
    let to_equal = wanted(POWER_TO_EQUAL * (test.high - test.low) / 2.0, test.margin - value);
    let to_differ = wanted(POWER_TO_DIFFER * (by.high - by.low) / 2.0, value);
    let Some(wanted) = to_equal.into_iter().chain(to_differ).min_by(f64::total_cmp) else {
        return (COARSE_CLOCK, None);
    };
    let lost = made.max(found.pairs) as f64 / found.pairs.max(1) as f64;
    let more = ((wanted.ceil() as usize).saturating_sub(found.pairs) as f64 * lost).ceil() as usize;
    match Some(more.max(1)).filter(is_promising) {
        Some(more) => ("", Some(more)),
        None => (FAR_APART, None),
    }
}

impl Evidence {
    /// Judges a difference between two settings, given the number of pairs made and whether the
    /// figure is secondary.
    fn from_difference(found: Difference, verdict: Verdict, (made, is_secondary): (usize, bool)) -> Self {
        let open = || open_reason(&found, made, is_secondary);
        let (why, more_repeats) = if verdict == Verdict::CannotTell { open() } else { ("", None) };
        Self { verdict, difference: Some(found), why: why.into(), more_repeats }
    }

    /// Compares setting B with A by one value for each repeat; entries with equal indices are from
    /// the same repeat. The values need not be times. `step` is their resolution.
    pub fn from_repeats(a: &[f64], b: &[f64], step: f64) -> Self {
        let samples = |values: &[f64]| -> Vec<Sample> {
            values.iter().map(|value| Sample { value: *value, placement: 0 }).collect()
        };
        let pairs = a.len().min(b.len());
        let found = difference(&samples(&a[..pairs]), &samples(&b[..pairs]), step, Margin::RELATIVE);
        let (why, more_repeats) = match found {
            Some(found) => return Self::from_difference(found, found.verdict(), (pairs, false)),
            None if pairs < MIN_PAIRS => (too_few_repeats(pairs), Some(MIN_PAIRS - pairs)),
            None => ("a figure of 0 has no ratio".into(), None),
        };
        Self { verdict: Verdict::CannotTell, difference: None, why, more_repeats }
    }

    /// Returns `true` if the comparison has a verdict other than *cannot tell*.
    pub fn is_known(&self) -> bool {
        self.verdict != Verdict::CannotTell
    }

    /// Returns `true` if a headline may give the ratio of B to A as one number: it is known, and
    /// the repeats agree.
    pub fn has_factor(&self) -> bool {
        self.is_known() && self.difference.as_ref().is_some_and(|found| !is_wide(found))
    }

    /// Describes the verdict on a comparison; *cannot tell* with its main reason first, and the
    /// remedy: `cannot tell: too few repeats: 3 of at least 5 pairs; about 2 more pairs`.
    pub fn describe(&self) -> String {
        let why = Some(self.why.clone()).filter(|why| !why.is_empty());
        let more = self.more_repeats.map(|more| {
            let pairs = if more == 1 { "pair" } else { "pairs" };
            let power = if why.is_some() { "" } else { " for a power of 0.8" };
            format!("about {more} more {pairs}{power}")
        });
        let open: Vec<String> = why.into_iter().chain(more).collect();
        if open.is_empty() {
            self.verdict.to_string()
        } else {
            format!("{}: {}", self.verdict, open.join("; "))
        }
    }
}

fn is_wide(found: &Difference) -> bool {
    let ratio = found.ratio;
    let reach = (ratio.high - ratio.value).max(ratio.value - ratio.low);
    reach > MAX_HALF_WIDTH * ratio.value * (1.0 + RESOLUTION)
}

/// The setting with the lowest figure in an experiment, and its closest rival, which decides
/// whether it may be called lowest.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Index of the setting with the lowest median.
    pub lowest: usize,
    /// Index of the rival: the next setting, or the first one that is not known to be slower.
    pub rival: usize,
    /// Evidence of the rival compared with the lowest.
    pub evidence: Evidence,
}

impl Ranking {
    /// Returns `true` if the setting with the lowest figure is proven lower than its closest rival,
    /// and so than all others.
    pub fn is_shown(&self) -> bool {
        self.evidence.verdict == Verdict::Slower
    }
}

/// Finds the setting with the lowest median and its closest rival, by pairwise comparisons with
/// `compare`. `compare` judges the second setting against the first, by index. Returns `None` for
/// fewer than two settings.
pub fn rank(medians: &[f64], compare: impl Fn(usize, usize) -> Evidence) -> Option<Ranking> {
    let mut order: Vec<usize> = (0..medians.len()).collect();
    order.sort_by(|a, b| medians[*a].total_cmp(&medians[*b]));
    let (lowest, others) = order.split_first()?;
    let against =
        |rival: &usize| Ranking { lowest: *lowest, rival: *rival, evidence: compare(*lowest, *rival) };
    let mut rankings = others.iter().map(against);
    let next = rankings.next()?;
    if !next.is_shown() {
        return Some(next);
    }
    Some(rankings.find(|ranking| !ranking.is_shown()).unwrap_or(next))
}

#[cfg(test)]
mod tests;
