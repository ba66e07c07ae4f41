//! Settings: what a user asked for, before anything is decided.
//!
//! Every field is optional. They are merged command line over config file over preset ([`Settings::over`]); what
//! is still open then, the planner decides by what the machine can carry ([`crate::planner::resolve`]).

pub mod delay;
pub mod fault;
mod file;
mod flags;
pub mod input;
pub mod instruments;
mod limit;
pub mod limits;
mod list_flag;
pub mod own;
mod priority;
pub mod program;
pub mod remote;
mod size;
mod slower;
mod spill;
pub mod value;

pub use fault::{FaultSpec, Faults};
pub use file::CONFIG_FILE;
pub use flags::{Common, RunCommand, RunFlags};
pub use limit::VenueLimit;
pub use limits::Limits;
use own::KindsParser;
pub use own::{Kinds, StrategyName, VenueName};
pub use priority::Priority;
pub use size::Size;
pub use slower::Slower;
pub use spill::SpillRoom;
pub use strategy::schedule::{Arrivals, DelayRange};
pub use value::{Choice, CoreList, Factor, Preset, Switch};

use analysis::units::{Count, Nanos};
use clap::Args;
use clap::builder::TypedValueParser;
use protocol::plan::{
    ExchangePlacement, Idle, Isolation, Journalling, OnDeath, Placement, Sequence, Stamps, Technique,
    Threading,
};
use std::path::PathBuf;
use thiserror::Error;
use value::{Value, named};

/// Something the user asked for that cannot be: one or two lines that name the flag or key and the way out.
/// The launcher prints it and exits with 2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// Reads a value with its [`Value::parse`], for clap.
fn parsed<T: Value + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    clap::builder::StringValueParser::new().try_map(|text| T::parse(&text))
}

