//! Estimates the shift between two groups of runs, comparing only within placements.
//!
//! One statistic, two ways to judge it. The statistic is Wilcoxon's rank sum within each placement,
//! weighted as P. van Elteren (1960) weights strata: every difference *B − A* of two runs of one
//! placement counts 1 / (runs there + 1). The estimate is the weighted median of these differences
//! (Hodges and Lehmann); the interval holds every shift that a test does not reject. The two tests
//! differ in what is equally likely if nothing differs:
//!
//! - [`flips`]: exchanging A and B within a pair. It needs no assumption about the noise, not even
//!   that pairs are alike, and is exact. With fewer than six pairs it can reject nothing.
//! - [`ranks`]: any order of a placement's runs, by the normal approximation with continuity
//!   correction.

use super::seeded_rng::SeededRng;
use serde::{Deserialize, Serialize};

/// An estimated value, such as the shift of B from A, with the ends of its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Point estimate of the shift.
    pub value: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    /// Upper end of the 95 % interval.
    pub high: f64,
}

impl Estimate {
    /// Applies an increasing function to the estimate and to both ends of its interval.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { value: f(self.value), low: f(self.low), high: f(self.high) }
    }

    /// Returns the estimate with its interval widened to at least `reach` on both sides.
    pub(crate) fn with_min_half_width(self, reach: f64) -> Self {
        Self { low: self.low.min(self.value - reach), high: self.high.max(self.value + reach), ..self }
    }
}

/// One run's value in a comparison, with the core placement in which the run was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Measured value of the run.
    pub value: f64,
    /// Number of the core placement in which the run was measured.
    pub placement: usize,
}

/// All exchanges are tried if they are no more than this (up to 10 pairs), and otherwise as many
/// random ones.
const SAMPLED_FLIPS: usize = 999;
/// The same for the p-value of a difference that [`SAMPLED_FLIPS`] show clearly (all exchanges up
/// to 17 pairs): a correction for a hundred figures multiplies it by a hundred.
const CLEAR_FLIPS: usize = 99_999;
/// Maximum p-value of a clear difference.
const CLEAR_P: f64 = 0.01;
/// Seed of the sample: equal repeats always give equal intervals.
const SEED: u64 = 3;

/// The share of errors of a two-sided test, with its quantile of the normal distribution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorLevel {
    pub share: f64,
    z: f64,
}

/// The level of 95 % intervals.
pub(crate) const FIVE_PERCENT: ErrorLevel = ErrorLevel { share: 0.05, z: 1.959_964 };
/// The level of 90 % intervals: each of two one-sided tests errs in 5 %.
pub(crate) const TEN_PERCENT: ErrorLevel = ErrorLevel { share: 0.10, z: 1.644_854 };

/// Returns the difference of every two runs of one placement, ascending, with its weight.
fn differences(a: &[Sample], b: &[Sample]) -> Vec<(f64, f64)> {
    let mut found = Vec::with_capacity(a.len() * b.len());
    for run in a {
        let is_here = |other: &&Sample| other.placement == run.placement;
        let weight = 1.0 / (a.iter().chain(b).filter(is_here).count() + 1) as f64;
        found.extend(b.iter().filter(is_here).map(|other| (other.value - run.value, weight)));
    }
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found
}

/// Returns the value at which the cumulative weight reaches `quantile_rank`.
fn quantile(differences: &[(f64, f64)], quantile_rank: f64) -> f64 {
    let mut sum = 0.0;
    for (index, (value, weight)) in differences.iter().enumerate() {
        sum += weight;
        if (sum - quantile_rank).abs() < 1e-9 {
            // Exactly between two values: their mean, so that the sides are exchangeable.
            return differences.get(index + 1).map_or(*value, |next| f64::midpoint(*value, next.0));
        }
        if sum > quantile_rank {
            return *value;
        }
    }
    differences.last().map_or(0.0, |last| last.0)
}

fn middle(differences: &[(f64, f64)]) -> f64 {
    quantile(differences, differences.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0)
}

/// Estimates the shift by rank sums; `None` with too few runs of both sides in one placement.
pub(crate) fn ranks(a: &[Sample], b: &[Sample], level: ErrorLevel) -> Option<Estimate> {
    let differences = differences(a, b);
    let total: f64 = differences.iter().map(|(_, weight)| weight).sum();
    let (deviation, continuity) = rank_sum_noise(&differences);
    let rank_limit = total / 2.0 - level.z * deviation - continuity;
    (rank_limit > 0.0).then(|| Estimate {
        value: middle(&differences),
        low: quantile(&differences, rank_limit),
        high: quantile(&differences, total - rank_limit),
    })
}

