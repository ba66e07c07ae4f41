//! The config file: flat YAML with one `key: value` a line.
//!
//! An unknown key or an invalid value is an error that shows its line. [`Settings::from_yaml`]
//! reads back what [`Settings::to_yaml`] writes.

use super::input::UserFile;
use super::{Setting, Settings, UsageError, nearest};
use granit_parser::{Event, Marker, Parser, ScalarStyle, StrInput};
use record::document::{SaveError, write_atomically};
use std::path::Path;

/// Name of the file in a run's folder with its settings.
pub const CONFIG_FILE: &str = "config.yaml";

/// Maximum size of a config file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// Keys of the benchmark that this project started from, and their replacements here.
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
    /// Reads settings from a config file of at most 64 KiB.
    pub fn read(path: &Path) -> Result<Settings, UsageError> {
        let name = path.display();
        let cannot = |error: std::io::Error| {
            UsageError(format!("--config {name}: {error}; give a file of lines `key: value`"))
        };
        let text = UserFile::read_text(path, MAX_BYTES).map_err(cannot)?;
        Settings::from_yaml(&text, &name.to_string())
    }

    /// Reads settings from YAML text; `name` is the file's name in errors.
    pub fn from_yaml(text: &str, name: &str) -> Result<Settings, UsageError> {
        let read = entries(text).and_then(|entries| Settings::from_entries(&entries));
        read.map_err(|error| UsageError(shown(&error, text, name)))
    }

    fn from_entries(entries: &[ConfigEntry]) -> Result<Settings, ConfigError> {
        let mut settings = Settings::default();
        let mut known_keys = Vec::new();
        for ConfigEntry { key, key_at, values, is_list: has_list, value_at } in entries {
            let found = Setting::find(&key.trim_start_matches("--").replace('-', "_"));
            let Setting { key, is_list, set, .. } = found.ok_or_else(|| (unknown(key), *key_at))?;
            if known_keys.contains(key) {
                return Err((format!("duplicate key {key}: it stands here twice; leave one out"), *key_at));
            }
            known_keys.push(*key);
            if *has_list && !is_list {
                return Err((NESTED.into(), *value_at));
            }
            if values.is_empty() && !has_list {
                return Err((format!("{key} has no value: write one, or leave the line out"), *key_at));
            }
            set(&mut settings, &values.join("; ")).map_err(|why| (format!("{key}: {why}"), *value_at))?;
        }
        Ok(settings)
    }

    /// Writes those settings that have a value into the config file of a run's folder.
    pub fn save(&self, folder: &Path) -> Result<(), SaveError> {
        write_atomically(&folder.join(CONFIG_FILE), self.to_yaml().as_bytes())
    }

    pub(crate) fn to_yaml(&self) -> String {
        self.texts().iter().map(|(key, text)| format!("{key}: {}\n", written(text))).collect()
    }
}

/// An error in a config file with its position.
type ConfigError = (String, Marker);

/// A key of a config file with its value: a text, a list of texts, or nothing.
struct ConfigEntry {
    key: String,
    key_at: Marker,
    values: Vec<String>,
    is_list: bool,
    value_at: Marker,
}

const NO_KEY: &str = "expected lines of `key: value`, for example `strategies: 2`";
const SYNTAX: &str = "write lines of `key: value`, and a value with special characters in quotes";
const QUOTE: &str = "this value needs quotes: \"…\"";
const NESTED: &str = "expected a single value, not a list or a map";

/// Parses the entries of a config file in order. A key may occur twice.
///
/// Nested values, tags, anchors and aliases are refused at the first of them, so that neither
/// depth nor references make the memory that is taken more than a multiple of the text.
fn entries(text: &str) -> Result<Vec<ConfigEntry>, ConfigError> {
    let mut parser = Parser::new_from_str(text);
    let mut entries: Vec<ConfigEntry> = Vec::new();
    loop {
        let (event, at) = next(&mut parser)?;
        match event {
            Event::StreamEnd => return Ok(entries),
            Event::MappingStart(..) if entries.is_empty() => {
                while let Some(entry) = next_entry(&mut parser)? {
                    entries.push(entry);
                }
            }
            Event::StreamStart | Event::DocumentStart(..) | Event::DocumentEnd => {}
            event if scalar(event.clone()) == Ok(None) => {}
            _ => return Err((NO_KEY.into(), at)),
        }
    }
}

