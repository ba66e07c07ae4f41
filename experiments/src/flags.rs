//! The settings of an experiment: those of `run`, some of which accept a list.
//!
//! [`SweptSettings`] takes every flag of [`Settings`] as text, so that `--work` may be `500ns` or
//! `0ns,500ns`. A flag with one value belongs to the base; a list, even of one value for `--rate`,
//! is an axis.

use analysis::experiment::Axis;
use clap::builder::StringValueParser;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use planner::config::{ReportLength, Settings, UsageError};
use record::units::Count;
use std::path::PathBuf;

/// The command-line flags of `launcher resume`, which makes the missing runs of an interrupted
/// experiment.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ResumeFlags {
    /// Name the experiment: its folder, or the folder's name in list
    pub folder: PathBuf,
    /// Print JSON on stdout instead of tables
    #[arg(long)]
    pub json: bool,
    /// Print the answer on one screen, or every table and note
    #[arg(long, value_enum, value_name = "LENGTH", default_value_t)]
    pub report: ReportLength,
    /// Exit with code 0 even if a fault never fired
    #[arg(long)]
    pub allow_unfired: bool,
}

/// Returns the axis of a setting that sweeps vary.
fn swept(key: &str) -> Option<Axis> {
    Axis::from_name(key).filter(|axis| axis.entry().is_swept)
}

/// The settings of an experiment as typed, some with a list of values. Key and text, in the order
/// of [`Settings::KEYS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweptSettings(pub Vec<(&'static str, String)>);

impl Args for SweptSettings {
    fn augment_args(command: Command) -> Command {
        let texts = |command: Command, key: &&'static str| {
            command.mut_arg(key, |arg| {
                let arg = arg.value_parser(StringValueParser::new());
                match *key {
                    "preset" => arg.value_name("NAME").help("A named sweep: seed or bill"),
                    "repeats" => arg.help("Runs of every point, each with its own schedule [default: 5]"),
                    key if swept(key).is_some() => arg.value_name("LIST"),
                    _ => arg,
                }
            })
        };
        Settings::KEYS.iter().fold(Settings::augment_args(command), texts)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SweptSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        // One text a key; several for `fault`, which may be given several times.
        let text = |key: &&'static str| {
            let texts: Vec<&str> = matches.get_many::<String>(key)?.map(String::as_str).collect();
            Some((*key, texts.join(";")))
        };
        Ok(Self(Settings::KEYS.iter().filter_map(text).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The request of an experiment: shared settings, and varied settings with their values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepRequest {
    /// The settings of all points, without the varied ones.
    pub base: Settings,
    /// The values of each varied setting, in the order of [`Axis::ALL`].
    pub axes: Vec<Vec<AxisValue>>,
    pub preset: Option<String>,
    /// Further combinations of the compared settings' values, beyond those of the axes.
    pub further: Vec<Vec<AxisValue>>,
}

impl SweptSettings {
    /// Splits the settings into shared and varied ones; values of `config` apply where no flag is
    /// given.
    pub fn request(&self, rate: Option<&str>, config: Option<&PathBuf>) -> Result<SweepRequest, UsageError> {
        let mut asked = SweepRequest::default();
        for (key, text) in &self.0 {
            match swept(key) {
                _ if *key == "preset" => asked.preset = Some(text.clone()),
                Some(axis) => asked.set_values(read_values(axis, text)?),
                None => match asked.base.set(key, text) {
                    Some(Err(message)) => {
                        return Err(UsageError(format!("--{}: {message}", key.replace('_', "-"))));
                    }
                    _ => continue,
                },
            }
        }
        if let Some(rate) = rate {
            asked.axes.push(read_values(Axis::Rate, rate)?);
            if asked.base.orders.take().is_some() {
                return Err(UsageError(
                    "--rate with --orders: the rate over the window says how many".into(),
                ));
            }
        }
        let file = config.map_or_else(|| Ok(Settings::default()), |path| Settings::read(path))?;
        asked.base = std::mem::take(&mut asked.base).over(file).with_preset();
        for AxisValue { axis, .. } in asked.axes.iter().filter_map(|values| values.first()) {
            // An axis overrides the config file's value.
            asked.base.clear(&axis.setting());
        }
        asked.axes.sort_by_key(|values| values[0].axis);
        Ok(asked)
    }
}

impl SweepRequest {
    fn set_values(&mut self, values: Vec<AxisValue>) {
        // Several levels in one run are compared with each other.
        let is_mixed = |value: &AxisValue| value.axis == Axis::Isolation && value.text.contains('+');
        if let [value] = &values[..]
            && !is_mixed(value)
        {
            value.apply(&mut self.base);
        } else {
            self.axes.push(values);
        }
    }

    /// Returns `true` if the request gives this setting one or several values.
    pub fn has_axis(&self, axis: Axis) -> bool {
        let fixed = self.base.texts().iter().any(|(key, _)| *key == axis.key());
        fixed || self.varies(axis)
    }

    /// Returns `true` if this setting is one of the request's varied settings (axes of the sweep).
    pub fn varies(&self, axis: Axis) -> bool {
        self.axes.iter().any(|values| values[0].axis == axis)
    }

    /// Checks that no other settings are varied than the allowed ones.
    pub fn check_axes(&self, is_allowed: impl Fn(Axis) -> bool) -> Result<(), UsageError> {
        let mut axes = self.axes.iter().map(|values| values[0].axis);
        axes.find(|axis| !is_allowed(*axis)).map_or(Ok(()), |axis| {
            let why = format!("launcher sweep --{axis} A,B varies it");
            Err(UsageError(format!("--{axis} takes one value here: {why}")))
        })
    }

    /// Returns the number of repeats that the request asks for, or the default.
    pub fn repeats(&self, default: u64) -> Count {
        self.base.repeats.unwrap_or(Count(default))
    }
}

/// Parses one value of a varied setting from text.
///
/// # Errors
/// The setting cannot have this value.
pub fn read_value(axis: Axis, text: &str) -> Result<AxisValue, UsageError> {
    let text = text.trim();
    let wrong = |message: String| UsageError(format!("--{}: {message}", axis.name()));
    let read = if axis.entry().becomes.is_some() {
        match text.parse::<Count>() {
            Ok(Count(1..=1_000_000_000)) => Ok(()),
            Ok(_) => Err(format!("{text:?}: give orders a second, from 1 to 1000M")),
            Err(error) => Err(error.to_string()),
        }
    } else {
        Settings::default().set(&axis.key(), text).unwrap_or(Ok(()))
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
            return Err(UsageError(format!("--{}: {} is named twice", axis.name(), value.text)));
        }
        values.push(value);
    }
    Ok(values)
}

/// Converts values of a setting to their texts.
pub fn texts<T: ToString>(values: &[T]) -> Vec<String> {
    values.iter().map(T::to_string).collect()
}

/// Creates the values of varied settings (axes) from one list of texts for each axis, in the axes'
/// order. An axis without values is left out.
pub fn values_on<const N: usize>(axes: &[Axis; N], texts: [Vec<String>; N]) -> Vec<Vec<AxisValue>> {
    let value = |axis: Axis| move |text: String| AxisValue { axis, text };
    let all = axes.iter().zip(texts).map(|(axis, texts)| texts.into_iter().map(value(*axis)).collect());
    all.filter(|values: &Vec<AxisValue>| !values.is_empty()).collect()
}

/// One checked value of a varied setting, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisValue {
    pub axis: Axis,
    pub text: String,
}

