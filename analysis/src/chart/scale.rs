//! Chart scales: map values to coordinates and choose tick values.

/// A chart scale: maps a domain of values to a range of coordinates. Values outside the domain map
/// to coordinates outside the range.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
    /// Distance of two ticks of a linear scale; `None` for a logarithmic one.
    step: Option<f64>,
}

impl Scale {
    /// Creates a linear scale from zero (or the minimum, if negative) to a round value at or above
    /// the maximum.
    pub fn linear(min: f64, max: f64, range: (f64, f64)) -> Self {
        let low = if min.is_finite() { min.min(0.0) } else { 0.0 };
        let high = if max.is_finite() && max > low { max } else { low + 1.0 };
        Self::linear_round(low, high, range)
    }

    /// Creates a linear scale whose ends are rounded outward to ticks.
    fn linear_round(low: f64, high: f64, range: (f64, f64)) -> Self {
        let step = step((high - low) / parts(range));
        let values = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { domain: values, range, step: Some(step) }
    }

    /// Creates a logarithmic scale whose ends are rounded outward to 1, 2 or 5 times a power of
    /// ten. Values must be above zero.
    pub fn log(min: f64, max: f64, range: (f64, f64)) -> Self {
        let low = if min.is_finite() && min > 0.0 { min } else { 1.0 };
        let high = if max.is_finite() && max > low { max } else { low * 10.0 };
        Self::log_exact(round_down(low), -round_down(-high), range)
    }

    /// Creates a linear scale with rounded ends that need not include zero.
    pub fn linear_around(min: f64, max: f64, range: (f64, f64)) -> Self {
        let (low, high) = if max > min { (min, max) } else { (min - 0.5, min + 0.5) };
        Self::linear_round(low, high, range)
    }

    pub const fn log_exact(low: f64, high: f64, range: (f64, f64)) -> Self {
        Self { domain: (low, high), range, step: None }
    }

    pub fn linear_exact(low: f64, high: f64, range: (f64, f64)) -> Self {
        Self { domain: (low, high), range, step: Some(step((high - low) / parts(range))) }
    }

    pub fn at(&self, value: f64) -> f64 {
        let ((low, high), (from, to)) = (self.domain, self.range);
        let share = if self.is_log() {
            (value / low).log10() / (high / low).log10()
        } else {
            (value - low) / (high - low)
        };
        from + share * (to - from)
    }

    pub const fn is_log(&self) -> bool {
        self.step.is_none()
    }

    pub const fn domain(&self) -> (f64, f64) {
        self.domain
    }

    /// Returns the coordinates at the two ends of the scale.
    pub const fn range(&self) -> (f64, f64) {
        self.range
    }

    /// Returns the value of each tick, and whether it has a label. Linear: at multiples of 1, 2 or
    /// 5 times a power of ten, ten at most. Logarithmic: at the decades and, labeled below three
    /// decades, at 2 and 5 times a decade.
    pub fn ticks(&self) -> Vec<(f64, bool)> {
        let (low, high) = self.domain;
        if let Some(step) = self.step {
            let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
            return (first..=last).map(|number| (number as f64 * step, true)).collect();
        }
        let is_short = (high / low).log10() < 3.0;
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let marks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|mark| (mark, decimal(mark, decade))));
        marks
            .filter(|(_, value)| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9))
            .map(|(mark, value)| (value, mark == 1.0 || is_short))
            .collect()
    }

    pub fn labeled_ticks(&self) -> Vec<f64> {
        self.ticks().into_iter().filter(|(_, is_labeled)| *is_labeled).map(|(value, _)| value).collect()
    }
}

/// Returns the wanted number of intervals of a linear axis of this length.
fn parts(range: (f64, f64)) -> f64 {
    ((range.1 - range.0).abs() / 90.0).clamp(5.0, 10.0)
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

/// Returns the largest 1, 2 or 5 times a power of ten that is not above `value`. Negative values
/// are rounded away from zero.
fn round_down(value: f64) -> f64 {
    if value < 0.0 {
        return -step(-value);
    }
    let decade = value.log10().floor() as i32;
    let marks = [5.0, 2.0, 1.0].map(|mark| decimal(mark, decade));
    marks.into_iter().find(|mark| *mark <= value * (1.0 + 1e-9)).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_scale_spans_zero_to_a_tick() {
        let scale = Scale::linear(3.0, 73.0, (0.0, 100.0));
        assert_eq!(scale.domain(), (0.0, 80.0));
        assert_eq!(scale.labeled_ticks(), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!([0.0, 40.0, 80.0].map(|value| scale.at(value)), [0.0, 50.0, 100.0]);
        let below_zero = Scale::linear(-0.3, 0.1, (0.0, 1.0)).labeled_ticks().into_iter();
        assert_eq!(
            below_zero.map(|value| (value * 10.0).round()).collect::<Vec<_>>(),
            [-3.0, -2.0, -1.0, 0.0, 1.0]
        );
    }

    #[test]
    fn rounded_linear_scale_ends_on_ticks() {
        for (low, high) in [(0.88, 1.11), (0.9, 1.09), (-3.0, 17.0), (1234.0, 1235.0), (0.0, 1e9)] {
            let scale = Scale::linear_around(low, high, (300.0, 900.0));
            let (ticks, (first, last)) = (scale.labeled_ticks(), scale.domain());
            assert!(
                (ticks[0] - first).abs() < 1e-9 * high && (ticks[ticks.len() - 1] - last).abs() < 1e-9 * high
            );
            assert!(first <= low && last >= high && ticks.len() >= 4, "{ticks:?}");
        }
    }

    #[test]
    fn log_scale_labels_decades_and_short_ranges() {
        let wide = Scale::log(130.0, 3_000_000.0, (300.0, 0.0));
        assert_eq!(wide.domain(), (100.0, 5_000_000.0));
        assert_eq!(wide.labeled_ticks(), [100.0, 1e3, 1e4, 1e5, 1e6]);
        let narrow = Scale::log(250.0, 900.0, (300.0, 0.0));
        assert_eq!(narrow.labeled_ticks(), [200.0, 500.0, 1000.0]);
        assert_eq!(narrow.at(200.0), 300.0);
        assert_eq!(narrow.at(1000.0), 0.0);
        assert_eq!(wide.ticks().len(), 15);
    }

    #[test]
    fn degenerate_ranges_give_finite_scales() {
        for scale in [
            Scale::linear(f64::INFINITY, f64::NEG_INFINITY, (0.0, 1.0)),
            Scale::linear(0.0, 0.0, (0.0, 1.0)),
            Scale::linear(f64::NAN, f64::NAN, (0.0, 1.0)),
            Scale::log(0.0, 0.0, (0.0, 1.0)),
            Scale::log(f64::INFINITY, f64::NEG_INFINITY, (0.0, 1.0)),
            Scale::log(7.0, 7.0, (0.0, 1.0)),
            Scale::log(1e-9, 1e19, (0.0, 1.0)),
        ] {
            let ticks = scale.ticks();
            assert!(!ticks.is_empty() && ticks.len() < 100, "{scale:?}");
            assert!(ticks.iter().all(|(value, _)| scale.at(*value).is_finite()), "{scale:?}");
        }
    }
}
