//! Settings: what a user asked for, before anything is decided.
//!
//! Every field is optional. They are merged command line over config file over preset
//! ([`Settings::over`]); what is still open then, the planner decides by what the machine can carry
//! ([`crate::planner::resolve`]).

pub mod fault;
mod file;
mod flags;
pub mod input;
pub mod instruments;
pub mod limits;
pub mod own;
pub mod program;
mod settings;
mod table;
mod units;
pub mod value;
mod yaml;

pub use fault::{FaultSpec, Faults};
pub use file::CONFIG_FILE;
pub use flags::{Common, RunCommand, RunFlags};
pub use limits::Limits;
pub use own::{Kinds, Strategies, Venues, venue_record};
pub use settings::{Setting, Settings};
pub use strategy::schedule::{Arrivals, DelayRange};
pub use units::{CoreList, Factor, Priority, Size, Slower, SpillRoom, VenueLimit};
pub use value::{Choice, Preset, Switch};

use analysis::units::{Count, Nanos};
use thiserror::Error;

/// Something the user asked for that cannot be: one or two lines that name the flag or key and the
/// way out. The launcher prints it and exits with 2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

impl Setting {
    /// The setting of that key.
    fn find(key: &str) -> Option<&'static Self> {
        Settings::TABLE.iter().find(|setting| setting.key == key)
    }
}

impl Settings {
    /// Sets one from its text. `None`: there is no such key.
    pub fn set(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
        Setting::find(key).map(|setting| (setting.set)(self, text))
    }

    /// Leaves one open.
    pub fn clear(&mut self, key: &str) {
        Setting::find(key).into_iter().for_each(|setting| (setting.clear)(self));
    }

    /// What is set, as text, in the order of [`Settings::KEYS`].
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let text = |setting: &Setting| Some((setting.key, (setting.text)(self)?));
        Self::TABLE.iter().filter_map(text).collect()
    }

    /// What is set, as a saved record holds it.
    pub fn to_texts(&self) -> analysis::experiment::SettingTexts {
        self.texts().into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
    }

    /// Reads what a saved record holds.
    ///
    /// # Errors
    /// A key that is no setting, or a text that its setting does not take.
    pub fn from_texts(texts: &analysis::experiment::SettingTexts) -> Result<Self, UsageError> {
        let mut settings = Settings::default();
        for (key, text) in texts {
            let set = settings.set(key, text);
            set.ok_or_else(|| UsageError(format!("there is no setting {key:?}")))?
                .map_err(|message| UsageError(format!("{key}: {message}")))?;
        }
        Ok(settings)
    }

    /// Takes what is set here and the rest from `below`.
    fn or(mut self, below: &Settings) -> Settings {
        Self::TABLE.iter().for_each(|setting| (setting.take_open)(&mut self, below));
        self
    }

    /// Sets what is open and has a default of its own (`=` in the table).
    pub fn fill(&mut self) {
        Self::TABLE.iter().for_each(|setting| (setting.fill)(self));
    }

    /// Checks each setting by itself.
    ///
    /// # Errors
    /// The flag whose value is out of its range, or a path that no plan can hold.
    pub fn check(&self) -> Result<(), UsageError> {
        Self::TABLE.iter().try_for_each(|setting| {
            let text = || (setting.text)(self).unwrap_or_default();
            let wrong = |why| UsageError(format!("--{} {}: {why}", setting.flag_name(), text()));
            (setting.check)(self).map_err(wrong)
        })
    }

    /// These settings over others: what is set here wins.
    ///
    /// A recorded flow and a drawn one exclude each other, so asking for one here also drops the
    /// other below: `--schedule` goes with a config file that says `window`.
    pub fn over(self, mut below: Settings) -> Settings {
        if self.schedule.is_some() {
            below = Settings { orders: None, window: None, laps: None, arrivals: None, ..below };
        } else if self.orders.is_some() || self.window.is_some() || self.arrivals.is_some() {
            below = Settings { schedule: None, speed: None, ..below };
        }
        self.or(&below)
    }

    /// With what its preset says below it.
    pub fn with_preset(self) -> Settings {
        match self.preset {
            Some(preset) => Settings { preset: None, ..self.over(preset.settings()) },
            None => self,
        }
    }
}