/// Returns the next entry of a map; `None` at its end.
fn next_entry<'a>(parser: &mut Parser<'a, StrInput<'a>>) -> Result<Option<ConfigEntry>, ConfigError> {
    let (event, key_at) = next(parser)?;
    if event == Event::MappingEnd {
        return Ok(None);
    }
    let key = scalar(event).ok().flatten().ok_or_else(|| (NO_KEY.into(), key_at))?;
    let (event, value_at) = next(parser)?;
    let mut values = Vec::new();
    let is_list = matches!(event, Event::SequenceStart(..));
    if !is_list {
        values.extend(scalar(event).map_err(|what| (what.into(), value_at))?);
        return Ok(Some(ConfigEntry { key, key_at, values, is_list, value_at }));
    }
    loop {
        let (event, at) = next(parser)?;
        if event == Event::SequenceEnd {
            return Ok(Some(ConfigEntry { key, key_at, values, is_list, value_at }));
        }
        values.extend(scalar(event).map_err(|what| (what.into(), at))?);
    }
}

/// Returns the next event with its position.
fn next<'a>(parser: &mut Parser<'a, StrInput<'a>>) -> Result<(Event<'a>, Marker), ConfigError> {
    match parser.next() {
        Some(Ok((event, span))) => Ok((event, span.start)),
        Some(Err(error)) => Err((format!("not YAML: {}; {SYNTAX}", error.info()), *error.marker())),
        None => Ok((Event::StreamEnd, Marker::default())),
    }
}

/// Returns the text of a single value; `None` if it is empty or `null`.
fn scalar(event: Event<'_>) -> Result<Option<String>, &'static str> {
    match event {
        Event::Scalar(text, ScalarStyle::Plain, 0, None)
            if matches!(&*text, "" | "~" | "null" | "Null" | "NULL") =>
        {
            Ok(None)
        }
        // Version 0.2 wrote long values as blocks, which end in a line break.
        Event::Scalar(text, ScalarStyle::Literal | ScalarStyle::Folded, 0, None) => {
            Ok(Some(text.trim_end_matches('\n').to_owned()))
        }
        Event::Scalar(text, _, 0, None) => Ok(Some(text.into_owned())),
        Event::Scalar(..) | Event::Alias(_) => Err(QUOTE),
        _ => Err(NESTED),
    }
}

/// Formats a text as a YAML value that is parsed back to an equal text: plain if possible,
/// otherwise in double quotes.
fn written(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,+=@%~ ".contains(c);
    let begins_plain = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "_./+".contains(c));
    let is_ambiguous = text.contains(": ")
        || text.ends_with([':', ' '])
        || matches!(text, "null" | "Null" | "NULL" | "true" | "false");
    if begins_plain && !is_ambiguous && text.chars().all(is_plain) {
        return text.to_owned();
    }
    // A text of JSON is one of YAML, except for characters that YAML wants escaped.
    let escape = |c: char| match c {
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
            format!("\\u{:04x}", u32::from(c))
        }
        c => c.to_string(),
    };
    serde_json::Value::from(text).to_string().chars().map(escape).collect()
}

