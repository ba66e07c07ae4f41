//! A snapshot of an active run as a plain value, for the tables, scripts and
//! metrics.
//!
//! Numbers may be any, and texts are bounded but may hold control characters: what prints them
//! escapes them.

use serde::Serialize;
use std::collections::BTreeMap;
use system::named_enum;

named_enum! {
    /// The state of a run, as observed from outside.
    #[derive(Default)]
    ObservedState {
        #[default]
        Setup = "setup",
        Running = "running",
        /// Waiting for reports of open orders.
        Draining = "draining",
        Over = "over",
        /// The launcher was killed.
        Abandoned = "abandoned",
    }
}

impl ObservedState {
    /// Returns `true` if the run has ended, so that nothing more changes.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Over | Self::Abandoned)
    }
}

/// A row of `launcher watch` with the state and the rates of a role of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoleRow {
    /// Name of the role: `strategy-0`, `orchestrator`, `gateway-1`.
    pub role: String,
    pub thread: String,
    /// Process id of the role; `None` without a process.
    pub pid: Option<u32>,
    /// State of the role: `starting`, `ready`, `running`, `done`, `failed`; according to the kernel
    /// `stopped` or `gone`; `unreadable` if its status block is invalid.
    pub state: &'static str,
    pub core: Option<u32>,
    /// Number of orders that the role sent, dispatched or received.
    pub orders: u64,
    pub rate: Option<f64>,
    /// Number of reports that the role received, returned or sent.
    pub reports: u64,
    /// Number of orders in flight, by the role's own counters; `None` if it does not count them.
    pub in_flight: Option<u64>,
    /// Number of the role's pushes that found a ring full.
    pub full: u64,
    /// Longest gap between the role's duty cycles, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Time since the role's last duty cycle, in nanoseconds; `None` if it had none, or its
    /// heartbeat is in the future.
    pub heartbeat_age_ns: Option<u64>,
    pub counters: BTreeMap<&'static str, u64>,
}

/// A row of `launcher watch` with the fill of a ring of the run, in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RingRow {
    /// Name of the ring's segment within the run.
    pub ring: String,
    /// Number of messages in the ring; `None` if the technique does not show it to a reader.
    pub fill: Option<u64>,
    pub capacity: u64,
}

/// A row of `launcher watch` with the orders, position and kill switches of a strategy of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyRow {
    pub strategy: u16,
    pub incarnation: u16,
    /// Whether the launcher has fenced the strategy's dead incarnation.
    pub is_fenced: bool,
    /// Whether the strategy is a spare one that was not added.
    pub is_spare: bool,
    pub incidents: u64,
    pub quarantined: Option<String>,
    /// Number of orders of the strategy's dead incarnations that the engine refused after the
    /// fence. (`rejected` are orders that the engine's checks turned down.)
    pub refused: u64,
    /// Number of the strategy's reports that no running incarnation could take.
    pub orphaned: u64,
    /// Kill switches that apply to the strategy or to all, with their causes.
    pub killed: Vec<String>,
}

/// A row of `launcher watch` with a nonzero error counter of a role of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorRow {
    pub who: String,
    pub what: String,
    pub count: u64,
}

/// The state of an active run at one time, as `launcher watch` shows it on a screen or in a line of
/// JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    pub version: u32,
    pub run: String,
    pub folder: String,
    pub state: ObservedState,
    pub elapsed_ns: u64,
    pub isolation: String,
    /// Technique of the submit and completion hand-offs.
    pub technique: String,
    pub planned: u64,
    /// Number of orders sent, by the strategies' own counters; for a restarted strategy, since its
    /// restart.
    pub sent: u64,
    pub dispatched: u64,
    pub settled: u64,
    pub rejected: u64,
    pub rate: Option<f64>,
    pub roles: Vec<RoleRow>,
    pub rings: Vec<RingRow>,
    pub strategies: Vec<StrategyRow>,
    /// Kill switches that do not apply to a single strategy.
    pub switches: Vec<String>,
    pub errors: Vec<ErrorRow>,
}

impl Snapshot {
    /// The version of the JSON format of `launcher watch`'s snapshots.
    pub const VERSION: u32 = 2;
}