impl AxisValue {
    /// Sets this value of a varied setting in the settings of a run. The rate becomes orders in the
    /// settings' window, which must be set by then.
    pub fn apply(&self, settings: &mut Settings) {
        if self.axis.entry().becomes.is_some() {
            let rate = self.text.parse::<Count>().unwrap_or_default().0;
            settings.orders = Some(orders_at(rate as f64, settings.window.unwrap_or_default().0));
        } else {
            // Known to be readable: see `read_value`.
            let _ = settings.set(&self.axis.key(), &self.text);
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
    use clap::Parser;
    use record::units::Nanos;

    #[derive(Parser)]
    struct TestCommandLine {
        #[command(flatten)]
        swept: SweptSettings,
        #[arg(long)]
        rate: Option<String>,
        #[arg(long)]
        config: Option<PathBuf>,
    }

    fn asked(line: &str) -> Result<SweepRequest, UsageError> {
        let line =
            TestCommandLine::try_parse_from(["sweep"].into_iter().chain(line.split_whitespace())).unwrap();
        line.swept.request(line.rate.as_deref(), line.config.as_ref())
    }

    #[test]
    fn lists_become_axes_and_single_values_the_base() {
        let found =
            asked("--isolation thread,process --work 0ns,500ns --venues 2 --rate 10k --cores 0,1 --seed 7")
                .unwrap();
        let axes: Vec<_> = found.axes.iter().map(|values| (values[0].axis, values.len())).collect();
        assert_eq!(axes, [(Axis::Isolation, 2), (Axis::Work, 2), (Axis::Rate, 1)]);
        assert_eq!((found.base.venues, found.base.seed), (Some(Count(2)), Some(Count(7))));
        assert_eq!(found.base.cores.as_ref().unwrap().0, [0, 1], "a list that is no axis");
        assert!(
            found.has_axis(Axis::Venues) && found.has_axis(Axis::Work) && !found.has_axis(Axis::Technique)
        );
        assert_eq!(found.preset, None);
        let faults = asked("--fault kill@1s --fault hang;scribble").unwrap().base.fault.unwrap();
        assert_eq!(faults.0.len(), 3);
    }

    #[test]
    fn errors_name_their_flag() {
        let wrong = |line: &str| asked(line).unwrap_err().to_string();
        assert!(wrong("--window 5").contains("--window: \"5\" has no unit"));
        assert!(wrong("--max-open x").contains("--max-open: "));
        assert!(wrong("--rate 1k --orders 5").contains("--rate with --orders"));
        assert!(wrong("--config /nowhere.yaml").contains("/nowhere.yaml"));
    }

    #[test]
    fn an_axis_wins_over_the_config_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("b.yaml");
        std::fs::write(&path, "work: 1us\nvenues: 3\norders: 9\n").unwrap();
        let found = asked(&format!("--work 0ns,2us --rate 5k --config {}", path.display())).unwrap();
        assert_eq!((found.base.work, found.base.orders, found.base.venues), (None, None, Some(Count(3))));
    }

    #[test]
    fn every_axis_has_its_name_and_its_setting() {
        for axis in Axis::swept() {
            assert!(Settings::KEYS.contains(&axis.setting().as_str()), "{axis}");
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
        assert!(wrong(Axis::Idle, "spin,spin").contains("spin is named twice"));
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
