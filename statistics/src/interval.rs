//! Ratio and difference of two settings measured in pairs, each with its 95 % interval, and the
//! test for equivalence.
//!
//! A repeat runs both settings one after the other on the same schedule, so that both see the same
//! disturbances. A virtual machine may move its cores between the two, after which every hand-off
//! takes twice as long. Runs are therefore compared only within one placement.
//!
//! # The method
//!
//! A stratified rank sum: [`super::shift`] describes the computation. Its null distribution:
//!
//! - From [`MIN_PAIRS_FOR_FLIPS`] pairs on: **A and B are exchanged within pairs**, at random (a
//!   permutation test).
//! - Below: **any order of a placement's runs**, by the normal approximation. (Five pairs have 32
//!   exchanges: the rarest two together are above 5 %.)
//!
//! Chosen by simulation against bootstraps and Student's t: `data/results/studies/measuring.md` has
//! the table.

use super::margin::Margin;
use super::shift::{ErrorLevel, Estimate, FIVE_PERCENT, Sample, TEN_PERCENT, flips, flips_p, ranks, ranks_p};
use record::spread::median;
use serde::{Deserialize, Serialize};

/// Minimum number of pairs of runs (one of setting A, one of setting B) that can be compared.
pub const MIN_PAIRS: usize = 5;
/// Minimum number of pairs of runs for the permutation test; with fewer pairs a rank-sum test is
/// used.
pub const MIN_PAIRS_FOR_FLIPS: usize = 8;
/// Relative resolution of a latency ratio (0.1 %): histograms keep three significant digits.
pub const RESOLUTION: f64 = 0.001;

/// The statistical method that computed a confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Rank sums within placements; permutation test that exchanges A and B within pairs.
    PairFlips,
    /// Rank sums within placements; any order of a placement's runs is equally likely.
    Ranks,
}

impl Method {
    /// Returns a description of the statistical method, for the note below a table.
    pub const fn describe(self) -> &'static str {
        match self {
            Method::PairFlips => {
                "median of B/A within a placement, rank sums, A and B changing places within pairs"
            }
            Method::Ranks => "median of B/A within a placement, rank sums",
        }
    }

    fn estimate(self, a: &[Sample], b: &[Sample], level: ErrorLevel) -> Option<Estimate> {
        match self {
            Method::PairFlips => flips(a, b, level),
            Method::Ranks => ranks(a, b, level),
        }
    }

    fn p(self, a: &[Sample], b: &[Sample], shift: f64) -> f64 {
        match self {
            Method::PairFlips => flips_p(a, b, shift),
            Method::Ranks => ranks_p(a, b, shift),
        }
    }
}

/// The estimated difference between settings A and B over pairs of runs: the ratio B / A and the
/// difference B − A.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// Number of pairs of runs that were compared.
    pub pairs: usize,
    /// The statistical method that computed the intervals.
    pub method: Method,
    /// Ratio B / A: 1.05 is 5 % slower.
    pub ratio: Estimate,
    /// Difference B − A, in the unit of the compared values.
    pub difference: Estimate,
    /// Two-sided p-value of the hypothesis of no difference; corrected for a secondary figure.
    /// `None` if saved by an older launcher.
    #[serde(default)]
    pub p: Option<f64>,
    /// Test for equivalence within the margin; `None` if saved by an older launcher.
    #[serde(default)]
    pub equivalence: Option<Equivalence>,
}

/// The result of two one-sided tests (TOST) of whether B equals A within a margin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// Equivalence margin, in the unit of the compared values.
    pub margin: f64,
    /// Lower end of the 90 % interval of the difference.
    pub low: f64,
    /// Upper end of the 90 % interval of the difference.
    pub high: f64,
    /// Resolution of the compared values, in their unit: half of an interval is at least this wide.
    pub step: f64,
    /// p-value of the equivalence test: the larger one of the two one-sided tests; corrected for a
    /// secondary figure.
    pub p: f64,
    /// Upper end of the 90 % interval of the ratio B / A: at 95 % confidence B takes at most that
    /// many times as long (a test for non-inferiority). `None` if saved by an older launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_high: Option<f64>,
}

