//! The rule of evidence: what repeated runs show about B against A, in the words of every
//! experiment.
//!
//! Banners, tables and charts ask [`Evidence`], and nothing else:
//!
//! - No ranking without a 95 % interval: [`rank`] names a lowest setting only if every other one is
//!   slower than it.
//! - No figure in a headline when the repeats disagree: [`Evidence::has_factor`].
//! - The binding reason comes first. More repeats are promised only where they can mend it.

use super::interval::{Difference, MIN_PAIRS, RESOLUTION, difference};
use super::pairing::{can_repeats_mend, is_too_few, too_few_repeats};
use super::shift::Sample;
use super::verdict::{ComparisonLine, Verdict};
use system::named_enum;

named_enum! {
    /// What the repeats show about B against A.
    #[derive(Hash)]
    Finding {
        /// B takes less time than A.
        Faster = "faster",
        /// B takes more time than A.
        Slower = "slower",
        /// The interval contains the ratio of 1, and is narrow enough to say so.
        NoDifferenceSeen = "no difference seen",
        /// The interval contains the ratio of 1 and much else: the repeats lie too far apart.
        Unclear = "unclear",
        /// An interval is missing, or it is not about the settings.
        NotComparable = "not comparable",
    }
}

/// The repeats disagree if their interval reaches further from its estimate than this share of it.
pub const MAX_HALF_WIDTH: f64 = 0.25;
/// The half-width of an interval that more repeats are to reach, as a share.
const TARGET_HALF_WIDTH: f64 = 0.05;
/// Maximum number of repeats that are promised to mend something.
const MAX_MORE_REPEATS: usize = 1_000;
/// The reason of an unclear finding.
const FAR_APART: &str = "the repeats lie too far apart";

/// What the repeats show about B against A, and what is missing for an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// What is shown.
    pub finding: Finding,
    /// B against A with its intervals; `None` if not comparable.
    pub difference: Option<Difference>,
    /// The binding reason of an unclear or incomparable finding; empty otherwise.
    pub why: String,
    /// Repeats to add, about, for an answer or a narrow interval; `None` if they would not help.
    pub more_repeats: Option<usize>,
}

impl ComparisonLine {
    /// Returns what the line shows. Every table, chart and headline shows this.
    pub fn evidence(&self) -> Evidence {
        let known = self.difference.filter(|_| self.verdict != Verdict::NotComparable);
        match known {
            Some(known) => Evidence::from_difference(known, self.verdict, self.made),
            None => {
                let why = self.why.first().map_or("no reason known", String::as_str).to_owned();
                let can_mend = !self.why.is_empty() && self.can_repeats_mend();
                let more = if can_mend { repeats_for_answer(&why, self.pairs, self.made) } else { None };
                let (finding, difference) = (Finding::NotComparable, None);
                Evidence { finding, difference, why, more_repeats: more.filter(is_promising) }
            }
        }
    }
}

impl ComparisonLine {
    /// Returns `true` if more repeats can mend every reason against the comparison, or there is
    /// none.
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

impl Evidence {
    /// Judges a difference between two settings of which `made` pairs were made.
    fn from_difference(found: Difference, verdict: Verdict, made: usize) -> Self {
        let finding = match verdict {
            Verdict::Faster => Finding::Faster,
            Verdict::Slower => Finding::Slower,
            _ if is_wide(&found) => Finding::Unclear,
            _ => Finding::NoDifferenceSeen,
        };
        let half_width = (found.ratio.high - found.ratio.low) / 2.0;
        // An interval narrows with the root of the number of pairs.
        let wanted = (found.pairs as f64 * (half_width / TARGET_HALF_WIDTH).powi(2)).round() as usize;
        let lost = made.max(found.pairs) as f64 / found.pairs.max(1) as f64;
        let more = (wanted.saturating_sub(found.pairs) as f64 * lost).ceil() as usize;
        let is_open = matches!(finding, Finding::NoDifferenceSeen | Finding::Unclear);
        let why = if finding == Finding::Unclear { FAR_APART.into() } else { String::new() };
        let more_repeats = Some(more).filter(|more| is_open && is_promising(more));
        Self { finding, difference: Some(found), why, more_repeats }
    }

    /// Judges B against A by a figure of each repeat; entries with equal indices are of one repeat.
    /// `step` is the resolution of the figures.
    pub fn from_repeats(a: &[f64], b: &[f64], step: f64) -> Self {
        let samples = |values: &[f64]| -> Vec<Sample> {
            values.iter().map(|value| Sample { value: *value, placement: 0 }).collect()
        };
        let pairs = a.len().min(b.len());
        let difference = difference(&samples(&a[..pairs]), &samples(&b[..pairs]), step);
        let verdict = match difference.map(|found| found.direction()) {
            Some(1) => Verdict::Slower,
            Some(-1) => Verdict::Faster,
            Some(_) => Verdict::NoDifferenceSeen,
            None => Verdict::NotComparable,
        };
        match difference {
            Some(found) => Self::from_difference(found, verdict, pairs),
            None if pairs < MIN_PAIRS => Self {
                finding: Finding::NotComparable,
                difference,
                why: too_few_repeats(pairs),
                more_repeats: Some(MIN_PAIRS - pairs),
            },
            None => Self {
                finding: Finding::NotComparable,
                difference,
                why: "a figure of 0 has no ratio".into(),
                more_repeats: None,
            },
        }
    }

    /// Returns `true` if the finding is one of a direction or of no difference.
    pub const fn is_known(&self) -> bool {
        matches!(self.finding, Finding::Faster | Finding::Slower | Finding::NoDifferenceSeen)
    }

    /// Returns `true` if a headline may name the ratio: it is known, and the repeats agree on it.
    pub fn has_factor(&self) -> bool {
        self.is_known() && self.difference.as_ref().is_some_and(|found| !is_wide(found))
    }

    /// Describes an unclear or incomparable finding with its binding reason, and what would mend
    /// it: `not comparable: too few repeats: 3 of at least 5 pairs; about 2 more repeats would do`.
    pub fn describe(&self) -> String {
        let why = if self.why.is_empty() { String::new() } else { format!(": {}", self.why) };
        let more = self.more_repeats.map_or_else(String::new, |more| {
            let count = if more == 1 { "1 more repeat".into() } else { format!("{more} more repeats") };
            let effect = match self.finding {
                Finding::NotComparable => "would do",
                _ => "would show a difference of 5 %",
            };
            format!("; about {count} {effect}")
        });
        format!("{}{why}{more}", self.finding)
    }
}

fn is_wide(found: &Difference) -> bool {
    let ratio = found.ratio;
    let reach = (ratio.high - ratio.value).max(ratio.value - ratio.low);
    reach > MAX_HALF_WIDTH * ratio.value * (1.0 + RESOLUTION)
}

/// The setting with the lowest figure, and the one that decides whether it may be called lowest.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Index of the setting with the lowest median.
    pub lowest: usize,
    /// Index of the next setting, or of the first one that is not known to be slower.
    pub rival: usize,
    /// The rival against the lowest.
    pub evidence: Evidence,
}

impl Ranking {
    /// Returns `true` if every other setting is slower than the lowest.
    pub fn is_shown(&self) -> bool {
        self.evidence.finding == Finding::Slower
    }
}

/// Ranks settings by their medians. `compare` judges the second setting against the first, by
/// index. Returns `None` for fewer than two settings.
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
