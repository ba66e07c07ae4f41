//! The config file: flat YAML, `key: value`, in the manner of the seed benchmark.
//!
//! It is strict: an unknown key or a bad value is an error that shows its line. What [`Settings::to_yaml`] writes,
//! [`Settings::from_yaml`] reads back as the same settings.

use super::input::UserFile;
use super::{Setting, Settings, UsageError, nearest};
use analysis::document::{SaveError, write_whole};
use core::fmt;
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use std::path::Path;

/// What a run was made with, in its folder.
pub const CONFIG_FILE: &str = "config.yaml";

/// A config file larger than this is none.
const MAX_BYTES: u64 = 64 * 1024;

/// The keys of the seed benchmark, and what stands for them here.
const SEED_KEYS: [(&str, &str); 11] = [
    ("n_strategies", "write strategies"),
    ("m_venues", "write venues"),
    ("orders_per_strategy", "write orders, which counts the orders of all strategies together"),
    ("window_ms", "write window with its unit, for example 10s"),
    ("d_min_us", "write delay as a range, for example uniform:5ms..500ms"),
    ("d_max_us", "write delay as a range, for example uniform:5ms..500ms"),
    ("repeats", "write repeats"),
    ("shared_cap", "write capacity, which holds for every ring"),
    ("spsc_cap", "write capacity, which holds for every ring"),
    ("sample_us", "nothing is sampled here: every stamp of every order is kept"),
    ("orch_work_sweep", "write work with its unit, for example 500ns, one value for a run"),
];

impl Settings {
    /// Reads a config file.
    ///
    /// # Errors
    /// The file that cannot be read, or its line that is wrong.
    pub fn read(path: &Path) -> Result<Settings, UsageError> {
        let name = path.display();
        let cannot = |error: std::io::Error| UsageError(format!("--config {name}: {error}"));
        let text = UserFile::read_text(path, MAX_BYTES).map_err(cannot)?;
        Settings::from_yaml(&text, &name.to_string())
    }

    /// Reads YAML; `name` is the file's name for messages.
    ///
    /// # Errors
    /// File, line and key of what is wrong, and what would be right.
    pub fn from_yaml(text: &str, name: &str) -> Result<Settings, UsageError> {
        // A file of comments only sets nothing.
        if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Ok(Settings::default());
        }
        serde_saphyr::from_str(text).map_err(|error| UsageError(shown(&error, text, name)))
    }

    /// Writes what is set into a run's folder.
    ///
    /// # Errors
    /// A full disk, a folder that cannot be written.
    pub fn save(&self, folder: &Path) -> Result<(), SaveError> {
        write_whole(&folder.join(CONFIG_FILE), self.to_yaml().as_bytes())
    }

    /// Writes what is set as YAML.
    pub fn to_yaml(&self) -> String {
        serde_saphyr::to_string(self).unwrap_or_else(|error| format!("# not written: {error}\n"))
    }
}

/// What is wrong, in one line, and under it the line that it is about with a caret.
fn shown(error: &serde_saphyr::Error, text: &str, name: &str) -> String {
    let what = match error.without_snippet() {
        serde_saphyr::Error::Message { msg, .. } => msg.clone(),
        serde_saphyr::Error::Unexpected { expected: "mapping start", .. } => {
            "expected lines of `key: value`, for example `strategies: 2`".into()
        }
        serde_saphyr::Error::Unexpected { expected: "string scalar", .. } => {
            "expected a single value, not a list or a map".into()
        }
        other => {
            let message = other.to_string();
            // The parser's own texts name the place, which stands in front already, and its options, which are not the user's.
            let ends = [" at line ", ", set "].map(|part| message.find(part));
            let end = ends.into_iter().flatten().min().unwrap_or(message.len());
            message[..end].lines().next().unwrap_or("cannot be read").to_string()
        }
    };
    let Some(at) = error.location() else {
        return format!("{name}: {what}");
    };
    let number = at.line();
    let line = usize::try_from(number).ok().and_then(|n| text.lines().nth(n.saturating_sub(1)));
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = line.unwrap_or("").chars().take(100).map(printable).collect();
    let indent = usize::try_from(at.column()).unwrap_or(1).saturating_sub(1).min(line.chars().count());
    format!("{name}:{number}: {what}\n  {line}\n  {}^", " ".repeat(indent))
}

impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = |text: String| match text.parse::<u64>() {
            // A folder named 007 stays a text.
            Ok(number) if number.to_string() == text => serde_json::Value::from(number),
            _ => text.into(),
        };
        serializer.collect_map(self.texts().into_iter().map(|(key, text)| (key, value(text))))
    }
}

impl<'de> Deserialize<'de> for Settings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Lines)
    }
}

/// Reads the whole file.
struct Lines;

impl<'de> Visitor<'de> for Lines {
    type Value = Settings;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lines of `key: value`, for example `strategies: 2`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Settings, A::Error> {
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        while let Some(key) = map.next_key_seed(Key { seen: &seen })? {
            seen.push(key.key);
            map.next_value_seed(OneValue { setting: key, settings: &mut settings })?;
        }
        Ok(settings)
    }
}

/// Reads a key. Fails inside, so that the parser shows the key's own place.
struct Key<'a> {
    /// The keys above: the parser sees a key that stands twice, but not in its two spellings.
    seen: &'a [&'static str],
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = &'static Setting;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<&'static Setting, D::Error> {
        let key = String::deserialize(deserializer)?;
        match Setting::find(&key.trim_start_matches("--").replace('-', "_")) {
            Some(Setting { key, .. }) if self.seen.contains(key) => {
                Err(de::Error::custom(format!("{key} stands here twice")))
            }
            Some(setting) => Ok(setting),
            None => Err(de::Error::custom(unknown(&key))),
        }
    }
}

/// What to say about a key that there is not.
fn unknown(key: &str) -> String {
    let shown: String = key.chars().take(40).collect();
    if key == "config" || key == "json" {
        return format!("key {key} is for the command line only: give it as --{key}");
    }
    if let Some((_, instead)) = SEED_KEYS.iter().find(|(seed, _)| *seed == key) {
        return format!("key {shown} is the seed benchmark's: {instead}");
    }
    match nearest(&key.replace('-', "_"), Settings::KEYS.iter().copied()) {
        Some(near) => format!("unknown key {shown}: did you mean {near}?"),
        None => format!("unknown key {shown}: there are {}", Settings::KEYS.join(", ")),
    }
}

/// Reads the value of a key into the settings.
struct OneValue<'a> {
    setting: &'static Setting,
    settings: &'a mut Settings,
}

impl<'de> DeserializeSeed<'de> for OneValue<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        let Setting { key, is_list, set, .. } = self.setting;
        let wrong = |why: String| de::Error::custom(format!("{key}{why}"));
        let text = deserializer.deserialize_option(Texts { is_list: *is_list })?;
        let text = text.ok_or_else(|| wrong(" has no value: write one, or leave the line out".into()))?;
        set(self.settings, &text).map_err(|message| wrong(format!(": {message}")))
    }
}

/// A value's text; of settings that are lists, also a list of texts.
struct Texts {
    is_list: bool,
}