impl Equivalence {
    /// Returns `true` if equivalence is shown: the difference is within the margin at 95 %
    /// confidence.
    pub fn is_shown(&self) -> bool {
        -self.margin <= self.low && self.high <= self.margin && self.p <= FIVE_PERCENT.share
    }
}

impl Difference {
    /// Returns `true` if B differs significantly from A: the p-value, corrected or not, is at most
    /// 5 %.
    pub fn is_significant(&self) -> bool {
        self.p.is_none_or(|p| p <= FIVE_PERCENT.share)
    }

    /// Returns -1 if B is below A, 1 if above, and 0 if the interval of B/A, widened by
    /// [`RESOLUTION`] (0.1 %), contains 1.
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

/// The latency difference between settings A and B over the pairs of runs on one host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostDifference {
    /// Name of the host.
    pub host: String,
    /// Number of pairs on the host.
    pub pairs: usize,
    /// Difference between B and A on the host with its interval; null with too few pairs.
    pub difference: Option<Difference>,
}

/// Formats a latency ratio with its interval: `1.032 [0.990–1.071]`.
pub fn format_ratio(difference: &Difference) -> String {
    let text = |value: f64| match value {
        value if value < 2.0 => format!("{value:.3}"),
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    };
    let found = &difference.ratio;
    format!("{} [{}–{}]", text(found.value), text(found.low), text(found.high))
}

/// Estimates the difference between B and A over pairs of runs; equal indices of `a` and `b` are a
/// pair. `step` is the resolution of the figures, in their unit: every interval extends at least
/// that far.
///
/// Returns `None` with fewer than [`MIN_PAIRS`] pairs, with a figure that is not above 0, or
/// with too few runs of both sides in one placement.
pub fn difference(a: &[Sample], b: &[Sample], step: f64, margin: Margin) -> Option<Difference> {
    let pairs = a.len();
    let positive = a.iter().chain(b).all(|run| run.value.is_finite() && run.value > 0.0);
    if pairs != b.len() || pairs < MIN_PAIRS || !positive {
        return None;
    }
    let method = if pairs >= MIN_PAIRS_FOR_FLIPS { Method::PairFlips } else { Method::Ranks };
    let logs = |runs: &[Sample]| -> Vec<Sample> {
        runs.iter().map(|run| Sample { value: run.value.ln(), ..*run }).collect()
    };
    let usual = median(&a.iter().map(|run| run.value).collect::<Vec<_>>())?;
    let margin = margin.to_ns(usual);
    let (log_a, log_b) = (logs(a), logs(b));
    let narrow = method.estimate(a, b, TEN_PERCENT)?.with_min_half_width(step);
    Some(Difference {
        pairs,
        method,
        ratio: method.estimate(&log_a, &log_b, FIVE_PERCENT)?.map(f64::exp).with_min_half_width(step / usual),
        difference: method.estimate(a, b, FIVE_PERCENT)?.with_min_half_width(step),
        p: Some(method.p(&log_a, &log_b, 0.0)),
        equivalence: Some(Equivalence {
            margin,
            low: narrow.low,
            high: narrow.high,
            step,
            p: equivalence_p(narrow.value, margin, |shift| method.p(a, b, shift)),
            ratio_high: Some(
                method
                    .estimate(&log_a, &log_b, TEN_PERCENT)?
                    .map(f64::exp)
                    .with_min_half_width(step / usual)
                    .high,
            ),
        }),
    })
}

/// Returns the larger p-value of two one-sided tests: against a difference of −margin or less, and
/// of margin or more. Each is half of the two-sided one, on the side of the estimate.
fn equivalence_p(estimate: f64, margin: f64, two_sided: impl Fn(f64) -> f64) -> f64 {
    let one_sided = |shift: f64, is_inside: bool| {
        let p = two_sided(shift) / 2.0;
        if is_inside { p } else { 1.0 - p }
    };
    one_sided(-margin, estimate > -margin).max(one_sided(margin, estimate < margin))
}

#[cfg(test)]
mod tests;
