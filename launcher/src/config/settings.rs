//! The table of settings. **To add one, add a row here**: it defines the flag with its help, the
//! config key, saving and reading, merging of command line, file and preset, the default and the
//! range.
//!
//! ```text
//! /// Help [default: in words, where the value is not plain]
//! key "PLACEHOLDER": Type = DEFAULT, in RANGE;      always written into saved settings
//! key "PLACEHOLDER": Type => DEFAULT, in RANGE;     written only if a user set it
//! key "PLACEHOLDER": Type;                          has no default: unset has a meaning of its own
//! ```
//!
//! Values are parsed and formatted by [`SettingValue`](super::value::SettingValue). A row with a
//! default has a method of its name, so `settings.repeat_schedule()` is what the run uses. Defaults
//! that depend on the machine or on other settings are in [`crate::planner::resolve`]; the table
//! has a small machine's.

use super::table::settings;
use super::value::SettingValue;
use super::{
    Arrivals, Choice, CoreList, DelayRange, Factor, Faults, KindList, Limits, Preset, Priority, SpillBudget,
    Strategies, Switch, VenueLimit, Venues,
};
use analysis::units::{Count, Nanos};
use clap::{Arg, ArgMatches};
use protocol::plan::{
    ExchangePlacement, Idle, Isolation, Journalling, OnDeath, Placement, Sequence, Stamps, Technique,
    Threading,
};
use protocol::wire::{MAX_STRATEGIES, MAX_VENUES};
use std::path::PathBuf;

/// A row of the table: a setting as a flag, a key, and a field of [`Settings`].
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

/// A millisecond, a second and an hour in nanoseconds.
const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const H: u64 = 3_600 * S;

settings! {
    "Layout" {
        /// What carries the two contended hand-offs
        technique "NAME": Technique = Technique::default();
        /// What stands between strategies and engine
        isolation "LEVEL": Isolation = Isolation::Process;
        /// A thread for each role, or one for the engine
        threading "HOW": Choice<Threading> = Choice::Auto;
        /// Which processes the engine's roles are in [default: engine, all in one]
        process "WHICH": Placement => Placement::Engine;
        /// What a thread does when there is nothing to do
        idle "HOW": Choice<Idle> = Choice::Auto;
        /// Real-time priority of the roles' threads, fifo:N with N from 1 to 99 [default: none]
        priority "fifo:N": Priority;
        /// Cores to use, of the allowed ones, e.g. 0,2-5 [default: all]
        cores "LIST": CoreList;
        /// Strategies, 1 to 256 [default: 8; 1 on small machines]
        strategies "N": Count = Count(1), in 1..=MAX_STRATEGIES as u64;
        /// Venues, 1 to 64; each has its gateway
        venues "M": Count = Count(4), in 1..=MAX_VENUES as u64;
        /// Slots of every ring, a power of two up to 2^20
        capacity "SLOTS": Count = Count(8192);
        /// Strategy kinds, assigned round-robin: player, maker, taker, exec:COMMAND
        strategy "NAMES": KindList<Strategies> => KindList::default();
        /// Credentials: strategies share them in turn, and each venue has a gateway for each
        credentials "N": Count => Count(1);
        /// Where exchanges run, the venues of kind book: on their gateway's thread, a thread or a
        /// process of their own [default: gateway]
        exchange "WHERE": ExchangePlacement;
        /// Exchanges write best bid, offer and last trade to a board that strategies read [default:
        /// on with venues of kind book, unless all strategies are players]
        market_data "SWITCH": Switch;
        /// What the venues are, in turn
        venue "NAMES": KindList<Venues> => KindList::default();
        /// Most orders that a strategy has open at once [default: what the load keeps open, and
        /// more]
        max_open "N": Count = Count(65_536), in 1..=1 << 20;
        /// Limit the orders that are open at one gateway; more are rejected as venue-busy [default:
        /// no limit]
        max_waiting "N": Count, in 1..=1 << 20;
    }
    "Load" {
        /// Orders of all strategies together, e.g. 400k or 4M [default: 4M; 100k on small machines]
        orders "TOTAL": Count => Count(100_000), in 1..=1_000_000_000;
        /// Time over which the orders are due, e.g. 5s; stress ignores it [default: 10s; 5s on
        /// small machines]
        window "DUR": Nanos => Nanos(5 * S), in MS..=H;
        /// Repeat the schedule N times
        laps "N": Count => Count(1), in 1..=1_000_000;
        /// How orders arrive over the window
        arrivals "KIND": Arrivals => Arrivals::Uniform;
        /// Venue delay D of an order, or fixed:5ms
        delay "RANGE": DelayRange = DelayRange { min_ns: 5 * MS, max_ns: 500 * MS }, in 0..=60 * S;
        /// Extra work of the orchestrator for each order, e.g. 500ns
        work "DUR": Nanos = Nanos(0), in 0..=S;
        /// Seed of everything that is drawn at random
        seed "N": Count = Count(1);
        /// Recorded flow to play instead of drawing one
        schedule "FILE": PathBuf;
        /// Orders that rest in the books of every exchange at the start:
        /// order_id,side,price,quantity
        book "FILE": PathBuf;
        /// In which order exchanges carry orders out [default: arrival; recorded where a recording
        /// is played against its book]
        sequence "ORDER": Sequence;
        /// Plays the recorded flow X times as fast
        speed "X": Factor => Factor(1.0);
    }
    "Risk" {
        /// What is traded: CSV with the columns name, tick, lot, … [default: anything]
        instruments "FILE": PathBuf;
        /// Limits as [SCOPE.]CONTROL=VALUE, for example max-position=5k; may be given several times
        limits "LIST": Limits => Limits(Vec::new());
    }
    "Containment" {
        /// Write-ahead log for engine and exchanges: none, process, group or each
        journal "HOW": Journalling => Journalling::None;
        /// What happens when a strategy, a gateway, an exchange or the engine dies, or hangs, or a
        /// strategy is quarantined
        on_death "HOW": OnDeath => OnDeath::Stop;
        /// Liveness timeout: a thread that completes no duty cycle for this long is considered hung
        liveness "DUR": Nanos => Nanos(10 * S), in 20 * MS..=H;
        /// How long a venue may say nothing about an order, where it is checked [default: longest
        /// delay + 1s]
        venue_timeout "DUR": Nanos, in MS..=H;
        /// Messages that a venue takes, e.g. 1000/s: more wait; 1000/s,reject: more are rejected
        /// [default: any]
        venue_limit "N/s": VenueLimit;
        /// A fault on purpose; may be given several times; launcher run --help shows how it is
        /// written
        fault "SPEC": Faults => Faults(Vec::new());
    }
    "Run" {
        /// Points of an order's way to stamp: all, or the ends that rt_venue needs
        stamps "WHICH": Stamps => Stamps::All;
        /// Moves stamp logs to disk while the run lasts, through so much of /dev/shm, e.g. 512MiB
        spill "ROOM": SpillBudget => SpillBudget::Off;
        /// Runs, one after the other
        repeats "R": Count = Count(1), in 1..=10_000;
        /// A named set of settings that the others override
        preset "NAME": Preset;
        /// Folder in which the run's own folder is made
        out "DIR": PathBuf = PathBuf::from("runs");
    }
}
