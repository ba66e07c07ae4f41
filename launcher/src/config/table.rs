//! The macro behind the table of settings, and what every setting can do.

use super::{Settings, UsageError};
use clap::{Arg, ArgMatches, Command};
use std::ops::RangeInclusive;
use std::sync::LazyLock;

/// A row of the table: a setting as a flag, as a key, and as a field of [`Settings`].
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The key in the config file; with `-` for `_` the flag.
    pub key: &'static str,
    pub(super) heading: &'static str,
    pub(super) placeholder: &'static str,
    pub(super) help: &'static str,
    pub(super) is_list: bool,
    pub(super) flag: fn(Arg) -> Arg,
    pub(super) default: fn() -> Option<String>,
    pub(super) set: fn(&mut Settings, &str) -> Result<(), String>,
    pub(super) read: fn(&mut Settings, &ArgMatches),
    pub(super) text: fn(&Settings) -> Option<String>,
    pub(super) clear: fn(&mut Settings),
    pub(super) fill: fn(&mut Settings),
    pub(super) take_open: fn(&mut Settings, &Settings),
    pub(super) check: fn(&Settings) -> Result<(), String>,
    #[cfg(test)]
    pub(super) any_text: fn() -> proptest::prelude::BoxedStrategy<String>,
}

/// Makes [`Settings`] and its table: `KEY "PLACEHOLDER": TYPE = DEFAULT, in RANGE;` under a heading of the help.
macro_rules! settings {
    ($($heading:literal { $(
        $(#[doc = $doc:literal])+
        $key:ident $placeholder:literal: $type:ty $(= $default:expr)? $(=> $implied:expr)? $(, in $range:expr)?;
    )+ })+) => {
        /// What can be set, on the command line or under the same name in the config file.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct Settings { $($(
            $(#[doc = $doc])+
            pub $key: Option<$type>,
        )+)+ }

        impl Settings {
            /// The names of all settings: keys of the config file and, with `-` for `_`, flags.
            pub const KEYS: &'static [&'static str] = &[$($(stringify!($key)),+),+];

            /// All settings, in the order of the help.
            pub const TABLE: &'static [Setting] = &[$($( Setting {
                key: stringify!($key),
                heading: $heading,
                placeholder: $placeholder,
                help: concat!($($doc),+),
                is_list: <$type as Value>::IS_LIST,
                flag: <$type as Value>::flag,
                default: || None $(.or(Some(<$type as Value>::text(&$default))))? $(.or(Some(<$type as Value>::text(&$implied))))?,
                set: |settings, text| Value::parse(text).map(|value| settings.$key = Some(value)),
                read: |settings, matches| {
                    let given = matches.get_many::<$type>(stringify!($key)).unwrap_or_default();
                    settings.$key = given.cloned().reduce(Value::and);
                },
                text: |settings| settings.$key.as_ref().map(Value::text),
                clear: |settings| settings.$key = None,
                fill: |settings| { let _ = settings; $(settings.$key.get_or_insert_with(|| $default);)? },
                take_open: |settings, below| {
                    if settings.$key.is_none() {
                        settings.$key.clone_from(&below.$key);
                    }
                },
                check: |settings| {
                    let range: Option<std::ops::RangeInclusive<u64>> = None $(.or(Some($range)))?;
                    settings.$key.as_ref().map_or(Ok(()), |value| Value::check(value, range))
                },
                #[cfg(test)]
                any_text: <$type as Value>::any_text,
            } ),+),+];

            $($(
                $(
                    #[doc = concat!("[`Self::", stringify!($key), "`], or its default.")]
                    pub fn $key(&self) -> $type {
                        self.$key.clone().unwrap_or_else(|| $default)
                    }
                )?
                $(
                    #[doc = concat!("[`Self::", stringify!($key), "`], or its default.")]
                    pub fn $key(&self) -> $type {
                        self.$key.clone().unwrap_or_else(|| $implied)
                    }
                )?
            )+)+
        }
    };
}
pub(super) use settings;

/// The flags of all settings, without their dashes.
static FLAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| Settings::KEYS.iter().map(|key| key.replace('_', "-")).collect());

impl Setting {
    /// The setting of that key.
    pub(super) fn find(key: &str) -> Option<&'static Self> {
        Settings::TABLE.iter().find(|setting| setting.key == key)
    }

    /// The flag as clap reads it. The default is appended to the help unless the help says it in words.
    fn arg(&self, long: &'static str) -> Arg {
        let help = self.help.trim();
        let help = match (self.default)().filter(|text| !text.is_empty() && !help.contains("[default:")) {
            Some(text) => format!("{help} [default: {text}]"),
            None => help.to_owned(),
        };
        let arg = Arg::new(self.key).long(long).value_name(self.placeholder).help(help);
        (self.flag)(arg.help_heading(self.heading))
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
    pub fn to_texts(&self) -> analysis::experiment::Texts {
        self.texts().into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
    }

    /// Reads what a saved record holds.
    ///
    /// # Errors
    /// A key that is no setting, or a text that its setting does not take.
    pub fn from_texts(texts: &analysis::experiment::Texts) -> Result<Self, UsageError> {
        let mut settings = Settings::default();
        for (key, text) in texts {
            let set = settings.set(key, text);
            set.ok_or_else(|| UsageError(format!("there is no setting {key:?}")))?
                .map_err(|message| UsageError(format!("{key}: {message}")))?;
        }
        Ok(settings)
    }

    /// Takes what is set here and the rest from `below`.
    pub(super) fn or(mut self, below: &Settings) -> Settings {
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
        for (setting, flag) in Self::TABLE.iter().zip(FLAGS.iter()) {
            (setting.check)(self).map_err(|why| {
                UsageError(format!("--{flag} {}: {why}", (setting.text)(self).unwrap_or_default()))
            })?;
        }
        Ok(())
    }
}

impl clap::Args for Settings {
    fn augment_args(command: Command) -> Command {
        let args = Self::TABLE.iter().zip(FLAGS.iter()).map(|(setting, flag)| setting.arg(flag));
        command.args(args)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Settings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut settings = Self::default();
        settings.update_from_arg_matches(matches)?;
        Ok(settings)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        Self::TABLE.iter().for_each(|setting| (setting.read)(self, matches));
        Ok(())
    }
}

/// Says which numbers a setting takes.
pub(super) fn within(
    value: u64,
    range: Option<RangeInclusive<u64>>,
    what: &str,
    shown: fn(u64) -> String,
) -> Result<(), String> {
    match range {
        Some(range) if !range.contains(&value) => {
            Err(format!("give a {what} from {} to {}", shown(*range.start()), shown(*range.end())))
        }
        _ => Ok(()),
    }
}