/// What can be set, on the command line or under the same name in the config file.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// What carries the two contended hand-offs [default: spsc-mux]
    #[arg(long, value_name = "NAME", value_parser = named::<Technique>(), help_heading = "Layout")]
    pub technique: Option<Technique>,
    /// What stands between strategies and engine [default: process]
    #[arg(long, value_name = "LEVEL", value_parser = named::<Isolation>(), help_heading = "Layout")]
    pub isolation: Option<Isolation>,
    /// A thread for each role, or one for the engine [default: auto]
    #[arg(long, value_name = "HOW", value_parser = named::<Choice<Threading>>(), help_heading = "Layout")]
    pub threading: Option<Choice<Threading>>,
    /// Which processes the engine's roles are in [default: engine, all in one]
    #[arg(long, value_name = "WHICH", value_parser = named::<Placement>(), help_heading = "Layout")]
    pub process: Option<Placement>,
    /// What a thread does when there is nothing to do [default: auto]
    #[arg(long, value_name = "HOW", value_parser = named::<Choice<Idle>>(), help_heading = "Layout")]
    pub idle: Option<Choice<Idle>>,
    /// Real-time priority of the roles' threads, fifo:N with N from 1 to 99 [default: none]
    #[arg(long, value_name = "fifo:N", value_parser = parsed::<Priority>(), help_heading = "Layout")]
    pub priority: Option<Priority>,
    /// Cores to use, of the allowed ones, e.g. 0,2-5 [default: all]
    #[arg(long, value_name = "LIST", value_parser = parsed::<CoreList>(), help_heading = "Layout")]
    pub cores: Option<CoreList>,
    /// Strategies, 1 to 256 [default: 8; 1 on small machines]
    #[arg(long, value_name = "N", value_parser = parsed::<Count>(), help_heading = "Layout")]
    pub strategies: Option<Count>,
    /// Venues, 1 to 64; each has its gateway [default: 4]
    #[arg(long, value_name = "M", value_parser = parsed::<Count>(), help_heading = "Layout")]
    pub venues: Option<Count>,
    /// Slots of every ring, a power of two up to 2^20 [default: 8192]
    #[arg(long, value_name = "SLOTS", value_parser = parsed::<Count>(), help_heading = "Layout")]
    pub capacity: Option<Count>,
    /// Strategy kinds, assigned round-robin: player, maker, taker, exec:COMMAND [default: player]
    #[arg(long, value_name = "NAMES", value_parser = KindsParser::<StrategyName>::default(), help_heading = "Layout")]
    pub strategy: Option<Kinds<StrategyName>>,
    /// Credentials: strategies share them in turn, and each venue has a gateway for each [default: 1]
    #[arg(long, value_name = "N", value_parser = parsed::<Count>(), help_heading = "Layout")]
    pub credentials: Option<Count>,
    /// Where exchanges run, the venues of kind book: on their gateway's thread, a thread or a process of their own [default: gateway]
    #[arg(long, value_name = "WHERE", value_parser = named::<ExchangePlacement>(), help_heading = "Layout")]
    pub exchange: Option<ExchangePlacement>,
    /// Exchanges write best bid, offer and last trade to a board that strategies read [default: on with venues of kind book, unless all strategies are players]
    #[arg(long, value_name = "SWITCH", value_parser = named::<Switch>(), help_heading = "Layout")]
    pub market_data: Option<Switch>,
    /// What the venues are, in turn [default: delay]
    #[arg(long, value_name = "NAMES", value_parser = KindsParser::<VenueName>::default(), help_heading = "Layout")]
    pub venue: Option<Kinds<VenueName>>,
    /// Most orders that a strategy has open at once [default: what the load keeps open, and more]
    #[arg(long, value_name = "N", value_parser = parsed::<Count>(), help_heading = "Layout")]
    pub max_open: Option<Count>,
    /// Limit the orders that are open at one gateway; more are rejected as venue-busy [default: no limit]
    #[arg(long, value_name = "N", value_parser = parsed::<Count>(), help_heading = "Layout")]
    pub max_waiting: Option<Count>,

    /// Orders of all strategies together, e.g. 400k or 4M [default: 4M; 100k on small machines]
    #[arg(long, value_name = "TOTAL", value_parser = parsed::<Count>(), help_heading = "Load")]
    pub orders: Option<Count>,
    /// Time over which the orders are due, e.g. 5s; stress ignores it [default: 10s; 5s on small machines]
    #[arg(long, value_name = "DUR", value_parser = parsed::<Nanos>(), help_heading = "Load")]
    pub window: Option<Nanos>,
    /// Repeat the schedule N times [default: 1]
    #[arg(long, value_name = "N", value_parser = parsed::<Count>(), help_heading = "Load")]
    pub laps: Option<Count>,
    /// How orders arrive over the window [default: uniform]
    #[arg(long, value_name = "KIND", value_parser = named::<Arrivals>(), help_heading = "Load")]
    pub arrivals: Option<Arrivals>,
    /// Venue delay D of an order, or fixed:5ms [default: uniform:5ms..500ms]
    #[arg(long, value_name = "RANGE", value_parser = parsed::<DelayRange>(), help_heading = "Load")]
    pub delay: Option<DelayRange>,
    /// Extra work of the orchestrator for each order, e.g. 500ns [default: 0ns]
    #[arg(long, value_name = "DUR", value_parser = parsed::<Nanos>(), help_heading = "Load")]
    pub work: Option<Nanos>,
    /// Points of an order's way to stamp: all, or the ends that rt_venue needs [default: all]
    #[arg(long, value_name = "WHICH", value_parser = named::<Stamps>(), help_heading = "Run")]
    pub stamps: Option<Stamps>,
    /// Seed of everything that is drawn at random [default: 1]
    #[arg(long, value_name = "N", value_parser = parsed::<Count>(), help_heading = "Load")]
    pub seed: Option<Count>,
    /// Recorded flow to play instead of drawing one
    #[arg(long, value_name = "FILE", help_heading = "Load")]
    pub schedule: Option<PathBuf>,
    /// Orders that rest in the books of every exchange at the start: order_id,side,price,quantity
    #[arg(long, value_name = "FILE", help_heading = "Load")]
    pub book: Option<PathBuf>,
    /// In which order exchanges carry orders out [default: arrival; recorded where a recording is played against its book]
    #[arg(long, value_name = "ORDER", value_parser = named::<Sequence>(), help_heading = "Load")]
    pub sequence: Option<Sequence>,
    /// Plays the recorded flow X times as fast [default: 1]
    #[arg(long, value_name = "X", value_parser = parsed::<Factor>(), help_heading = "Load")]
    pub speed: Option<Factor>,

    /// What is traded: CSV with the columns name, tick, lot, … [default: anything]
    #[arg(long, value_name = "FILE", help_heading = "Risk")]
    pub instruments: Option<PathBuf>,
    /// Limits of the pre-trade controls.
    #[command(flatten)]
    pub limits: Option<Limits>,

    /// Write-ahead log for engine and exchanges: none, process, group or each [default: none]
    #[arg(long, value_name = "HOW", value_parser = named::<Journalling>(), help_heading = "Containment")]
    pub journal: Option<Journalling>,
    /// What happens when a strategy, a gateway, an exchange or the engine dies, or hangs, or a strategy is quarantined [default: stop]
    #[arg(long, value_name = "HOW", value_parser = named::<OnDeath>(), help_heading = "Containment")]
    pub on_death: Option<OnDeath>,
    /// Liveness timeout: a thread that completes no duty cycle for this long is considered hung [default: 10s]
    #[arg(long, value_name = "DUR", value_parser = parsed::<Nanos>(), help_heading = "Containment")]
    pub liveness: Option<Nanos>,
    /// How long a venue may say nothing about an order, where it is checked [default: longest delay + 1s]
    #[arg(long, value_name = "DUR", value_parser = parsed::<Nanos>(), help_heading = "Containment")]
    pub venue_timeout: Option<Nanos>,
    /// Messages that a venue takes, e.g. 1000/s: more wait; 1000/s,reject: more are rejected [default: any]
    #[arg(long, value_name = "N/s", value_parser = parsed::<VenueLimit>(), help_heading = "Containment")]
    pub venue_limit: Option<VenueLimit>,
    /// Faults on purpose.
    #[command(flatten)]
    pub fault: Option<Faults>,

    /// Moves stamp logs to disk while the run lasts, through so much of /dev/shm, e.g. 512MiB [default: off]
    #[arg(long, value_name = "ROOM", value_parser = parsed::<SpillRoom>(), num_args = 0..=1, require_equals = true, default_missing_value = "on", help_heading = "Run")]
    pub spill: Option<SpillRoom>,
    /// Runs, one after the other [default: 1]
    #[arg(long, value_name = "R", value_parser = parsed::<Count>(), help_heading = "Run")]
    pub repeats: Option<Count>,
    /// A named set of settings that the others override
    #[arg(long, value_name = "NAME", value_parser = named::<Preset>(), help_heading = "Run")]
    pub preset: Option<Preset>,
    /// Folder in which the run's own folder is made [default: runs]
    #[arg(long, value_name = "DIR", help_heading = "Run")]
    pub out: Option<PathBuf>,
}

