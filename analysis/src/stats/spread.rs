//! Spread of a figure over several runs: median, minimum and maximum.

use super::sample::median;

/// Median, minimum and maximum of a figure over several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median of the values.
    pub median: f64,
    /// Minimum of the values.
    pub low: f64,
    /// Maximum of the values.
    pub high: f64,
}

impl Spread {
    /// Computes median, minimum and maximum of some values; `None` without any.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let (low, high) = (*values.first()?, *values.last()?);
        Some(Self { median: median(&values)?, low, high })
    }
}
