//! Median, minimum and maximum of one figure over a few runs.

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
    /// Computes median, minimum and maximum of the finite values; `None` without any.
    pub fn from_values(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let (low, high) = (*sorted.first()?, *sorted.last()?);
        // Of an even number the two middle ones, else twice the same.
        let median = f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]);
        Some(Self { median, low, high })
    }
}

/// Returns the median of some values: the middle one, or the mean of the two middle ones. Returns
/// `None` for no values, or if one is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    let are_finite = values.iter().all(|value| value.is_finite());
    Spread::from_values(values.iter().copied()).filter(|_| are_finite).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_few_values() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!([median(&[]), median(&[f64::NAN, 1.0])], [None, None]);
    }
}
