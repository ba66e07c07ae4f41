//! Spread of a figure over several runs: median, minimum and maximum.

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
        let middle = values.len() / 2;
        let median = if values.len() % 2 == 1 {
            values[middle]
        } else {
            f64::midpoint(values[middle - 1], values[middle])
        };
        Some(Self { median, low, high })
    }
}