/// Writes what has to name every field once, so that none can be forgotten: the compiler sees them all.
macro_rules! fields {
    ($($field:ident),+ $(,)?) => {
        impl Settings {
            /// The names of all settings: keys of the config file and, with `-` for `_`, flags.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($field)),+];

            /// Sets one from its text. `None`: there is no such key.
            pub fn set(&mut self, key: &str, text: &str) -> Option<Result<(), String>> {
                match key {
                    $(stringify!($field) => Some(Value::parse(text).map(|value| self.$field = Some(value))),)+
                    _ => None,
                }
            }

            /// What is set, as text, in the order of [`Settings::KEYS`].
            pub fn texts(&self) -> Vec<(&'static str, String)> {
                let Settings { $($field),+ } = self;
                let mut texts = Vec::new();
                $(if let Some(value) = $field {
                    texts.push((stringify!($field), value.text()));
                })+
                texts
            }

            /// What is set, as a saved record holds it.
            pub fn to_texts(&self) -> analysis::experiment::Texts {
                self.texts().into_iter().map(|(key, text)| (key.to_owned(), text)).collect()
            }

            /// What a saved record holds.
            ///
            /// # Errors
            /// A key that is no setting, or a text that its setting does not take.
            pub fn from_texts(texts: &analysis::experiment::Texts) -> Result<Self, UsageError> {
                let mut settings = Settings::default();
                for (key, text) in texts {
                    match settings.set(key, text) {
                        Some(Ok(())) => {}
                        Some(Err(message)) => return Err(UsageError(format!("{key}: {message}"))),
                        None => return Err(UsageError(format!("there is no setting {key:?}"))),
                    }
                }
                Ok(settings)
            }

            /// Takes what is set here and the rest from `below`.
            fn or(self, below: Settings) -> Settings {
                Settings { $($field: self.$field.or(below.$field)),+ }
            }
        }
    };
}