/// Formats an error in one line, with the line it refers to and a caret below it.
fn shown((what, at): &ConfigError, text: &str, name: &str) -> String {
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let number = at.line().max(1);
    let line: String = text.lines().nth(number - 1).unwrap_or("").chars().take(100).map(printable).collect();
    let indent = at.col().min(line.chars().count());
    format!("{name}:{number}: {what}\n  {line}\n  {}^", " ".repeat(indent))
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
    use proptest::prelude::*;
    use record::units::{Count, Nanos};

    /// The keys of a text with their values; `None` without a value.
    fn read(text: &str) -> Vec<(String, Option<Vec<String>>)> {
        let value =
            |entry: &ConfigEntry| (entry.is_list || !entry.values.is_empty()).then(|| entry.values.clone());
        entries(text).unwrap().iter().map(|entry| (entry.key.clone(), value(entry))).collect()
    }

    #[test]
    fn each_yaml_notation_of_a_value_is_read() {
        for (text, values) in [
            ("a: b c  # d", Some(vec!["b c"])),
            ("  a :\tb#c", Some(vec!["b#c"])),
            ("---\n\"a\": 'it''s # b'", Some(vec!["it's # b"])),
            (r#"a: "\x41\u00e9\U0001f600\n\"""#, Some(vec!["Aé😀\n\""])),
            ("a: 10.0.0.1:7000", Some(vec!["10.0.0.1:7000"])),
            ("a: 007", Some(vec!["007"])),
            ("a: yes", Some(vec!["yes"])),
            ("a: 1_000\r\n", Some(vec!["1_000"])),
            ("a:", None),
            ("a: ~ # nothing", None),
            ("a: []", Some(vec![])),
            ("a: [b, 'c, d', \"]\"] # e", Some(vec!["b", "c, d", "]"])),
            ("a:\n- b\n- c # d", Some(vec!["b", "c"])),
            ("a:\n  # b\n  - c:d:e\n\n  - 'f'", Some(vec!["c:d:e", "f"])),
            ("a: >-\n  b c\n  d # e\n\n  f\n", Some(vec!["b c d # e\nf"])),
            ("a: >\n  b\n  c\n", Some(vec!["b c"])),
            ("a: |\n  b\n    c\n", Some(vec!["b\n  c"])),
        ] {
            let values = values.map(|values| values.iter().map(|value| (*value).to_owned()).collect());
            assert_eq!(read(text), [("a".to_owned(), values)], "{text:?}");
        }
        assert_eq!(read("a: >-\n  b\nc: d\n").len(), 2);
    }

    #[test]
    fn yaml_error_shows_line_and_column() {
        for (text, what, line, column) in [
            ("a: b\nc\n", "not YAML: ", 2, 0),
            ("- a", NO_KEY, 1, 0),
            ("a: 1\n---\nb: 1", NO_KEY, 3, 0),
            ("? [a]\n: b", NO_KEY, 1, 2),
            ("a: b: c", "not YAML: ", 1, 4),
            ("a: &b c\nd: *b", QUOTE, 1, 6),
            ("a: *b", "not YAML: ", 1, 3),
            ("a: !!str b", QUOTE, 1, 9),
            ("a: 1\n  b: 2", "not YAML: ", 2, 3),
            ("a: 1\n- b", "not YAML: ", 2, 2),
            ("é: [é] é", "not YAML: ", 1, 7),
            ("a: {b: c}", NESTED, 1, 3),
            ("a:\n  b: c", NESTED, 2, 2),
            ("a: [b, [c]]", NESTED, 1, 7),
            ("a:\n- b: c", NESTED, 2, 2),
            ("a: [b, c", "not YAML: ", 1, 3),
            ("a: 'b", "not YAML: ", 1, 3),
        ] {
            let (found, at) = entries(text).err().unwrap();
            assert_eq!((at.line(), at.col()), (line, column), "{text:?}: {found}");
            assert!(found.starts_with(what), "{text:?}: {found}");
        }
        assert!(entries(r#"a: "\ud800""#).is_err());
    }

    /// A reader that resolves aliases would take 10^30 values from the first text; one that
    /// recurses would overflow its stack at the others.
    #[test]
    fn aliases_and_depth_are_refused_early() {
        let mut nested_aliases = "a0: &a0 ha\n".to_owned();
        for level in 1..=30 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            nested_aliases += &format!("a{level}: &a{level} [{before}]\n");
        }
        let max_len = MAX_BYTES as usize;
        let deep =
            ["[", "{", "- ", "? ", "a: [", "&a [", "!!a "].map(|part| part.repeat(max_len / part.len()));
        for text in deep.iter().chain([&nested_aliases, &format!("a: {}", deep[0])]) {
            let (_, at) = entries(text).err().unwrap();
            assert!(at.line() <= 2, "{at:?}");
        }
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
        for (text, line, expected) in [
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
            assert!(begins && message.contains(expected), "{text:?}: {message}");
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
        fn written_text_is_read_back(text in "\\PC*|[a-z :#'\"\n\t~>|-]{0,9}|[\\x00-\\u{2100}\u{feff}\u{ffff}]{0,9}") {
            let line = format!("a: {}\n", written(&text));
            prop_assert_eq!(read(&line), [("a".to_owned(), Some(vec![text]))], "{}", line);
        }

        #[test]
        fn no_text_panics(text in "\\PC*", lines in "([a-z_-]{1,9}: ?[ -~]{0,9}\n){0,4}") {
            let _ = Settings::from_yaml(&text, "x");
            let _ = Settings::from_yaml(&lines, "x");
        }
    }
}
