//! Scales: from values to places on the paper, and the values that are worth a tick.

/// How values are spread over a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScaleKind {
    /// Evenly.
    Linear,
    /// Each decade the same length.
    Log,
}

/// A range of values over a range of places. Values outside are placed outside; callers leave out
/// what has no place.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    kind: ScaleKind,
    values: (f64, f64),
    places: (f64, f64),
    /// From tick to tick of an even scale.
    step: f64,
}

/// A value worth naming.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// Whether it gets a label; the others are only lines.
    pub labelled: bool,
}

impl Scale {
    /// From zero (or below it, where values are) to a round value at or above the greatest.
    pub fn linear(least: f64, greatest: f64, places: (f64, f64)) -> Self {
        let low = if least.is_finite() { least.min(0.0) } else { 0.0 };
        let high = if greatest.is_finite() && greatest > low { greatest } else { low + 1.0 };
        Self::linear_round(low, high, places)
    }

    /// Evenly from the tick at or below a value to the one at or above another.
    fn linear_round(low: f64, high: f64, places: (f64, f64)) -> Self {
        let step = step((high - low) / parts(places));
        let values = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { kind: ScaleKind::Linear, values, places, step }
    }

    /// From the 1, 2 or 5 of a decade at or below the least to that at or above the greatest value.
    /// Only values above zero have a place.
    pub fn log(least: f64, greatest: f64, places: (f64, f64)) -> Self {
        let low = if least.is_finite() && least > 0.0 { least } else { 1.0 };
        let high = if greatest.is_finite() && greatest > low { greatest } else { low * 10.0 };
        Self { kind: ScaleKind::Log, values: (round_down(low), -round_down(-high)), places, step: 0.0 }
    }

    /// Evenly from a round value below the least to one above the greatest, zero or not: for what
    /// is compared with a value other than zero.
    pub fn linear_around(least: f64, greatest: f64, places: (f64, f64)) -> Self {
        let (low, high) = if greatest > least { (least, greatest) } else { (least - 0.5, least + 0.5) };
        Self::linear_round(low, high, places)
    }

    /// Exactly from one value to the other, logarithmic.
    pub const fn log_exact(low: f64, high: f64, places: (f64, f64)) -> Self {
        Self { kind: ScaleKind::Log, values: (low, high), places, step: 0.0 }
    }

    /// Exactly from one value to the other, evenly.
    pub fn linear_exact(low: f64, high: f64, places: (f64, f64)) -> Self {
        Self {
            kind: ScaleKind::Linear,
            values: (low, high),
            places,
            step: step((high - low) / parts(places)),
        }
    }

    /// Where a value stands.
    pub fn at(&self, value: f64) -> f64 {
        let ((low, high), (from, to)) = (self.values, self.places);
        let share = match self.kind {
            ScaleKind::Linear => (value - low) / (high - low),
            ScaleKind::Log => (value / low).log10() / (high / low).log10(),
        };
        from + share * (to - from)
    }

    /// Whether each decade has the same length.
    pub fn is_log(&self) -> bool {
        self.kind == ScaleKind::Log
    }

    /// The first and the last value.
    pub const fn values(&self) -> (f64, f64) {
        self.values
    }

    /// The first and the last place.
    pub const fn places(&self) -> (f64, f64) {
        self.places
    }

    /// Linear: every 1, 2 or 5 of a decade, five to ten of them or fewer. Logarithmic: the decades,
    /// and between them 2 and 5, labelled where there are fewer than three decades.
    pub fn ticks(&self) -> Vec<Tick> {
        match self.kind {
            ScaleKind::Linear => self.linear_ticks(),
            ScaleKind::Log => self.log_ticks(),
        }
    }

    fn linear_ticks(&self) -> Vec<Tick> {
        let (low, high) = self.values;
        let step = self.step;
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        (first..=last).map(|number| Tick { value: number as f64 * step, labelled: true }).collect()
    }

    fn log_ticks(&self) -> Vec<Tick> {
        let (low, high) = self.values;
        let few = (high / low).log10() < 3.0;
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let marks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|mark| (mark, decimal(mark, decade))));
        marks
            .filter(|(_, value)| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9))
            .map(|(mark, value)| Tick { value, labelled: mark == 1.0 || few })
            .collect()
    }
}

