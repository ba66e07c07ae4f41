//! The flags of the settings, and the flags that several commands share.

use super::{Setting, Settings, Slower, UsageError};
use clap::{Arg, ArgMatches, Args, Command, ValueEnum};
use record::units::Nanos;
use std::path::PathBuf;
use std::sync::LazyLock;

/// How much of a report is printed: the first screen, or all of it. Files, page and JSON have all
/// of it.
#[derive(ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReportLength {
    /// The answer, one table, and the next commands
    #[default]
    Short,
    /// Every table and note
    Full,
}

/// Command-line flags that several commands have in addition to the run's settings, such as
/// `--config` and `--json`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct Common {
    /// Read settings from a YAML file, `key: value`
    #[arg(long, value_name = "FILE", help_heading = "Run")]
    pub config: Option<PathBuf>,
    /// Print JSON on stdout instead of tables
    #[arg(long, help_heading = "Run")]
    pub json: bool,
    /// Print the answer on one screen, or every table and note
    #[arg(long, value_enum, value_name = "LENGTH", default_value_t, help_heading = "Run")]
    pub report: ReportLength,
    /// Continue if the kernel lacks a sandbox feature
    #[arg(long, help_heading = "Run")]
    pub allow_weaker_sandbox: bool,
    /// Exit with code 0 even if a fault never fired
    #[arg(long, help_heading = "Containment")]
    pub allow_unfired: bool,
    /// Wait this long for the processes to become ready
    #[arg(long, value_name = "DUR", default_value = "30s", help_heading = "Run")]
    pub start_timeout: Nanos,
}

/// The command-line flags of `launcher run`.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct RunCommand {
    /// The flags of one run.
    #[command(flatten)]
    pub run: RunFlags,
    /// Accept strategies from another host at NAME@HOST:PORT (see docs/src/remote.md)
    #[arg(long, value_name = "NAME@HOST:PORT", help_heading = "Layout")]
    pub remote: Vec<String>,
    /// The default: a fault that never fired is exit code 1. Accepted for older scripts
    #[arg(long, hide = true, conflicts_with = "allow_unfired")]
    pub strict_faults: bool,
    /// Print the plan and start nothing
    #[arg(long, help_heading = "Run")]
    pub dry_run: bool,
    /// Print only the run's folder and errors; with --json the summary
    #[arg(long, short, help_heading = "Run")]
    pub quiet: bool,
    /// Compare with the runs of a folder afterwards
    #[arg(long, value_name = "RUN", help_heading = "Run", conflicts_with = "json")]
    pub baseline: Option<PathBuf>,
    /// Exit with code 1 if rt_venue is slower than the baseline by more than SHARE, with 3 if that
    /// cannot be told
    #[arg(long, value_name = "SHARE", help_heading = "Run", requires = "baseline")]
    pub fail_if_slower: Option<Slower>,
}

/// The command-line flags for a run's settings and the shared flags, for one run or for both sides
/// of a comparison.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct RunFlags {
    /// The settings, which a config file can also have.
    #[command(flatten)]
    pub settings: Settings,
    /// The shared flags.
    #[command(flatten)]
    pub common: Common,
}

impl RunFlags {
    /// Returns the settings merged from three sources: the command line overrides the config file,
    /// which overrides the preset.
    pub fn settings(&self) -> Result<Settings, UsageError> {
        let file = match &self.common.config {
            Some(path) => Settings::read(path)?,
            None => Settings::default(),
        };
        Ok(self.settings.clone().over(file).with_preset())
    }
}

static FLAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| Settings::KEYS.iter().map(|key| key.replace('_', "-")).collect());

impl Setting {
    /// Returns the name of the setting's flag, without dashes.
    pub(super) fn flag_name(&self) -> &'static str {
        let place = Settings::KEYS.iter().position(|key| *key == self.key);
        place.and_then(|place| FLAGS.get(place)).map_or(self.key, String::as_str)
    }

    /// Builds the clap flag. The default is appended to the help unless the help already describes
    /// it.
    fn arg(&self) -> Arg {
        let help = self.help.trim();
        let help = match (self.default)().filter(|text| !text.is_empty() && !help.contains("[default:")) {
            Some(text) => format!("{help} [default: {text}]"),
            None => help.to_owned(),
        };
        let arg = Arg::new(self.key).long(self.flag_name()).value_name(self.placeholder).help(help);
        (self.flag)(arg.help_heading(self.heading))
    }
}

impl Args for Settings {
    fn augment_args(command: Command) -> Command {
        command.args(Self::TABLE.iter().map(Setting::arg))
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