/// Returns the standard deviation of the rank sum if nothing differs, and its continuity
/// correction.
fn rank_sum_noise(differences: &[(f64, f64)]) -> (f64, f64) {
    // The variance of a rank sum is m·n·(m + n + 1) / 12; every pair of runs has its share, (m + n
    // + 1) / 12.
    let variance: f64 = differences.iter().map(|(_, weight)| weight / 12.0).sum();
    let continuity = differences.iter().map(|(_, weight)| weight / 2.0).fold(f64::INFINITY, f64::min);
    (variance.sqrt(), continuity)
}

/// Returns the two-sided p-value of a shift by rank sums.
pub(crate) fn ranks_p(a: &[Sample], b: &[Sample], shift: f64) -> f64 {
    let differences = differences(a, b);
    let excess =
        |(value, weight): &(f64, f64)| weight * (value - shift).partial_cmp(&0.0).map_or(0.0, sign) / 2.0;
    let (deviation, continuity) = rank_sum_noise(&differences);
    let distance = (differences.iter().map(excess).sum::<f64>().abs() - continuity).max(0.0);
    if deviation > 0.0 { two_sided_tail(distance / deviation) } else { 1.0 }
}

fn sign(order: std::cmp::Ordering) -> f64 {
    f64::from(order as i8)
}

/// Returns the share of a normal distribution that lies beyond ±`z`, to seven digits (Abramowitz
/// and Stegun, 7.1.26).
fn two_sided_tail(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let factors = [1.061_405_429, -1.453_152_027, 1.421_413_741, -0.284_496_736, 0.254_829_592];
    factors.iter().fold(0.0, |sum, factor| sum * t + factor) * t * (-x * x).exp()
}

/// Estimates the shift by exchanging A and B within pairs; `None` as for [`ranks`].
pub(crate) fn flips(a: &[Sample], b: &[Sample], level: ErrorLevel) -> Option<Estimate> {
    // If even the ranks give no limit, A and B were hardly ever in one placement; the permutation
    // test would then only reject that the placements are random.
    let value = ranks(a, b, FIVE_PERCENT)?.value;
    let mut steps: Vec<f64> = differences(a, b).into_iter().map(|(value, _)| value).collect();
    let (first, last) = (*steps.first()?, *steps.last()?);
    let same = 1e-12 * (1.0 + first.abs().max(last.abs()));
    steps.dedup_by(|a, b| (*a - *b).abs() <= same);
    // The statistic is constant between two neighboring differences: one shift of each gap is
    // tested.
    let gap = |gap: usize| match gap {
        0 => steps[0] - 1.0,
        gap if gap == steps.len() => steps[gap - 1] + 1.0,
        gap => f64::midpoint(steps[gap - 1], steps[gap]),
    };
    let refused = |shift: f64| is_refused(a, b, shift, level);
    if !refused(gap(0)) || !refused(gap(steps.len())) {
        return None;
    }
    let centre = steps.partition_point(|step| *step < value - same);
    // The last rejected gap below the estimate and the first above it.
    let (mut below, mut inside) = (0, centre);
    while below + 1 < inside {
        let middle_of_ties = usize::midpoint(below, inside);
        if refused(gap(middle_of_ties)) { below = middle_of_ties } else { inside = middle_of_ties }
    }
    let (mut inside, mut above) = ((centre + 1).min(steps.len()), steps.len());
    if refused(gap(inside)) {
        above = inside;
    }
    while inside + 1 < above {
        let middle_of_ties = usize::midpoint(inside, above);
        if refused(gap(middle_of_ties)) { above = middle_of_ties } else { inside = middle_of_ties }
    }
    Some(Estimate { value, low: steps[below].min(value), high: steps[above - 1].max(value) })
}

/// Returns `true` if the exact test rejects that B is A shifted by `shift`. It reads no more sums
/// than that takes.
fn is_refused(a: &[Sample], b: &[Sample], shift: f64, level: ErrorLevel) -> bool {
    let (mut extreme, all) = extreme_sums(a, b, shift, SAMPLED_FLIPS);
    extreme.nth((level.share * all as f64) as usize).is_none()
}

