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
//! default has a method of its name, so `settings.repeats()` is what the run uses. Defaults
//! that depend on the machine or on other settings are in [`crate::resolve()`]; the table
//! has a small machine's.

use super::table::settings;
use super::value::SettingValue;
use super::{
    Arrivals, ByStrategy, Choice, CoreList, CpuLimit, DelayRange, Factor, Faults, FileLimit, KindList,
    Limits, MemoryLimit, OptIn, Preset, Priority, ProcessLimit, StrategyKind, Switch, UserName, VenueKind,
};
use clap::{Arg, ArgMatches};
use protocol::plan::{
    Binary, ExchangePlacement, Idle, Isolation, IsolationLevels, Journaling, OnDeath, OrderSequence,
    Placement, Speculation, Stamps, Technique, Threading,
};
use protocol::wire::{MAX_STRATEGIES, MAX_VENUES};
use record::units::{Bytes, Count, Nanos};
use std::path::PathBuf;

/// The definition of one setting: its flag, its key and its field of [`Settings`].
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The setting's name in the config file; with `-` for `_` it is the flag.
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
/// Maximum working set of a strategy in bytes: a quarter of what its process may map.
const MAX_WORKING_SET: u64 = 256 << 20;

settings! {
    "Layout" {
        /// Use this technique for the two contended hand-offs
        technique "NAME": Technique = Technique::default();
        /// Separate strategies and engine at this level; several are assigned round-robin, and
        /// process*4 puts each four strategies of its level into one process, a group;
        /// process:closed closes the speculation of its processes
        isolation "LEVELS": IsolationLevels = IsolationLevels::uniform(Isolation::Process);
        /// Give each role a thread, or the whole engine one
        threading "HOW": Choice<Threading> = Choice::Auto;
        /// Put the engine's roles into these processes [default: engine, all in one]
        process "WHICH": Placement => Placement::Engine;
        /// Wait like this while a thread has nothing to do
        idle "HOW": Choice<Idle> = Choice::Auto;
        /// Run the roles' threads at a real-time priority, fifo:1 to fifo:99 [default: none]
        priority "fifo:N": Priority;
        /// Use only these of the allowed cores, e.g. 0,2-5 [default: all]
        cores "LIST": CoreList;
        /// Run N strategies, 1 to 256 [default: 8; 1 on small machines]
        strategies "N": Count = Count(1), in 1..=MAX_STRATEGIES as u64;
        /// Reserve N more strategies, which launcher add starts during the run [default: 0]
        spare_strategies "N": Count => Count(0), in 0..=MAX_STRATEGIES as u64 - 1;
        /// Run M venues, 1 to 64; each has a gateway for each credential
        venues "M": Count = Count(4), in 1..=MAX_VENUES as u64;
        /// Give every ring this many slots, a power of two up to 2^20
        capacity "SLOTS": Count = Count(8192);
        /// Assign strategy kinds round-robin: player, maker, taker, crosser, exec:COMMAND
        strategy "NAMES": KindList<StrategyKind> => KindList::default();
        /// Share N credentials among the strategies round-robin; each venue has a gateway for each
        credentials "N": Count => Count(1), in 1..=MAX_VENUES as u64;
        /// Run exchanges (venues of kind book) on their gateway's thread, or in a thread or process
        /// of their own [default: gateway]
        exchange "WHERE": ExchangePlacement;
        /// Publish best bid, offer and last trade on a board that strategies read [default: on with
        /// venues of kind book, unless all strategies are players]
        market_data "SWITCH": Switch;
        /// Assign venue kinds round-robin
        venue "NAMES": KindList<VenueKind> => KindList::default();
        /// Limit the open orders of each strategy [default: what the load keeps open, and more]
        max_open "N": Count = Count(65_536), in 1..=1 << 20;
        /// Place the strategies on K cores in turn [default: a core each, as far as there are
        /// cores]
        strategy_cores "K": Count, in 1..=MAX_STRATEGIES as u64;
        /// Pin each thread to its core; off: the kernel places and moves the threads
        pin "SWITCH": Switch => Switch::On;
        /// Run all processes from one executable, or each strategy's process from its own copy
        binary "WHICH": Binary => Binary::Shared;
        /// Map shared memory with huge pages, where the machine has them
        huge_pages "SWITCH": Switch => Switch::Off;
        /// Lock the memory of each role before the start
        lock_memory "SWITCH": Switch => Switch::Off;
    }
    "Load" {
        /// Send this many orders in total, e.g. 400k or 4M [default: 4M; 100k on small machines]
        orders "TOTAL": Count => Count(100_000), in 1..=1_000_000_000;
        /// Spread the orders over this time, e.g. 5s; stress ignores it [default: 10s; 5s on small
        /// machines]
        window "DUR": Nanos => Nanos(5 * S), in MS..=H;
        /// Let orders arrive like this over the window
        arrivals "KIND": Arrivals => Arrivals::Uniform;
        /// Offer orders to the strategies of one level at a time, and change the level after this
        /// time, e.g. 50ms: levels on the same cores do not wait for each other [default: all at
        /// all times]
        crossover "DUR": Nanos, in 10 * MS..=10 * S;
        /// Delay each order at its venue: 5ms, or uniform:5ms..500ms
        delay "RANGE": DelayRange = DelayRange { min_ns: 5 * MS, max_ns: 500 * MS }, in 0..=60 * S;
        /// Add work to the orchestrator for each order, e.g. 500ns
        work "DUR": Nanos = Nanos(0), in 0..=S;
        /// Let each strategy walk a heap of this size between its orders, 64 cache lines for each
        /// order: 0, 256KiB, 4MiB, 64MiB
        working_set "SIZE": Bytes => Bytes(0), in 0..=MAX_WORKING_SET;
        /// Seed everything that is drawn at random
        seed "N": Count = Count(1);
        /// Play a recorded flow instead of drawing one
        schedule "FILE": PathBuf;
        /// Put these orders into the books of every exchange at the start:
        /// order_id,side,price,quantity
        book "FILE": PathBuf;
        /// Apply orders at exchanges in this order [default: arrival; recorded where a recording is
        /// played against its book]
        sequence "ORDER": OrderSequence;
        /// Play the recorded flow X times as fast
        speed "X": Factor => Factor(1.0);
    }
    "Risk" {
        /// Read the traded instruments from a CSV file with the columns name, tick, lot, …
        /// [default: anything]
        instruments "FILE": PathBuf;
        /// Set a limit as [SCOPE.]CONTROL=VALUE, e.g. max-position=5k; may be repeated
        limits "LIST": Limits => Limits(Vec::new());
    }
    "Resources" {
        /// Limit the memory of each strategy, e.g. 512MiB, or of one, e.g. strategy-2=2GiB; may be
        /// repeated [default: 1GiB beyond what its process has mapped at the start; for a program
        /// half of the machine's memory]
        memory "SIZE": ByStrategy<MemoryLimit>;
        /// Limit the CPU time of each strategy, in CPUs, e.g. 1.5, or of one, e.g. strategy-2=0.5
        /// [default: none; 2 in a container]
        cpu "CPUS": ByStrategy<CpuLimit>;
        /// Limit the open files of each strategy, or of one, e.g. strategy-2=64 [default: the
        /// launcher's limit; 1024 in a container]
        files "N": ByStrategy<FileLimit>;
        /// Limit the processes and threads of each strategy, or of one, e.g. strategy-2=16
        /// [default: none; 128 in a container]
        processes "N": ByStrategy<ProcessLimit>;
        /// Run strategies as another user, all or one, e.g. strategy-2=nobody; only for root
        /// [default: the launcher's]
        user "NAME": ByStrategy<UserName>;
        /// Close the speculation of strategies' processes over indirect branches: the kernel issues
        /// barriers at each switch to and from them
        speculation "HOW": Speculation => Speculation::Open;
        /// Let strategies at level process leave core dumps, where the kernel writes them
        core_dumps "SWITCH": OptIn => OptIn(false);
    }
    "Containment" {
        /// Keep a write-ahead log of engine and exchanges: none, process, group or each
        journal "HOW": Journaling => Journaling::None;
        /// Choose what happens when a strategy, gateway, exchange or the engine dies or hangs, or a
        /// strategy is quarantined; at level thread, when its thread panics, ends or hangs
        on_death "HOW": OnDeath => OnDeath::Stop;
        /// Consider a thread hung after this long without a duty cycle
        liveness "DUR": Nanos => Nanos(10 * S), in 20 * MS..=H;
        /// Wait this long for an answer of a venue that is checked [default: longest delay + 1s]
        venue_timeout "DUR": Nanos, in MS..=H;
        /// Inject a fault; may be repeated; launcher help faults shows the syntax
        fault "SPEC": Faults => Faults(Vec::new());
    }
    "Run" {
        /// Stamp all points of an order's path, or only the ends that rt_venue needs
        stamps "WHICH": Stamps => Stamps::All;
        // ANCHOR: page
        /// Run R times, one after the other
        repeats "R": Count = Count(1), in 1..=10_000;
        // ANCHOR_END: page
        /// Start from a named set of settings, which the others override
        preset "NAME": Preset;
        /// Create the run's folder in this directory
        out "DIR": PathBuf = PathBuf::from("runs");
    }
}
