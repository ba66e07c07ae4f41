//! The ratio and the difference of two settings that were measured in pairs, each with a 95 % interval.
//!
//! A repeat runs both settings one right after the other on the same schedule, so that what disturbs one disturbs
//! the other. The pairs are what is resampled or averaged, never the two sides on their own.
//!
//! # The method, and why it is two
//!
//! - From [`BOOTSTRAP_FROM`] pairs on: the **paired percentile bootstrap** of the ratio (difference) of medians
//!   (B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, 1993, ch. 13): draw as many pairs with
//!   replacement, take the ratio of the two medians, 1,999 times over, cut off 2.5 % at each end.
//! - Below: **Student's t interval** on the logarithms of the pairs' ratios (on their differences), whose middle is
//!   the geometric mean of the ratios (the mean difference).
//!
//! Chosen by simulation. The test `candidates` draws 1,000 comparisons each from four kinds of noise and counts how
//! often a method excludes the ratio of 1. The worst of the four kinds if both settings are equal (should be 5 %),
//! then how often 10 % slower is seen, in runs of which one in seven is disturbed:
//!
//! | pairs | percentile | BCa | bootstrap-t | t | signed ranks |
//! |---|---|---|---|---|---|
//! | 5 | 6.4 · 40 | **17.7** · 48 | 5.0 · 33 | 4.8 · 25 | 8.0 · 38 |
//! | 6 | 7.9 · 42 | **12.9** · 46 | 7.9 · 37 | 5.6 · 30 | 3.9 · 34 |
//! | 8 | 6.0 · 59 | 9.4 · 57 | 9.4 · 44 | 4.0 · 35 | 4.5 · 42 |
//! | 10 | 4.8 · 65 | **11.2** · 65 | **10.5** · 46 | 5.3 · 38 | 5.7 · 47 |
//! | 20 | 5.4 · 93 | 7.1 · 92 | **13.1** · 50 | 5.5 · 51 | 5.3 · 76 |
//!
//! BCa and bootstrap-t call noise a difference twice as often as they should. The percentile bootstrap holds its level
//! from 8 pairs on and sees the most, because a median does not mind a disturbed run; with 5 to 7 only the t
//! interval holds it (a difference of two equally distributed logarithms is symmetric however skewed each is, and
//! with heavy tails t errs towards seeing nothing).

use super::draws::Draws;
use super::sample::{median, sorted};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewer pairs than this say nothing that can be relied on.
pub const FEWEST_PAIRS: usize = 5;
/// From so many pairs on the bootstrap holds its level.
pub const BOOTSTRAP_FROM: usize = 8;
/// Bootstrap samples.
const RESAMPLES: usize = 1_999;
/// The seed of the resampling: the same repeats always give the same interval.
const SEED: u64 = 3;
/// What an interval leaves out at each end.
const TAIL: f64 = 0.025;
/// Percentiles come out of histograms with three significant figures: a ratio is known no better than this.
pub const RESOLUTION: f64 = 0.001;

/// An estimate with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Estimate {
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { value: f(self.value), low: f(self.low), high: f(self.high) }
    }
}

/// How an interval was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Paired percentile bootstrap of the medians.
    Bootstrap,
    /// Student's t on the pairs.
    StudentT,
}

impl Method {
    /// The method in words, for below a table.
    pub const fn words(self) -> &'static str {
        match self {
            Method::Bootstrap => "ratio of medians, paired percentile bootstrap",
            Method::StudentT => "geometric mean of the pairs' ratios, Student's t",
        }
    }
}

/// B against A over pairs of repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Pairs.
    pub pairs: usize,
    /// How the intervals were made.
    pub method: Method,
    /// B / A: 1.05 is 5 % slower.
    pub ratio: Estimate,
    /// B − A, in the unit of the figures.
    pub difference: Estimate,
}

