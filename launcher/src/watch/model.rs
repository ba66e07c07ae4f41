//! A snapshot of an active run as a plain value, for the tables and scripts.
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

/// A row of `launcher watch`: a role's state and counters.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoleRow {
    /// `strategy-0`, `orchestrator`, `gateway-1`.
    pub role: String,
    /// Name of its thread.
    pub thread: String,
    /// Process id of the role; `None` without a process.
    pub pid: Option<u32>,
    /// `starting`, `ready`, `running`, `done`, `failed`; according to the kernel `stopped` or
    /// `gone`; `unreadable` if its status block is invalid.
    pub state: &'static str,
    /// Core to which the plan pins the thread.
    pub core: Option<u32>,
    /// Orders that the role sent, dispatched or received.
    pub orders: u64,
    /// Orders a second since the last poll.
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
    /// All its counters by name.
    pub counters: BTreeMap<&'static str, u64>,
}

/// A row of `launcher watch`: a ring of the run with its occupancy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RingRow {
    /// Name of its segment within the run.
    pub ring: String,
    /// Messages in the ring; `None` if a reader cannot see that with its technique.
    pub fill: Option<u64>,
    /// Capacity in messages.
    pub capacity: u64,
}

/// A row of `launcher watch`: a strategy's incarnation and kill switches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyRow {
    pub strategy: u16,
    /// Number of the incarnation, from 0.
    pub incarnation: u16,
    /// The launcher has fenced the dead incarnation.
    pub is_fenced: bool,
    /// Number of deaths.
    pub incidents: u64,
    /// Reason of its quarantine.
    pub quarantined: Option<String>,
    /// Refused orders of dead incarnations.
    pub refused: u64,
    /// Reports that no running incarnation could take.
    pub orphaned: u64,
    /// Kill switches that apply to the strategy or to all, with their causes.
    pub killed: Vec<String>,
}

/// A row of `launcher watch`: an error message and how often it occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorRow {
    pub who: String,
    pub what: String,
    pub count: u64,
}

/// A snapshot of an active run for `launcher watch`: its roles, rings, strategies and errors.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    pub version: u32,
    pub run: String,
    pub folder: String,
    pub state: ObservedState,
    /// Time since the start, in nanoseconds.
    pub elapsed_ns: u64,
    /// Isolation level of the run.
    pub isolation: String,
    /// Technique of the submit and completion hand-offs.
    pub technique: String,
    pub planned: u64,
    /// Orders sent, by the strategies' own counters; of a restarted strategy, since its restart.
    pub sent: u64,
    /// Orders dispatched by the engine.
    pub dispatched: u64,
    /// Orders settled by the engine.
    pub settled: u64,
    pub rejected: u64,
    /// Orders dispatched a second since the last poll.
    pub rate: Option<f64>,
    pub roles: Vec<RoleRow>,
    pub rings: Vec<RingRow>,
    pub strategies: Vec<StrategyRow>,
    /// Kill switches that do not apply to a single strategy.
    pub switches: Vec<String>,
    pub errors: Vec<ErrorRow>,
}

impl Snapshot {
    /// Version of the snapshot's JSON format.
    pub const VERSION: u32 = 2;
}