/// How many parts a linear axis is cut into: about one for each thumb's width.
fn parts(places: (f64, f64)) -> f64 {
    ((places.1 - places.0).abs() / 90.0).clamp(5.0, 10.0)
}

/// `mark` times ten to the power of `decade`, as near as a float can be: 200, not 200.00000000000003.
fn decimal(mark: f64, decade: i32) -> f64 {
    if decade >= 0 { mark * 10f64.powi(decade) } else { mark / 10f64.powi(-decade) }
}

/// The 1, 2 or 5 of a decade at or above a length.
fn step(length: f64) -> f64 {
    let decade = length.log10().floor() as i32;
    let marks = [1.0, 2.0, 5.0, 10.0].map(|mark| decimal(mark, decade));
    marks.into_iter().find(|mark| *mark >= length * (1.0 - 1e-9)).unwrap_or(length)
}

/// The 1, 2 or 5 of a decade at or below a value; of a negative one, minus that at or above its
/// size.
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

    fn labelled(scale: &Scale) -> Vec<f64> {
        scale.ticks().iter().filter(|tick| tick.labelled).map(|tick| tick.value).collect()
    }

    #[test]
    fn linear_scales_begin_at_zero_and_end_on_a_tick() {
        let scale = Scale::linear(3.0, 73.0, (0.0, 100.0));
        assert_eq!(scale.values(), (0.0, 80.0));
        assert_eq!(labelled(&scale), [0.0, 20.0, 40.0, 60.0, 80.0]);
        assert_eq!([0.0, 40.0, 80.0].map(|value| scale.at(value)), [0.0, 50.0, 100.0]);
        assert_eq!(labelled(&Scale::linear(-0.3, 0.1, (0.0, 1.0))), [-0.3, -0.2, -0.1, 0.0, 0.1].map(round));
        fn round(value: f64) -> f64 {
            (value * 10.0f64).round() * 0.1
        }
    }

    #[test]
    fn even_scales_end_on_ticks_wherever_they_begin() {
        for (low, high) in [(0.88, 1.11), (0.9, 1.09), (-3.0, 17.0), (1234.0, 1235.0), (0.0, 1e9)] {
            let scale = Scale::linear_around(low, high, (300.0, 900.0));
            let (ticks, (first, last)) = (labelled(&scale), scale.values());
            assert!(
                (ticks[0] - first).abs() < 1e-9 * high && (ticks[ticks.len() - 1] - last).abs() < 1e-9 * high
            );
            assert!(first <= low && last >= high && ticks.len() >= 4, "{ticks:?}");
        }
    }

    #[test]
    fn log_scales_label_decades_and_more_where_there_is_room() {
        let wide = Scale::log(130.0, 3_000_000.0, (300.0, 0.0));
        assert_eq!(wide.values(), (100.0, 5_000_000.0));
        assert_eq!(labelled(&wide), [100.0, 1e3, 1e4, 1e5, 1e6]);
        let narrow = Scale::log(250.0, 900.0, (300.0, 0.0));
        assert_eq!(labelled(&narrow), [200.0, 500.0, 1000.0]);
        assert_eq!(narrow.at(200.0), 300.0);
        assert_eq!(narrow.at(1000.0), 0.0);
        assert_eq!(wide.ticks().len(), 15);
    }

    #[test]
    fn a_place_rises_with_its_value() {
        for scale in [Scale::log(1.0, 1e6, (0.0, 500.0)), Scale::linear(0.0, 1e6, (0.0, 500.0))] {
            let places: Vec<f64> = (1..1000).map(|value| scale.at(f64::from(value) * 1000.0)).collect();
            assert!(places.is_sorted());
            assert!(places.iter().all(|place| (0.0..=500.0).contains(place)));
        }
    }

    #[test]
    fn nothing_to_show_is_a_scale_all_the_same() {
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
            assert!(ticks.iter().all(|tick| scale.at(tick.value).is_finite()), "{scale:?}");
        }
    }
}