impl Difference {
    /// Whether the ratio's interval, widened by [`RESOLUTION`], excludes 1: -1 B is less, 1 B is more, 0 neither.
    pub fn direction(&self) -> i32 {
        if self.ratio.high * (1.0 + RESOLUTION) < 1.0 {
            -1
        } else if self.ratio.low * (1.0 - RESOLUTION) > 1.0 {
            1
        } else {
            0
        }
    }
}

/// Compares B with A, pair by pair. `None`: fewer than [`FEWEST_PAIRS`] pairs, or a figure that is not above 0.
pub fn difference(a: &[f64], b: &[f64]) -> Option<Difference> {
    let pairs = a.len();
    let positive = a.iter().chain(b).all(|value| value.is_finite() && *value > 0.0);
    if pairs != b.len() || pairs < FEWEST_PAIRS || !positive {
        return None;
    }
    if pairs >= BOOTSTRAP_FROM {
        return bootstrap(a, b);
    }
    let both = || a.iter().zip(b);
    let logs: Vec<f64> = both().map(|(a, b)| (b / a).ln()).collect();
    let differences: Vec<f64> = both().map(|(a, b)| b - a).collect();
    Some(Difference {
        pairs,
        method: Method::StudentT,
        ratio: student(&logs)?.map(f64::exp),
        difference: student(&differences)?,
    })
}

/// The mean with Student's t interval.
fn student(values: &[f64]) -> Option<Estimate> {
    let n = values.len() as f64;
    let value = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(1.0 - TAIL);
    let reach = t * (squares / (n - 1.0) / n).sqrt();
    Some(Estimate { value, low: value - reach, high: value + reach })
}

fn bootstrap(a: &[f64], b: &[f64]) -> Option<Difference> {
    let n = a.len();
    let mut draws = Draws::new(SEED);
    let (mut ratios, mut differences) = (Vec::new(), Vec::new());
    let (mut some_a, mut some_b) = (vec![0.0; n], vec![0.0; n]);
    for _ in 0..RESAMPLES {
        for place in 0..n {
            let pick = draws.below(n);
            (some_a[place], some_b[place]) = (a[pick], b[pick]);
        }
        let (a, b) = (median(&some_a)?, median(&some_b)?);
        ratios.push(b / a);
        differences.push(b - a);
    }
    let (a, b) = (median(a)?, median(b)?);
    Some(Difference {
        pairs: n,
        method: Method::Bootstrap,
        ratio: cut(b / a, &ratios)?,
        difference: cut(b - a, &differences)?,
    })
}

fn cut(value: f64, found: &[f64]) -> Option<Estimate> {
    let sorted = sorted(found)?;
    let edge = (TAIL * (sorted.len() + 1) as f64) as usize - 1;
    Some(Estimate { value, low: sorted[edge], high: sorted[sorted.len() - 1 - edge] })
}

#[cfg(test)]
mod tests {
    use super::super::candidates::Noise;
    use super::super::recorded;
    use super::*;
    use proptest::prelude::*;

    /// How many of `rounds` comparisons see a difference.
    fn seen(noise: Noise, pairs: usize, ratio: f64, rounds: usize, seed: u64) -> usize {
        let mut draws = Draws::new(seed);
        let differs = |_: &usize| {
            let (a, b) = noise.pairs(pairs, ratio, &mut draws);
            difference(&a, &b).unwrap().direction() != 0
        };
        (0..rounds).filter(differs).count()
    }

    #[test]
    fn the_same_setting_against_itself_is_no_difference_at_the_nominal_rate() {
        for pairs in [5, 7, 8, 12] {
            for noise in Noise::ALL {
                let wrong = seen(noise, pairs, 1.0, 500, pairs as u64);
                // 5 % of 500 are 25; by chance alone 40 come once in a few hundred simulations.
                assert!(wrong <= 40, "{noise:?}, {pairs} pairs: {wrong} of 500 are called a difference");
            }
        }
    }

    #[test]
    fn twenty_comparisons_with_itself_see_one_difference_or_two_at_most() {
        for noise in Noise::ALL {
            let wrong = seen(noise, 10, 1.0, 20, 20);
            assert!(wrong <= 3, "{noise:?}: {wrong} of 20");
        }
    }

