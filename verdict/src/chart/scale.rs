//! Scales of pictures: map values to coordinates and choose tick values.

/// A scale of a chart: maps a domain of values to a range of coordinates. Values outside the domain
/// map to coordinates outside the range.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
    is_log: bool,
}

impl Scale {
    /// Creates a logarithmic scale that maps `low..=high`, above zero, to coordinates in `range`.
    pub const fn log_exact(low: f64, high: f64, range: (f64, f64)) -> Self {
        Self { domain: (low, high), range, is_log: true }
    }

    /// Creates a linear scale that maps `low..=high` to coordinates in `range`.
    pub const fn linear_exact(low: f64, high: f64, range: (f64, f64)) -> Self {
        Self { domain: (low, high), range, is_log: false }
    }

    /// Returns the coordinate to which the scale maps a value.
    pub fn at(&self, value: f64) -> f64 {
        let ((low, high), (from, to)) = (self.domain, self.range);
        let share = if self.is_log {
            (value / low).log10() / (high / low).log10()
        } else {
            (value - low) / (high - low)
        };
        from + share * (to - from)
    }

    /// Returns the tick values of a linear scale: at multiples of 1, 2 or 5 times a power of ten,
    /// ten at most.
    pub fn ticks(&self) -> Vec<f64> {
        let ((low, high), (from, to)) = (self.domain, self.range);
        let step = step((high - low) / ((to - from).abs() / 90.0).clamp(5.0, 10.0));
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        (first..=last).map(|number| number as f64 * step).collect()
    }
}

/// Returns `mark` × 10^`decade` without rounding errors: 200, not 200.00000000000003.
fn decimal(mark: f64, decade: i32) -> f64 {
    if decade >= 0 { mark * 10f64.powi(decade) } else { mark / 10f64.powi(-decade) }
}

/// Returns the smallest tick distance (1, 2 or 5 times a power of ten) that is not below `length`.
fn step(length: f64) -> f64 {
    let decade = length.log10().floor() as i32;
    let marks = [1.0, 2.0, 5.0, 10.0].map(|mark| decimal(mark, decade));
    marks.into_iter().find(|mark| *mark >= length * (1.0 - 1e-9)).unwrap_or(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_map_to_their_share_of_the_range() {
        let linear = Scale::linear_exact(0.0, 80.0, (0.0, 100.0));
        assert_eq!(linear.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!([0.0, 40.0, 80.0].map(|value| linear.at(value)), [0.0, 50.0, 100.0]);
        let log = Scale::log_exact(10.0, 1_000.0, (300.0, 0.0));
        assert_eq!([10.0, 100.0, 1_000.0].map(|value| log.at(value)), [300.0, 150.0, 0.0]);
    }
}