/// Returns the two-sided p-value of a shift by exchanging A and B within pairs. Both stages must
/// reject for a low p-value, so it is at most α in no more than α of the cases.
pub(crate) fn flips_p(a: &[Sample], b: &[Sample], shift: f64) -> f64 {
    let p = |sampled: usize| {
        let (extreme, all) = extreme_sums(a, b, shift, sampled);
        extreme.count() as f64 / all as f64
    };
    let first = p(SAMPLED_FLIPS);
    if first > CLEAR_P || are_few(a.len(), SAMPLED_FLIPS) { first } else { p(CLEAR_FLIPS) }
}

/// Returns `true` if all exchanges of a number of pairs are at most as many as `sampled`.
const fn are_few(pairs: usize, sampled: usize) -> bool {
    pairs < 32 && 1 << (pairs - 1) <= sampled
}

/// Returns the sums of all exchanges that are as far from 0 as the observed one, and the number of
/// exchanges. If they are many, they are `sampled` random ones and the observed one.
fn extreme_sums(
    a: &[Sample],
    b: &[Sample],
    shift: f64,
    sampled: usize,
) -> (Box<dyn Iterator<Item = f64>>, usize) {
    let scores = scores(a, b, shift);
    let found: f64 = scores.iter().sum::<f64>().abs() - 1e-9;
    let is_extreme = move |sum: &f64| sum.abs() >= found;
    if are_few(scores.len(), sampled) {
        (Box::new(exhaustive_sums(scores).filter(is_extreme)), 1 << (a.len() - 1))
    } else {
        // The observed assignment is one of the possible ones.
        let sums = std::iter::once(found + 2e-9).chain(sampled_sums(&scores).take(sampled));
        (Box::new(sums.filter(is_extreme)), sampled + 1)
    }
}

/// Sums the scores with all signs. The last score keeps its sign, since opposite signs give
/// opposite sums. The order is a Gray code: each sum differs from the one before in one sign.
fn exhaustive_sums(mut scores: Vec<f64>) -> impl Iterator<Item = f64> {
    let (all, mut sum) = (1u32 << (scores.len() - 1), scores.iter().sum::<f64>());
    (0..all).map(move |step| {
        if step > 0 {
            let flipped = &mut scores[step.trailing_zeros() as usize];
            *flipped = -*flipped;
            sum += 2.0 * *flipped;
        }
        sum
    })
}

/// Sums the scores with random signs, without end: a random byte chooses the signs of eight scores.
fn sampled_sums(scores: &[f64]) -> impl Iterator<Item = f64> + use<> {
    let mut draws = SeededRng::new(SEED);
    let of_eight: Vec<Vec<f64>> = scores.chunks(8).map(signed_sums).collect();
    std::iter::repeat_with(move || {
        let mut sum = 0.0;
        for of_eight in of_eight.chunks(8) {
            let signs = draws.next_u64().to_le_bytes();
            for (sums, signs) in of_eight.iter().zip(signs) {
                sum += sums[usize::from(signs) % sums.len()];
            }
        }
        sum
    })
}

/// Returns the sums of the scores with all signs; bit `i` of an index is set if score `i` counts as
/// negative.
fn signed_sums(scores: &[f64]) -> Vec<f64> {
    let mut sums = vec![scores.iter().sum()];
    for score in scores {
        sums.extend_from_within(..);
        let half = sums.len() / 2;
        sums[half..].iter_mut().for_each(|sum| *sum -= 2.0 * score);
    }
    sums
}

