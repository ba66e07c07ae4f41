//! Settings as the user requested them, before any value is resolved.
//!
//! Every field is optional. They are merged command line over config file over preset
//! ([`Settings::over`]); the planner resolves the rest by what the machine can carry
//! ([`crate::resolve()`]).

mod by_strategy;
pub mod components;
pub mod fault;
mod file;
mod flags;
pub mod input;
pub mod instruments;
pub mod limits;
pub mod program;
mod settings;
mod table;
mod units;
pub mod value;

pub use by_strategy::{
    ByStrategy, CpuLimit, FileLimit, MemoryLimit, ProcessLimit, StrategySetting, UserName,
};
pub use components::{KindList, StrategyKind, VenueKind, venue_info};
pub use fault::{FaultSpec, Faults};
pub use file::CONFIG_FILE;
pub use flags::{Common, ReportLength, RunCommand, RunFlags};
pub use limits::Limits;
pub use settings::{Setting, Settings};
pub use strategy::schedule::{Arrivals, DelayRange};
pub use units::{CoreList, Factor, Priority, Slower};
pub use value::{Choice, OptIn, Preset, Switch};

use protocol::plan::{ExchangePlacement, Journaling, OnDeath, Trading};
use record::units::{Count, Nanos};
use std::collections::BTreeMap;
use thiserror::Error;

/// An error in a user's flags or settings: one or two lines that name the flag or key and the
/// remedy. The launcher prints it and exits with 2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// The error of a comparison with an inconclusive result: its gate neither passes nor fails. The
/// launcher prints it and exits with 3.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Undecided(pub String);

impl Setting {
    /// Finds the setting of a key.
    fn find(key: &str) -> Option<&'static Self> {
        Settings::TABLE.iter().find(|setting| setting.key == key)
    }
}

impl Settings {
    /// Returns the number of strategy slots of the run: its strategies, and spare slots in which
    /// operators can start strategies later.
    pub fn all_strategies(&self) -> Count {
        Count(self.strategies().0 + self.spare_strategies().0)
    }

    /// Sets the setting with the name `key` from the text of its value. Returns `None` if there is
    /// no such setting.
    pub fn set(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
        Setting::find(key).map(|setting| (setting.set)(self, text))
    }

    /// Removes the value of the setting with the name `key`, so that its default applies.
    pub fn clear(&mut self, key: &str) {
        Setting::find(key).into_iter().for_each(|setting| (setting.clear)(self));
    }

    /// Returns the names and the value texts of all settings that have a value, in the order of
    /// [`Settings::KEYS`].
    pub fn texts(&self) -> Vec<(&'static str, String)> {
        let text = |setting: &Setting| Some((setting.key, (setting.text)(self)?));
        Self::TABLE.iter().filter_map(text).collect()
    }

    /// Returns the settings that have a value as a map from names to value texts, as records save
    /// them.
    pub fn to_texts(&self) -> BTreeMap<String, String> {
        self.texts().into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
    }

    /// Reads settings from a map from names to value texts, as records save them.
    pub fn from_texts(texts: &BTreeMap<String, String>) -> Result<Self, UsageError> {
        let mut settings = Settings::default();
        for (key, text) in texts {
            let set = settings.set(key, text);
            set.ok_or_else(|| UsageError(format!("there is no setting {key:?}")))?
                .map_err(|message| UsageError(format!("{key}: {message}")))?;
        }
        Ok(settings)
    }

    /// Returns these values, with unset ones taken from `below`.
    fn or(mut self, below: &Settings) -> Settings {
        Self::TABLE.iter().for_each(|setting| (setting.take_open)(&mut self, below));
        self
    }

    /// Sets each of a run's settings that has no value to its default, if the table of settings
    /// (`settings.rs`) gives it one after `=`.
    pub fn fill(&mut self) {
        Self::TABLE.iter().for_each(|setting| (setting.fill)(self));
    }

    /// Checks that the value of each setting of a run is valid, without regard to the other
    /// settings.
    pub fn check(&self) -> Result<(), UsageError> {
        Self::TABLE.iter().try_for_each(|setting| {
            let text = || (setting.text)(self).unwrap_or_default();
            let wrong = |why| UsageError(format!("--{} {}: {why}", setting.flag_name(), text()));
            (setting.check)(self).map_err(wrong)
        })
    }

    /// Merges two layers of settings: values of `self` override those of `below`.
    ///
    /// A recorded flow and a drawn one exclude each other, so setting one here also drops the other
    /// from the layer below: `--schedule` works with a config file that sets `window`.
    pub fn over(self, mut below: Settings) -> Settings {
        if self.schedule.is_some() {
            below = Settings { orders: None, window: None, arrivals: None, ..below };
        } else if self.orders.is_some() || self.window.is_some() || self.arrivals.is_some() {
            below = Settings { schedule: None, speed: None, ..below };
        }
        self.or(&below)
    }

    /// Fills settings without a value from the preset (a named group of settings), if one is
    /// chosen.
    pub fn with_preset(self) -> Settings {
        match self.preset {
            Some(preset) => Settings { preset: None, ..self.over(preset.settings()) },
            None => self,
        }
    }
}

impl Preset {
    /// Returns the settings that a preset stands for.
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
            Preset::Durable => Settings {
                strategies: Some(Count(1)),
                strategy: Some(KindList::new(vec!["crosser".into()])),
                venues: Some(Count(1)),
                venue: Some(KindList::new(vec![Trading::BOOK.into()])),
                exchange: Some(ExchangePlacement::Process),
                journal: Some(Journaling::Group),
                on_death: Some(OnDeath::Restart),
                market_data: Some(Switch::Off),
                ..Settings::default()
            },
        }
    }
}

/// Returns the name most similar to `text`, if one is similar enough, for suggestions in errors.
pub fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Flags have dashes where the keys of a file have underscores.
    let normalized = |name: &str| name.to_lowercase().replace('_', "-");
    let text = normalized(text);
    // In short names two swapped letters leave little similarity; a beginning is an abbreviation.
    let similarity_rank = |name: &str| match normalized(name) {
        name if strsim::osa_distance(&text, &name) <= 1 => 1.0,
        name if text.len() > 2 && name.starts_with(&text) => 0.99,
        name => strsim::jaro_winkler(&text, &name),
    };
    names
        .map(|name| (similarity_rank(name), name))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates any settings that can be written as text, for property tests.
    pub fn any_settings() -> impl Strategy<Value = Settings> {
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
    fn nearest_name_is_abbreviated_swapped_or_similar() {
        let names = ["max-loss", "max-position", "max_open", "run", "report"];
        for (text, wanted) in [
            ("max-pos", Some("max-position")),
            ("max_pos", Some("max-position")),
            ("max-opn", Some("max_open")),
            ("rnu", Some("run")),
            ("rep", Some("report")),
            ("zzz", None),
        ] {
            assert_eq!(nearest(text, names.into_iter()), wanted, "{text}");
        }
    }

    #[test]
    fn recorded_and_drawn_flow_replace_each_other() {
        let file = Settings { schedule: Some("flow.csv".into()), ..Settings::default() };
        let merged = file.clone().over(Preset::Seed.settings());
        assert_eq!((merged.orders, merged.window, merged.arrivals), (None, None, None));
        let merged = Settings { window: Some(Nanos(1)), ..Settings::default() }.over(file);
        assert_eq!(merged.schedule, None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC*") {
            for key in Settings::KEYS {
                let _ = Settings::default().set(key, &text);
            }
        }
    }
}