    /// Runs that were recorded, dealt out to two sides at random as alternation deals them.
    fn seen_in_recorded(figures: &[u32], pairs: usize, rounds: usize, draws: &mut Draws) -> usize {
        let differs = |_: &usize| {
            let mut left: Vec<f64> = figures.iter().map(|ns| f64::from(*ns)).collect();
            let mut deal = || left.swap_remove(draws.below(left.len()));
            let a: Vec<f64> = (0..pairs).map(|_| deal()).collect();
            let b: Vec<f64> = (0..pairs).map(|_| deal()).collect();
            difference(&a, &b).unwrap().direction() != 0
        };
        (0..rounds).filter(differs).count()
    }

    #[test]
    fn recorded_repeats_against_themselves_are_no_difference_at_the_nominal_rate() {
        let mut draws = Draws::new(4);
        for figures in [recorded::P50_NS, recorded::P99_NS, recorded::P999_NS] {
            for pairs in [5, 8, 10, 20] {
                let wrong = seen_in_recorded(&figures, pairs, 500, &mut draws);
                assert!(wrong <= 40, "{pairs} pairs: {wrong} of 500 are called a difference");
                let wrong = seen_in_recorded(&figures, pairs, 20, &mut draws);
                assert!(wrong <= 4, "{pairs} pairs: {wrong} of 20");
            }
        }
    }

    #[test]
    fn recorded_neighbours_are_no_difference() {
        // As `compare` alternates: runs 0 and 1, 2 and 3, and so on; the first of a pair is A and B in turn.
        for figures in [recorded::P50_NS, recorded::P99_NS, recorded::P999_NS] {
            let side = |side: usize| -> Vec<f64> {
                (0..20).map(|pair| f64::from(figures[2 * pair + (pair + side) % 2])).collect()
            };
            assert_eq!(difference(&side(0), &side(1)).unwrap().direction(), 0);
        }
    }

    #[test]
    fn a_real_difference_is_seen() {
        for pairs in [5, 10, 20] {
            let found = seen(Noise::Quiet, pairs, 1.1, 200, 1);
            assert!(found >= 190, "{pairs} pairs: 10 % is seen in {found} of 200");
        }
        assert!(seen(Noise::Disturbed, 20, 1.2, 200, 2) >= 180);
    }

    #[test]
    fn too_little_is_no_comparison() {
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(difference(&five[..4], &five[..4]), None);
        assert_eq!(difference(&five, &five[..4]), None);
        assert_eq!(difference(&five, &[0.0, 1.0, 1.0, 1.0, 1.0]), None);
        assert_eq!(difference(&five, &[f64::NAN, 1.0, 1.0, 1.0, 1.0]), None);
    }

    #[test]
    fn what_the_histogram_cannot_tell_apart_is_no_difference() {
        let a = [10_000.0; 9];
        assert_eq!(difference(&a, &[10_005.0; 9]).unwrap().direction(), 0);
        assert_eq!(difference(&a, &[10_100.0; 9]).unwrap().direction(), 1);
        assert_eq!(difference(&a[..5], &[9_900.0; 5]).unwrap().direction(), -1);
    }

    proptest! {
        #[test]
        fn an_interval_holds_its_estimate_and_turns_round_with_its_sides(
            pairs in prop::collection::vec((1.0f64..1e9, 1.0f64..1e9), FEWEST_PAIRS..20),
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let there = difference(&a, &b).unwrap();
            for Estimate { value, low, high } in [there.ratio, there.difference] {
                let slack = 1e-9 * (1.0 + value.abs());
                prop_assert!(low <= value + slack && value <= high + slack, "{} in {}..{}", value, low, high);
            }
            let back = difference(&b, &a).unwrap();
            prop_assert!((there.ratio.value * back.ratio.value - 1.0).abs() < 1e-9);
            prop_assert_eq!(there.direction(), -back.direction());
            prop_assert_eq!(there, difference(&a, &b).unwrap(), "the same again");
        }
    }
}
