//! Intervals of means by Student's t: for figures of which each sample is a whole run, or a whole
//! strategy.

use super::shift::Estimate;

/// The confidence level of an interval of a mean: 95 % or 90 %.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confidence {
    /// 95 %, which tables show.
    Usual,
    /// 90 %, for an equivalence test: two one-sided tests at 5 % each.
    Equivalence,
}

/// The two-sided quantiles of Student's t with 1 to 10 degrees of freedom, at 95 and 90 %.
const QUANTILES: [[f64; 10]; 2] = [
    [12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281],
    [6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125],
];
/// The same quantiles of the normal distribution.
const NORMAL: [f64; 2] = [1.959_964, 1.644_854];

/// Returns the two-sided quantile of Student's t. Degrees of freedom below 1 count as 1.
fn quantile(freedom: f64, confidence: Confidence) -> f64 {
    let row = usize::from(confidence == Confidence::Equivalence);
    let whole = (freedom.floor() as usize).max(1);
    if let Some(exact) = QUANTILES[row].get(whole - 1) {
        return *exact;
    }
    // The expansion around the normal quantile (Abramowitz and Stegun, 26.7.5).
    let (z, n) = (NORMAL[row], whole as f64);
    let second = (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / (96.0 * n * n);
    let third = (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / (384.0 * n.powi(3));
    z + (z.powi(3) + z) / (4.0 * n) + second + third
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the variance of the mean of at least two values.
fn variance_of_mean(values: &[f64]) -> f64 {
    let (middle, count) = (mean(values), values.len() as f64);
    values.iter().map(|value| (value - middle).powi(2)).sum::<f64>() / (count - 1.0) / count
}

fn around(value: f64, reach: f64) -> Option<Estimate> {
    (value.is_finite() && reach.is_finite()).then_some(Estimate {
        value,
        low: value - reach,
        high: value + reach,
    })
}

/// Returns the mean of independent values with its interval by Student's t; `None` with fewer than
/// two values.
pub fn mean_interval(values: &[f64], confidence: Confidence) -> Option<Estimate> {
    if values.len() < 2 {
        return None;
    }
    let reach = quantile(values.len() as f64 - 1.0, confidence) * variance_of_mean(values).sqrt();
    around(mean(values), reach)
}

/// Returns the mean of `b` minus the mean of `a` with its 95 % interval (Welch's t); `None` with
/// fewer than two values of either.
pub fn mean_difference(a: &[f64], b: &[f64]) -> Option<Estimate> {
    if a.len().min(b.len()) < 2 {
        return None;
    }
    let [of_a, of_b] = [a, b].map(variance_of_mean);
    let sum = of_a + of_b;
    let freedom = |variance: f64, count: usize| variance.powi(2) / (count as f64 - 1.0);
    let freedom = sum.powi(2) / (freedom(of_a, a.len()) + freedom(of_b, b.len()));
    // Without any spread there is no freedom to compute, and no reach either.
    let freedom = if freedom.is_finite() { freedom } else { 1.0 };
    around(mean(b) - mean(a), quantile(freedom, Confidence::Usual) * sum.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeded_rng::SeededRng;

    #[test]
    fn quantiles_are_those_of_published_tables() {
        for (freedom, usual, equivalence) in
            [(1.0, 12.706, 6.314), (4.0, 2.776, 2.132), (11.0, 2.201, 1.796), (30.0, 2.042, 1.697)]
        {
            assert!((quantile(freedom, Confidence::Usual) - usual).abs() < 0.002, "{freedom}");
            assert!((quantile(freedom, Confidence::Equivalence) - equivalence).abs() < 0.002, "{freedom}");
        }
        assert_eq!(quantile(0.3, Confidence::Usual), quantile(1.0, Confidence::Usual));
    }

    #[test]
    fn interval_of_a_mean_is_computed_by_hand() {
        let found = mean_interval(&[9.0, 10.0, 11.0], Confidence::Usual).unwrap();
        let reach = 4.3027 / 3.0f64.sqrt();
        assert!((found.value - 10.0).abs() < 1e-9 && (found.high - 10.0 - reach).abs() < 1e-9, "{found:?}");
        assert_eq!(mean_interval(&[9.0], Confidence::Usual), None);
        let differ = mean_difference(&[1.0, 1.0, 1.0], &[3.0, 3.0]).unwrap();
        assert_eq!((differ.value, differ.low, differ.high), (2.0, 2.0, 2.0));
        assert_eq!(mean_difference(&[1.0], &[3.0, 3.0]), None);
        assert_eq!(mean_interval(&[f64::MAX, f64::MIN], Confidence::Usual), None, "no number");
    }

    /// A draw that is nearly normal: the sum of twelve uniform ones.
    fn normal(draws: &mut SeededRng) -> f64 {
        (0..12).map(|_| draws.next_unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn intervals_cover_the_mean_at_their_rate() {
        let mut draws = SeededRng::new(11);
        let (mut usual, mut normal_theory, mut welch) = (0, 0, 0);
        for _ in 0..2_000 {
            let a: Vec<f64> = (0..4).map(|_| normal(&mut draws)).collect();
            let b: Vec<f64> = (0..6).map(|_| 3.0 * normal(&mut draws)).collect();
            let covers = |of: Estimate| of.low <= 0.0 && 0.0 <= of.high;
            usual += u32::from(mean_interval(&a, Confidence::Usual).is_some_and(covers));
            welch += u32::from(mean_difference(&a, &b).is_some_and(covers));
            // The broken variant: the normal quantile, as if the spread were known.
            let reach = 1.96 * variance_of_mean(&a).sqrt();
            normal_theory += u32::from(mean(&a).abs() <= reach);
        }
        assert!((1_860..=1_940).contains(&usual), "{usual} of 2,000");
        assert!((1_850..=1_950).contains(&welch), "{welch} of 2,000");
        assert!(normal_theory < 1_800, "too narrow: {normal_theory} of 2,000");
    }
}