impl Preset {
    /// What it sets.
    pub fn settings(self) -> Settings {
        match self {
            Preset::Seed => Settings {
                strategies: Some(Count(8)),
                venues: Some(Count(4)),
                capacity: Some(Count(8192)),
                orders: Some(Count(4_000_000)),
                window: Some(Nanos(10_000_000_000)),
                arrivals: Some(Arrivals::Uniform),
                delay: Some(DelayRange { min_ns: 5_000_000, max_ns: 500_000_000 }),
                work: Some(Nanos(0)),
                ..Settings::default()
            },
        }
    }
}

/// The name that is most like the text, if one is like it at all.
pub(crate) fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_lowercase();
    // Of short names two letters in the wrong order leave little that is alike.
    let likeness = |name: &str| match strsim::osa_distance(&text, name) {
        0 | 1 => 1.0,
        _ => strsim::jaro_winkler(&text, name),
    };
    names
        .map(|name| (likeness(name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Any settings that can be written down.
    pub(crate) fn any_settings() -> impl Strategy<Value = Settings> {
        let texts =
            Settings::TABLE.iter().map(|row| ((row.any_text)().prop_map(|text| (row.key, text))).boxed());
        let one = proptest::strategy::Union::new(texts);
        proptest::collection::vec(one, 0..40).prop_map(|texts| {
            let mut settings = Settings::default();
            for (key, text) in texts {
                assert_eq!(settings.set(key, &text), Some(Ok(())), "{key}: {text}");
            }
            settings
        })
    }

    #[test]
    fn the_upper_layer_wins_and_the_lower_fills_in() {
        let cli = Settings { strategies: Some(Count(2)), ..Settings::default() };
        let file = Settings { strategies: Some(Count(3)), venues: Some(Count(5)), ..Settings::default() };
        let merged = cli.over(file);
        assert_eq!((merged.strategies, merged.venues), (Some(Count(2)), Some(Count(5))));
    }

    #[test]
    fn a_preset_lies_below_everything_and_is_gone_once_applied() {
        let settings = Settings { preset: Some(Preset::Seed), venues: Some(Count(2)), ..Settings::default() };
        let applied = settings.with_preset();
        assert_eq!((applied.strategies, applied.venues), (Some(Count(8)), Some(Count(2))));
        assert_eq!(applied.preset, None);
    }

    #[test]
    fn a_recorded_flow_replaces_a_drawn_one_below_it_and_the_other_way_round() {
        let file = Settings { schedule: Some("flow.csv".into()), ..Settings::default() };
        let merged = file.clone().over(Preset::Seed.settings());
        assert_eq!((merged.orders, merged.window, merged.arrivals), (None, None, None));
        let merged = Settings { window: Some(Nanos(1)), ..Settings::default() }.over(file);
        assert_eq!(merged.schedule, None);
    }

    #[test]
    fn a_wrong_name_names_the_nearest() {
        let message = Settings::default().set("isolation", "proces").unwrap().unwrap_err();
        assert!(message.contains("did you mean process?"), "{message}");
        let message = Settings::default().set("technique", "SPSC-MUX").unwrap().unwrap_err();
        assert!(message.contains("did you mean spsc-mux?"), "{message}");
        let message = Settings::default().set("idle", "???").unwrap().unwrap_err();
        assert!(message.contains("there are auto, spin, yield, backoff, park"), "{message}");
    }

    proptest! {
        #[test]
        fn each_setting_is_read_back_from_its_text(settings in any_settings()) {
            let mut again = Settings::default();
            for (key, text) in settings.texts() {
                prop_assert_eq!(again.set(key, &text), Some(Ok(())));
            }
            prop_assert_eq!(again, settings);
        }

        #[test]
        fn no_text_panics(text in "\\PC*") {
            for key in Settings::KEYS {
                let _ = Settings::default().set(key, &text);
            }
        }
    }
}
