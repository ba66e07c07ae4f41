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

/// State and rates of a role of the watched run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoleRow {
    /// `strategy-0`, `orchestrator`, `gateway-1`.
    pub role: String,
    pub thread: String,
    /// Process id of the role; `None` without a process.
    pub pid: Option<u32>,
    /// `starting`, `ready`, `running`, `done`, `failed`; according to the kernel `stopped` or
    /// `gone`; `unreadable` if its status block is invalid.
    pub state: &'static str,
    pub core: Option<u32>,
    /// Orders that the role sent, dispatched or received.
    pub orders: u64,
    pub rate: Option<f64>,
    /// Reports that the role received, returned or sent.
    pub reports: u64,
    /// Orders in flight, by the role's own counters; `None` if it does not count them.
    pub in_flight: Option<u64>,
    /// Pushes that found a ring full.
    pub full: u64,
    /// Longest gap between duty cycles, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Time since the role's last duty cycle, in nanoseconds; `None` if it had none, or claims one
    /// in the future.
    pub heartbeat_age_ns: Option<u64>,
    pub counters: BTreeMap<&'static str, u64>,
}

/// Fill of a ring of the watched run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RingRow {
    /// Name of its segment within the run.
    pub ring: String,
    /// Messages in the ring; `None` if a reader cannot see that with its technique.
    pub fill: Option<u64>,
    pub capacity: u64,
}

/// Orders, position and switches of a strategy of the watched run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyRow {
    pub strategy: u16,
    pub incarnation: u16,
    /// The launcher has fenced the dead incarnation.
    pub is_fenced: bool,
    /// It is a spare strategy that was not added.
    pub is_spare: bool,
    pub incidents: u64,
    pub quarantined: Option<String>,
    /// Orders of its dead incarnations that the engine refused after the fence. (`rejected` are
    /// orders that the engine's checks turned down.)
    pub refused: u64,
    /// Reports that no running incarnation could take.
    pub orphaned: u64,
    /// Kill switches that apply to the strategy or to all, with their causes.
    pub killed: Vec<String>,
}

/// An error that a role of the watched run counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorRow {
    pub who: String,
    pub what: String,
    pub count: u64,
}

/// A look at an active run: what a screen of `watch` and a line of its JSON show.
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
    /// Orders sent, by the strategies' own counters; of a restarted strategy, since its restart.
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
    pub const VERSION: u32 = 2;
}
