//! What a page needs of a sweep's points beyond their record: figures over the repeats, and short names.

use crate::experiment::{Axis, AxisRecord, SweepPoint};
use crate::stats::Outline;
pub use crate::stats::Spread;
use crate::summary::Measure;

impl SweepPoint {
    /// The sound runs.
    pub(super) fn sound(&self) -> impl Iterator<Item = &Outline> {
        self.runs.iter().map(|run| &run.outline).filter(|outline| outline.is_sound())
    }

    /// A figure over the sound repeats; nothing unless every one of them has it.
    pub(super) fn spread(&self, of: impl Fn(&Outline) -> Option<f64>) -> Option<Spread> {
        let values: Vec<f64> = self.sound().map(of).collect::<Option<_>>()?;
        Spread::of(values)
    }

    /// Its name by all axes, or all but one.
    pub(super) fn name_without(&self, axes: &[AxisRecord], left_out: Option<Axis>) -> String {
        let others = axes.iter().filter(|axis| Some(axis.axis) != left_out && axis.values.len() > 1);
        let names: Vec<String> = others
            .filter_map(|axis| {
                let value = self.values.get(&axis.axis)?;
                // Names speak for themselves; a number needs to say of what.
                let number = value.starts_with(|c: char| c.is_ascii_digit());
                Some(if number { format!("{} {value}", axis.axis) } else { value.clone() })
            })
            .collect();
        if names.is_empty() { "all".into() } else { names.join(", ") }
    }
}

/// A percentile of rt_venue by its name.
pub fn rt_venue(outline: &Outline, percentile: &str) -> Option<f64> {
    let figures = outline.measure(Measure::RtVenue);
    let value = match percentile {
        "p50" => figures.p50_ns,
        "p99" => figures.p99_ns,
        "p99.9" => figures.p999_ns,
        _ => None,
    };
    value.map(|ns| ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_have_a_middle_and_ends() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, low: 1.0, high: 3.0 }));
        assert_eq!(Spread::of([3.0, 1.0]), Some(Spread { median: 2.0, low: 1.0, high: 3.0 }));
    }

    #[test]
    fn a_point_is_named_by_what_varies() {
        let axis = |axis, values: &[&str]| AxisRecord {
            axis,
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let axes = [
            axis(Axis::Technique, &["a", "b"]),
            axis(Axis::Work, &["0ns", "1us"]),
            axis(Axis::Idle, &["spin"]),
        ];
        let values = [(Axis::Technique, "b"), (Axis::Work, "1us"), (Axis::Idle, "spin")];
        let point = SweepPoint {
            name: "x".into(),
            values: values.map(|(axis, value)| (axis, value.into())).into(),
            settings: Default::default(),
            runs: Vec::new(),
        };
        assert_eq!(point.name_without(&axes, Some(Axis::Work)), "b");
        assert_eq!(point.name_without(&axes, Some(Axis::Technique)), "work 1us");
        assert_eq!(point.name_without(&axes, None), "b, work 1us");
        assert_eq!(point.name_without(&axes[1..], Some(Axis::Work)), "all");
    }
}
