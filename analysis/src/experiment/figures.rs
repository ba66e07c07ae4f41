//! Figures by name: the measured values of a row of an experiment, as one flat map.
//!
//! A record of any type becomes figures and is read back: the keys of nested records are joined by
//! dots (`measures.rt_venue.p50_ns`), and a missing value has no key. So one document and one table
//! hold the rows of every kind of experiment.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Settings by name, each as its text on the command line.
pub type SettingTexts = BTreeMap<String, String>;

/// The maximum number of records within each other. A damaged file may have more dots.
const MAX_DEPTH: usize = 8;

/// An experiment row's figures by name, each with the unit at the end of its name: `cpu_ns`,
/// `pss_bytes`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<String, Value>);

impl Figures {
    /// Converts a serializable record to figures by name, where dots join the names of nested
    /// fields.
    pub fn from_record(record: &impl Serialize) -> Self {
        let mut figures = Self::default();
        figures.insert("", record);
        figures
    }

    /// Adds a record to the figures under a name, in place of an earlier one.
    pub fn insert(&mut self, name: &str, record: &impl Serialize) {
        self.remove(name);
        // Only a record with other keys than texts cannot be converted, and none exists.
        flatten(name, serde_json::to_value(record).unwrap_or(Value::Null), &mut self.0);
    }

    /// Removes the record with this name from the figures.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|key, _| key != name && within(name, key).is_none());
    }

    /// Converts all figures to a value of type `T`: the reverse of [`Figures::from_record`].
    ///
    /// # Errors
    /// A missing figure, or one of another type.
    pub fn record<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        serde_json::from_value(nested(self.0.iter().map(|(key, value)| (key.as_str(), value))))
    }

    /// Converts the figures saved under a name to a value of type `T`: the reverse of
    /// [`Figures::insert`]. `None`: there are none.
    ///
    /// # Errors
    /// A missing figure, or one of another type.
    pub fn part<T: DeserializeOwned>(&self, name: &str) -> serde_json::Result<Option<T>> {
        if let Some(value) = self.0.get(name) {
            return serde_json::from_value(value.clone()).map(Some);
        }
        let mut inner = self.0.iter().filter_map(|(key, value)| Some((within(name, key)?, value))).peekable();
        if inner.peek().is_none() { Ok(None) } else { serde_json::from_value(nested(inner)).map(Some) }
    }

    /// Moves the named figures out of the map, and returns them as settings' texts.
    #[must_use]
    pub fn take_settings(&mut self, names: &[&str]) -> SettingTexts {
        let take = |name: &&str| Some(((*name).to_owned(), text_of(&self.0.remove(*name)?)));
        names.iter().filter_map(take).collect()
    }

    /// Returns these figures with settings added; settings that are numbers become numbers.
    #[must_use]
    pub fn with_settings(&self, settings: &SettingTexts) -> Self {
        let value = |text: &String| text.parse::<u64>().map_or_else(|_| text.clone().into(), Value::from);
        let added = settings.iter().map(|(name, text)| (name.clone(), value(text)));
        Self(self.0.clone().into_iter().chain(added).collect())
    }

    /// Merges these figures with other figures, which replace equal names.
    #[must_use]
    pub fn and(mut self, others: &Self) -> Self {
        self.0.extend(others.0.iter().map(|(name, value)| (name.clone(), value.clone())));
        self
    }

    /// Returns `true` if the figures have a record with this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.keys().any(|key| key == name || within(name, key).is_some())
    }

    /// Returns `true` if there are no figures.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the figures' names and values, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// Returns a figure as the text of a setting.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the rest of a key below a record's name.
fn within<'k>(name: &str, key: &'k str) -> Option<&'k str> {
    if name.is_empty() { Some(key) } else { key.strip_prefix(name)?.strip_prefix('.') }
}

fn flatten(name: &str, value: Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Null => {}
        Value::Object(inner) => {
            for (key, value) in inner {
                let name = if name.is_empty() { key } else { format!("{name}.{key}") };
                flatten(&name, value, into);
            }
        }
        value => drop(into.insert(name.to_owned(), value)),
    }
}

fn nested<'a>(figures: impl Iterator<Item = (&'a str, &'a Value)>) -> Value {
    let mut all = Map::new();
    for (key, value) in figures {
        let mut keys: Vec<&str> = key.splitn(MAX_DEPTH, '.').collect();
        let Some(last) = keys.pop() else { continue };
        let mut place = Some(&mut all);
        for key in keys {
            let inner = place.map(|place| place.entry(key).or_insert_with(|| Value::Object(Map::new())));
            place = inner.and_then(Value::as_object_mut);
        }
        // A name that is a figure and a record at once comes from a damaged file.
        if let Some(place) = place {
            place.insert(last.to_owned(), value.clone());
        }
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{RunOutline, fixtures};

    #[test]
    fn record_of_any_kind_becomes_figures_and_back() {
        let outline = fixtures::run(3, 250.0);
        let figures = Figures::from_record(&outline);
        assert_eq!(figures.record::<RunOutline>().unwrap(), outline);
        assert!(figures.iter().all(|(_, value)| !value.is_object()), "{figures:?}");
        let names: Vec<&str> = figures.iter().map(|(name, _)| name).collect();
        assert!(names.contains(&"measures.rt_venue.p50_ns") && names.contains(&"machine.hostname"));
        let mut figures = figures;
        let settings = figures.take_settings(&["technique", "strategies", "none"]);
        assert_eq!(settings.len(), 2);
        assert!(figures.record::<RunOutline>().is_err());
        assert_eq!(figures.with_settings(&settings).record::<RunOutline>().unwrap(), outline);
    }

    #[test]
    fn part_is_replaced_and_read_alone() {
        let mut figures = Figures::from_record(&[("count", 3)].into_iter().collect::<BTreeMap<_, _>>());
        figures.insert("cost", &[("a", 1), ("b", 2)].into_iter().collect::<BTreeMap<_, _>>());
        figures.insert("cost", &[("b", 7)].into_iter().collect::<BTreeMap<_, _>>());
        figures.insert("costs", &"x");
        let cost: BTreeMap<String, u32> = figures.part("cost").unwrap().unwrap();
        assert_eq!(cost, [("b".to_owned(), 7)].into());
        assert_eq!(figures.part::<String>("costs").unwrap().as_deref(), Some("x"));
        assert_eq!(figures.part::<u32>("none").unwrap(), None);
        assert!(figures.part::<u32>("costs").is_err());
    }

    #[test]
    fn hostile_names_neither_panic_nor_nest_deeply() {
        let deep = "a.".repeat(100_000);
        let figures =
            Figures([deep, "b".into(), "b.c".into(), ".".into()].map(|key| (key, Value::from(1))).into());
        assert!(figures.record::<RunOutline>().is_err());
        assert_eq!(figures.part::<u32>("b").unwrap(), Some(1));
    }
}
