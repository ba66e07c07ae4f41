//! One observation of an active run as a plain value, for the view, scripts and metrics.
//!
//! Texts in it are printable and short, whoever wrote them; numbers may be any.

use super::positions::Position;
use super::stages::StageLine;
use serde::Serialize;
use std::collections::BTreeMap;

/// Where a run is, as somebody outside sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Life {
    #[default]
    Setup,
    Running,
    /// Open orders are still collected.
    Draining,
    Over,
    /// Its launcher was killed, and the run with it.
    Abandoned,
}

impl Life {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Over => "over",
            Self::Abandoned => "abandoned",
        }
    }

    /// Whether nothing more will change.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Over | Self::Abandoned)
    }
}

/// One role: what it says of itself, and what the kernel says of its thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RoleLine {
    /// `strategy-0`, `orchestrator`, `gateway-1`.
    pub role: String,
    /// The thread that it runs on.
    pub thread: String,
    /// Its process; `None`: there is none now.
    pub pid: Option<u32>,
    /// `starting`, `ready`, `running`, `done`, `failed`; by the kernel's word `stopped` or `gone`;
    /// `unreadable`: where its status was stands something else.
    pub state: &'static str,
    /// The core that the kernel last had it on.
    pub core: Option<u32>,
    /// Whether it is pinned to that core alone, by the plan.
    pub is_pinned: bool,
    /// Orders a second since the last look: sent, dispatched or received.
    pub rate: Option<f64>,
    /// Orders that are with it now, by its own counters; `None`: it does not count them.
    pub in_flight: Option<u64>,
    /// Pushes that found a ring full.
    pub full: u64,
    /// The longest time away from its duty cycles, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Gaps in its log so far, as far as it was read.
    pub gaps: u64,
    /// Since its last duty cycle, in nanoseconds; `None`: it has had none, or claims one in the
    /// future.
    pub heartbeat_age_ns: Option<u64>,
    /// Context switches that it asked for, by the kernel's word.
    pub voluntary_switches: Option<u64>,
    /// Context switches that were forced on it.
    pub involuntary_switches: Option<u64>,
    /// The share of a core that it used since the last look.
    pub cpu: Option<f64>,
    /// Everything that it counts, by name.
    pub counters: BTreeMap<&'static str, u64>,
}

/// How full a ring is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RingLine {
    /// Its segment's name within the run.
    pub ring: String,
    /// Messages that are in it now; `None`: its technique does not show that to who only reads.
    pub fill: Option<u64>,
    /// Messages that it has room for.
    pub capacity: u64,
}

/// One strategy: its lives, and what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StrategyLine {
    pub strategy: u16,
    /// The number of its incarnation, from 0.
    pub incarnation: u16,
    /// The launcher has seen the incarnation dead.
    pub is_fenced: bool,
    /// How often it has died.
    pub incidents: u64,
    /// What it was quarantined for.
    pub quarantined: Option<String>,
    /// Orders of dead incarnations that were refused.
    pub refused: u64,
    /// Reports that no living incarnation was there to take.
    pub orphaned: u64,
    /// The kill switches that concern it alone or everybody, and what turned each.
    pub killed: Vec<String>,
    pub positions: Vec<Position>,
}

/// Something that went wrong, and how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorLine {
    pub who: String,
    pub what: String,
    pub count: u64,
}

/// One look at a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    pub version: u32,
    pub run: String,
    pub folder: String,
    pub state: Life,
    /// Since the start, in nanoseconds.
    pub elapsed_ns: u64,
    /// `process`, `spsc-mux` and so on.
    pub isolation: String,
    /// What carries the contended hand-offs.
    pub technique: String,
    pub planned: u64,
    /// Orders sent so far, by the strategies' own counters: of a restarted one, since it began
    /// again.
    pub sent: u64,
    /// Orders that the engine has dispatched.
    pub dispatched: u64,
    /// Orders whose last report the engine has.
    pub settled: u64,
    pub rejected: u64,
    /// Orders dispatched a second since the last look.
    pub rate: Option<f64>,
    pub roles: Vec<RoleLine>,
    pub rings: Vec<RingLine>,
    pub strategies: Vec<StrategyLine>,
    /// Kill switches that are on and concern no single strategy.
    pub switches: Vec<String>,
    /// Whether a part of the logs was passed over: positions and switches may lack something.
    pub is_incomplete: bool,
    /// What the stages cost, of the orders that were seen.
    pub stages: Vec<StageLine>,
    pub errors: Vec<ErrorLine>,
    /// Segments that could not be read, and why.
    pub unreadable: Vec<String>,
}

impl Snapshot {
    /// The version of its form.
    pub const VERSION: u32 = 1;
}

/// The longest text of others that is shown, in characters.
const LONGEST: usize = 120;

/// A text that others wrote, as it may be shown: ASCII that prints and a few signs, bounded.
/// Nothing of it can move a cursor, colour a line or turn its direction.
pub fn shown(text: &str) -> String {
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || "µ·–…≥≤×".contains(c);
    text.trim().chars().take(LONGEST).map(|c| if plain(c) { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_shown_moves_a_cursor() {
        assert_eq!(shown("\u{1b}[2J\u{1b}[Hall is well\u{202e}\u{7}\u{9b}31m"), "?[2J?[Hall is well???31m");
        assert_eq!(shown(&"é".repeat(1_000)).len(), LONGEST);
    }
}
