//! Parses the axes of a sweep: their names and lists of values.

use crate::config::{Settings, UsageError};
use analysis::experiment::Axis;
use analysis::units::Count;
use serde::{Deserialize, Serialize};

pub fn read_value(axis: Axis, text: &str) -> Result<AxisValue, UsageError> {
    let text = text.trim();
    let wrong = |message: String| UsageError(format!("--{}: {message}", axis.name()));
    let read = if axis == Axis::Rate {
        match text.parse::<Count>() {
            Ok(Count(1..=1_000_000_000)) => Ok(()),
            Ok(_) => Err(format!("{text:?}: give orders a second, from 1 to 1000M")),
            Err(error) => Err(error.to_string()),
        }
    } else {
        Settings::default().set(axis.name(), text).unwrap_or(Ok(()))
    };
    read.map_err(wrong)?;
    Ok(AxisValue { axis, text: text.to_owned() })
}

/// Parses the list of values that an axis of a sweep takes, such as `0ns,500ns`.
pub fn read_values(axis: Axis, list: &str) -> Result<Vec<AxisValue>, UsageError> {
    let mut values: Vec<AxisValue> = Vec::new();
    for text in list.split(',') {
        if text.trim().is_empty() {
            return Err(UsageError(format!(
                "--{name} {list:?} has no value where one should be: give one or more, --{name} A,B",
                name = axis.name()
            )));
        }
        let value = read_value(axis, text)?;
        if values.contains(&value) {
            return Err(UsageError(format!("--{}: {} stands there twice", axis.name(), value.text)));
        }
        values.push(value);
    }
    Ok(values)
}

/// One checked value of a sweep's axis, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AxisValue {
    pub axis: Axis,
    pub text: String,
}

impl AxisValue {
    /// Applies the value to the settings of a run. The rate becomes orders in the settings' window,
    /// which must be set by then.
    pub fn apply(&self, settings: &mut Settings) {
        if self.axis == Axis::Rate {
            let rate = self.text.parse::<Count>().unwrap_or_default().0;
            settings.orders = Some(orders_at(rate as f64, settings.window.unwrap_or_default().0));
        } else {
            // Known to be readable: see `read_value`.
            let _ = settings.set(self.axis.name(), &self.text);
        }
    }
}

/// Returns the number of orders that an order rate gives over a window, at least one.
pub(super) fn orders_at(rate_per_s: f64, window_ns: u64) -> Count {
    Count(((rate_per_s * window_ns as f64 / 1e9).round() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use analysis::units::Nanos;

    #[test]
    fn every_axis_has_its_name_and_its_setting() {
        for axis in Axis::ALL {
            assert!(*axis == Axis::Rate || Settings::KEYS.contains(&axis.name()), "{axis}");
        }
    }

    #[test]
    fn lists_are_read_and_what_is_wrong_is_named() {
        let texts =
            |list| read_values(Axis::Work, list).unwrap().into_iter().map(|v| v.text).collect::<Vec<_>>();
        assert_eq!(texts("0ns, 500ns,1us"), ["0ns", "500ns", "1us"]);
        let wrong = |axis: Axis, list| read_values(axis, list).unwrap_err().to_string();
        for list in ["", "0ns,,1us", ",", "0ns,"] {
            assert!(wrong(Axis::Work, list).contains("--work A,B"), "{list:?}");
        }
        assert!(wrong(Axis::Work, "5").contains("--work: \"5\" has no unit"));
        assert!(wrong(Axis::Technique, "spsc-mix").contains("did you mean spsc-mux"));
        assert!(wrong(Axis::Rate, "0").contains("from 1 to"));
        assert!(wrong(Axis::Rate, "fast").contains("--rate: \"fast\" is not a count"));
        assert!(wrong(Axis::Idle, "spin,spin").contains("spin stands there twice"));
    }

    #[test]
    fn a_rate_becomes_orders_in_the_window() {
        let mut settings = Settings { window: Some(Nanos(500_000_000)), ..Settings::default() };
        read_value(Axis::Rate, "10k").unwrap().apply(&mut settings);
        assert_eq!(settings.orders, Some(Count(5_000)));
        read_value(Axis::Rate, "1").unwrap().apply(&mut settings);
        assert_eq!(settings.orders, Some(Count(1)));
    }
}