impl<'de> Visitor<'de> for Texts {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a single value")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.is_list {
            deserializer.deserialize_any(self)
        } else {
            String::deserialize(deserializer).map(Some)
        }
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut texts: Vec<String> = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(Some(texts.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::any_settings;
    use super::*;
    use analysis::units::{Count, Nanos};
    use proptest::prelude::*;

    fn wrong(text: &str) -> String {
        let message = Settings::from_yaml(text, "bulkhead.yaml").unwrap_err().to_string();
        println!("{message}\n");
        message
    }

    #[test]
    fn faults_may_be_a_list() {
        let one = Settings::from_yaml("fault: \"kill:strategy-0@1s; stop:any@2s\"\n", "x").unwrap();
        for list in [
            "fault:\n  - kill:strategy-0@1s\n  - stop:any@2s\n",
            "fault: [kill:strategy-0@1s, stop:any@2s]\n",
        ] {
            assert_eq!(Settings::from_yaml(list, "x").unwrap(), one);
        }
        assert!(wrong("fault:\n  - kill:strategy-0@1s\n  - [a]\n").contains("bulkhead.yaml:"));
        assert!(wrong("fault:\n").contains("no value"));
        assert!(wrong("window: [1s, 2s]\n").contains("single value"));
    }

    #[test]
    fn flat_lines_are_read_with_either_dash() {
        let text = "# ours\nstrategies: 2\nmax-open: 4_096\nmax_open: 4096\n";
        assert!(wrong(text).contains("max_open stands here twice"));
        assert!(wrong("venues: 1\nvenues: 2\n").contains("bulkhead.yaml:2"));
        let text = "strategies: 2\nmax-open: 4_096\nwindow: 1.5s\ndelay: uniform:5ms..500ms\n\
                    cores: 0,2-5\nspeed: 2.5\nout: \"my runs\"\nidle: spin\nseed: 007\n";
        let settings = Settings::from_yaml(text, "x").unwrap();
        assert_eq!(settings.strategies, Some(Count(2)));
        assert_eq!(settings.max_open, Some(Count(4096)));
        assert_eq!(settings.window, Some(Nanos(1_500_000_000)));
        assert_eq!(settings.cores.unwrap().0, [0, 2, 3, 4, 5]);
        assert_eq!(settings.seed, Some(Count(7)));
        assert_eq!(settings.out, Some("my runs".into()));
    }

    #[test]
    fn nothing_set_is_no_error() {
        for text in ["", "\n\n", "# nothing\n", "{}"] {
            assert_eq!(Settings::from_yaml(text, "x"), Ok(Settings::default()), "{text:?}");
        }
    }

    #[test]
    fn a_wrong_key_names_file_line_and_the_nearest() {
        let message = wrong("venues: 4\nstrategis: 2\n");
        assert!(message.starts_with("bulkhead.yaml:2: "), "{message}");
        assert!(message.contains("unknown key strategis: did you mean strategies?"), "{message}");
        assert!(wrong("max-opn: 2\n").contains("did you mean max_open?"));
        assert!(wrong("qqq: 2\n").contains("there are technique, isolation"));
        assert!(wrong("json: true\n").contains("--json"));
    }

    #[test]
    fn the_seeds_keys_say_what_stands_for_them() {
        for (key, _) in SEED_KEYS.iter().filter(|(key, _)| *key != "repeats") {
            let message = wrong(&format!("{key}: 8\n"));
            assert!(message.contains("is the seed benchmark's: "), "{message}");
        }
        assert!(wrong("n_strategies: 8\n").contains("write strategies"));
        assert!(wrong("window_ms: 10000\n").contains("write window with its unit"));
        assert_eq!(Settings::from_yaml("repeats: 3", "x").unwrap().repeats, Some(Count(3)));
    }

    #[test]
    fn a_wrong_value_names_file_line_and_key() {
        let message = wrong("strategies: 2\nwindow: 10\n");
        assert!(message.starts_with("bulkhead.yaml:2: "), "{message}");
        assert!(message.contains("window: \"10\" has no unit"), "{message}");
        assert!(wrong("idle: spn\n").contains("did you mean spin?"));
        for text in
            ["- 1\n- 2\n", "strategies: [1]\n", "strategies:\n", "just words", "a: b: c", "\u{0}", "{"]
        {
            assert!(wrong(text).contains("bulkhead.yaml"), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(settings in any_settings()) {
            let text = settings.to_yaml();
            prop_assert_eq!(Settings::from_yaml(&text, "x"), Ok(settings), "{}", text);
        }

        #[test]
        fn no_text_panics(text in "\\PC*", lines in "([a-z_-]{1,9}: ?[ -~]{0,9}\n){0,4}") {
            let _ = Settings::from_yaml(&text, "x");
            let _ = Settings::from_yaml(&lines, "x");
        }
    }
}