/// Returns each pair's difference of ranks within its placement, as a share, with B shifted back.
fn scores(a: &[Sample], b: &[Sample], shift: f64) -> Vec<f64> {
    let values: Vec<Sample> =
        a.iter().copied().chain(b.iter().map(|run| Sample { value: run.value - shift, ..*run })).collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|x, y| {
        let (x, y) = (&values[*x], &values[*y]);
        x.placement.cmp(&y.placement).then(x.value.total_cmp(&y.value))
    });
    let mut ranks = vec![0.0; values.len()];
    for placement in order.chunk_by(|x, y| values[*x].placement == values[*y].placement) {
        let runs = placement.len() as f64;
        let mut below = 0;
        for equal in placement.chunk_by(|x, y| values[*x].value == values[*y].value) {
            let rank = below as f64 + (equal.len() as f64 - 1.0) / 2.0;
            equal.iter().for_each(|run| ranks[*run] = (rank - (runs - 1.0) / 2.0) / (runs + 1.0));
            below += equal.len();
        }
    }
    (0..a.len()).map(|pair| ranks[a.len() + pair] - ranks[pair]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A side's runs on near cores, then those on far ones.
    fn side(near: &[f64], far: &[f64]) -> Vec<Sample> {
        let placed = [near, far].into_iter().enumerate();
        placed
            .flat_map(|(placement, values)| {
                values.iter().map(move |value| Sample { value: *value, placement })
            })
            .collect()
    }

    #[test]
    fn runs_of_different_placements_are_never_compared() {
        // B takes 50 more in both; A was far more often.
        let a = side(&[250.0, 251.0, 250.0], &[650.0, 651.0, 649.0, 650.0, 652.0]);
        let b = side(&[300.0, 301.0, 300.0, 300.0, 302.0], &[700.0, 699.0, 701.0]);
        for found in [ranks(&a, &b, FIVE_PERCENT).unwrap(), flips(&a, &b, FIVE_PERCENT).unwrap()] {
            assert!((49.0..=51.0).contains(&found.value), "{found:?}");
            assert!(found.low > 45.0 && found.high < 55.0, "{found:?}");
        }
    }

    #[test]
    fn sides_without_shared_placement_have_no_difference() {
        let a = side(&[250.0; 9], &[]);
        // One run of B in their placement gives no limit either.
        for b in [side(&[], &[650.0; 9]), side(&[300.0], &[650.0; 8])] {
            assert_eq!((ranks(&a, &b, FIVE_PERCENT), flips(&a, &b, FIVE_PERCENT)), (None, None));
        }
    }

    #[test]
    fn noiseless_interval_equals_the_difference() {
        let (a, b) = (side(&[250.0; 12], &[]), side(&[260.0; 12], &[]));
        let ten = Estimate { value: 10.0, low: 10.0, high: 10.0 };
        assert_eq!((ranks(&a, &b, FIVE_PERCENT), flips(&a, &b, FIVE_PERCENT)), (Some(ten), Some(ten)));
    }

    #[test]
    fn p_values_of_normal_quantiles_are_their_levels() {
        for level in [FIVE_PERCENT, TEN_PERCENT] {
            assert!((two_sided_tail(level.z) - level.share).abs() < 1e-6);
        }
        let (a, b) = (
            side(&[250.0, 251.0, 249.0, 252.0, 248.0], &[]),
            side(&[260.0, 262.0, 259.0, 261.0, 263.0], &[]),
        );
        // 5 against 5 without overlap: 2 of 252 orders by chance, 0.8 %.
        assert!((0.005..0.02).contains(&ranks_p(&a, &b, 0.0)), "{}", ranks_p(&a, &b, 0.0));
        assert!(ranks_p(&a, &b, 11.0) > 0.5);
    }

    #[test]
    fn clear_difference_has_p_value_below_a_thousandth() {
        let steady = |ns: f64| side(&[ns; 20], &[]);
        let found = flips_p(&steady(250.0), &steady(300.0), 0.0);
        // By chance in 2 of 2^20.
        assert!(found <= 5e-5, "{found}");
    }

    proptest! {
        #[test]
        fn interval_contains_shifts_not_rejected(
            pairs in prop::collection::vec((0i32..40, 0i32..40, 0usize..2), 8..11),
        ) {
            let side = |of: fn(&(i32, i32, usize)) -> i32| -> Vec<Sample> {
                pairs.iter().map(|pair| Sample { value: f64::from(of(pair)), placement: pair.2 }).collect()
            };
            let (a, b) = (side(|pair| pair.0), side(|pair| pair.1));
            for level in [FIVE_PERCENT, TEN_PERCENT] {
                let Some(found) = flips(&a, &b, level) else { continue };
                prop_assert!(found.low <= found.value && found.value <= found.high);
                prop_assert!(is_refused(&a, &b, found.low - 0.25, level), "{:?}", found);
                prop_assert!(is_refused(&a, &b, found.high + 0.25, level), "{:?}", found);
                prop_assert!(flips_p(&a, &b, found.low - 0.25) <= level.share);
                prop_assert!(flips_p(&a, &b, found.value) > level.share, "{:?}", found);
            }
        }
    }
}
