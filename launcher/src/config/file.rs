//! The config file: flat YAML with one `key: value` a line.
//!
//! An unknown key or an invalid value is an error that shows its line. [`Settings::from_yaml`]
//! reads back what [`Settings::to_yaml`] writes.

use super::input::UserFile;
use super::yaml::{TextPosition, YamlEntry, YamlError, YamlValue, entries, written};
use super::{Setting, Settings, UsageError, nearest};
use analysis::document::{SaveError, write_atomically};
use std::path::Path;

/// Name of the file in a run's folder with its settings.
pub const CONFIG_FILE: &str = "config.yaml";

/// Maximum size of a config file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Keys of the seed benchmark, and their replacements here.
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
    pub fn read(path: &Path) -> Result<Settings, UsageError> {
        let name = path.display();
        let cannot = |error: std::io::Error| UsageError(format!("--config {name}: {error}"));
        let text = UserFile::read_text(path, MAX_BYTES).map_err(cannot)?;
        Settings::from_yaml(&text, &name.to_string())
    }

    /// Reads settings from YAML text; `name` is the file's name in errors.
    pub fn from_yaml(text: &str, name: &str) -> Result<Settings, UsageError> {
        let read = entries(text).map_err(|YamlError { what, at }| (what.to_owned(), at));
        read.and_then(|entries| Settings::from_entries(&entries))
            .map_err(|(what, at)| UsageError(shown(&what, at, text, name)))
    }

    fn from_entries(entries: &[YamlEntry]) -> Result<Settings, (String, TextPosition)> {
        let mut settings = Settings::default();
        let mut seen = Vec::new();
        for YamlEntry { key, value, key_at, value_at } in entries {
            let found = Setting::find(&key.trim_start_matches("--").replace('-', "_"));
            let Setting { key, is_list, set, .. } = found.ok_or_else(|| (unknown(key), *key_at))?;
            if seen.contains(key) {
                return Err((format!("duplicate key {key}: it stands here twice; leave one out"), *key_at));
            }
            seen.push(*key);
            let text = match value {
                YamlValue::One(text) => text.clone(),
                YamlValue::List(texts) if *is_list => texts.join("; "),
                YamlValue::List(_) => {
                    return Err(("expected a single value, not a list or a map".into(), *value_at));
                }
                YamlValue::Nothing => {
                    let what = format!("{key} has no value: write one, or leave the line out");
                    return Err((what, *value_at));
                }
            };
            set(&mut settings, &text).map_err(|message| (format!("{key}: {message}"), *value_at))?;
        }
        Ok(settings)
    }

    /// Writes the values that are set into the config file of a run's folder.
    pub fn save(&self, folder: &Path) -> Result<(), SaveError> {
        write_atomically(&folder.join(CONFIG_FILE), self.to_yaml().as_bytes())
    }

    pub fn to_yaml(&self) -> String {
        self.texts().iter().map(|(key, text)| format!("{key}: {}\n", written(text))).collect()
    }
}

/// Formats an error in one line, with the line it refers to and a caret below it.
fn shown(what: &str, at: TextPosition, text: &str, name: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.lines().nth(at.line - 1).unwrap_or("").chars().take(100).map(printable).collect();
    let indent = (at.column - 1).min(line.chars().count());
    format!("{name}:{}: {what}\n  {line}\n  {}^", at.line, " ".repeat(indent))
}

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

#[cfg(test)]
mod tests {
    use super::super::tests::any_settings;
    use super::*;
    use analysis::units::{Count, Nanos};
    use proptest::prelude::*;

    #[test]
    fn faults_may_be_a_list() {
        let one = Settings::from_yaml("fault: \"kill:strategy-0@1s; stop:any@2s\"\n", "x").unwrap();
        for list in [
            "fault:\n  - kill:strategy-0@1s\n  - stop:any@2s\n",
            "fault: [kill:strategy-0@1s, stop:any@2s]\n",
        ] {
            assert_eq!(Settings::from_yaml(list, "x").unwrap(), one);
        }
    }

    #[test]
    fn flat_lines_are_read_with_either_dash() {
        let text = "# ours\nstrategies: 2\nmax-open: 4_096\nwindow: 1.5s\ncores: 0,2-5\nout: \"my runs\"\nseed: 007\n";
        let settings = Settings::from_yaml(text, "x").unwrap();
        assert_eq!((settings.strategies, settings.max_open), (Some(Count(2)), Some(Count(4096))));
        assert_eq!((settings.window, settings.seed), (Some(Nanos(1_500_000_000)), Some(Count(7))));
        assert_eq!(settings.cores.unwrap().0, [0, 2, 3, 4, 5]);
        assert_eq!(settings.out, Some("my runs".into()));
        for text in ["", "\n\n", "# nothing\n", "{}"] {
            assert_eq!(Settings::from_yaml(text, "x"), Ok(Settings::default()), "{text:?}");
        }
    }

    #[test]
    fn error_names_file_line_and_remedy() {
        for (text, line, words) in [
            ("fault:\n  - kill:strategy-0@1s\n  - [a]\n", 3, "not a list"),
            ("fault:\n", 1, "no value"),
            ("window: [1s, 2s]\n", 1, "single value"),
            ("max-open: 4_096\nmax_open: 4096\n", 2, "max_open: it stands here twice"),
            ("venues: 4\nstrategis: 2\n", 2, "unknown key strategis: did you mean strategies?"),
            ("max-opn: 2\n", 1, "did you mean max_open?"),
            ("qqq: 2\n", 1, "there are technique, isolation"),
            ("json: true\n", 1, "--json"),
            ("n_strategies: 8\n", 1, "is the seed benchmark's: write strategies"),
            ("window_ms: 10000\n", 1, "write window with its unit"),
            ("strategies: 2\nwindow: 10\n", 2, "window: \"10\" has no unit"),
            ("idle: spn\n", 1, "did you mean spin?"),
            ("idle: '???'\n", 1, "there are auto, spin, yield, backoff, park"),
            ("technique: SPSC-MUX\n", 1, "did you mean spsc-mux?"),
            ("- 1\n- 2\n", 1, ""),
            ("strategies: [1]\n", 1, ""),
            ("strategies:\n", 1, ""),
            ("just words", 1, ""),
            ("a: b: c", 1, ""),
            ("\u{0}", 1, ""),
            ("{", 1, ""),
        ] {
            let message = Settings::from_yaml(text, "bulkhead.yaml").unwrap_err().to_string();
            let begins = message.starts_with(&format!("bulkhead.yaml:{line}: "));
            assert!(begins && message.contains(words), "{text:?}: {message}");
        }
        // This key has the name that it had there.
        assert_eq!(Settings::from_yaml("repeats: 3", "x").unwrap().repeats, Some(Count(3)));
    }

    proptest! {
        #[test]
        fn written_settings_are_read_back(settings in any_settings()) {
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