fields! {
    technique, isolation, threading, process, idle, priority, cores, strategies, venues, strategy, venue, credentials, exchange, market_data, capacity, max_open,
    max_waiting, orders, window, laps, arrivals, delay, work, stamps, seed, schedule, book, sequence, speed,
    instruments, limits, journal, on_death, liveness, venue_timeout, venue_limit, fault,
    spill, repeats, preset, out,
}

impl Settings {
    /// These settings over others: what is set here wins.
    ///
    /// A recorded flow and a drawn one exclude each other, so asking for one here also drops the other below:
    /// `--schedule` goes with a config file that says `window`.
    pub fn over(self, mut below: Settings) -> Settings {
        if self.schedule.is_some() {
            below = Settings { orders: None, window: None, laps: None, arrivals: None, ..below };
        } else if self.orders.is_some() || self.window.is_some() || self.arrivals.is_some() {
            below = Settings { schedule: None, speed: None, ..below };
        }
        self.or(below)
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
        fn maybe<T: value::Named + core::fmt::Debug>() -> impl Strategy<Value = Option<T>> {
            proptest::option::of(proptest::sample::select(T::names()).prop_map(|name| T::of(name).unwrap()))
        }
        fn kinds<T: value::Named + core::fmt::Debug>() -> impl Strategy<Value = Option<Kinds<T>>> {
            let one = || proptest::sample::select(T::names()).prop_map(|name| T::of(name).unwrap());
            proptest::option::of(proptest::collection::vec(one(), 1..4).prop_map(Kinds))
        }
        let count = || proptest::option::of(any::<u64>().prop_map(Count));
        let time = || proptest::option::of(any::<u64>().prop_map(Nanos));
        let path = || proptest::option::of("[ -~µ]{1,20}".prop_map(PathBuf::from));
        let cores = proptest::option::of(
            proptest::collection::btree_set(0u32..200, 1..20).prop_map(|c| CoreList(c.into_iter().collect())),
        );
        let delay = proptest::option::of(
            any::<(u64, u64)>().prop_map(|(a, b)| DelayRange { min_ns: a.min(b), max_ns: a.max(b) }),
        );
        let speed = proptest::option::of((1e-6f64..1e6).prop_map(Factor));
        (
            (maybe(), maybe(), maybe(), maybe(), maybe(), maybe(), maybe(), maybe()),
            (count(), count(), count(), count(), count(), count(), count(), count()),
            (time(), time(), path(), path(), cores, delay, speed),
            (
                time(),
                proptest::option::of(fault::tests::any_faults()),
                maybe(),
                kinds(),
                kinds(),
                count(),
                maybe(),
                path(),
                maybe(),
                proptest::option::of(limits::tests::any_limits()),
                path(),
                (
                    time(),
                    proptest::option::of(
                        (1u32.., any::<bool>())
                            .prop_map(|(per_second, rejects)| VenueLimit { per_second, rejects }),
                    ),
                    maybe(),
                    maybe(),
                    proptest::option::of((1u8..=99).prop_map(|fifo| Priority::new(fifo).unwrap())),
                    count(),
                    proptest::option::of((1u32..).prop_map(SpillRoom::MiB)),
                ),
            ),
        )
            .prop_map(|(names, counts, rest, containment)| Settings {
                technique: names.0,
                isolation: names.1,
                threading: names.2,
                idle: names.3,
                arrivals: names.4,
                preset: names.5,
                on_death: names.6,
                process: names.7,
                liveness: containment.0,
                venue_timeout: containment.11.0,
                venue_limit: containment.11.1,
                journal: containment.11.3,
                priority: containment.11.4,
                laps: containment.11.5,
                spill: containment.11.6,
                fault: containment.1,
                stamps: containment.2,
                strategy: containment.3,
                venue: containment.4,
                credentials: containment.5,
                exchange: containment.6,
                book: containment.7,
                sequence: containment.8,
                market_data: containment.11.2,
                limits: containment.9,
                instruments: containment.10,
                strategies: counts.0,
                venues: counts.1,
                capacity: counts.2,
                max_open: counts.3,
                max_waiting: counts.7,
                orders: counts.4,
                seed: counts.5,
                repeats: counts.6,
                window: rest.0,
                work: rest.1,
                schedule: rest.2,
                out: rest.3,
                cores: rest.4,
                delay: rest.5,
                speed: rest.6,
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
